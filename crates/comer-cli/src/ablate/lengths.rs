//! The figure: ExpRate by length on the first test set, one line per model.

use std::fmt::Write;

use comer_eval::score::Protocol;

use super::tables::protocol;
use super::{RowResult, paper};

const COLOURS: [&str; 10] = ["#777", "#d60", "#2a2", "#26c", "#a3a", "#0aa", "#b22", "#680", "#f69", "#000"];
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 50.0;
/// Height of a line of the legend, and names on it.
const LEGEND: (usize, usize) = (18, 3);

pub fn svg(results: &[RowResult]) -> String {
    let height = 336 + LEGEND.0 * results.len().div_ceil(LEGEND.1);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
    );
    let x = |index: usize, count: usize| LEFT + WIDTH * (index as f64 + 0.5) / count.max(1) as f64;
    let y = |rate: f64| 30.0 + HEIGHT * (1.0 - rate / 100.0);
    for rate in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {0}h{WIDTH}\" stroke=\"#ddd\"/><text x=\"44\" y=\"{1}\" text-anchor=\"end\">{rate}</text>",
            y(rate),
            y(rate) + 4.0
        );
    }
    for (index, result) in results.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let Some(found) = result.tests.first() else { continue };
        let Some(report) = found.reports.first() else { continue };
        let column = Protocol::ALL.iter().position(|&own| own == protocol(report)).unwrap_or(0);
        let buckets = &report.by_length;
        if index == 0 {
            let _ = writeln!(
                text,
                "<text x=\"{LEFT}\" y=\"18\" font-weight=\"bold\">ExpRate by length in tokens, {}</text>",
                found.test
            );
            for (bucket, place) in buckets.iter().zip(0..) {
                let left = x(place, buckets.len());
                let _ = writeln!(
                    text,
                    "<text x=\"{left:.1}\" y=\"310\" text-anchor=\"middle\">{}</text><text x=\"{left:.1}\" y=\"326\" text-anchor=\"middle\" fill=\"#777\">{} formulas</text>",
                    bucket.tokens, bucket.files
                );
            }
        }
        let point = |place: usize| {
            let rate = found.mean(|report| report.by_length.get(place)?.exp_rates[column])?;
            Some(format!("{:.1},{:.1}", x(place, buckets.len()), y(rate)))
        };
        let points: Vec<String> = (0..buckets.len()).filter_map(point).collect();
        let (line, place) = (index / LEGEND.1, index % LEGEND.1);
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{}\" y=\"{}\" fill=\"{colour}\">{}</text>",
            points.join(" "),
            LEFT as usize + 190 * place,
            346 + LEGEND.0 * line,
            comer_eval::mathml::escaped(&paper::label(&result.name))
        );
    }
    text.push_str("</svg>\n");
    text
}
