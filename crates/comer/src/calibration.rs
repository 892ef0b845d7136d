//! Turns the probabilities that the decoder gives to its formulas into ones that agree with how often they are right.
//!
//! The decoder is too sure of itself. A logistic curve over the logit of its probability and the logarithm of the length,
//! fitted on formulas that it was not trained on, corrects that: `comer model --calibrate` fits it and stores it in the
//! provenance of a model file, under [`KEY`].

use serde::{Deserialize, Serialize};

/// The entry of the provenance.
pub const KEY: &str = "calibration";
/// Probabilities are kept this far from 0 and 1.
const LEAST: f64 = 1e-7;
/// Steps of Newton's method; it converges within ten.
const STEPS: usize = 50;
/// Weight that draws the curve to the decoder's own probability, in samples.
const PRIOR: f64 = 1.0;

/// The curves of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// For formulas that both directions have judged.
    pub joint: Curve,
    /// For formulas of a search in one direction.
    pub one_direction: Curve,
    /// For single tokens.
    pub token: Curve,
}

/// `1 / (1 + exp(-(bias + logit * ln(p / (1 - p)) + length * ln(tokens))))` for a probability `p`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The same for all.
    pub bias: f64,
    /// Weight of the decoder's logit.
    pub logit: f64,
    /// Weight of the logarithm of the number of tokens.
    pub length: f64,
}

/// What was said of a formula or token, and whether it was right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The probability that was given.
    pub probability: f32,
    /// Tokens of the formula.
    pub tokens: usize,
    /// Whether it was right.
    pub right: bool,
}

/// Greatest weight of a curve: larger ones give confidences of 0 or 1 only, or none at all.
const MOST_WEIGHT: f64 = 1e3;

impl Calibration {
    /// Checks that the curves have usable weights.
    pub fn check(&self) -> Result<(), String> {
        let weights = [self.joint, self.one_direction, self.token].map(|curve| curve.weights()).concat();
        match weights.into_iter().find(|weight| weight.is_nan() || weight.abs() > MOST_WEIGHT) {
            None => Ok(()),
            Some(weight) => Err(format!(
                "its calibration has the weight {weight:e}, expected a number within {MOST_WEIGHT}"
            )),
        }
    }
}

impl Curve {
    /// The decoder's own probability.
    pub const IDENTITY: Self = Self { bias: 0.0, logit: 1.0, length: 0.0 };

    /// The calibrated probability.
    pub fn apply(&self, probability: f32, tokens: usize) -> f32 {
        let features = features(probability, tokens);
        sigmoid(self.weights().iter().zip(features).map(|(weight, feature)| weight * feature).sum()) as f32
    }

    fn weights(&self) -> [f64; 3] {
        [self.bias, self.logit, self.length]
    }

    /// The curve under which samples are most likely, by Newton's method.
    pub fn fit(samples: &[Sample]) -> Self {
        let mut weights = Self::IDENTITY.weights();
        for _ in 0..STEPS {
            let mut gradient = [0.0; 3];
            let mut hessian = [[0.0; 3]; 3];
            for (row, (weight, own)) in weights.iter().zip(Self::IDENTITY.weights()).enumerate() {
                gradient[row] = PRIOR * (weight - own);
                hessian[row][row] = PRIOR;
            }
            for sample in samples {
                let features = features(sample.probability, sample.tokens);
                let found =
                    sigmoid(weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum());
                let off = found - f64::from(u8::from(sample.right));
                for row in 0..3 {
                    gradient[row] += off * features[row];
                    for column in 0..3 {
                        hessian[row][column] += found * (1.0 - found) * features[row] * features[column];
                    }
                }
            }
            let step = solve(hessian, gradient);
            // Short steps: far from the solution, Newton's may lead away.
            let length = step.iter().map(|value| value.abs()).fold(0.0, f64::max);
            let share = if length > 1.0 { 1.0 / length } else { 1.0 };
            weights.iter_mut().zip(step).for_each(|(weight, step)| *weight -= share * step);
            if length < 1e-9 {
                break;
            }
        }
        let [bias, logit, length] = weights;
        Self { bias, logit, length }
    }
}

fn features(probability: f32, tokens: usize) -> [f64; 3] {
    let probability = f64::from(probability).clamp(LEAST, 1.0 - LEAST);
    [1.0, (probability / (1.0 - probability)).ln(), (tokens.max(1) as f64).ln()]
}

fn sigmoid(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}

/// Gauss elimination with pivots.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> [f64; 3] {
    for column in 0..3 {
        let pivot = (column..3).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()));
        let pivot = pivot.unwrap_or(column);
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..3 {
            let share = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            matrix[row].iter_mut().zip(above).for_each(|(own, above)| *own -= share * above);
            right[row] -= share * right[column];
        }
    }
    let mut solution = [0.0; 3];
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|column| matrix[row][column] * solution[column]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_finds_the_curve_that_made_the_samples() {
        let truth = Curve { bias: -0.5, logit: 0.6, length: -0.3 };
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 24) as f32
        };
        let sample = |_| {
            let (probability, tokens) = (0.02 + 0.96 * uniform(), 1 + (uniform() * 40.0) as usize);
            Sample { probability, tokens, right: uniform() < truth.apply(probability, tokens) }
        };
        let samples: Vec<Sample> = (0..20_000).map(sample).collect();
        let found = Curve::fit(&samples);
        for (found, expected) in found.weights().into_iter().zip(truth.weights()) {
            assert!((found - expected).abs() < 0.12, "{found}, expected {expected}");
        }
    }

    #[test]
    fn weights_that_give_no_confidence_are_refused() {
        let curves = |bias, logit| {
            let curve = Curve { bias, logit, length: 0.0 };
            Calibration { joint: Curve::IDENTITY, one_direction: Curve::IDENTITY, token: curve }
        };
        assert!(curves(-1e3, 1e3).check().is_ok());
        for wrong in [1e308, -1.1e3, f64::NAN] {
            assert!(curves(0.0, wrong).check().unwrap_err().contains("expected a number within 1000"));
        }
    }

    #[test]
    fn few_samples_leave_the_curve_near_the_decoder() {
        assert_eq!(Curve::fit(&[]), Curve::IDENTITY);
        let always = vec![Sample { probability: 0.9, tokens: 5, right: true }; 8];
        let found = Curve::fit(&always).apply(0.9, 5);
        assert!(found > 0.9 && found < 0.999, "{found}");
        for probability in [0.0, 0.3, 1.0] {
            assert!((Curve::IDENTITY.apply(probability, 7) - probability).abs() < 1e-6);
        }
    }
}
