//! Raw formulas and their captions.

use proptest::prelude::*;

use super::Normalizer;
use crate::{Dialect, Error, LabelGraph};

const VOCABULARY: &str = r"
    ! ( ) + , - . / 0 1 2 3 = < > A B N [ ] | a b c f g i k l m n o s t x y z ^ _ { } \{ \} \alpha \cdots \frac
    \infty \int \ldots \leq \neq \lim \limits \log \phi \pi \prime \rightarrow \sin \sqrt \sum \times";

fn normalizer() -> Normalizer {
    Normalizer::new(VOCABULARY.split_whitespace())
}

#[test]
fn raw_formulas_are_written_one_way() {
    let normalizer = normalizer();
    for (raw, expected) in [
        ("", ""),
        ("$ 12 $", "1 2"),
        ("x^2", "x ^ { 2 }"),
        ("x^23", "x ^ { 2 } 3"),
        ("x^2_1", "x _ { 1 } ^ { 2 }"),
        ("x_{}^{ }", "x"),
        (r"x^\alpha", r"x ^ { \alpha }"),
        (r"\frac12", r"\frac { 1 } { 2 }"),
        (r"\dfrac a{b+c}", r"\frac { a } { b + c }"),
        (r"2^\frac1x", r"2 ^ { \frac { 1 } { x } }"),
        (r"{a+b \over 2}c", r"\frac { a + b } { 2 } c"),
        (r"\sqrt2x", r"\sqrt { 2 } x"),
        (r"\sqrt[3]{x}", r"\sqrt [ 3 ] { x }"),
        ("{{a}+{b}}", "a + b"),
        ("{ab}^2", "a b ^ { 2 }"),
        ("{a_1}^2", "a _ { 1 } ^ { 2 }"),
        ("{a^1}^2", "{ a ^ { 1 } } ^ { 2 }"),
        ("{}^2x", "{ } ^ { 2 } x"),
        (r"\left( x \right.", "( x"),
        (r"\left. x \right|", "x |"),
        (r"\Bigg[ x\,\;\!\quad~\ y \Bigg]", "[ x y ]"),
        (r"\displaystyle \rm x \", "x"),
        (r"\mbox{a}\mathrm{ b }\text c", "a b c"),
        (r"\mathrm{log} x + \operatorname{sin}\,y", r"\log x + \sin y"),
        ("l o g ( x )", r"\log ( x )"),
        ("l o g_2 x", r"\log _ { 2 } x"),
        (r"l i m_{x \to 0} x", r"\lim \limits _ { x \rightarrow 0 } x"),
        (r"{sin x \over 2}", r"\frac { \sin x } { 2 }"),
        ("a_{sin}", "a _ { s i n }"),
        (r"A\ltB \lt1 \gt N", "A < B < 1 > N"),
        (r"a\le b\ne c\to\infty", r"a \leq b \neq c \rightarrow \infty"),
        (r"a \not= b", r"a \neq b"),
        (r"1,\dots,n", r"1 , \ldots , n"),
        (r"\lbrack \lbrace x \rbrace \rbrack", r"[ \{ x \} ]"),
        (r"\|x\| \vert y \vert", "| | x | | | y |"),
        (r"\varphi π ≤ ×", r"\phi \pi \leq \times"),
        ("f'(x)", r"f ^ { \prime } ( x )"),
        ("f''^2_n", r"f _ { n } ^ { \prime \prime 2 }"),
        ("f^{'} x^{''}", r"f ^ { \prime } x ^ { \prime \prime }"),
        (r"x\prime", r"x \prime"),
        (r"\sum_{i=1}^n i", r"\sum \limits _ { i = 1 } ^ { n } i"),
        (r"\int\limits^b_a \int x", r"\int \limits _ { a } ^ { b } \int x"),
        (r"{\lim}_{x\to0}\log_2x", r"\lim \limits _ { x \rightarrow 0 } \log _ { 2 } x"),
        (r"\sum\nolimits_i", r"\sum \limits _ { i }"),
    ] {
        assert_eq!(normalizer.normalize(raw).unwrap(), expected, "{raw}");
    }
}

#[test]
fn what_has_no_caption_is_refused_by_its_token() {
    let deep = format!("{}x{}", "{".repeat(200), "}".repeat(200));
    let roots = r"\sqrt".repeat(10_000) + "x";
    let fractions = r"a\over ".repeat(8_000);
    for (raw, position, token, reason) in [
        (r"x + \Omega", 3, r"\Omega", "not in the vocabulary"),
        ("x Q", 2, "Q", "not in the vocabulary"),
        ("a & b", 2, "&", "not in the vocabulary"),
        ("x }", 2, "}", "closes nothing"),
        ("a { x", 2, "{", "not closed"),
        ("x ^", 3, "", "an argument"),
        ("{ x _ }", 4, "}", "an argument"),
        (r"\frac 1", 3, "", "an argument"),
        (r"\frac ^ 2", 2, "^", "an argument"),
        (r"\sqrt [ 3 x", 1, r"\sqrt", "not closed"),
        (r"\sqrt [ { a ] } ] x", 1, r"\sqrt", "contains a bracket"),
        ("x ^ 1 ^ 2", 4, "^", "already has such a script"),
        (r"\limits x", 1, r"\limits", "not in the vocabulary"),
        (&deep, 101, "{", "more than 100 levels"),
        (&roots, 101, r"\sqrt", "more than 100 levels"),
        (&fractions, 201, "a", "more than 100 levels"),
    ] {
        match normalizer().normalize(raw) {
            Err(Error::Formula { position: at, token: found, reason: why }) => {
                assert_eq!((at, found.as_str()), (position, token), "{raw:.60}");
                assert!(why.contains(reason), "{raw:.60}: {why}");
            }
            other => panic!("{raw:.60}: {other:?}"),
        }
    }
}

#[test]
fn a_vocabulary_decides_what_can_be_written() {
    let full = Normalizer::new(["x", "'", "^", "{", "}", r"\le", r"\varphi", r"\phi", r"\sum", "_"]);
    assert_eq!(full.normalize(r"x' \leq \varphi").unwrap(), r"x ^ { ' } \le \varphi");
    assert_eq!(full.normalize(r"\sum_x").unwrap(), r"\sum _ { x }");
    let poor = Normalizer::new(["x", "^"]);
    for raw in ["x^x", r"\frac x x", r"\sqrt x", r"\|"] {
        assert!(poor.normalize(raw).is_err(), "{raw}");
    }
}

/// Raw LaTeX, right more often than not.
fn raw() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "x",
        "12",
        "+",
        "{",
        "}",
        "{a}",
        "^",
        "_",
        "^2",
        "_{i}",
        "'",
        r"\frac",
        r"\frac12",
        r"\sqrt",
        r"\sqrt[3]",
        r"\left(",
        r"\right)",
        r"\sum",
        r"\limits",
        r"\mbox",
        r"\over",
        "[",
        "]",
        "|",
        r"\,",
        "log",
        r"\lt",
    ]);
    prop::collection::vec(token, 0..25).prop_map(|tokens| tokens.join(" "))
}

proptest! {
    #[test]
    fn any_text_gives_a_caption_or_an_error(text in "\\PC*") {
        let _ = normalizer().normalize(&text);
    }

    #[test]
    fn captions_are_of_the_vocabulary_and_are_their_own_captions(raw in raw()) {
        let normalizer = normalizer();
        if let Ok(caption) = normalizer.normalize(&raw) {
            for token in caption.split_whitespace() {
                prop_assert!(normalizer.has(token), "{}: {}", caption, token);
            }
            prop_assert_eq!(normalizer.normalize(&caption).ok(), Some(caption.clone()));
            prop_assert!(LabelGraph::from_latex(&caption, Dialect::Clean).is_ok(), "{}", caption);
        }
    }
}
