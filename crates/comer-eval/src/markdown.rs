//! The report of a run as Markdown tables.

use std::fmt::Write;

use crate::report::Report;
use crate::score::Protocol;

/// The figures of a run.
pub fn markdown(title: &str, report: &Report) -> String {
    let mut out = format!(
        "# {title}\n\n{} formulas, {} without a prediction, {} with one that is not LaTeX.\n\n",
        report.files, report.missing, report.unreadable
    );
    out.push_str("| protocol | ExpRate | <= 1 | <= 2 | <= 3 | structure |\n|---|---|---|---|---|---|\n");
    for protocol in Protocol::ALL {
        if let Some(rates) = report.rates(protocol) {
            let _ = writeln!(
                out,
                "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
                protocol.name(),
                rates.exp_rate,
                rates.le1,
                rates.le2,
                rates.le3,
                rates.structure
            );
        }
    }
    for sentence in report.sentences() {
        let _ = write!(out, "\n{sentence}\n");
    }
    if !report.by_length.is_empty() {
        out.push_str("\n## ExpRate by length\n\n| tokens | files |");
        let shown: Vec<usize> =
            (0..3).filter(|&number| report.rates(Protocol::ALL[number]).is_some()).collect();
        for &number in &shown {
            let _ = write!(out, " {} |", Protocol::ALL[number].name());
        }
        let _ = write!(out, "\n|---|---|{}\n", "---|".repeat(shown.len()));
        for rates in &report.by_length {
            let _ = write!(out, "| {} | {} |", rates.tokens, rates.files);
            for &number in &shown {
                let rate = rates.exp_rates[number].map_or_else(|| "-".into(), |rate| format!("{rate:.2}"));
                let _ = write!(out, " {rate} |");
            }
            out.push('\n');
        }
    }
    if !report.confusions.is_empty() {
        out.push_str("\n## Confusions\n\n| truth | prediction | times |\n|---|---|---|\n");
        for confusion in report.confusions.iter().take(20) {
            let shown = |token: &str| {
                let token = token.replace('|', r"\|");
                if token.is_empty() { "nothing".into() } else { format!("`{token}`") }
            };
            let _ = writeln!(
                out,
                "| {} | {} | {} |",
                shown(&confusion.truth),
                shown(&confusion.prediction),
                confusion.count
            );
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
    fn tables() {
        let truth = Truth {
            name: "a".into(),
            caption: Some("| x |".into()),
            graph: LabelGraph::from_latex("| x |", Dialect::Official).ok(),
        };
        let scores = score(&[truth], &[("a".into(), "1 x |".into())].into(), Dialect::Official);
        let text = markdown("run", &Report::new(&scores));
        for line in [
            "| official symLG | 0.00 | 100.00 | 100.00 | 100.00 | 100.00 |",
            "| 1-10 | 1 | 0.00 | 0.00 | 0.00 |",
            r"| `\|` | `1` | 1 |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
