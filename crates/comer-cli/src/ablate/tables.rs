//! The tables and the figure of the paper, with its numbers for comparison, and unread and reread ink.

use std::fmt::Write;

use comer_eval::Report;
use comer_eval::score::Protocol;

use super::ModelReports;

/// A model's name in the paper, its coverage, and its ExpRate on CROHME 2014 there (table 1).
fn paper(name: &str) -> (&'static str, [&'static str; 2], f64) {
    match name {
        "bttr" => ("BTTR (baseline)", ["", ""], 55.17),
        "self" => ("CoMER (Self)", ["yes", ""], 57.51),
        "cross" => ("CoMER (Cross)", ["", "yes"], 58.11),
        _ => ("CoMER (Fusion)", ["yes", "yes"], 59.33),
    }
}

/// The paper's rates (table 2) of a model on a set: without errors, with at most one, two, three.
fn paper_rates(name: &str, test: &str) -> Option<[f64; 4]> {
    match (name, test) {
        ("bttr", "2014") => Some([55.17, 67.85, 72.11, 74.14]),
        ("bttr", "2016") => Some([56.58, 68.88, 74.19, 76.90]),
        ("bttr", "2019") => Some([59.55, 72.23, 76.06, 78.40]),
        ("fusion", "2014") => Some([59.33, 71.70, 75.66, 77.89]),
        ("fusion", "2016") => Some([59.81, 74.37, 80.30, 82.56]),
        ("fusion", "2019") => Some([62.97, 77.40, 81.40, 83.07]),
        _ => None,
    }
}

/// The protocol of a report: the official one where there are label graphs.
fn protocol(report: &Report) -> Protocol {
    if report.official.is_some() { Protocol::Official } else { Protocol::Token }
}

fn rates(report: &Report) -> Option<[f64; 4]> {
    let rates = report.rates(protocol(report))?;
    Some([rates.exp_rate, rates.le1, rates.le2, rates.le3])
}

/// All tables as Markdown.
pub fn markdown(results: &[ModelReports], epochs: usize) -> String {
    let mut text = format!(
        "# Ablation: {} models, {epochs} epochs each, one seed\n\n\
         ExpRate by the official label graphs where the set has them, by token match elsewhere; joint search. The paper's \
         models were trained for up to 300 epochs.\n",
        results.len()
    );
    let tests: Vec<&String> =
        results.first().into_iter().flat_map(|r| &r.reports).map(|(test, _)| test).collect();
    let on = |result: &'_ ModelReports, test: &str| {
        result.reports.iter().find(|(name, _)| name == test).and_then(|(_, report)| rates(report))
    };
    if let Some(&first) = tests.first() {
        let _ = writeln!(
            text,
            "\n## Coverage, on {first}\n\n| model | self | cross | ExpRate | | in the paper (2014) | |"
        );
        text.push_str("|---|---|---|---|---|---|---|\n");
        let baseline =
            results.iter().find(|result| result.name == "bttr").and_then(|result| on(result, first));
        for result in results {
            let (name, [own, cross], there) = paper(result.name);
            let cell =
                |rates: Option<[f64; 4]>| rates.map(|rates| format!("{:.2}", rates[0])).unwrap_or_default();
            let ours = on(result, first);
            let gain = ours.zip(baseline).map(|(a, b)| format!("{:+.2}", a[0] - b[0])).unwrap_or_default();
            let _ = writeln!(
                text,
                "| {name} | {own} | {cross} | {} | {gain} | {there:.2} | {:+.2} |",
                cell(ours),
                there - 55.17
            );
        }
    }
    text.push_str("\n## By errors allowed\n\n| set | model | ExpRate | <= 1 | <= 2 | <= 3 |\n|---|---|---|---|---|---|\n");
    let row = |rates: [f64; 4]| rates.map(|rate| format!("{rate:.2}")).join(" | ");
    for &test in &tests {
        for result in results {
            let name = paper(result.name).0;
            if let Some(rates) = on(result, test) {
                let _ = writeln!(text, "| {test} | {name} | {} |", row(rates));
            }
            if let Some(rates) = paper_rates(result.name, test) {
                let _ = writeln!(text, "| {test} | {name}, the paper | {} |", row(rates));
            }
        }
    }
    text.push_str(
        "\n## Left out and read twice\n\n\
         In percent of the ink and of the formulas: docs/explain.md defines unread and reread ink.\n\n\
         | set | model | ink unread | ink reread | fewer symbols than the caption | more |\n|---|---|---|---|---|---|\n",
    );
    for &test in &tests {
        for result in results {
            let found = result.reports.iter().find(|(name, _)| name == test).map(|(_, report)| report);
            if let Some(Report { ink: Some(ink), symbols: Some(symbols), .. }) = found {
                let name = paper(result.name).0;
                let _ = writeln!(
                    text,
                    "| {test} | {name} | {:.2} | {:.2} | {:.2} | {:.2} |",
                    ink.unread, ink.reread, symbols.fewer, symbols.more
                );
            }
        }
    }
    text.push_str("\n## By length\n\n![ExpRate by length](lengths.svg)\n");
    text
}

/// ExpRate by length on the first split, one line per model.
pub fn lengths(results: &[ModelReports]) -> String {
    const COLOURS: [&str; 4] = ["#888", "#e80", "#2a2", "#26c"];
    const SIZE: (f64, f64) = (520.0, 260.0);
    let mut text = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 370\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
    );
    let x = |index: usize, count: usize| 50.0 + SIZE.0 * (index as f64 + 0.5) / count.max(1) as f64;
    let y = |rate: f64| 30.0 + SIZE.1 * (1.0 - rate / 100.0);
    for rate in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let _ = writeln!(
            text,
            "<path d=\"M50 {0}h{1}\" stroke=\"#ddd\"/><text x=\"44\" y=\"{2}\" text-anchor=\"end\">{rate}</text>",
            y(rate),
            SIZE.0,
            y(rate) + 4.0
        );
    }
    for (index, (result, colour)) in results.iter().zip(COLOURS).enumerate() {
        let Some((test, report)) = result.reports.first() else { continue };
        let column = Protocol::ALL.iter().position(|&own| own == protocol(report)).unwrap_or(0);
        let buckets = &report.by_length;
        if index == 0 {
            let _ = writeln!(
                text,
                "<text x=\"50\" y=\"18\" font-weight=\"bold\">ExpRate by length in tokens, {test}</text>"
            );
            for (bucket_index, bucket) in buckets.iter().enumerate() {
                let left = x(bucket_index, buckets.len());
                let _ = writeln!(
                    text,
                    "<text x=\"{left:.1}\" y=\"310\" text-anchor=\"middle\">{}</text><text x=\"{left:.1}\" y=\"326\" text-anchor=\"middle\" fill=\"#777\">{} formulas</text>",
                    bucket.tokens, bucket.files
                );
            }
        }
        let point = |(index, rate): (usize, Option<f64>)| {
            Some(format!("{:.1},{:.1}", x(index, buckets.len()), y(rate?)))
        };
        let points: Vec<String> =
            buckets.iter().map(|bucket| bucket.exp_rates[column]).enumerate().filter_map(point).collect();
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{}\" y=\"354\" fill=\"{colour}\">{}</text>",
            points.join(" "),
            50 + 140 * index,
            paper(result.name).0
        );
    }
    text.push_str("</svg>\n");
    text
}
