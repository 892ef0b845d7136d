//! LaTeX beyond what the model writes: text, fonts, matrices. The crate `math-core` sets it.

use std::sync::LazyLock;

use math_core::{LatexToMathML, MathCoreConfig, MathDisplay};

use crate::error::{Error, Result};
use crate::lexer::Token;
use crate::symbols::{Command, command};

/// `math-core` recurses: so deep may groups and arguments be nested, which takes half a megabyte of stack.
const DEEPEST: usize = 100;

static CONVERTER: LazyLock<Option<LatexToMathML>> = LazyLock::new(|| {
    LatexToMathML::new(MathCoreConfig { xml_namespace: true, ..MathCoreConfig::default() }).ok()
});

/// Whether a token needs this module: a command that is not known, a font, a column.
pub(super) fn is_needed(token: &str) -> bool {
    token == "&" || token.starts_with('\\') && matches!(command(token), None | Some(Command::Face))
}

/// A formula as a `<math>` element in display style.
pub(super) fn mathml(formula: &str, tokens: &[Token]) -> Result<String> {
    check_depth(tokens)?;
    let Some(converter) = &*CONVERTER else {
        return Err(error(tokens, 0, "cannot be shown".into()));
    };
    let result = converter.convert_with_local_state(formula, MathDisplay::Block);
    result.map(|result| result.mathml).map_err(|wrong| {
        let end = |token: &Token| token.text.as_ptr() as usize + token.text.len() - formula.as_ptr() as usize;
        let place = tokens.iter().position(|token| end(token) > wrong.0.start);
        error(tokens, place.unwrap_or(tokens.len().saturating_sub(1)), wrong.error_message())
    })
}

fn error(tokens: &[Token], place: usize, reason: String) -> Error {
    let token = tokens.get(place).map_or("", |token| token.text);
    Error::Formula { position: place + 1, token: token.into(), reason: reason.into() }
}

/// Limits the recursion: open groups, commands that are each other's argument, and commands that may act on all that follows.
fn check_depth(tokens: &[Token]) -> Result<()> {
    let (mut depth, mut commands, mut switches) = (0usize, 0usize, 0usize);
    for (place, token) in tokens.iter().enumerate() {
        match token.text {
            "{" | "[" | r"\left" | r"\begin" => depth += 1,
            "}" | "]" | r"\right" | r"\end" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_command = token.text.starts_with('\\') || matches!(token.text, "^" | "_");
        commands = if is_command { commands + 1 } else { 0 };
        let is_switch = matches!(command(token.text), None | Some(Command::Style));
        let is_structure = matches!(token.text, r"\\" | r"\begin" | r"\end");
        switches += usize::from(token.text.starts_with('\\') && is_switch && !is_structure);
        if depth + commands + switches > DEEPEST {
            return Err(error(tokens, place, format!("nested deeper than {DEEPEST}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use crate::mathml::mathml;

    #[test]
    fn what_people_type_is_shown() {
        for (formula, expected) in [
            (r"\mathbb{R}^n", "<msup><mi>ℝ</mi><mi>n</mi></msup>"),
            (r"\text{if } x>0", "<mtext>if\u{a0}</mtext>"),
            (r"\mathrm{d}x", r#"<mi mathvariant="normal">d</mi>"#),
            (
                r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
                "<mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn></mtd></mtr>",
            ),
            (r"\begin{cases}1&x>0\\0&\text{else}\end{cases}", "<mtext>else</mtext>"),
            (r"\binom{n}{k}", r#"<mfrac linethickness="0">"#),
            (r"\operatorname{rank} A", ">rank</mo>"),
        ] {
            let found = mathml(formula).unwrap_or_else(|error| panic!("{formula}: {error}"));
            assert!(found.contains(expected) && found.starts_with("<math xmlns="), "{formula}: {found}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_its_token() {
        for (formula, position, word) in [
            (r"x + \foo y", 3, "Unknown command"),
            (r"a & b", 2, "table"),
            (r"\text{a} x^{\mathbb R", 9, "closing"),
            (r"\begin{matrix}1", 10, "end"),
            (r"é \foo", 2, "Unknown command"),
        ] {
            match mathml(formula) {
                Err(Error::Formula { position: found, reason, .. }) => {
                    assert_eq!(found, position, "{formula}: {reason}");
                    assert!(reason.contains(word), "{formula}: {reason}");
                }
                other => panic!("{formula}: {other:?}"),
            }
        }
    }

    /// In a thread with as little stack as WebAssembly has.
    #[test]
    fn deep_nesting_is_refused_and_markup_escaped() {
        let check = || {
            for (open, close) in [
                ("{", "}"),
                (r"\sqrt{", "}"),
                (r"\sqrt ", ""),
                (r"\left(", r"\right)"),
                (r"\begin{matrix}", r"\end{matrix}"),
                (r"\sqrt[", "]2"),
                (r"x^{\mathbf{", "}}"),
            ] {
                let nested =
                    |count: usize| format!(r"\text{{a}} {}x{}", open.repeat(count), close.repeat(count));
                let _ = mathml(&nested(20)).unwrap_or_else(|error| panic!("{open}: {error}"));
                let refused = mathml(&nested(3000)).unwrap_err().to_string();
                assert!(refused.contains("nested deeper"), "{open}: {refused}");
                let _ = mathml(&nested(98));
            }
            for flat in [r"\color{red}x", r"\mathbf{x}'", "x_\\mathbb y+", r"\displaystyle x"] {
                let _ = mathml(&format!(r"\text{{a}} {}", flat.repeat(1000)));
            }
        };
        std::thread::Builder::new().stack_size(1 << 20).spawn(check).unwrap().join().unwrap();
        let strange = mathml(r"\text{<script>alert(1)</script>} \href{javascript:alert(1)}{x}");
        assert!(strange.is_err(), "{strange:?}");
        assert!(!mathml(r"\text{<script>}").unwrap().contains("<script"));
    }
}
