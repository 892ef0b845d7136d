//! Formulas as MathML, for reports.
//!
//! Without recursion, because a looping prediction may be nested arbitrarily deep.

use crate::error::Result;
use crate::expression::{Expression, Kind};
use crate::latex::parse;
use crate::symbols::{Dialect, character_of};

/// A formula as a `<math>` element.
///
/// ```
/// let math = comer_eval::mathml::mathml(r"\frac { 1 } { x }").unwrap();
/// assert!(math.contains("<mfrac><mn>1</mn><mi>x</mi></mfrac>"));
/// ```
pub fn mathml(formula: &str) -> Result<String> {
    let expression = parse(formula, Dialect::Clean)?;
    let mut out = String::from(r#"<math display="block">"#);
    write_expression(&expression, &mut out);
    out.push_str("</math>");
    Ok(out)
}

/// Escapes text for HTML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
    out
}

enum Step {
    Node(usize),
    Close(&'static str),
}

fn write_expression(expression: &Expression, out: &mut String) {
    let mut steps = vec![Step::Node(0)];
    while let Some(step) = steps.pop() {
        let node = match step {
            Step::Close(tag) => {
                out.push_str(tag);
                continue;
            }
            Step::Node(node) => node,
        };
        let children: Vec<usize> = expression.children(node).collect();
        let kind = &expression.nodes()[node].kind;
        let (open, close) = match kind {
            Kind::Symbol(label) => {
                out.push_str(&symbol(label));
                continue;
            }
            Kind::Row => ("<mrow>", "</mrow>"),
            Kind::Fraction => ("<mfrac>", "</mfrac>"),
            Kind::Root => ("<msqrt>", "</msqrt>"),
            Kind::IndexedRoot => ("<mroot>", "</mroot>"),
            Kind::Sub => ("<msub>", "</msub>"),
            Kind::Sup => ("<msup>", "</msup>"),
            Kind::SubSup => ("<msubsup>", "</msubsup>"),
            Kind::Under => ("<munder>", "</munder>"),
            Kind::Over => ("<mover>", "</mover>"),
            Kind::UnderOver => ("<munderover>", "</munderover>"),
        };
        out.push_str(open);
        steps.push(Step::Close(close));
        steps.extend(children.into_iter().rev().map(Step::Node));
    }
}

fn symbol(label: &str) -> String {
    let text = escaped(&character_of(label));
    let is_all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    if is_all(|character| character.is_ascii_digit() || character == '.') && text != "." {
        format!("<mn>{text}</mn>")
    } else if is_all(char::is_alphabetic) || text.is_empty() {
        format!("<mi>{text}</mi>")
    } else {
        // Operators keep their size and place, so that the report shows the prediction literally.
        format!(r#"<mo stretchy="false" movablelimits="false">{text}</mo>"#)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_each_kind() {
        for (formula, expected) in [
            ("x", "<mi>x</mi>"),
            (r"\alpha _ 1 ^ 2", "<msubsup><mi>α</mi><mn>1</mn><mn>2</mn></msubsup>"),
            (r"\sqrt [ 3 ] { x }", "<mroot><mi>x</mi><mn>3</mn></mroot>"),
            (r"\sin x", "<mrow><mi>sin</mi><mi>x</mi></mrow>"),
            (r"\lim \limits _ x", "<munder><mi>lim</mi><mi>x</mi></munder>"),
            ("a < b", "<mrow><mi>a</mi>"),
            (r"\frac { \, } { x }", "<mfrac><mrow></mrow><mi>x</mi></mfrac>"),
            (r"\frac \, { x }", "<mfrac><mrow></mrow><mi>x</mi></mfrac>"),
            (r"\,", "<mrow></mrow>"),
        ] {
            let found = mathml(formula).unwrap();
            assert!(found.contains(expected), "{formula}: {found}");
        }
        assert!(mathml("a < b , c").unwrap().contains("&lt;"));
        assert!(mathml("a , b").unwrap().contains(">,<"));
        assert!(mathml("{").is_err());
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let formula = format!("{}x{}", "x ^ { ".repeat(50_000), " }".repeat(50_000));
        assert!(mathml(&formula).unwrap().ends_with("</math>"));
    }
}
