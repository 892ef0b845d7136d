//! How far confidences can be trusted: how often answers are right, by how sure they are.

use std::fmt::Write;

use serde::Serialize;

/// Ranges of confidence that are looked at apart.
const BINS: usize = 10;
/// From this confidence on, an answer is taken for sure.
const SURE: f32 = 0.9;

/// Confidences against the share of right answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reliability {
    /// The expected calibration error: the mean distance of confidence and share, weighted by answers, in 0..=1.
    pub error: f64,
    /// The share of wrong answers among those with a confidence of at least 0.9.
    pub wrong_when_sure: f64,
    /// Answers with a confidence of at least 0.9.
    pub sure: usize,
    /// Ten ranges of confidence of equal width.
    pub bins: Vec<Bin>,
}

/// The answers in a range of confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bin {
    /// How many.
    pub answers: usize,
    /// Their mean confidence.
    pub confidence: f64,
    /// The share that is right.
    pub right: f64,
}

impl Reliability {
    /// Measures answers given by confidence and whether they are right.
    pub fn new(answers: &[(f32, bool)]) -> Self {
        let mut bins = vec![(0usize, 0.0, 0usize); BINS];
        for &(confidence, right) in answers {
            let bin = &mut bins[((f64::from(confidence) * BINS as f64) as usize).min(BINS - 1)];
            *bin = (bin.0 + 1, bin.1 + f64::from(confidence), bin.2 + usize::from(right));
        }
        let mean = |(answers, confidence, right): (usize, f64, usize)| {
            let count = answers.max(1) as f64;
            Bin { answers, confidence: confidence / count, right: right as f64 / count }
        };
        let bins: Vec<Bin> = bins.into_iter().map(mean).collect();
        let off = bins.iter().map(|bin| bin.answers as f64 * (bin.confidence - bin.right).abs());
        let sure = answers.iter().filter(|(confidence, _)| *confidence >= SURE).count();
        let wrong = answers.iter().filter(|(confidence, right)| *confidence >= SURE && !right).count();
        Self {
            error: off.sum::<f64>() / answers.len().max(1) as f64,
            wrong_when_sure: wrong as f64 / sure.max(1) as f64,
            sure,
            bins,
        }
    }

    /// The figures in a sentence.
    pub fn sentence(&self) -> String {
        format!(
            "Expected calibration error {:.3}; {:.1} % of the {} answers with a confidence of at least 90 % are wrong.",
            self.error,
            100.0 * self.wrong_when_sure,
            self.sure
        )
    }

    /// A plot: the share of right answers over the confidence, with areas in proportion to the answers.
    pub fn svg(&self) -> String {
        let total = self.bins.iter().map(|bin| bin.answers).max().unwrap_or(1).max(1) as f64;
        let mut svg = String::from(
            "<svg viewBox=\"-40 -10 280 250\" width=\"280\" role=\"img\" aria-label=\"share of right answers over confidence\">\
             <rect width=\"200\" height=\"200\" fill=\"none\" stroke=\"currentColor\" opacity=\"0.4\"/>\
             <line x1=\"0\" y1=\"200\" x2=\"200\" y2=\"0\" stroke=\"currentColor\" stroke-dasharray=\"4\" opacity=\"0.6\"/>\
             <g font-size=\"11\" fill=\"currentColor\"><text x=\"100\" y=\"228\" text-anchor=\"middle\">confidence</text>\
             <text x=\"-100\" y=\"-26\" transform=\"rotate(-90)\" text-anchor=\"middle\">right</text>\
             <text y=\"214\">0</text><text x=\"200\" y=\"214\" text-anchor=\"end\">1</text></g>",
        );
        for bin in self.bins.iter().filter(|bin| bin.answers > 0) {
            let radius = 3.0 + 7.0 * (bin.answers as f64 / total).sqrt();
            let _ = write!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"#2f6fde\" fill-opacity=\"0.6\"><title>{} answers, \
                 confidence {:.2}, right {:.2}</title></circle>",
                200.0 * bin.confidence,
                200.0 * (1.0 - bin.right),
                bin.answers,
                bin.confidence,
                bin.right
            );
        }
        svg + "</svg>"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_the_mean_distance() {
        // Half of those at 0.75 are right, all of those at 0.95.
        let answers = [(0.75, true), (0.75, false), (0.95, true), (0.95, true)];
        let found = Reliability::new(&answers);
        assert!((found.error - (0.5 * 0.25 + 0.5 * 0.05)).abs() < 1e-6, "{found:?}");
        assert_eq!((found.sure, found.wrong_when_sure), (2, 0.0));
        assert_eq!(found.bins.iter().map(|bin| bin.answers).sum::<usize>(), 4);
        assert_eq!(found.svg().matches("<circle").count(), 2);
        assert_eq!(Reliability::new(&[]).error, 0.0);
        assert_eq!(Reliability::new(&[(1.0, false)]).wrong_when_sure, 1.0);
    }
}
