//! LaTeX as MathML, for the page, the program and reports.
//!
//! What the model writes is set here, with the index of each symbol's token and with what LaTeX does by itself: limits below
//! and above sums, spaces around functions, no spaces around a sign or in scripts, delimiters that grow after `\left`. All
//! other LaTeX that people type (text, fonts, matrices) is set by `general`, without indices.
//!
//! Without recursion, because a looping prediction may be nested arbitrarily deep.

mod general;

use crate::error::Result;
use crate::expression::{Expression, Kind};
use crate::latex::parse;
use crate::lexer::split;
use crate::symbols::{Command, Dialect, character_of, command};

/// The attribute that makes an element MathML outside of HTML.
const NAMESPACE: &str = r#" xmlns="http://www.w3.org/1998/Math/MathML""#;
/// Symbols whose scripts stand below and above them in display style.
const STACKED: &str = "∑∏∐⋂⋃⋁⋀⨁⨂";
/// Functions with the same property.
const STACKED_FUNCTIONS: [&str; 11] =
    [r"\lim", r"\liminf", r"\limsup", r"\max", r"\min", r"\sup", r"\inf", r"\det", r"\gcd", r"\Pr", r"\arg"];
/// Combining marks and their spacing forms, which MathML needs.
const MARKS: [(&str, &str); 11] = [
    ("\u{302}", "^"),
    ("\u{20d7}", "→"),
    ("\u{20d6}", "←"),
    ("\u{307}", "˙"),
    ("\u{308}", "¨"),
    ("\u{303}", "~"),
    ("\u{30c}", "ˇ"),
    ("\u{306}", "˘"),
    ("\u{301}", "´"),
    ("\u{300}", "`"),
    ("\u{af}", "‾"),
];

/// A formula as a `<math>` element in display style; `data-token` is the number of a symbol's token.
///
/// ```
/// let math = comer_eval::mathml::mathml(r"\frac 1 x").unwrap();
/// assert!(math.contains(r#"<mfrac data-token="0"><mn data-token="1">1</mn><mi data-token="2">x</mi></mfrac>"#));
/// ```
pub fn mathml(formula: &str) -> Result<String> {
    let tokens = split(formula);
    if tokens.iter().any(|token| general::is_needed(token.text)) {
        return general::mathml(formula, &tokens);
    }
    let expression = parse(formula, Dialect::Clean)?;
    let mut out = format!(r#"<math{NAMESPACE} display="block">"#);
    Writer { expression: &expression }.write(&mut out);
    out.push_str("</math>");
    Ok(out)
}

/// As [`mathml`], without the namespace, which HTML does not need.
pub fn mathml_in_html(formula: &str) -> Result<String> {
    mathml(formula).map(|math| math.replacen(NAMESPACE, "", 1))
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

/// Output that is left to write.
enum Task {
    Node { node: usize, place: Place },
    Close(&'static str),
}

/// The context that determines the spaces of a node.
#[derive(Clone, Copy, Default)]
struct Place {
    /// In a script, where LaTeX leaves no spaces.
    script: bool,
    /// After an operand.
    after_operand: bool,
    /// Before an operand.
    before_operand: bool,
    /// The mark of an accent.
    accent: bool,
    /// The base of scripts that `\limits` keeps below and above it.
    limits: bool,
}

struct Writer<'a> {
    expression: &'a Expression,
}

impl Writer<'_> {
    fn write(&self, out: &mut String) {
        let mut tasks = vec![Task::Node { node: 0, place: Place::default() }];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Close(name) => out.push_str(&format!("</{name}>")),
                Task::Node { node, place } => self.write_node(node, place, out, &mut tasks),
            }
        }
    }

    fn write_node(&self, node: usize, place: Place, out: &mut String, tasks: &mut Vec<Task>) {
        let written = &self.expression.nodes()[node];
        let token = written.token.map_or(String::new(), |token| format!(r#" data-token="{token}""#));
        let stacked = || self.expression.children(node).next().is_some_and(|base| self.is_stacked(base));
        let (name, attributes) = match &written.kind {
            Kind::Symbol(label) => {
                out.push_str(&symbol(label, &token, written.grows, place));
                return;
            }
            Kind::Row => ("mrow", ""),
            Kind::Fraction => ("mfrac", ""),
            Kind::Root => ("msqrt", ""),
            Kind::IndexedRoot => ("mroot", ""),
            Kind::Sub => (if stacked() { "munder" } else { "msub" }, ""),
            Kind::Sup => (if stacked() { "mover" } else { "msup" }, ""),
            Kind::SubSup => (if stacked() { "munderover" } else { "msubsup" }, ""),
            Kind::Under if written.token.is_some() => ("munder", r#" accentunder="true""#),
            Kind::Over if written.token.is_some() => ("mover", r#" accent="true""#),
            Kind::Under => ("munder", ""),
            Kind::Over => ("mover", ""),
            Kind::UnderOver => ("munderover", ""),
        };
        out.push_str(&format!("<{name}{attributes}{token}>"));
        tasks.push(Task::Close(name));
        let children: Vec<usize> = self.expression.children(node).collect();
        let accent = matches!(written.kind, Kind::Under | Kind::Over) && written.token.is_some();
        let in_row = written.kind == Kind::Row;
        for (index, &child) in children.iter().enumerate().rev() {
            let place = if in_row {
                let before = index.checked_sub(1).map(|before| children[before]);
                Place {
                    script: place.script,
                    after_operand: before.is_some_and(|before| self.ends_operand(before)),
                    before_operand: children.get(index + 1).is_some_and(|&next| self.starts_operand(next)),
                    ..Place::default()
                }
            } else if index == 0 {
                // A base has the context of the whole; fractions and radicands start a new one.
                let base = !matches!(written.kind, Kind::Fraction | Kind::Root | Kind::IndexedRoot);
                let limits = matches!(written.kind, Kind::Under | Kind::Over | Kind::UnderOver) && !accent;
                if base {
                    Place { limits, ..place }
                } else {
                    Place { script: place.script, ..Place::default() }
                }
            } else {
                let script = place.script || !matches!(written.kind, Kind::Fraction | Kind::Root);
                Place { script, accent, ..Place::default() }
            };
            tasks.push(Task::Node { node: child, place });
        }
    }

    /// The innermost base of a node, if it is a symbol.
    fn core(&self, mut node: usize) -> Option<&str> {
        loop {
            match &self.expression.nodes()[node].kind {
                Kind::Symbol(label) => return Some(label),
                Kind::Sub | Kind::Sup | Kind::SubSup | Kind::Under | Kind::Over | Kind::UnderOver => {
                    node = self.expression.children(node).next()?;
                }
                _ => return None,
            }
        }
    }

    /// Whether an operand ends here: a number, a letter, a fraction, a closing delimiter.
    fn ends_operand(&self, node: usize) -> bool {
        let Some(label) = self.core(node) else { return true };
        let ends = |character: char| character.is_alphanumeric() || ")]}⟩⌋⌉|!∞…′∂".contains(character);
        !is_function(label) && character_of(label).chars().all(ends)
    }

    /// Whether an operand other than a parenthesis starts here.
    fn starts_operand(&self, node: usize) -> bool {
        let Some(label) = self.core(node) else { return true };
        let text = character_of(label);
        !text.is_empty()
            && text.chars().all(|character| character.is_alphanumeric() || "∞∂∫∑√".contains(character))
    }

    fn is_stacked(&self, base: usize) -> bool {
        let Kind::Symbol(label) = &self.expression.nodes()[base].kind else { return false };
        let text = character_of(label);
        STACKED_FUNCTIONS.contains(&label.as_str()) || text.chars().count() == 1 && STACKED.contains(&text)
    }
}

fn is_function(label: &str) -> bool {
    matches!(command(label), Some(Command::Function(_)))
}

fn symbol(label: &str, token: &str, grows: bool, place: Place) -> String {
    let own = character_of(label);
    let text = if place.accent {
        MARKS.iter().find(|(mark, _)| *mark == own).map_or(own.as_str(), |(_, alone)| alone).to_string()
    } else {
        own
    };
    let shown = escaped(&text);
    let is_all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    if is_function(label) {
        let space = |wanted: bool| if wanted && !place.script { "0.1667em" } else { "0em" };
        let (left, right) = (space(place.after_operand), space(place.before_operand));
        let movable = STACKED_FUNCTIONS.contains(&label) && !place.limits;
        return format!(
            r#"<mo{token} form="prefix" lspace="{left}" rspace="{right}" movablelimits="{movable}">{shown}</mo>"#
        );
    }
    if is_all(|character| character.is_ascii_digit() || character == '.') && text != "." {
        return format!("<mn{token}>{shown}</mn>");
    }
    // LaTeX sets capital Greek letters upright.
    if is_all(|character| ('Α'..='Ω').contains(&character)) || text == "∞" || text == "∂" {
        return format!(r#"<mi{token} mathvariant="normal">{shown}</mi>"#);
    }
    if is_all(char::is_alphabetic) || text.is_empty() {
        return format!("<mi{token}>{shown}</mi>");
    }
    let mut attributes = String::new();
    let line = place.accent && matches!(text.as_str(), "‾" | "_");
    if line {
        attributes += r#" stretchy="true""#;
    } else if !grows {
        attributes += r#" stretchy="false""#;
    }
    if place.limits {
        attributes += r#" movablelimits="false""#;
    }
    if "+−±∓".contains(text.as_str()) && !place.after_operand {
        attributes += r#" form="prefix""#;
    } else if place.script || matches!(text.as_str(), "|" | "." | "/" | "…") {
        attributes += r#" lspace="0em" rspace="0em""#;
    }
    format!("<mo{token}{attributes}>{shown}</mo>")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The MathML without the numbers of the tokens.
    fn plain(formula: &str) -> String {
        let math = mathml(formula).unwrap();
        let mut parts = math.split(" data-token=\"");
        let first = parts.next().unwrap_or_default().to_string();
        parts.fold(first, |text, part| text + part.split_once('"').map_or("", |(_, rest)| rest))
    }

    #[test]
    fn limits_stand_where_latex_puts_them() {
        for (formula, expected) in [
            (r"\sum _ i ^ n", "<munderover><mo"),
            (r"\sum \limits _ i ^ n", "<munderover><mo"),
            (r"\lim _ x", "<munder><mo"),
            (r"\sum \limits _ i", r#"movablelimits="false">∑"#),
            (r"\int _ 0 ^ 1", "<msubsup><mo"),
            (r"\int \limits _ 0 ^ 1", "<munderover><mo"),
            ("x _ i ^ 2", "<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>"),
            (
                r"\hat x",
                r#"<mover accent="true"><mi>x</mi><mo stretchy="false" lspace="0em" rspace="0em">^</mo>"#,
            ),
        ] {
            let found = plain(formula);
            assert!(found.contains(expected), "{formula}: {found}");
        }
    }

    #[test]
    fn spaces_are_latexs() {
        let sine = |left: &str, right: &str| {
            format!(r#"<mo form="prefix" lspace="{left}" rspace="{right}" movablelimits="false">sin</mo>"#)
        };
        for (formula, expected) in [
            (r"\sin x", sine("0em", "0.1667em")),
            (r"2 \sin ( x )", sine("0.1667em", "0em")),
            (r"\sin ^ 2 x", sine("0em", "0.1667em")),
            (r"e ^ { \sin x }", sine("0em", "0em")),
            ("a - b", r#"<mo stretchy="false">−</mo>"#.into()),
            ("- b", r#"<mo stretchy="false" form="prefix">−</mo>"#.into()),
            ("( - b )", r#"<mo stretchy="false" form="prefix">−</mo>"#.into()),
            ("a = - b", r#"<mo stretchy="false" form="prefix">−</mo>"#.into()),
            ("| a | - b", r#"<mo stretchy="false">−</mo>"#.into()),
            ("x _ { i = 1 }", r#"<mo stretchy="false" lspace="0em" rspace="0em">=</mo>"#.into()),
            (r"\Delta", r#"<mi mathvariant="normal">Δ</mi>"#.into()),
            (r"\overline { a b }", r#"<mo stretchy="true" lspace="0em" rspace="0em">‾</mo>"#.into()),
            (r"\left ( x \right )", "<mo>(</mo>".into()),
            ("( x )", r#"<mo stretchy="false">(</mo>"#.into()),
        ] {
            let found = plain(formula);
            assert!(found.contains(&expected), "{formula}: {found}");
        }
    }

    #[test]
    fn symbols_know_their_tokens() {
        let math = mathml(r"\frac { a } { \sqrt { b } } ^ { 2 }").unwrap();
        for expected in [
            r#"<mfrac data-token="0">"#,
            r#"<mi data-token="2">a</mi>"#,
            r#"<msqrt data-token="5">"#,
            r#"<mi data-token="7">b</mi>"#,
            r#"<mn data-token="12">2</mn>"#,
        ] {
            assert!(math.contains(expected), "{math}");
        }
    }

    #[test]
    fn text_is_escaped_and_bad_latex_refused() {
        assert!(mathml("a < b").unwrap().contains("&lt;"));
        let strange = mathml("<script>alert(1)</script>").unwrap();
        assert!(!strange.contains("<script"), "{strange}");
        assert!(mathml(r"\frac {").is_err());
        let deep = format!("{}x{}", "x ^ { ".repeat(7_000), " }".repeat(7_000));
        assert!(mathml(&deep).unwrap().ends_with("</math>"));
    }
}
