//! Parses LaTeX into an expression tree, in linear time and without recursion.
//!
//! The grammar is that of the official CROHME tools, a parsing expression grammar: what can be parsed from a token on
//! depends only on the tokens after it. A table is filled from the last token to the first, each entry in constant time
//! from entries to its right; then the tree is built from the table with an explicit stack. No choice is tried twice,
//! however many parentheses a looping prediction opens.

use crate::error::{Error, Result, shortened};
use crate::expression::Expression;
use crate::grammar::Table;
use crate::lexer::split;
use crate::symbols::Dialect;

/// Parses a formula.
///
/// ```
/// use comer_eval::expression::Kind;
/// use comer_eval::latex::parse;
/// use comer_eval::Dialect;
///
/// let expression = parse(r"\frac { 1 } { x }", Dialect::Official).unwrap();
/// assert_eq!(expression.nodes()[0].kind, Kind::Fraction);
/// assert!(parse(r"\frac { 1 } {", Dialect::Official).is_err());
/// ```
pub fn parse(formula: &str, dialect: Dialect) -> Result<Expression> {
    check_length(formula)?;
    let table = Table::fill(split(formula), dialect);
    let stop = table.row_end[0];
    match table.tokens.get(stop) {
        None => Ok(table.expression()),
        Some(token) => Err(Error::Formula {
            position: stop + 1,
            token: token.text.into(),
            reason: table.reason(stop).into(),
        }),
    }
}

/// Most bytes of a formula: parsing takes hundreds of bytes of memory for each, and comparing two formulas the product of their
/// lengths in time. The longest of CROHME has a kilobyte.
pub const MOST_BYTES: usize = 64 << 10;

/// Refuses formulas that are too long to be parsed or compared.
pub(crate) fn check_length(formula: &str) -> Result<()> {
    if formula.len() <= MOST_BYTES {
        return Ok(());
    }
    let reason = format!("the formula has {} bytes, expected at most {MOST_BYTES}", formula.len());
    let token = formula.split_whitespace().next().map(shortened).unwrap_or_default();
    Err(Error::Formula { position: 1, token, reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_latex_is_refused_by_its_token() {
        for (formula, position, token) in [
            ("a }", 2, "}"),
            ("{ a", 1, "{"),
            (r"x + \frac { 1 } {", 3, r"\frac"),
            (r"\frac { 1 }", 1, r"\frac"),
            (r"\sqrt { a", 1, r"\sqrt"),
            (r"\sqrt [ 3 { x }", 1, r"\sqrt"),
            ("x ^", 2, "^"),
            (r"\limits x", 1, r"\limits"),
            (r"x \nonsense", 2, r"\nonsense"),
            (r"( \right )", 2, r"\right"),
            ("a & b", 2, "&"),
        ] {
            match parse(formula, Dialect::Official) {
                Err(Error::Formula { position: at, token: found, .. }) => {
                    assert_eq!((at, found.as_str()), (position, token), "{formula}");
                }
                other => panic!("{formula}: {other:?}"),
            }
        }
        assert!(parse(r"x \nonsense", Dialect::Clean).is_ok());
    }

    #[test]
    fn formulas_that_are_too_long_are_refused() {
        let long = "x ".repeat(MOST_BYTES / 2);
        assert!(parse(&long, Dialect::Clean).is_ok());
        for formula in [long + "x", "y".repeat(1 << 20)] {
            let message = parse(&formula, Dialect::Clean).unwrap_err().to_string();
            assert!(message.contains("bytes, expected at most 65536"), "{message}");
            assert!(message.len() < 500, "{} bytes", message.len());
        }
    }

    /// Formulas that are hard for a backtracking parser.
    fn hard(tokens: usize) -> Vec<String> {
        let repeated = |pattern: &str| pattern.repeat(tokens / pattern.split_whitespace().count());
        vec![
            repeated("( "),
            repeated("( [ | "),
            repeated("{ "),
            repeated("x ^ "),
            repeated("x ^ { "),
            repeated(r"\frac { "),
            repeated(r"\sqrt [ "),
            repeated(r"\sqrt ( "),
            repeated(r"\left ( "),
            repeated("x _ a ^ "),
            repeated("x + 1 "),
            format!("{}{}", "{ ".repeat(tokens / 2), "} ".repeat(tokens / 2)),
            format!("{}{}", "( ".repeat(tokens / 2), ") ".repeat(tokens / 2)),
            format!("{}{}", r"\sqrt ( ".repeat(tokens / 3), ") ".repeat(tokens / 3)),
        ]
    }

    #[test]
    fn the_work_is_linear_in_the_tokens() {
        for (short, long) in hard(12).into_iter().zip(hard(12_000)) {
            for formula in [short, long] {
                let table = Table::fill(split(&formula), Dialect::Official);
                let count = table.tokens.len();
                if table.row_end[0] == count {
                    let (expression, steps) = table.expression_and_steps();
                    assert!(steps <= 3 * count + 3, "{steps} steps for {count} tokens: {:.40}", formula);
                    assert!(expression.nodes().len() <= steps);
                }
            }
        }
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        for (open, close) in
            [("{ ", "} "), ("( ", ") "), ("x ^ { ", "} "), (r"\sqrt { ", "} "), (r"\frac { 1 } { ", "} ")]
        {
            // As deep as a formula may be.
            let depth = (MOST_BYTES - 1) / (open.len() + 1 + close.len());
            let formula = format!("{}x{}", open.repeat(depth), format!(" {close}").repeat(depth));
            assert!(crate::LabelGraph::from_latex(&formula, Dialect::Official).is_ok());
            assert!(parse(&open.repeat(depth), Dialect::Clean).is_err() || open == "( ");
        }
    }

    /// Token soup that is LaTeX more often than not.
    fn soup() -> impl Strategy<Value = String> {
        let token = prop::sample::select(vec![
            "x",
            "1",
            "2.5",
            "+",
            "(",
            ")",
            "[",
            "]",
            "|",
            "{",
            "}",
            "{ }",
            "{ a }",
            "^",
            "_",
            "^ { 2 }",
            r"\frac",
            r"\sqrt",
            r"\sqrt [",
            r"\limits",
            r"\left (",
            r"\right )",
            r"\sum",
            r"\hat",
            r"\mathrm",
            r"\,",
            "'",
            "&",
            r"\",
            "é",
        ]);
        prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.join(" "))
    }

    proptest! {
        #[test]
        fn any_text_gives_a_tree_or_an_error(text in "\\PC*") {
            for dialect in [Dialect::Official, Dialect::Clean] {
                let _ = parse(&text, dialect);
            }
        }

        #[test]
        fn trees_hold_together(formula in soup()) {
            for dialect in [Dialect::Official, Dialect::Clean] {
                let Ok(expression) = parse(&formula, dialect) else { continue };
                let mut parents = vec![0; expression.nodes().len()];
                for parent in 0..expression.nodes().len() {
                    for child in expression.children(parent) {
                        prop_assert!(child > parent);
                        parents[child] += 1;
                    }
                }
                prop_assert!(parents.iter().skip(1).all(|&count| count == 1));
                let graph = crate::LabelGraph::from_expression(&expression);
                let same = crate::compare::compare(&graph, &graph);
                prop_assert!(same.total() == 0 && same.same_structure);
            }
        }

        #[test]
        fn spaces_around_tokens_change_nothing_in_the_clean_dialect(formula in soup()) {
            let nodes = |text: &str| crate::LabelGraph::from_latex(text, Dialect::Clean).map(|graph| graph.nodes()).ok();
            let spaced: Vec<&str> = split(&formula).iter().map(|token| token.text).collect();
            prop_assert_eq!(nodes(&formula), nodes(&spaced.join("  ")));
        }
    }
}
