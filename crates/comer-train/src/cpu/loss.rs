//! The cross entropy of tokens with label smoothing and that of the auxiliary losses, forward and backward in one pass.

use super::simd::vectorised;
use comer::internal::TokenId;
use comer::internal::vocab::{EOS, PAD};
use rayon::prelude::*;

use super::decoder_batch::DecoderBatch;
use super::softmax;
use crate::symbols::loss_weight;

/// The loss of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Loss {
    /// The mean over the targets.
    pub mean: f64,
    /// Number of targets, without padding.
    pub targets: usize,
    /// Targets with the highest probability.
    pub correct: usize,
}

/// The loss of `logits` (`[tokens][vocabulary]`), which are replaced by their gradient. With smoothing, the target
/// distribution is `1 - smoothing` for the target, plus `smoothing` spread evenly over all tokens.
pub(super) fn cross_entropy(batch: &DecoderBatch, logits: &mut [f32], smoothing: f32) -> Loss {
    let targets: Vec<usize> = batch
        .sequences
        .iter()
        .flat_map(|sequence| sequence.tokens.targets.iter().map(|&token| usize::from(token)))
        .collect();
    let counted = targets.iter().filter(|&&target| target != usize::from(PAD)).count();
    let (width, share) = (logits.len() / targets.len(), (counted.max(1) as f32).recip());
    let spread = smoothing / width as f32;
    let row = |(row, &target): (&mut [f32], &usize)| {
        if target == usize::from(PAD) {
            row.fill(0.0);
            return (0.0, false);
        }
        let energy = row[target];
        let sum: f64 = row.iter().map(|&x| f64::from(x)).sum();
        let better = |best: usize, token: usize| if row[token] > row[best] { token } else { best };
        let correct = (1..width).fold(0, better) == target;
        let log_prob = f64::from(vectorised(
            #[inline(always)]
            || softmax::forward(row),
        ));
        let loss = log_prob - f64::from(1.0 - smoothing) * f64::from(energy) - f64::from(spread) * sum;
        row[target] -= 1.0 - smoothing;
        row.iter_mut().for_each(|x| *x = (*x - spread) * share);
        (loss, correct)
    };
    let found: Vec<(f64, bool)> = logits.par_chunks_exact_mut(width).zip(&targets).map(row).collect();
    let mean = found.iter().map(|(loss, _)| loss).sum::<f64>() / counted.max(1) as f64;
    Loss { mean, targets: counted, correct: found.iter().filter(|(_, correct)| *correct).count() }
}

/// The loss of `logits` (`[cells][vocabulary]`) for the symbols of the cells: the weighted mean over known symbols. The
/// logits are replaced by their gradient times `weight`.
pub(super) fn symbol_cross_entropy(logits: &mut [f32], symbols: &[TokenId], weight: f32) -> f64 {
    let total: f32 = symbols.iter().map(|&symbol| loss_weight(symbol)).sum::<f32>().max(1.0);
    let width = logits.len() / symbols.len();
    let row = |(row, &symbol): (&mut [f32], &TokenId)| {
        let (share, target) = (loss_weight(symbol) / total, usize::from(symbol));
        let energy = row[target];
        let log_prob = vectorised(
            #[inline(always)]
            || softmax::forward(row),
        );
        row[target] -= 1.0;
        row.iter_mut().for_each(|x| *x *= share * weight);
        f64::from(share) * f64::from(log_prob - energy)
    };
    let losses: Vec<f64> = logits.par_chunks_exact_mut(width).zip(symbols).map(row).collect();
    losses.iter().sum()
}

/// The loss of `logits` (`[cells][vocabulary]`) for which tokens are present in each picture, without their places: binary
/// cross entropy of the largest logit of each token over the cells of a picture, the mean over pictures and tokens. The
/// logits are replaced by their gradient times `weight`.
pub(super) fn presence_cross_entropy(batch: &DecoderBatch, logits: &mut [f32], weight: f32) -> f64 {
    let (cells, first) = (batch.cells.pixels, usize::from(EOS) + 1);
    let width = logits.len() / cells;
    let share = ((batch.cells.sizes.len() * (width - first)) as f32).recip();
    let mut gradient = vec![0.0; logits.len()];
    let mut loss = 0.0;
    for (region, [sequence, _]) in batch.cells.pictures().iter().zip(batch.pairs()) {
        let cells = region.start..region.start + region.height * region.width;
        for token in first..width {
            let better = |best: usize, cell: usize| {
                if logits[cell * width + token] > logits[best * width + token] { cell } else { best }
            };
            let cell = cells.clone().fold(region.start, better);
            let logit = f64::from(logits[cell * width + token]);
            let is_present = sequence.tokens.targets.iter().any(|&target| usize::from(target) == token);
            let target = f64::from(u8::from(is_present));
            // log(1 + e^x) - x y, without overflow.
            loss += logit.max(0.0) + (-logit.abs()).exp().ln_1p() - logit * target;
            let probability = ((-logit).exp() + 1.0).recip();
            gradient[cell * width + token] = (probability - target) as f32 * share * weight;
        }
    }
    logits.copy_from_slice(&gradient);
    loss * f64::from(share)
}

#[cfg(test)]
mod tests {
    use comer::internal::config::ModelConfig;
    use comer::internal::weights::Weights;

    use super::super::decoder_batch::TokenSequence;
    use super::super::grid::Grid;
    use super::*;

    /// Two pictures, of two cells and of three. Only tokens 3 and 4 count: the others are padding, start and end, whose large
    /// logits must not matter. All logits are logarithms, so that e^x is a small number.
    #[test]
    fn the_presence_loss_is_that_computed_by_hand() {
        let (config, weights) = (ModelConfig::default(), Weights::new());
        let formulas: [&[TokenId]; 2] = [&[3], &[4, 4]];
        let sequences: Vec<TokenSequence> =
            formulas.iter().flat_map(|formula| TokenSequence::both_directions(formula)).collect();
        let cells = Grid::new(vec![(1, 2), (3, 1)]);
        let batch = DecoderBatch::new(&config, &weights, 0, cells, &sequences);
        let (ln2, ln3) = (2f32.ln(), 3f32.ln());
        let mut logits = [
            [50.0, 50.0, 50.0, -ln2, ln2],
            [50.0, 50.0, 50.0, ln3, -ln3],
            [50.0, 50.0, 50.0, -ln3, -2.0 * ln3],
            [50.0, 50.0, 50.0, -2.0 * ln3, -3.0 * ln3],
            [50.0, 50.0, 50.0, -ln2, -ln3],
        ]
        .concat();
        let loss = presence_cross_entropy(&batch, &mut logits, 10.0);
        // The largest logits of tokens 3 and 4, with -log(p) of present and -log(1 - p) of absent tokens, p = e^x / (1 + e^x):
        // first picture: ln 3, present, p = 3/4; ln 2, absent, p = 2/3; second: -ln 2, absent, p = 1/3; -ln 3, present, p = 1/4.
        let expected = ((4f64 / 3.0).ln() + 3f64.ln() + 1.5f64.ln() + 4f64.ln()) / 4.0;
        assert!((loss - expected).abs() < 1e-6, "{loss}, expected {expected}");
        // p - 1 of present and p of absent tokens, times 10 / 4.
        let gradient = [
            [0.0, 0.0, 0.0, 0.0, 5.0 / 3.0],
            [0.0, 0.0, 0.0, -0.625, 0.0],
            [0.0; 5],
            [0.0; 5],
            [0.0, 0.0, 0.0, 2.5 / 3.0, -1.875],
        ]
        .concat();
        for (index, (found, expected)) in logits.iter().zip(gradient).enumerate() {
            let (cell, token) = (index / 5, index % 5);
            assert!((found - expected).abs() < 1e-6, "cell {cell}, token {token}: {found}, not {expected}");
        }
    }
}
