//! Estimates against their definition, pruning against its limit, and what stays out of the text.

use std::collections::HashSet;

use super::*;

/// A made-up text: sums of letters, scripts and fractions.
fn text(vocab: &Vocab, formulas: usize) -> Text {
    let mut state = 7u64;
    let mut pick = |count: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    let mut lines: Vec<String> = Vec::new();
    for _ in 0..formulas {
        let mut formula = String::new();
        for part in 0..1 + pick(4) {
            if part > 0 {
                formula += ["+ ", "- ", "= "][pick(3)];
            }
            let letter = ["x", "y", "a", "b", "n"][pick(5)];
            formula += &match pick(4) {
                0 => format!("{letter} _ {{ {} }} ", pick(3)),
                1 => format!("{letter} ^ {{ 2 }} "),
                2 => format!("\\frac {{ {letter} }} {{ {} }} ", 1 + pick(4)),
                _ => format!("{letter} "),
            };
        }
        lines.push(formula);
    }
    let mut text = Text::default();
    let (left, right) = lines.split_at(formulas / 3);
    let counted = |lines: &'_ [String]| lines.iter().map(|line| (1, line.clone())).collect::<Vec<_>>();
    for (name, lines, weight) in [("left", counted(left), 2.0), ("right", counted(right), 0.5)] {
        let lines = lines.iter().map(|(count, line)| (*count, line.as_str()));
        text.add(name, lines, weight, true, vocab, &HashSet::new());
    }
    text
}

#[test]
fn estimates_are_those_worked_out_by_hand() {
    // a b, a b, a c: bigrams start-a 3, a-b 2, a-c 1, b-end 2, c-end 1. The counts of counts 2, 2, 1, 0 give discounts
    // 1/3, 1.5 and 2.9 (limited to 3 - 0.1).
    let vocab = Vocab::new(["a", "b", "c"]).unwrap();
    let (a, b, c) = (3, 4, 5);
    let mut text = Text::default();
    text.add("list", [(2, "a b"), (1, "a c")], 1.0, true, &vocab, &HashSet::new());
    let estimate = Estimate::new(&text.lines, vocab.len(), (SOS, EOS), 2);
    // Unigrams count what stands before: end 2 (after b and c), a, b, c 1 each; counts of counts 3, 1, 0, 0 give
    // discounts 0.6 and 1.9 (limited to 2 - 0.1), and what is left is shared equally by four.
    let left = (3.0 * 0.6 + 1.9) / 5.0;
    let unigram = [(EOS, 0.1 / 5.0 + left / 4.0), (a, 0.4 / 5.0 + left / 4.0), (b, 0.4 / 5.0 + left / 4.0)];
    for (token, expected) in unigram {
        assert!((estimate.probability(&[], token) - expected).abs() < 1e-9, "{token}");
    }
    // After a: b twice (discount 1.5), c once (discount 1/3); what is left goes by the unigrams.
    let left = (1.5 + 1.0 / 3.0) / 3.0;
    let [b_below, c_below] = [b, c].map(|token| estimate.probability(&[], token));
    assert!((estimate.probability(&[a], b) - (0.5 / 3.0 + left * b_below)).abs() < 1e-9);
    assert!((estimate.probability(&[a], c) - (2.0 / 3.0 / 3.0 + left * c_below)).abs() < 1e-9);
    assert!((estimate.probability(&[a], EOS) - left * estimate.probability(&[], EOS)).abs() < 1e-9);
}

#[test]
fn probabilities_sum_to_one_before_and_after_rounding() {
    let vocab = Vocab::crohme();
    let text = text(&vocab, 60);
    let estimate = Estimate::new(&text.lines, vocab.len(), (SOS, EOS), 4);
    let mut contexts: HashSet<Vec<TokenId>> = HashSet::from([vec![]]);
    for line in text.lines.iter().take(40) {
        let line = [&[SOS][..], &line.tokens].concat();
        contexts.extend(line.windows(3).map(<[TokenId]>::to_vec));
        contexts.insert(line[..line.len().min(2)].to_vec());
    }
    for context in &contexts {
        let sum: f64 = (0..vocab.len() as TokenId).map(|token| estimate.probability(context, token)).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{context:?}: {sum}");
    }
    let options = Options { order: 4, ..Options::default() };
    let model = train(&text, &vocab, &options).unwrap();
    let mut row = Vec::new();
    for direction in [Direction::LeftToRight, Direction::RightToLeft] {
        for line in &text.lines {
            let mut state = model.start(direction);
            for &token in &line.tokens {
                model.log_probabilities(&state, &mut row);
                let sum: f64 = row.iter().map(|&value| f64::from(value).exp()).sum();
                assert!((sum - 1.0).abs() < 1e-4, "{sum}");
                state = model.advance(&state, token);
            }
        }
    }
    // Rounding moves probabilities by less than a codebook step.
    let plain = LanguageModel { recurrence: Recurrence::default(), ..model };
    let line = &text.lines[0].tokens;
    let rounded = plain.score(Direction::LeftToRight, line);
    let whole = [&[SOS][..], line].concat();
    for (place, &value) in rounded.iter().enumerate().take(line.len()) {
        let context = &whole[(place + 1).saturating_sub(3)..=place];
        let exact = estimate.probability(context, line[place]).ln();
        assert!((f64::from(value) - exact).abs() < 0.2, "{value} {exact}");
    }
}

#[test]
fn smaller_models_are_worse_and_keep_to_their_size() {
    let vocab = Vocab::crohme();
    let text = text(&vocab, 3000);
    let held_out: Vec<Vec<TokenId>> = text.lines[..200].iter().map(|line| line.tokens.clone()).collect();
    let mut before = 0.0;
    for max_bytes in [600_000, 13_500, 11_500] {
        let model = train(&text, &vocab, &Options { max_bytes, ..Options::default() }).unwrap();
        let bytes = model.to_bytes().unwrap();
        assert!(bytes.len() <= max_bytes, "{} of {max_bytes}", bytes.len());
        assert_eq!(
            bytes,
            train(&text, &vocab, &Options { max_bytes, ..Options::default() }).unwrap().to_bytes().unwrap()
        );
        let [left, right] = perplexities(&model, &held_out);
        assert!(left > before && (left / right).ln().abs() < 0.3, "{left} {right} after {before}");
        before = left;
    }
    assert!(train(&text, &vocab, &Options { max_bytes: 1000, ..Options::default() }).is_err());
    assert!(train(&text, &vocab, &Options { order: 9, ..Options::default() }).is_err());
    assert!(train(&Text::default(), &vocab, &Options::default()).is_err());
}

#[test]
fn a_list_with_more_weight_counts_for_more() {
    let vocab = Vocab::crohme();
    let held_out = [vocab.encode("x ^ { 2 } + y ^ { 2 }").unwrap()];
    let perplexity = |weight: f64| {
        let mut text = Text::default();
        let squares = ["x ^ { 2 }", "y ^ { 2 } + 1", "a ^ { 2 } + b", "x + y"];
        let others = ["a _ { 1 }", "b _ { 2 } - c", "\\sin x", "n !", "\\frac { a } { b }"];
        text.add("squares", squares.map(|line| (1, line)), weight, false, &vocab, &HashSet::new());
        text.add("others", others.map(|line| (1, line)), 1.0, false, &vocab, &HashSet::new());
        perplexities(&train(&text, &vocab, &Options::default()).unwrap(), &held_out)[0]
    };
    assert!(perplexity(5.0) < perplexity(1.0) && perplexity(1.0) < perplexity(0.2));
}

#[test]
fn excluded_formulas_of_any_length_stay_out_and_are_counted() {
    let vocab = Vocab::crohme();
    let exclude = HashSet::from(["x", "a + b"].map(|formula| vocab.encode(formula).unwrap()));
    let formulas = [
        (1, "x"),
        (9, "x"),
        (1, "a + b"),
        (1, "a  +  b"),
        (2, "a + b + c"),
        (3, "y"),
        (1, "\\foo x"),
        (4, "y"),
    ];
    let mut text = Text::default();
    text.add("list", formulas, 1.0, false, &vocab, &exclude);
    assert!(text.lines.iter().all(|line| !exclude.contains(&line.tokens)));
    let expected = List { name: "list".into(), weight: 1.0, formulas: 2, excluded: 2, unknown: 1 };
    assert_eq!(text.lists, [expected]);
    assert!(text.lines.iter().all(|line| line.count == 1));
    let mut counted = Text::default();
    counted.add("list", formulas, 1.0, true, &vocab, &exclude);
    assert_eq!(counted.lines.iter().map(|line| line.count).collect::<Vec<_>>(), [2, 7]);
}

#[test]
fn lists_are_read_with_counts_names_or_nothing_before_the_formula() {
    let read = |text| parse_list(text).unwrap();
    let list =
        |pairs: &[(u32, &str)]| pairs.iter().map(|(n, line)| (*n, line.to_string())).collect::<Vec<_>>();
    assert_eq!(read("3\tx + y\n1\tz\n\n"), list(&[(3, "x + y"), (1, "z")]));
    assert_eq!(read("12\tx + y\nname\tz\n"), list(&[(1, "x + y"), (1, "z")]), "names");
    assert_eq!(read("x + y\nz\n"), list(&[(1, "x + y"), (1, "z")]));
    assert_eq!(read("{\"id\":\"1\",\"tokens\":\"x\"}\n"), list(&[(1, "x")]));
    assert!(parse_list("{\"id\":\"1\"}\n").unwrap_err().contains("line 1"));
}
