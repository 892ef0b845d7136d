//! The DenseNet for training on a CPU: forward and backward over plain slices.
//!
//! A block works in one buffer: a layer reads the rows of all channels so far and writes its own below them, so that
//! nothing is ever concatenated, and the gradients of a block add up in one buffer of the same form. Pictures keep
//! their own sizes.

use super::simd::vectorised;
use comer::internal::config::{BLOCKS, ModelConfig};
use comer::internal::weights::{Tensor, Weights};
use rayon::prelude::*;

use super::correlate::correlate;
use super::grid::Grid;
use super::norm::{Drop, Statistics};
use super::pool;
use super::product::{Matrix, Threads, multiply};
use super::unit::{Unit, UnitTape, convolve, convolve_back, mix_channels, unmix_channels};

/// Side of the stem's convolution.
const STEM: usize = 7;

/// The network, its weights borrowed from a model.
pub struct DenseNet<'a> {
    /// The shape of the network.
    pub config: &'a ModelConfig,
    /// At least all tensors under `encoder`.
    pub weights: &'a Weights,
    /// Chooses what is dropped; a step's own number.
    pub seed: u32,
}

/// What a batch became: `[channels][stride of the grid]`
pub struct Features {
    /// Where the pictures lie.
    pub grid: Grid,
    /// The rows of the channels.
    pub rows: Vec<f32>,
}

/// What the backward pass needs.
pub struct Tape {
    pictures: Grid,
    stem: UnitTape,
    blocks: Vec<BlockTape>,
    last: UnitTape,
}

struct BlockTape {
    grid: Grid,
    rows: Vec<f32>,
    layers: Vec<(UnitTape, UnitTape)>,
    transition: Option<UnitTape>,
}

/// A batch norm's statistics: its path, the mean and the biased variance of each channel, the numbers in a channel.
pub struct NormStatistics {
    /// The path of the norm in the model file.
    pub path: String,
    /// The mean of each channel.
    pub mean: Vec<f32>,
    /// The biased variance of each channel.
    pub variance: Vec<f32>,
    /// How many numbers a channel has.
    pub count: usize,
}

impl DenseNet<'_> {
    /// Reads pictures: the rows of all their pixels, one picture after the other, in the sizes of `grid`.
    pub fn forward(&self, pixels: &[f32], pictures: Grid) -> (Features, Tape) {
        let (stem_grid, stem_unit) = (pictures.halved(), self.unit("encoder.stem", 0, false));
        let values = self.stem(pixels, &pictures, &stem_grid);
        let mut grid = stem_grid.halved();
        let mut rows = vec![0.0; self.config.block_output_channels(0) * grid.stride];
        let pooled = &mut rows[..self.config.stem_channels() * grid.stride];
        let stem = stem_unit.normalise(values, &stem_grid, pooled, grid.stride, |row, output| {
            pool::max_forward(&stem_grid, &grid, row, output);
        });

        let mut blocks = Vec::with_capacity(BLOCKS);
        for block in 0..BLOCKS {
            let mut bordered = grid.bordered(self.config.bottleneck_channels());
            let layers = (0..self.config.layers_per_block)
                .map(|layer| self.layer((block, layer), &mut rows, &mut bordered, &grid))
                .collect();
            let Some(path) = transition_path(block) else {
                blocks.push(BlockTape { grid: grid.clone(), rows, layers, transition: None });
                break;
            };
            let unit = self.unit(&path, 3 * block, true);
            let values = mix_channels(unit.convolution(), &rows, &grid);
            let small = grid.halved();
            let mut next = vec![0.0; self.config.block_output_channels(block + 1) * small.stride];
            let halved = &mut next[..self.config.block_input_channels(block + 1) * small.stride];
            let transition = unit.normalise(values, &grid, halved, small.stride, |row, output| {
                pool::mean_forward(&grid, &small, row, output);
            });
            blocks.push(BlockTape { grid, rows, layers, transition: Some(transition) });
            (grid, rows) = (small, next);
        }
        let BlockTape { grid, rows, .. } = &blocks[BLOCKS - 1];
        let mut output = vec![0.0; rows.len()];
        let last = self.last().normalise(rows.clone(), grid, &mut output, grid.stride, copy);
        let features = Features { grid: grid.clone(), rows: output };
        (features, Tape { pictures, stem, blocks, last })
    }

    /// The gradients of all weights from that of the features' rows. `pixels` are those of the forward pass.
    pub fn backward(&self, tape: Tape, pixels: &[f32], mut gradient: Vec<f32>) -> Weights {
        let mut gradients = Weights::new();
        let final_grid = &tape.blocks[BLOCKS - 1].grid;
        self.last().denormalise(&tape.last, final_grid, &mut gradient, &mut gradients);
        for (block, tape) in tape.blocks.iter().enumerate().rev() {
            if let (Some(path), Some(transition)) = (transition_path(block), &tape.transition) {
                let unit = self.unit(&path, 3 * block, true);
                let small = tape.grid.halved();
                let mut wide = vec![0.0; transition.statistics.len() * tape.grid.stride];
                spread(&mut wide, tape.grid.stride, &gradient, small.stride, |result, gradient| {
                    pool::mean_backward(&tape.grid, &small, gradient, result);
                });
                unit.denormalise(transition, &tape.grid, &mut wide, &mut gradients);
                gradient = vec![0.0; tape.rows.len()];
                let weights =
                    unmix_channels(unit.convolution(), &tape.rows, &tape.grid, &wide, &mut gradient);
                unit.note(weights, &mut gradients);
            }
            let mut inner = tape.grid.bordered(self.config.bottleneck_channels());
            let mut outer = tape.grid.bordered(self.config.growth_rate);
            for layer in (0..self.config.layers_per_block).rev() {
                let workspace = (&mut inner[..], &mut outer[..]);
                self.layer_back((block, layer), tape, workspace, &mut gradient, &mut gradients);
            }
        }
        self.stem_back(&tape, pixels, &gradient, &mut gradients);
        gradients
    }

    /// The statistics of every batch norm, for the running ones.
    pub fn statistics(&self, tape: &Tape) -> Vec<NormStatistics> {
        let mut list = Vec::new();
        let mut push = |path: String, tape: &UnitTape, grid: &Grid| {
            let part = |of: fn(&Statistics) -> f32| tape.statistics.iter().map(of).collect();
            let (mean, variance) = (part(|s| s.mean), part(|s| s.variance));
            list.push(NormStatistics { path, mean, variance, count: grid.pixels });
        };
        push("encoder.stem.norm".into(), &tape.stem, &tape.pictures.halved());
        for (block, tape) in tape.blocks.iter().enumerate() {
            for (layer, (reduce, grow)) in tape.layers.iter().enumerate() {
                push(format!("encoder.blocks.{block}.{layer}.reduce.norm"), reduce, &tape.grid);
                push(format!("encoder.blocks.{block}.{layer}.grow.norm"), grow, &tape.grid);
            }
            if let Some(transition) = &tape.transition {
                push(format!("encoder.transitions.{block}.norm"), transition, &tape.grid);
            }
        }
        push("encoder.last_norm".into(), &tape.last, &tape.blocks[BLOCKS - 1].grid);
        list
    }

    /// A unit with dropout or without; `number` tells units apart.
    fn unit<'a>(&'a self, path: &'a str, number: usize, drops: bool) -> Unit<'a> {
        let seed = self.seed.wrapping_mul(1009).wrapping_add(number as u32);
        let rate = self.config.encoder_dropout;
        let drop = (drops && rate > 0.0).then(|| Drop::new(rate, seed));
        Unit { path, weights: self.weights, relu: true, drop }
    }

    fn last(&self) -> Unit<'_> {
        Unit { path: "encoder.last_norm", weights: self.weights, relu: false, drop: None }
    }

    fn with_units<R>(&self, block: usize, layer: usize, run: impl FnOnce(Unit, Unit) -> R) -> R {
        let path = format!("encoder.blocks.{block}.{layer}");
        let (reduce, grow) = (format!("{path}.reduce"), format!("{path}.grow"));
        let number = 3 * BLOCKS * (layer + 1) + 3 * block;
        run(self.unit(&reduce, number + 1, true), self.unit(&grow, number + 2, true))
    }

    /// One dense layer: reads the rows of the channels so far, writes its own below them. `bordered` is its workspace.
    fn layer(
        &self,
        (block, layer): (usize, usize),
        rows: &mut [f32],
        bordered: &mut [f32],
        grid: &Grid,
    ) -> (UnitTape, UnitTape) {
        let inputs = self.config.block_input_channels(block) + layer * self.config.growth_rate;
        let (input, output) = rows.split_at_mut(inputs * grid.stride);
        self.with_units(block, layer, |reduce, grow| {
            let values = mix_channels(reduce.convolution(), input, grid);
            let border = |row: &[f32], output: &mut [f32]| grid.border(row, output);
            let reduced = reduce.normalise(values, grid, bordered, grid.bordered_stride, border);
            let values = convolve(grow.convolution(), bordered, grid);
            let output = &mut output[..self.config.growth_rate * grid.stride];
            let grown = grow.normalise(values, grid, output, grid.stride, copy);
            (reduced, grown)
        })
    }

    /// The backward pass of [`Self::layer`]: takes the gradient of its own rows, adds to that of the rows above.
    fn layer_back(
        &self,
        (block, layer): (usize, usize),
        tape: &BlockTape,
        (inner, outer): (&mut [f32], &mut [f32]),
        gradient: &mut [f32],
        gradients: &mut Weights,
    ) {
        let grid = &tape.grid;
        let inputs = self.config.block_input_channels(block) + layer * self.config.growth_rate;
        let (sum, own) = gradient.split_at_mut(inputs * grid.stride);
        let own = &mut own[..self.config.growth_rate * grid.stride];
        let (reduced, grown) = &tape.layers[layer];
        self.with_units(block, layer, |reduce, grow| {
            grow.denormalise(grown, grid, own, gradients);
            spread(outer, grid.bordered_stride, own, grid.stride, |output, row| grid.border(row, output));
            let border = |row: &[f32], output: &mut [f32]| grid.border(row, output);
            reduce.activate(reduced, grid, inner, grid.bordered_stride, border);
            grow.note(correlate(inner, self.config.bottleneck_channels(), own, grid), gradients);
            let mut middle = convolve_back(grow.convolution(), outer, grid);
            reduce.denormalise(reduced, grid, &mut middle, gradients);
            let weights = unmix_channels(reduce.convolution(), &tape.rows, grid, &middle, sum);
            reduce.note(weights, gradients);
        });
    }

    /// The stem's convolution: `[channels][stride]` of half the size.
    fn stem(&self, pixels: &[f32], pictures: &Grid, half: &Grid) -> Vec<f32> {
        let weights = &self.weights["encoder.stem.conv.weight"];
        let patches = patches(pixels, pictures, half);
        let (channels, taps) = (weights.shape[0], STEM * STEM);
        let mut values = vec![0.0; channels * half.stride];
        let left = Matrix::rows(&weights.data, channels, taps, taps);
        let right = Matrix::rows(&patches, taps, half.pixels, half.stride);
        multiply(&mut values, half.stride, left, right, false, Threads::All);
        values
    }

    fn stem_back(&self, tape: &Tape, pixels: &[f32], gradient: &[f32], gradients: &mut Weights) {
        let (half, quarter) = (tape.pictures.halved(), &tape.blocks[0].grid);
        let unit = self.unit("encoder.stem", 0, false);
        let channels = self.config.stem_channels();
        let mut activated = vec![0.0; channels * half.stride];
        unit.activate(&tape.stem, &half, &mut activated, half.stride, copy);
        let mut wide = vec![0.0; channels * half.stride];
        let rows = wide.par_chunks_exact_mut(half.stride).zip(activated.par_chunks_exact(half.stride));
        rows.zip(gradient.par_chunks_exact(quarter.stride)).for_each(|((result, input), gradient)| {
            pool::max_backward(&half, quarter, input, gradient, result);
        });
        unit.denormalise(&tape.stem, &half, &mut wide, gradients);
        let patches = patches(pixels, &tape.pictures, &half);
        let taps = STEM * STEM;
        let mut result = vec![0.0; channels * taps];
        let left = Matrix::rows(&wide, channels, half.pixels, half.stride);
        let right = Matrix::rows(&patches, taps, half.pixels, half.stride).transposed();
        multiply(&mut result, taps, left, right, false, Threads::All);
        gradients.insert(
            "encoder.stem.conv.weight".into(),
            Tensor { shape: vec![channels, 1, STEM, STEM], data: result },
        );
    }
}

fn transition_path(block: usize) -> Option<String> {
    (block + 1 < BLOCKS).then(|| format!("encoder.transitions.{block}"))
}

fn copy(row: &[f32], output: &mut [f32]) {
    output[..row.len()].copy_from_slice(row);
}

/// Fills each row of `target` from the row of `source` at the same place.
fn spread(
    target: &mut [f32],
    target_stride: usize,
    source: &[f32],
    source_stride: usize,
    fill: impl Fn(&mut [f32], &[f32]) + Sync,
) {
    let rows = target.par_chunks_exact_mut(target_stride).zip(source.par_chunks_exact(source_stride));
    rows.for_each(|(target, source)| {
        vectorised(
            #[inline(always)]
            || fill(target, source),
        )
    });
}

/// What each tap of the stem sees: `[7 * 7][stride]` of every second pixel, zeros outside of the pictures.
fn patches(pixels: &[f32], pictures: &Grid, half: &Grid) -> Vec<f32> {
    let mut patches = vec![0.0; STEM * STEM * half.stride];
    patches.par_chunks_exact_mut(half.stride).enumerate().for_each(|(tap, row)| {
        let (down, across) = (tap / STEM, tap % STEM);
        for (big, small) in pictures.pictures().iter().zip(half.pictures()) {
            for y in 0..small.height {
                let Some(from) = (2 * y + down).checked_sub(STEM / 2).filter(|&from| from < big.height)
                else {
                    continue;
                };
                let line = &pixels[big.start + from * big.width..][..big.width];
                let target = &mut row[small.start + y * small.width..][..small.width];
                for (x, value) in target.iter_mut().enumerate() {
                    let from = (2 * x + across).wrapping_sub(STEM / 2);
                    *value = line.get(from).copied().unwrap_or(0.0);
                }
            }
        }
    });
    patches
}
