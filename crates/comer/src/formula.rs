//! One formula as an application wants it: upright, and with what is doubtful about it.

use crate::alignment::AlignmentDetail;
use crate::error::{Error, Result};
use crate::ink::Point;
use crate::input::{Bounds, Input};
use crate::options::RecognizeOptions;
use crate::recognition::Recognition;
use crate::recognizer::Recognizer;

/// Below this confidence a formula is more often wrong than right. A cleaned picture is then also read at a smaller size, and the surer
/// reading is kept.
const LOW_CONFIDENCE: f32 = 0.5;
/// Below this confidence, and with this share of the ink unread, the ink is hardly a formula.
const NO_FORMULA: (f32, f32) = (0.1, 0.15);
/// Share of the ink that may stay unread without a word.
const MUCH_UNREAD: f32 = 0.1;
/// Below this height or width of the ink in pixels of a picture, symbols have too few pixels.
const SMALL: f64 = 14.0;
/// Enlarged by more than this to the size of the training images, a picture has too few pixels for a doubtful formula.
const ENLARGED: f64 = 2.0;
/// Below this confidence, a picture is also read in the other three directions. Formulas on their side are read as others
/// with up to 25 %.
const TURNED: f32 = 0.3;
/// How sure another direction has to be to be preferred.
const TURNED_CONFIDENCE: f32 = 0.5;

/// A formula of an input, where it is, and what is doubtful about it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Formula {
    /// Its part of the input, turned upright: [`Input::bounds`] is its place.
    pub input: Input,
    /// What was recognised.
    pub recognition: Recognition,
    /// What a person should check.
    pub warnings: Vec<Warning>,
}

/// Something to check: a code for programs and a sentence for people.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Warning {
    /// `no_formula`, `low_confidence`, `unread_ink`, `too_small` or `truncated`; programs add their own.
    pub code: &'static str,
    /// In English, without a full stop.
    pub message: String,
}

impl Warning {
    /// A warning with a code of one's own.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Recognizer {
    /// Recognizes a formula and says what is doubtful about it. A photograph or scan that is hard to read is also read at a
    /// smaller size, and an image that hardly makes sense in the other three directions.
    ///
    /// Ink that was not read is only noticed with [`RecognizeOptions::alignment`].
    pub fn recognize_formula(&self, input: Input, options: &RecognizeOptions) -> Result<Formula> {
        let mut recognition = self.recognize_with(&input, options)?;
        let mut input = input;
        // What is read to the greatest length is no formula at any size and in any direction.
        let ends = recognition.best.tokens.len() + 1 < options.search.max_length;
        let may_be_turned = ends && recognition.best.confidence < TURNED;
        if recognition.best.confidence < LOW_CONFIDENCE
            && ends
            && let Some(smaller) = input.smaller()
            && let Some(second) = unless_interrupted(self.recognize_with(smaller, options))?
            && second.best.confidence > recognition.best.confidence
        {
            input = smaller.clone();
            recognition = second;
        }
        if input.ink().is_none()
            && may_be_turned
            && recognition.best.confidence < TURNED_CONFIDENCE
            && let Some(turned) = self.upright(&input, options)?
        {
            recognition = self.recognize_with(&turned, options)?;
            input = turned;
        }
        let warnings = warnings(&input, &recognition);
        Ok(Formula { input, recognition, warnings })
    }

    /// The input turned by one to three quarters, if it is clearly a formula then.
    fn upright(&self, input: &Input, options: &RecognizeOptions) -> Result<Option<Input>> {
        let quick = options.clone().greedy().nbest(1).alignment(AlignmentDetail::None);
        let mut best: Option<(f32, Input)> = None;
        for quarters in 1..4 {
            let Ok(turned) = input.turned(quarters) else { continue };
            let Some(found) = unless_interrupted(self.recognize_with(&turned, &quick))? else { continue };
            let confidence = found.best.confidence;
            if confidence >= TURNED_CONFIDENCE && best.as_ref().is_none_or(|best| confidence > best.0) {
                best = Some((confidence, turned));
            }
        }
        Ok(best.map(|(_, turned)| turned))
    }
}

/// `None` for a failure of another reading than the first, unless recognition has to end.
fn unless_interrupted(result: Result<Recognition>) -> Result<Option<Recognition>> {
    match result {
        Ok(recognition) => Ok(Some(recognition)),
        Err(error @ (Error::Cancelled | Error::DeadlineExceeded)) => Err(error),
        Err(_) => Ok(None),
    }
}

fn warnings(input: &Input, recognition: &Recognition) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let confidence = recognition.best.confidence;
    let unread = recognition.alignment.as_ref().map_or(0.0, |alignment| alignment.ink.unread);
    if confidence < NO_FORMULA.0 && unread > NO_FORMULA.1 {
        let message = format!(
            "this may be no formula: confidence {}, {} of the ink is unread",
            percent(confidence),
            percent(unread)
        );
        warnings.push(Warning::new("no_formula", message));
    } else {
        if confidence < LOW_CONFIDENCE {
            warnings.push(Warning::new(
                "low_confidence",
                format!("the confidence is low: {}", percent(confidence)),
            ));
        }
        if unread > MUCH_UNREAD {
            warnings.push(Warning::new("unread_ink", format!("{} of the ink is unread", percent(unread))));
        }
    }
    let bounds = input.bounds();
    let (width, height) = (bounds.right - bounds.left, bounds.bottom - bounds.top);
    let tiny = width.max(height) < 2.0 * SMALL && width.min(height) < SMALL;
    let doubtful = confidence < LOW_CONFIDENCE && enlargement(input) > ENLARGED;
    if input.ink().is_none() && (tiny || doubtful) {
        let message =
            format!("the formula has {width:.0} x {height:.0} pixels, which is too small to be read well");
        warnings.push(Warning::new("too_small", message));
    }
    if input.is_truncated() {
        warnings.push(Warning::new("truncated", "the file ends early: what is missing was not read"));
    }
    warnings
}

/// Pixels of the image that the model reads for each pixel of the source, in length.
fn enlargement(input: &Input) -> f64 {
    let Bounds { left, top, right, bottom } = input.bounds();
    let (first, last) =
        (input.to_image(Point { x: left, y: top }), input.to_image(Point { x: right, y: bottom }));
    (last.x - first.x).hypot(last.y - first.y) / (right - left).hypot(bottom - top)
}

fn percent(share: f32) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::Alignment;
    use crate::ink::Ink;
    use crate::recognition::Candidate;

    /// A formula of this confidence, of whose ink this share was not read.
    fn recognition(confidence: f32, unread: Option<f32>) -> Recognition {
        let alignment = unread.map(|unread| {
            let mut alignment = Alignment::default();
            alignment.ink.unread = unread;
            alignment
        });
        let best = Candidate { latex: "x".into(), tokens: Vec::new(), confidence, score: -1.0 };
        Recognition { best, alternatives: Vec::new(), alignment }
    }

    #[test]
    fn doubt_and_unread_ink_are_warned_of() {
        let ink = Ink::from_json(b"[[[0, 0], [40, 60]], [[40, 0], [0, 60]]]").unwrap();
        let input = Input::from_ink(ink).unwrap();
        for (confidence, unread, expected) in [
            (0.9, Some(0.05), &[][..]),
            (0.9, None, &[]),
            (0.9, Some(0.2), &["unread_ink: 20 % of the ink is unread"]),
            (0.49, Some(0.0), &["low_confidence: the confidence is low: 49 %"]),
            (
                0.3,
                Some(0.3),
                &["low_confidence: the confidence is low: 30 %", "unread_ink: 30 % of the ink is unread"],
            ),
            (
                0.05,
                Some(0.12),
                &["low_confidence: the confidence is low: 5 %", "unread_ink: 12 % of the ink is unread"],
            ),
            (
                0.05,
                Some(0.2),
                &["no_formula: this may be no formula: confidence 5 %, 20 % of the ink is unread"],
            ),
            (0.05, None, &["low_confidence: the confidence is low: 5 %"]),
        ] {
            let found = warnings(&input, &recognition(confidence, unread));
            let found: Vec<String> =
                found.iter().map(|warning| format!("{}: {warning}", warning.code)).collect();
            assert_eq!(found, expected, "confidence {confidence}, unread {unread:?}");
        }
    }

    #[cfg(feature = "decode")]
    #[test]
    fn a_file_that_ends_early_is_warned_of() {
        use crate::input::InputOptions;
        let ink = Ink::from_json(b"[[[0, 0], [40, 60]], [[40, 0], [0, 60]]]").unwrap();
        let png = ink.draw().unwrap().to_png().unwrap();
        let options = InputOptions::new().lenient(true);
        for (bytes, expected) in [(&png[..], vec![]), (&png[..png.len() - 40], vec!["truncated"])] {
            let input = Input::from_bytes_with(bytes, &options).unwrap();
            let found = warnings(&input, &recognition(0.9, None));
            assert_eq!(found.iter().map(|warning| warning.code).collect::<Vec<_>>(), expected);
        }
    }
}
