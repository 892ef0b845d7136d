//! What the program prints: results on stdout, messages for people on stderr.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use comer::alignment::Region;
use comer::{Candidate, Recognition};
use comer_eval::Report;
use comer_eval::score::Protocol;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

/// Prints results to stdout: as they are to a file or pipe, and [`printable`] to a terminal.
pub fn print(text: impl Display) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        write!(out, "{}", printable(&text.to_string()))?;
    } else {
        write!(out, "{text}")?;
    }
    Ok(out.flush()?)
}

/// Prints an indented JSON value to stdout.
pub fn print_json(value: &Value) -> Result<()> {
    print(format_args!("{value:#}\n"))
}

/// Writes a file, which has its old content if that fails.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    comer_files::write_atomic(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Reads a file, or stdin if it is `-`.
pub fn read_input(path: &Path) -> std::io::Result<Vec<u8>> {
    match path == Path::new("-") {
        true => comer_files::read_from(std::io::stdin().lock(), comer_files::limit::INPUT),
        false => comer_files::read(path, comer_files::limit::INPUT),
    }
}

/// Prints a message to stderr.
pub fn message(text: impl Display) {
    eprintln!("comer: {}", printable(&text.to_string()));
}

/// Text for a terminal: names from outside may hold characters that control it or turn the direction of the text. Line ends
/// and tabs stay.
pub fn printable(text: &str) -> String {
    let is_bidi = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let escape = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() || is_bidi(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Prints each problem to stderr.
pub fn warn(problems: &[String]) {
    problems.iter().for_each(message);
}

/// Whether an error is a broken pipe: the reader of the output has closed it, as in `comer ... | head`.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    })
}

/// A progress bar on stderr, which is hidden while anything else is printed. Without a terminal there is no bar.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// For `count` items; hidden for fewer than two.
    pub fn new(count: usize) -> Self {
        if count < 2 {
            return Self::hidden();
        }
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len}, {per_sec}, {eta} left");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self { bar: ProgressBar::new(count as u64).with_style(style) }
    }

    /// No bar at all.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    /// One item is done.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// Prints results to stdout.
    pub fn print(&self, text: impl Display) -> Result<()> {
        self.bar.suspend(|| print(text))
    }

    /// Prints a message to stderr.
    pub fn message(&self, text: impl Display) {
        self.bar.suspend(|| message(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A recognition as JSON.
pub fn recognition_json(recognition: &Recognition) -> Value {
    let formula = |formula: &Candidate| {
        let token = |(token, symbol): (&comer::Token, Option<f32>)| {
            let mut object = json!({ "token": token.text, "confidence": token.confidence });
            if let Some(confidence) = symbol {
                object["symbol_confidence"] = json!(confidence);
            }
            object
        };
        json!({
            "latex": formula.latex,
            "tokens": formula.tokens.iter().zip(formula.symbol_confidences()).map(token).collect::<Vec<_>>(),
            "confidence": formula.confidence,
            "score": formula.score,
        })
    };
    let mut object = formula(&recognition.best);
    object["alternatives"] = recognition.alternatives.iter().map(formula).collect();
    if let Some(alignment) = &recognition.alignment {
        object["ink"] = json!({ "unread": alignment.ink.unread, "reread": alignment.ink.reread });
    }
    object
}

/// Adds where each token was read, what else it might be, and how each region of ink was read.
pub fn add_alignment(object: &mut Value, recognition: &Recognition) {
    let Some(alignment) = &recognition.alignment else { return };
    object["alignment"] =
        json!({ "height": alignment.height, "width": alignment.width, "attention": alignment.attention });
    for (index, others) in alignment.runners_up.iter().enumerate() {
        let others =
            others.iter().map(|other| json!({ "token": other.text, "confidence": other.confidence }));
        object["tokens"][index]["alternatives"] = others.collect();
    }
    let region = |region: &Region| {
        json!({
            "left": region.left,
            "top": region.top,
            "width": region.width,
            "height": region.height,
            "pixels": region.pixels,
            "attention": region.attention,
            "shared": region.shared,
            "coverage": region.coverage,
            "unread": region.is_unread(),
            "reread": region.is_reread(),
        })
    };
    object["ink"]["regions"] = alignment.ink.regions.iter().map(region).collect();
}

/// The figures of a report without its per-file lists.
pub fn report_json(report: &Report) -> serde_json::Value {
    serde_json::json!({
        "files": report.files,
        "missing": report.missing,
        "unreadable": report.unreadable,
        "official": report.official,
        "caption": report.caption,
        "token": report.token,
        "token_error_rate": report.token_error_rate,
        "bleu4": report.bleu4,
        "symbols": report.symbols,
        "ink": report.ink,
        "reliability": report.reliability,
    })
}

/// The figures of a report as a table.
pub fn report_table(report: &Report) -> String {
    let mut text = format!(
        "{} files, {} without a prediction, {} not LaTeX\n\n{:<16}{:>9}{:>9}{:>9}{:>9}{:>11}\n",
        report.files, report.missing, report.unreadable, "", "ExpRate", "<= 1", "<= 2", "<= 3", "structure"
    );
    for protocol in Protocol::ALL {
        if let Some(rates) = report.rates(protocol) {
            text += &format!(
                "{:<16}{:>9.2}{:>9.2}{:>9.2}{:>9.2}{:>11.2}\n",
                protocol.name(),
                rates.exp_rate,
                rates.le1,
                rates.le2,
                rates.le3,
                rates.structure
            );
        }
    }
    text.push('\n');
    for sentence in report.sentences() {
        text += &format!("{sentence}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_control_a_terminal_are_escaped() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}c\u{9b}d"), r"a\u{1b}[2Jb\u{202e}c\u{9b}d");
        assert_eq!(printable("Größe\t∫\n"), "Größe\t∫\n");
    }
}
