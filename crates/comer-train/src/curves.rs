//! The curves of a run as one SVG: loss, token accuracy and ExpRate by epoch.

use std::fmt::Write;

/// The metrics of one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochMetrics {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// The mean training loss.
    pub loss: f64,
    /// The share of training tokens that were predicted correctly.
    pub tokens: f64,
    /// ExpRate (token match) of the validation, if there was one.
    pub exp_rate: Option<f64>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 48.0;

/// Draws the curves.
pub fn svg(title: &str, rows: &[EpochMetrics]) -> String {
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"18\" font-weight=\"bold\">{}</text>\n",
        WIDTH + LEFT + 16.0,
        2.0 * HEIGHT + 100.0,
        escape(title),
    );
    let highest = rows.iter().map(|row| row.loss).filter(|loss| loss.is_finite()).fold(0.5, f64::max);
    let losses: Vec<(usize, f64)> = rows.iter().map(|row| (row.epoch, row.loss)).collect();
    let tokens: Vec<(usize, f64)> = rows.iter().map(|row| (row.epoch, row.tokens)).collect();
    let rates: Vec<(usize, f64)> = rows.iter().filter_map(|row| Some((row.epoch, row.exp_rate?))).collect();
    panel(&mut text, 40.0, highest, "training loss", &[("#c33", &losses)]);
    let parts = [("#888", &tokens[..]), ("#26c", &rates[..])];
    panel(
        &mut text,
        80.0 + HEIGHT,
        1.0,
        "correct tokens in training (grey), ExpRate of the validation (blue)",
        &parts,
    );
    text.push_str("</svg>\n");
    text
}

/// One panel with its top at `top`: four grid lines and the curves.
fn panel(text: &mut String, top: f64, highest: f64, label: &str, lines: &[(&str, &[(usize, f64)])]) {
    let last = lines.iter().flat_map(|(_, line)| line.iter()).map(|point| point.0).max().unwrap_or(1);
    let x = |epoch: usize| LEFT + WIDTH * (epoch as f64 - 1.0) / (last.max(2) - 1) as f64;
    let y = |value: f64| top + HEIGHT * (1.0 - (value / highest).clamp(0.0, 1.0));
    let _ = writeln!(text, "<text x=\"{LEFT}\" y=\"{}\">{label}</text>", top - 6.0);
    for level in 0..=4 {
        let value = highest * f64::from(level) / 4.0;
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {0:.1}h{WIDTH}\" stroke=\"#ddd\"/><text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{value:.2}</text>",
            y(value),
            LEFT - 6.0,
            y(value) + 4.0,
        );
    }
    let _ = writeln!(
        text,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">epoch {last}</text>",
        LEFT + WIDTH,
        top + HEIGHT + 16.0
    );
    for (colour, line) in lines {
        let points: Vec<String> = line
            .iter()
            .filter(|point| point.1.is_finite())
            .map(|&(epoch, value)| format!("{:.1},{:.1}", x(epoch), y(value)))
            .collect();
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_have_a_point_for_each_row_with_a_value() {
        let row =
            |epoch: usize, exp_rate| EpochMetrics { epoch, loss: 4.0 / epoch as f64, tokens: 0.5, exp_rate };
        let text = svg("a < b", &[row(1, None), row(2, Some(0.25)), row(3, Some(0.5))]);
        let counts: Vec<usize> = text
            .lines()
            .filter_map(|line| line.strip_prefix("<polyline points=\""))
            .map(|line| line.split('"').next().unwrap().split_whitespace().count())
            .collect();
        assert_eq!(counts, [3, 3, 2]);
        assert!(text.contains("a &lt; b"));
    }
}
