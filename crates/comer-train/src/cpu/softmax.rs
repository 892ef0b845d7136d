//! Softmax over rows, forward and backward, with an exponential that the compiler can vectorise.

/// Lanes of sums and maxima.
const LANES: usize = 16;

/// `e^x` for `x <= 0`, to about one unit in the last place; 0 where the result would be subnormal.
#[inline(always)]
fn exponential(x: f32) -> f32 {
    // x = n ln 2 + r with an integer n: adding and subtracting 1.5 * 2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    let shifted = x.max(-88.0) * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    // ln 2 in two parts, the first of which is exact when multiplied by a small integer.
    let r = x.max(-88.0) - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let mut sum = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = sum * r + coefficient;
    }
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { sum * power }
}

/// The logistic function.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    let power = exponential(-x.abs());
    let small = power / (1.0 + power);
    if x < 0.0 { small } else { 1.0 - small }
}

/// The hyperbolic tangent, to about 1e-7.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let power = exponential(-2.0 * x.abs());
    ((1.0 - power) / (1.0 + power)).copysign(x)
}

/// Folds a row, lane by lane and then the lanes: the same order on every machine.
#[inline(always)]
fn fold(row: &[f32], start: f32, mut with: impl FnMut(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; LANES];
    let chunks = row.chunks_exact(LANES);
    for (lane, &x) in lanes.iter_mut().zip(chunks.remainder()) {
        *lane = with(*lane, x);
    }
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = with(*lane, x);
        }
    }
    lanes.into_iter().fold(start, with)
}

/// The dot product of two rows.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (lane, (&x, &y)) in lanes.iter_mut().zip(left.remainder().iter().zip(right.remainder())) {
        *lane += x * y;
    }
    for (x, y) in left.zip(right) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    lanes.into_iter().sum()
}

/// Softmax in place; minus infinity becomes 0. Returns the log-sum-exp of the energies.
#[inline(always)]
pub(super) fn forward(row: &mut [f32]) -> f32 {
    let most = fold(row, f32::NEG_INFINITY, f32::max);
    for x in row.iter_mut() {
        *x = exponential(*x - most);
    }
    let sum = fold(row, 0.0, |a, b| a + b);
    let scale = sum.recip();
    row.iter_mut().for_each(|x| *x *= scale);
    most + sum.ln()
}

/// Turns the gradient of the weights into that of the energies, in place.
#[inline(always)]
pub(super) fn backward(weights: &[f32], gradient: &mut [f32]) {
    let mean = dot(weights, gradient);
    for (g, &weight) in gradient.iter_mut().zip(weights) {
        *g = weight * (*g - mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_accurate_to_the_last_places() {
        for step in 0..=8_600_000 {
            let x = -1e-5 * step as f32;
            let (found, expected) = (f64::from(exponential(x)), f64::from(x).exp());
            assert!((found - expected).abs() <= 2e-7 * expected, "{x}: {found}, expected {expected}");
        }
        assert_eq!((exponential(0.0), exponential(f32::NEG_INFINITY)), (1.0, 0.0));
    }

    #[test]
    fn sigmoid_and_tanh_are_accurate() {
        for step in -10_000..=10_000 {
            let x = 1e-2 * step as f32;
            let (exact, found) = (f64::from(x), [sigmoid(x), tanh(x)].map(f64::from));
            let expected = [((-exact).exp() + 1.0).recip(), exact.tanh()];
            assert!(
                found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-7),
                "{x}: {found:?} {expected:?}"
            );
        }
    }

    #[test]
    fn weights_are_normalised_and_masked_ones_are_zero() {
        let energies: Vec<f32> = (0..39).map(|i| (i * 7 % 13) as f32 - 50.0).collect();
        let mut row = energies.clone();
        row[20] = f32::NEG_INFINITY;
        let log_prob = forward(&mut row);
        assert_eq!(row[20], 0.0);
        let sum: f64 = energies.iter().enumerate().filter(|e| e.0 != 20).map(|e| f64::from(*e.1).exp()).sum();
        assert!((f64::from(log_prob) - sum.ln()).abs() < 1e-5);
        for (index, (&weight, &energy)) in row.iter().zip(&energies).enumerate().filter(|(i, _)| *i != 20) {
            assert!((f64::from(weight) - f64::from(energy).exp() / sum).abs() < 1e-6, "{index}");
        }
    }
}
