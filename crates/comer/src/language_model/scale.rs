//! Probabilities in seven bits.

/// Different probabilities beside zero.
const LEVELS: usize = 127;

/// The probabilities that a file can hold: their odds are a geometric series, which is fine both near 0 and near 1, where
/// what is left over matters.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Scale {
    /// The logarithms of the lowest and the highest odds.
    ends: [f32; 2],
}

impl Scale {
    /// From the lowest to the highest of some probabilities.
    pub(super) fn new(probabilities: impl Iterator<Item = f64>) -> Result<Self, String> {
        let mut ends = [f32::MAX, f32::MIN];
        for probability in probabilities {
            if !(probability > 0.0 && probability <= 1.0) {
                return Err(format!("the probability {probability} is not above 0 and at most 1"));
            }
            ends = [ends[0].min(log_odds(probability) as f32), ends[1].max(log_odds(probability) as f32)];
        }
        Self::from_ends(ends)
    }

    /// From the logarithms of the lowest and the highest odds.
    pub(super) fn from_ends(ends: [f32; 2]) -> Result<Self, String> {
        if ends.iter().all(|end| end.abs() <= 100.0) && ends[0] <= ends[1] {
            return Ok(Self { ends });
        }
        Err("its probabilities have no range".into())
    }

    /// The logarithms of the lowest and the highest odds.
    pub(super) fn ends(self) -> [f32; 2] {
        self.ends
    }

    fn step(self) -> f64 {
        f64::from(self.ends[1] - self.ends[0]) / (LEVELS - 1) as f64
    }

    /// Impossible, then the logarithms of all values, ascending.
    pub(super) fn logarithms(self) -> Vec<f32> {
        let value = |level: usize| {
            let odds = f64::from(self.ends[0]) + self.step() * level as f64;
            -((-odds).exp().ln_1p()) as f32
        };
        std::iter::once(f32::NEG_INFINITY).chain((0..LEVELS).map(value)).collect()
    }

    /// The codes of the probabilities after a context. Each is one of the two nearest values, chosen so that their sum
    /// keeps to that of the probabilities: what a context leaves over is small, and all shorter contexts depend on it.
    pub(super) fn round(self, logarithms: &[f32], probabilities: &[f64]) -> Vec<u8> {
        let place = |index: usize| {
            let steps = (log_odds(probabilities[index]) - f64::from(self.ends[0])) / self.step().max(1e-9);
            steps.clamp(0.0, (LEVELS - 1) as f64)
        };
        let value = |code: u8| f64::from(logarithms[usize::from(code)]).exp();
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        // The largest first: the smaller ones can even out what they are off by.
        order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
        let mut codes = vec![0; probabilities.len()];
        let mut excess = 0.0;
        for index in order {
            let (lower, fraction) = (1 + place(index) as u8, place(index).fract());
            let with = |code: u8| excess + value(code) - probabilities[index];
            let up = match fraction {
                0.0..0.25 => false,
                0.25..0.75 => with(lower + 1).abs() < with(lower).abs(),
                _ => true,
            };
            codes[index] = lower + u8::from(up);
            excess = with(codes[index]);
        }
        if excess <= 0.25 * (1.0 - probabilities.iter().sum::<f64>()) {
            return codes;
        }
        (0..probabilities.len()).map(|index| 1 + place(index) as u8).collect()
    }
}

/// The logarithm of `p / (1 - p)`, within bounds.
fn log_odds(probability: f64) -> f64 {
    (probability / (1.0 - probability)).ln().min(16.0)
}
