//! The report of a run as one self-contained HTML file: figures, a chart, and every wrong formula with its ground truth.

use std::fmt::Write;

use crate::mathml::{escaped, mathml_in_html};
use crate::report::{LengthRates, Report};
use crate::score::{FileScore, Protocol};

/// Longer formulas, which are loops, are shown as text.
const MAX_SHOWN: usize = 4_000;

/// Writes the report. `picture` returns the image file of a formula by its name.
pub fn html(
    title: &str,
    report: &Report,
    scores: &[FileScore],
    problems: &[String],
    mut picture: impl FnMut(&str) -> Option<Vec<u8>>,
) -> String {
    let wrong: Vec<&FileScore> = scores.iter().filter(|score| most_errors(score) > 0).collect();
    let mut out = String::new();
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p>{files} formulas, {missing} without a prediction, {unreadable} with one that is not LaTeX.</p>\n",
        title = escaped(title),
        style = include_str!("html/report.css"),
        files = report.files,
        missing = report.missing,
        unreadable = report.unreadable,
    );
    figures(report, &mut out);
    if !report.by_length.is_empty() {
        out.push_str("<h2>By length</h2>\n");
        chart(&report.by_length, &mut out);
    }
    if let Some(reliability) = &report.reliability {
        let _ = writeln!(out, "<h2>Confidence</h2>\n{}", reliability.svg());
    }
    confusions(report, &mut out);
    if !problems.is_empty() {
        out.push_str("<h2>Problems</h2>\n<ul>\n");
        for problem in problems {
            let _ = writeln!(out, "<li>{}</li>", escaped(problem));
        }
        out.push_str("</ul>\n");
    }
    let _ = write!(
        out,
        "<h2>Wrong formulas</h2>\n<form id=\"filter\">\n\
         <label>Errors <select id=\"errors\"><option value=\"\">any</option><option>1</option><option>2</option>\
         <option>3</option><option value=\"more\">more than 3</option></select></label>\n\
         <label>Sort by <select id=\"sort\"><option value=\"errors\">errors</option><option value=\"name\">name</option>\
         <option value=\"length\">length</option></select></label>\n\
         <label>Find <input id=\"find\" type=\"search\" placeholder=\"name or LaTeX\"></label>\n\
         <output id=\"shown\">{count} of {count}</output>\n</form>\n<div id=\"wrong\">\n",
        count = wrong.len(),
    );
    for score in wrong {
        article(score, picture(&score.name), &mut out);
    }
    let _ = write!(out, "</div>\n<script>\n{}</script>\n</body>\n</html>\n", include_str!("html/report.js"));
    out
}

/// The errors by the first available protocol, which formulas are sorted and filtered by.
fn errors(score: &FileScore) -> usize {
    score.mistakes.iter().flatten().next().map_or(0, |mistakes| mistakes.errors)
}

fn most_errors(score: &FileScore) -> usize {
    score.mistakes.iter().flatten().map(|mistakes| mistakes.errors).max().unwrap_or(0)
}

fn figures(report: &Report, out: &mut String) {
    out.push_str(
        "<table>\n<thead><tr><th>Protocol<th>ExpRate<th>&le; 1<th>&le; 2<th>&le; 3<th>Structure</tr></thead>\n<tbody>\n",
    );
    for protocol in Protocol::ALL {
        if let Some(rates) = report.rates(protocol) {
            let _ = write!(out, "<tr><th>{}", protocol.name());
            for rate in [rates.exp_rate, rates.le1, rates.le2, rates.le3, rates.structure] {
                let _ = write!(out, "<td>{rate:.2}");
            }
            out.push_str("</tr>\n");
        }
    }
    out.push_str("</tbody>\n</table>\n");
    for sentence in report.sentences() {
        let _ = writeln!(out, "<p>{sentence}</p>");
    }
}

/// Bar chart of ExpRate by length, one colour per protocol.
fn chart(lengths: &[LengthRates], out: &mut String) {
    let (width, height, left, bottom) = (720.0, 260.0, 40.0, 40.0);
    let (plot_width, plot_height) = (width - left - 10.0, height - bottom - 20.0);
    let _ = writeln!(
        out,
        "<svg id=\"lengths\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"ExpRate by tokens of the caption\">"
    );
    for percent in [0, 25, 50, 75, 100] {
        let y = 20.0 + plot_height * (1.0 - f64::from(percent) / 100.0);
        let _ = writeln!(
            out,
            "<line x1=\"{left}\" x2=\"{x2}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{tx}\" y=\"{ty:.1}\" class=\"scale\">{percent}</text>",
            x2 = left + plot_width,
            tx = left - 6.0,
            ty = y + 4.0,
        );
    }
    let shown: Vec<usize> =
        (0..3).filter(|&number| lengths.iter().any(|rates| rates.exp_rates[number].is_some())).collect();
    let group = plot_width / lengths.len() as f64;
    let bar = group * 0.8 / shown.len().max(1) as f64;
    for (place, rates) in lengths.iter().enumerate() {
        let start = left + group * place as f64 + group * 0.1;
        for (column, &number) in shown.iter().enumerate() {
            let Some(rate) = rates.exp_rates[number] else { continue };
            let tall = plot_height * rate / 100.0;
            let _ = writeln!(
                out,
                "<rect class=\"p{number}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{tall:.1}\"><title>{name}, {tokens} tokens: {rate:.2} % of {files}</title></rect>",
                x = start + bar * column as f64,
                y = 20.0 + plot_height - tall,
                w = bar * 0.92,
                name = Protocol::ALL[number].name(),
                tokens = rates.tokens,
                files = rates.files,
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{y}\" class=\"length\">{tokens}</text><text x=\"{x:.1}\" y=\"{y2}\" class=\"files\">{files} files</text>",
            x = start + group * 0.4,
            y = height - 22.0,
            y2 = height - 8.0,
            tokens = rates.tokens,
            files = rates.files,
        );
    }
    out.push_str("</svg>\n<p class=\"legend\">");
    for number in shown {
        let _ = write!(out, "<span class=\"p{number}\"></span> {} ", Protocol::ALL[number].name());
    }
    out.push_str("ExpRate in percent, by tokens of the caption.</p>\n");
}

fn confusions(report: &Report, out: &mut String) {
    if report.confusions.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Confusions</h2>\n<div class=\"scroll\"><table id=\"confusions\">\n\
         <thead><tr><th>Truth<th>Prediction<th>Times</tr></thead>\n<tbody>\n",
    );
    for confusion in &report.confusions {
        let shown = |token: &str| {
            if token.is_empty() {
                "<i>nothing</i>".into()
            } else {
                format!("<code>{}</code>", escaped(token))
            }
        };
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{}</tr>",
            shown(&confusion.truth),
            shown(&confusion.prediction),
            confusion.count
        );
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn article(score: &FileScore, picture: Option<Vec<u8>>, out: &mut String) {
    let caption = score.caption.as_deref();
    let _ = write!(
        out,
        "<article data-name=\"{name}\" data-errors=\"{errors}\" data-length=\"{length}\">\n<h3>{name}</h3>\n<p class=\"errors\">",
        name = escaped(&score.name),
        errors = errors(score),
        length = caption.map_or(0, |caption| crate::metrics::tokens(caption).len()),
    );
    for protocol in Protocol::ALL {
        if let Some(mistakes) = score.by(protocol) {
            let _ = write!(out, "<span>{}: {}</span> ", protocol.name(), mistakes.errors);
        }
    }
    out.push_str("</p>\n");
    if let Some(bytes) = picture {
        let kind = if bytes.starts_with(b"BM") { "bmp" } else { "png" };
        let name = escaped(&score.name);
        let _ = writeln!(
            out,
            "<img alt=\"{name}\" loading=\"lazy\" src=\"data:image/{kind};base64,{}\">",
            base64(&bytes)
        );
    }
    out.push_str("<div class=\"pair\">\n");
    formula("Truth", caption, None, out);
    formula("Prediction", score.prediction.as_deref(), score.unreadable.as_deref(), out);
    out.push_str("</div>\n</article>\n");
}

fn formula(heading: &str, text: Option<&str>, unreadable: Option<&str>, out: &mut String) {
    let _ = writeln!(out, "<div>\n<h4>{heading}</h4>");
    match text {
        None => out.push_str("<p><i>none</i></p>\n"),
        Some(text) => {
            match mathml_in_html(text) {
                Ok(math) if text.len() <= MAX_SHOWN => {
                    let _ = writeln!(out, "{math}");
                }
                Ok(_) => out.push_str("<p><i>too long to draw</i></p>\n"),
                Err(error) => {
                    let reason = unreadable.map_or_else(|| error.to_string(), String::from);
                    let _ = writeln!(out, "<p class=\"unreadable\">Not LaTeX: {}</p>", escaped(&reason));
                }
            }
            let short: String = text.chars().take(MAX_SHOWN).collect();
            let _ = writeln!(out, "<code>{}</code>", escaped(&short));
        }
    }
    out.push_str("</div>\n");
}

/// Base64, for data URLs.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let number =
            (0..3).fold(0, |number, place| number << 8 | u32::from(chunk.get(place).copied().unwrap_or(0)));
        for place in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * place)) as usize & 63];
            out.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::{Truth, score};
    use crate::{Dialect, LabelGraph};

    #[test]
    fn base64_of_the_standard() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }

    #[test]
    fn shows_what_is_wrong_and_nothing_can_break_out() {
        let truth = |name: &str| Truth {
            name: name.into(),
            caption: Some("x < 1".into()),
            graph: LabelGraph::from_latex("x < 1", Dialect::Official).ok(),
        };
        let truths = ["right", "wrong", "<script>alert(1)</script>", "broken", "loop", "missing"].map(truth);
        let predictions = [
            ("right", "x < 1".to_string()),
            ("wrong", "x < l".into()),
            ("<script>alert(1)</script>", "</code><script>alert(2)</script>".into()),
            ("broken", "x < {".into()),
            ("loop", "x ^ { 2 } ".repeat(1_000)),
        ];
        let predictions = predictions.map(|(name, text)| (name.to_string(), text)).into();
        let scores = score(&truths, &predictions, Dialect::Official);
        let report = Report::new(&scores);
        let page = html("a & b", &report, &scores, &["<problem>".into()], |name| {
            (name == "wrong").then(|| b"BM12".to_vec())
        });
        assert_eq!(page.matches("<script").count(), 1);
        assert_eq!(page.matches("<article").count(), 5);
        assert!(!page.contains("data-name=\"right\""));
        for expected in [
            "<title>a &amp; b</title>",
            "&lt;problem&gt;",
            "data:image/bmp;base64,Qk0xMg==",
            "Not LaTeX: token 3",
            "too long to draw",
            "<svg",
            "<math",
            "<i>none</i>",
            "official symLG",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(!page.contains("http"), "the page is to work offline");
    }
}
