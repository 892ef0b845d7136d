//! What is done to one row of numbers at a time: softmax, layer norm, and attention over what was already written.
//!
//! The loops are plain Rust over chunks of 16, compiled once for every instruction set; the compiler makes the vectors.

#[cfg(any(test, target_arch = "x86_64"))]
use super::Isa;
use super::Kernels;

const CHUNK: usize = 16;

/// Compiles a function for every instruction set, and picks one at run time.
macro_rules! for_every_set {
    ($(#[$doc:meta])* $name:ident = $body:ident($($argument:ident: $type:ty),*)) => {
        $(#[$doc])*
        pub(crate) fn $name(kernels: Kernels, $($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            fn avx512($($argument: $type),*) {
                $body($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($argument: $type),*) {
                $body($($argument),*)
            }
            match kernels.isa() {
                // SAFETY: kernels exist only for instruction sets that are there.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => unsafe { avx512($($argument),*) },
                // SAFETY: the same.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => unsafe { avx2($($argument),*) },
                _ => $body($($argument),*),
            }
        }
    };
}

for_every_set! {
    /// Turns each row of `width` numbers into probabilities.
    softmax = softmax_body(values: &mut [f32], width: usize)
}

for_every_set! {
    /// Turns each row of `width` numbers into log-probabilities.
    log_softmax = log_softmax_body(values: &mut [f32], width: usize)
}

for_every_set! {
    /// Adds `branch` to `values`, then brings each row to mean 0 and variance 1, and scales and shifts it.
    add_and_normalise = add_and_normalise_body(values: &mut [f32], branch: &[f32], scale: &[f32], shift: &[f32], epsilon: f32)
}

for_every_set! {
    /// Attention of one query over the positions of a cache; see [`Cached`].
    attend = attend_body(cached: &Cached, query: &[f32], scores: &mut Vec<f32>, out: &mut [f32])
}

for_every_set! {
    /// The energies of an attention with coverage, `[heads, cells]`: for each cell `v tanh(hidden + query)`, each head with its
    /// part of the hidden layer. `hidden` is `[cells, width]`, `query` and `v` are `[width]`.
    coverage_energies = coverage_energies_body(hidden: &[f32], query: &[f32], v: &[f32], energies: &mut [f32])
}

for_every_set! {
    /// The new states of a GRU, `[rows, d]`, from the parts of input and state, `[rows, 3 d]`, and the old states: with the
    /// order r, z, n, `n = tanh(input + sigmoid(r) * state)` and `n + sigmoid(z) * (old - n)`.
    gru_gates = gru_gates_body(input: &[f32], state: &[f32], d: usize, states: &mut [f32])
}

/// Keys and values of earlier positions: row `r` is `rows[r * 2 * width..]`, first the key, then the value.
pub(crate) struct Cached<'a> {
    pub(crate) rows: &'a [f32],
    pub(crate) width: usize,
    pub(crate) heads: usize,
    /// The rows to attend to.
    pub(crate) positions: &'a [u32],
}

#[inline(always)]
fn softmax_body(values: &mut [f32], width: usize) {
    for row in values.chunks_exact_mut(width) {
        let most = maximum(row);
        let share = 1.0 / exponentials(row, most);
        row.iter_mut().for_each(|x| *x *= share);
    }
}

#[inline(always)]
fn log_softmax_body(values: &mut [f32], width: usize) {
    for row in values.chunks_exact_mut(width) {
        let most = maximum(row);
        let sum: f32 =
            row.chunks(CHUNK).map(|chunk| exponentials(&mut padded(chunk, f32::NEG_INFINITY), most)).sum();
        let shift = most + sum.ln();
        row.iter_mut().for_each(|x| *x -= shift);
    }
}

#[inline(always)]
fn add_and_normalise_body(values: &mut [f32], branch: &[f32], scale: &[f32], shift: &[f32], epsilon: f32) {
    let width = scale.len();
    for (row, branch) in values.chunks_exact_mut(width).zip(branch.chunks_exact(width)) {
        for (x, y) in row.iter_mut().zip(branch) {
            *x += y;
        }
        let mean = sum_of(row, |x| x) / width as f32;
        let variance = sum_of(row, |x| (x - mean) * (x - mean)) / width as f32;
        let factor = 1.0 / (variance + epsilon).sqrt();
        for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
            *x = (*x - mean) * factor * scale + shift;
        }
    }
}

#[inline(always)]
fn attend_body(cached: &Cached, query: &[f32], scores: &mut Vec<f32>, out: &mut [f32]) {
    let (width, positions) = (cached.width, cached.positions.len());
    let head = width / cached.heads;
    scores.clear();
    scores.resize(cached.heads * positions, 0.0);
    for (position, &row) in cached.positions.iter().enumerate() {
        let key = &cached.rows[row as usize * 2 * width..][..width];
        for (index, (query, key)) in query.chunks_exact(head).zip(key.chunks_exact(head)).enumerate() {
            scores[index * positions + position] = dot(query, key);
        }
    }
    softmax_body(scores, positions);
    out.fill(0.0);
    for (position, &row) in cached.positions.iter().enumerate() {
        let value = &cached.rows[(row as usize * 2 + 1) * width..][..width];
        for (index, (out, value)) in out.chunks_exact_mut(head).zip(value.chunks_exact(head)).enumerate() {
            let weight = scores[index * positions + position];
            for (out, value) in out.iter_mut().zip(value) {
                *out += weight * value;
            }
        }
    }
}

#[inline(always)]
fn coverage_energies_body(hidden: &[f32], query: &[f32], v: &[f32], energies: &mut [f32]) {
    let width = query.len();
    let cells = hidden.len() / width;
    let part = width * cells / energies.len();
    for (cell, hidden) in hidden.chunks_exact(width).enumerate() {
        let heads = hidden.chunks(part).zip(query.chunks(part)).zip(v.chunks(part));
        for (head, ((hidden, query), v)) in heads.enumerate() {
            let mut lanes = [0.0; CHUNK];
            let whole = part / CHUNK * CHUNK;
            for from in (0..whole).step_by(CHUNK) {
                for (lane, at) in lanes.iter_mut().zip(from..from + CHUNK) {
                    *lane += v[at] * tanh(hidden[at] + query[at]);
                }
            }
            let rest: f32 = (whole..part).map(|at| v[at] * tanh(hidden[at] + query[at])).sum();
            energies[head * cells + cell] = fold(lanes, |a, b| a + b) + rest;
        }
    }
}

#[inline(always)]
fn gru_gates_body(input: &[f32], state: &[f32], d: usize, states: &mut [f32]) {
    let parts = input.chunks_exact(3 * d).zip(state.chunks_exact(3 * d));
    for ((input, state), old) in parts.zip(states.chunks_exact_mut(d)) {
        for i in 0..d {
            let reset = sigmoid(input[i] + state[i]);
            let update = sigmoid(input[d + i] + state[d + i]);
            let new = tanh(input[2 * d + i] + reset * state[2 * d + i]);
            old[i] = new + update * (old[i] - new);
        }
    }
}

/// The hyperbolic tangent, to 2e-7.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    let power = exponential(-2.0 * x.abs());
    ((1.0 - power) / (1.0 + power)).copysign(x)
}

/// The logistic function, to 2e-7.
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    let power = exponential(-x.abs());
    let small = power / (1.0 + power);
    if x < 0.0 { small } else { 1.0 - small }
}

/// The greatest number of a row; NaN is passed over.
#[inline(always)]
fn maximum(row: &[f32]) -> f32 {
    let greater = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; CHUNK];
    let (chunks, rest) = row.as_chunks::<CHUNK>();
    for chunk in chunks.iter().chain([&padded(rest, f32::NEG_INFINITY)]) {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = greater(*lane, x);
        }
    }
    fold(lanes, greater)
}

/// The sum of a function of the numbers of a row.
#[inline(always)]
fn sum_of(row: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; CHUNK];
    let (chunks, rest) = row.as_chunks::<CHUNK>();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += of(x);
        }
    }
    fold(lanes, |a, b| a + b) + rest.iter().map(|&x| of(x)).sum::<f32>()
}

#[inline(always)]
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut lanes = [0.0; CHUNK];
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<CHUNK>(), right.as_chunks::<CHUNK>());
    for (left, right) in left.iter().zip(right) {
        for lane in 0..CHUNK {
            lanes[lane] += left[lane] * right[lane];
        }
    }
    fold(lanes, |a, b| a + b) + left_rest.iter().zip(right_rest).map(|(x, y)| x * y).sum::<f32>()
}

/// Replaces each number by the exponential of its difference to `most`, and gives their sum.
#[inline(always)]
fn exponentials(row: &mut [f32], most: f32) -> f32 {
    let mut lanes = [0.0; CHUNK];
    let mut apply = |chunk: &mut [f32; CHUNK]| {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *x = exponential(*x - most);
            *lane += *x;
        }
    };
    let (chunks, rest) = row.as_chunks_mut::<CHUNK>();
    chunks.iter_mut().for_each(&mut apply);
    // What fills up the last chunk adds less than an f32 can tell from nothing.
    let mut last = padded(rest, f32::NEG_INFINITY);
    apply(&mut last);
    rest.copy_from_slice(&last[..rest.len()]);
    fold(lanes, |a, b| a + b)
}

/// A chunk that is not full, filled up.
#[inline(always)]
fn padded(rest: &[f32], filling: f32) -> [f32; CHUNK] {
    let mut chunk = [filling; CHUNK];
    chunk[..rest.len()].copy_from_slice(rest);
    chunk
}

/// All lanes brought together in halves, as vector units do it.
#[inline(always)]
fn fold(mut lanes: [f32; CHUNK], with: impl Fn(f32, f32) -> f32) -> f32 {
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] = with(lanes[lane], lanes[lane + half]);
        }
    }
    lanes[0]
}

/// e^x for x <= 0, to 2e-7 of its value, in operations that every vector unit has. Below -87 it is about 1e-38.
#[inline(always)]
fn exponential(x: f32) -> f32 {
    // e^x = 2^n * e^r with n whole and |r| <= ln(2) / 2; adding and taking off 1.5 * 2^23 rounds to a whole number.
    const ROUND: f32 = 12_582_912.0;
    let x = if x > -87.0 { x } else { -87.0 };
    let n = x * std::f32::consts::LOG2_E + ROUND - ROUND;
    let r = x - n * 0.693_359_4;
    let r = r + n * 2.121_944_4e-4;
    // Taylor's series up to r^7, beyond which nothing is left in an f32.
    let mut power = 1.0 / 5040.0;
    for factorial in [720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0f32] {
        power = power * r + 1.0 / factorial;
    }
    power * f32::from_bits(((n as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_to_two_in_ten_million() {
        for step in 0..=870_000 {
            let x = -(step as f32) / 10_000.0;
            let (found, expected) = (f64::from(exponential(x)), f64::from(x).exp());
            assert!((found - expected).abs() <= 2e-7 * expected, "e^{x}: {found}, expected {expected}");
        }
        assert!(exponential(f32::NEG_INFINITY) < 2e-38);
    }

    #[test]
    fn every_instruction_set_gives_the_definitions_probabilities() {
        for kernels in Isa::available().filter_map(Kernels::with) {
            let isa = kernels.isa();
            for width in [1, 2, 16, 17, 113, 136] {
                let logits: Vec<f32> = (0..2 * width).map(|i| ((i * 37) % 23) as f32 * 0.7 - 9.0).collect();
                let (mut shares, mut log_probs) = (logits.clone(), logits.clone());
                softmax(kernels, &mut shares, width);
                log_softmax(kernels, &mut log_probs, width);
                for (index, &logit) in logits.iter().enumerate() {
                    let row = &logits[index / width * width..][..width];
                    let sum: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
                    let expected = f64::from(logit).exp() / sum;
                    let (share, log_prob) = (f64::from(shares[index]), f64::from(log_probs[index]));
                    assert!(
                        (share - expected).abs() < 1e-6 * expected,
                        "{isa:?} {width}: {share} {expected}"
                    );
                    assert!((log_prob - expected.ln()).abs() < 2e-6, "{isa:?} {width}: {log_prob}");
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_computes_energies_and_gates_like_the_definition() {
        let number = |i: usize| ((i * 37) % 23) as f32 * 0.3 - 3.3;
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        for kernels in Isa::available().filter_map(Kernels::with) {
            let isa = kernels.isa();
            for (width, heads, cells) in [(6, 1, 3), (40, 2, 5), (512, 1, 2)] {
                let hidden: Vec<f32> = (0..cells * width).map(number).collect();
                let [query, v] = [7, 5].map(|from| (from..from + width).map(number).collect::<Vec<f32>>());
                let mut energies = vec![0.0; heads * cells];
                coverage_energies(kernels, &hidden, &query, &v, &mut energies);
                for (index, found) in energies.iter().enumerate() {
                    let (head, cell, part) = (index / cells, index % cells, width / heads);
                    let term =
                        |k: usize| f64::from(v[k]) * f64::from(hidden[cell * width + k] + query[k]).tanh();
                    let expected: f64 = (head * part..(head + 1) * part).map(term).sum();
                    assert!((f64::from(*found) - expected).abs() < 2e-4, "{isa:?}: {found} {expected}");
                }
            }
            for d in [1, 4, 33] {
                let [input, state] =
                    [3, 11].map(|from| (from..from + 6 * d).map(number).collect::<Vec<f32>>());
                let old: Vec<f32> = (0..2 * d).map(|i| number(i) * 0.3).collect();
                let mut states = old.clone();
                gru_gates(kernels, &input, &state, d, &mut states);
                for (index, found) in states.iter().enumerate() {
                    let at = index / d * 3 * d + index % d;
                    let [r, z] = [at, at + d].map(|at| sigmoid(input[at] + state[at]));
                    let n = (input[at + 2 * d] + r * state[at + 2 * d]).tanh();
                    let expected = (1.0 - z) * n + z * old[index];
                    assert!((found - expected).abs() < 2e-6, "{isa:?} {d}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_normalises_like_the_definition() {
        for kernels in Isa::available().filter_map(Kernels::with) {
            let isa = kernels.isa();
            for width in [4, 32, 50] {
                let branch: Vec<f32> = (0..2 * width).map(|i| ((i * 29) % 17) as f32 * 0.3).collect();
                let mut values: Vec<f32> = (0..2 * width).map(|i| ((i * 31) % 13) as f32).collect();
                let before: Vec<f32> = values.iter().zip(&branch).map(|(x, y)| x + y).collect();
                let scale: Vec<f32> = (0..width).map(|i| 1.0 + i as f32 * 0.01).collect();
                let shift: Vec<f32> = (0..width).map(|i| i as f32 * 0.02).collect();
                add_and_normalise(kernels, &mut values, &branch, &scale, &shift, 1e-5);
                for (index, &found) in values.iter().enumerate() {
                    let row = &before[index / width * width..][..width];
                    let mean = row.iter().sum::<f32>() / width as f32;
                    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / width as f32;
                    let column = index % width;
                    let expected =
                        (before[index] - mean) / (variance + 1e-5).sqrt() * scale[column] + shift[column];
                    assert!((found - expected).abs() < 1e-5, "{isa:?} {width}: {found} {expected}");
                }
            }
        }
    }
}
