//! The batch norm of the refinement, with the statistics of each head over all sequences.

use comer::internal::weights::Weights;
use rayon::prelude::*;

use crate::cpu::linear::{add, entry};
use crate::cpu::norm::{Statistics, total};
use crate::cpu::simd::vectorised;

/// Its path in the model file.
pub const PATH: &str = "decoder.refinement.norm";

/// A head's batch norm, forward (`scale`, `shift`) and backward (`offset`, `slope`).
#[derive(Clone, Copy, Default)]
pub struct Head {
    scale: f32,
    shift: f32,
    offset: f32,
    slope: f32,
}

/// The norm of each head.
pub fn heads(weights: &Weights, norm: &[Statistics]) -> Vec<Head> {
    let head = |(index, statistics): (usize, &Statistics)| {
        let weight = |leaf: &str| weights[&format!("{PATH}.{leaf}")].data[index];
        let scale = weight("weight") * statistics.inverse_deviation();
        Head { scale, shift: weight("bias") - statistics.mean * scale, ..Head::default() }
    };
    norm.iter().enumerate().map(head).collect()
}

/// Subtracts the normalised refinement from the energies.
pub fn subtract(energies: &mut [f32], values: &[f32], normal: &[Head]) {
    vectorised(
        #[inline(always)]
        || {
            let heads = parts_mut(energies, normal.len()).zip(parts(values, normal.len()));
            for ((energies, values), head) in heads.zip(normal) {
                for (energy, &x) in energies.iter_mut().zip(values) {
                    *energy -= x * head.scale + head.shift;
                }
            }
        },
    );
}

/// The statistics of the input for each head, over all sequences; empty without refinement.
pub fn statistics(refined: &[&[f32]], heads: usize) -> Vec<Statistics> {
    if refined.is_empty() {
        return Vec::new();
    }
    let one = |head: usize| {
        let rows =
            || refined.iter().map(|values| &values[values.len() / heads * head..][..values.len() / heads]);
        let count = rows().map(<[f32]>::len).sum::<usize>() as f64;
        vectorised(
            #[inline(always)]
            || {
                let mean = (rows().map(|row| total(row, |x| x)).sum::<f64>() / count) as f32;
                let variance = rows().map(|row| total(row, |x| (x - mean) * (x - mean))).sum::<f64>() / count;
                Statistics { mean, variance: variance as f32 }
            },
        )
    };
    (0..heads).into_par_iter().map(one).collect()
}

/// The sum of `(mean - value) * gradient`, in f32 within short chunks, in f64 over the chunks.
#[inline(always)]
fn total_product(values: &[f32], gradients: &[f32], mean: f32) -> f64 {
    let mut sum = 0.0;
    for (values, gradients) in values.chunks(1024).zip(gradients.chunks(1024)) {
        let mut lanes = [0f32; 16];
        let (left, right) = (values.chunks_exact(16), gradients.chunks_exact(16));
        for (&x, &g) in left.remainder().iter().zip(right.remainder()) {
            sum += f64::from((mean - x) * g);
        }
        for (x, g) in left.zip(right) {
            for lane in 0..16 {
                lanes[lane] += (mean - x[lane]) * g[lane];
            }
        }
        sum += lanes.iter().map(|&x| f64::from(x)).sum::<f64>();
    }
    sum
}

/// The backward pass except for its last step ([`backward_input`]), from the input of the norm and the gradient of the
/// energies of each sequence; the gradient of the refinement is its negative.
pub fn backward(
    weights: &Weights,
    norm: &[Statistics],
    sequences: &[(&[f32], &[f32])],
    gradients: &mut Weights,
) -> Vec<Head> {
    let mut heads = heads(weights, norm);
    if heads.is_empty() {
        return heads;
    }
    let sums = sequences.par_iter().map(|(values, energies)| {
        let pairs = parts(values, heads.len()).zip(parts(energies, heads.len())).zip(norm);
        let sum = |((values, energies), norm): ((&[f32], &[f32]), &Statistics)| {
            vectorised(
                #[inline(always)]
                || [total(energies, |g| -g), total_product(values, energies, norm.mean)],
            )
        };
        pairs.map(sum).collect()
    });
    let sums: Vec<Vec<[f64; 2]>> = sums.collect();
    let count = sequences.iter().map(|(values, _)| values.len()).sum::<usize>() / heads.len();
    let mut found = [Vec::new(), Vec::new()];
    for (index, (head, norm)) in heads.iter_mut().zip(norm).enumerate() {
        let [bias, product] = [0, 1].map(|which| sums.iter().map(|sums| sums[index][which]).sum::<f64>());
        let inverse = norm.inverse_deviation();
        let weight = product as f32 * inverse;
        head.slope = weight * inverse / count as f32;
        head.offset = bias as f32 / count as f32 - norm.mean * head.slope;
        found[0].push(weight);
        found[1].push(bias as f32);
    }
    for (leaf, values) in ["weight", "bias"].into_iter().zip(found) {
        add(&mut entry(gradients, format!("{PATH}.{leaf}"), &[values.len()]).data, &values);
    }
    heads
}

/// The gradient of the input of the norm of a sequence, from that of the energies.
pub fn backward_input(energies: &[f32], values: &[f32], normal: &[Head]) -> Vec<f32> {
    let mut gradients = energies.to_vec();
    vectorised(
        #[inline(always)]
        || {
            let all = parts_mut(&mut gradients, normal.len()).zip(parts(values, normal.len()));
            for ((gradient, values), head) in all.zip(normal) {
                for (g, &x) in gradient.iter_mut().zip(values) {
                    *g = head.scale * (-*g - head.offset - x * head.slope);
                }
            }
        },
    );
    gradients
}

/// The values of a sequence by head.
fn parts(values: &[f32], heads: usize) -> std::slice::ChunksExact<'_, f32> {
    values.chunks_exact(values.len() / heads)
}

fn parts_mut(values: &mut [f32], heads: usize) -> std::slice::ChunksExactMut<'_, f32> {
    values.chunks_exact_mut(values.len() / heads)
}
