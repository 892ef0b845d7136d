//! Cross entropy of the targets, with label smoothing, forward and backward at once.

use super::simd::vectorised;
use comer::internal::TokenId;
use comer::internal::vocab::PAD;
use rayon::prelude::*;

use super::scene::Scene;
use super::softmax;
use crate::symbols::count;

/// How well a batch was read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Loss {
    /// The mean over the targets that count.
    pub mean: f64,
    /// Answers that count: those that are not padding.
    pub targets: usize,
    /// Of these, the ones that the decoder held for the likeliest.
    pub correct: usize,
}

/// The loss of `logits` (`[tokens][vocabulary]`), which become their own gradient. With smoothing, the decoder should
/// target right with that much less than certainty, and with what is left be at every token alike.
pub(super) fn cross_entropy(scene: &Scene, logits: &mut [f32], smoothing: f32) -> Loss {
    let targets: Vec<usize> = scene
        .sequences
        .iter()
        .flat_map(|sequence| sequence.reading.targets.iter().map(|&token| usize::from(token)))
        .collect();
    let counted = targets.iter().filter(|&&target| target != usize::from(PAD)).count();
    let (width, share) = (logits.len() / targets.len(), (counted.max(1) as f32).recip());
    let even = smoothing / width as f32;
    let row = |(row, &target): (&mut [f32], &usize)| {
        if target == usize::from(PAD) {
            row.fill(0.0);
            return (0.0, false);
        }
        let energy = row[target];
        let sum: f64 = row.iter().map(|&x| f64::from(x)).sum();
        let better = |best: usize, place: usize| if row[place] > row[best] { place } else { best };
        let correct = (1..width).fold(0, better) == target;
        let logarithm = f64::from(vectorised(
            #[inline(always)]
            || softmax::forward(row),
        ));
        let loss = logarithm - f64::from(1.0 - smoothing) * f64::from(energy) - f64::from(even) * sum;
        row[target] -= 1.0 - smoothing;
        row.iter_mut().for_each(|x| *x = (*x - even) * share);
        (loss, correct)
    };
    let found: Vec<(f64, bool)> = logits.par_chunks_exact_mut(width).zip(&targets).map(row).collect();
    let mean = found.iter().map(|(loss, _)| loss).sum::<f64>() / counted.max(1) as f64;
    Loss { mean, targets: counted, correct: found.iter().filter(|(_, correct)| *correct).count() }
}

/// The loss of `logits` (`[cells][vocabulary]`) for the symbols of the cells, the mean over those that are known; the
/// logits become their own gradient times `weight`.
pub(super) fn symbol_entropy(logits: &mut [f32], symbols: &[TokenId], weight: f32) -> f64 {
    let total: f32 = symbols.iter().map(|&symbol| count(symbol)).sum::<f32>().max(1.0);
    let width = logits.len() / symbols.len();
    let row = |(row, &symbol): (&mut [f32], &TokenId)| {
        let (share, target) = (count(symbol) / total, usize::from(symbol));
        let energy = row[target];
        let logarithm = vectorised(
            #[inline(always)]
            || softmax::forward(row),
        );
        row[target] -= 1.0;
        row.iter_mut().for_each(|x| *x *= share * weight);
        f64::from(share) * f64::from(logarithm - energy)
    };
    let losses: Vec<f64> = logits.par_chunks_exact_mut(width).zip(symbols).map(row).collect();
    losses.iter().sum()
}
