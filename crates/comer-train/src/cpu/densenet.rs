//! The DenseNet for training on a CPU: forward and backward over plain slices.
//!
//! Channels are the last dimension. A block works in one buffer: a layer reads the channels so far and writes its own
//! after them, so nothing is concatenated, and the gradients of a block accumulate in one buffer of the same layout.
//! Pictures are not padded.

use comer::internal::config::{BLOCKS, ModelConfig};
use comer::internal::engine::kernels::{Kernels, NonzeroMask};
use comer::internal::weights::Weights;
use rayon::prelude::*;

use super::buffer::Buffer;
use super::decoder_batch::split_lengths;
use super::grid::Grid;
use super::norm::{Dropout, Statistics};
use super::pool;
use super::unit::{
    Pixels, Unit, UnitTape, conv1x1, conv1x1_backward, conv1x1_weight_grad, conv3x3, conv3x3_backward,
    conv3x3_weight_grad,
};

/// Kernel size of the stem.
const STEM: usize = 7;
/// Share of numbers other than zero up to which the input of a block is read like that of its dense layers.
const SPARSE: f64 = 0.7;
/// Taps of the stem.
const TAPS: usize = STEM * STEM;

/// The network, its weights borrowed from a model.
pub struct DenseNet<'a> {
    /// The shape of the network.
    pub config: &'a ModelConfig,
    /// At least all tensors under `encoder`.
    pub weights: &'a Weights,
    /// Seed of the dropout; different for each step.
    pub seed: u32,
}

/// The output of the DenseNet for a batch.
pub struct EncoderFeatures {
    /// The layout of the pictures.
    pub grid: Grid,
    /// `[pixels][channels]`
    pub rows: Vec<f32>,
}

/// What the backward pass needs.
pub struct DenseNetTape {
    stem: StemTape,
    blocks: Vec<BlockTape>,
    last: UnitTape,
    features: Buffer,
}

struct StemTape {
    /// At half the size of the pictures.
    grid: Grid,
    patches: Buffer, // [pixels][7 * 7]
    unit: UnitTape,
    output: Buffer,
}

struct BlockTape {
    grid: Grid,
    rows: Buffer, // [pixels][channels at the end of the block]
    /// Channels at the start that are not mostly zeros.
    dense: usize,
    mask: NonzeroMask,
    layers: Vec<LayerTape>,
    transition: Option<(UnitTape, Buffer)>,
}

struct LayerTape {
    reduce: UnitTape,
    reduced: Buffer,
    grow: UnitTape,
}

/// The statistics of a batch norm over a batch.
pub struct NormStatistics {
    /// The path of the norm in the model file.
    pub path: String,
    /// The mean of each channel.
    pub mean: Vec<f32>,
    /// The biased variance of each channel.
    pub variance: Vec<f32>,
    /// Values per channel.
    pub count: usize,
}

impl DenseNet<'_> {
    /// The forward pass; `pixels` has the pictures in the layout of `pictures`.
    pub fn forward(&self, pixels: &[f32], pictures: Grid) -> (EncoderFeatures, DenseNetTape) {
        let stem = self.stem(pixels, &pictures);
        let mut grid = stem.grid.halved();
        let mut rows = Buffer::new(self.config.block_output_channels(0) * grid.pixels);
        let stem_pixels =
            pool::Pixels { grid: &stem.grid, values: &stem.output, channels: self.config.stem_channels() };
        pool::max_forward(stem_pixels, &mut rows, self.config.block_output_channels(0));

        let mut blocks = Vec::with_capacity(BLOCKS);
        for block in 0..BLOCKS {
            let channels = self.config.block_output_channels(block);
            let inputs = self.config.block_input_channels(block);
            let mut mask = NonzeroMask::new(grid.pixels, channels);
            Kernels::detect().mark_nonzero(&mut mask, 0..inputs, (&rows, channels));
            // A pool of zeros is zero, and ReLU or dropout stop the gradients of all of them.
            let mostly_zeros = mask.count() as f64 <= SPARSE * (inputs * grid.pixels) as f64;
            let dense = if mostly_zeros { 0 } else { inputs };
            let layers = (0..self.config.layers_per_block)
                .map(|layer| self.layer((block, layer), &mut rows, (dense, &mut mask), &grid))
                .collect();
            let Some(path) = transition_path(block) else {
                blocks.push(BlockTape { grid: grid.clone(), rows, dense, mask, layers, transition: None });
                break;
            };
            let unit = self.unit(&path, 3 * block, true);
            let sparse = Some((dense, &mask));
            let input = Pixels { values: &rows, stride: channels, count: grid.pixels, sparse };
            let values = conv1x1(unit.convolution(), input);
            let mut output = Buffer::new(values.len());
            let halved = self.config.block_input_channels(block + 1);
            let transition = unit.normalise(values, &mut output, halved);
            let small = grid.halved();
            let stride = self.config.block_output_channels(block + 1);
            let mut next = Buffer::new(stride * small.pixels);
            let pixels = pool::Pixels { grid: &grid, values: &output, channels: halved };
            pool::mean_forward(pixels, &mut next, stride);
            blocks.push(BlockTape {
                grid,
                rows,
                dense,
                mask,
                layers,
                transition: Some((transition, output)),
            });
            (grid, rows) = (small, next);
        }
        let BlockTape { grid, rows, .. } = &blocks[BLOCKS - 1];
        let (mut values, mut output) = (Buffer::new(rows.len()), Buffer::new(rows.len()));
        values.copy_from_slice(rows);
        let last = self.last().normalise(values, &mut output, self.config.encoder_channels());
        let features = EncoderFeatures { grid: grid.clone(), rows: output.to_vec() };
        (features, DenseNetTape { stem, blocks, last, features: output })
    }

    /// The gradients of all weights from that of the features.
    pub fn backward(&self, tape: &DenseNetTape, features: &[f32]) -> Weights {
        let mut gradients = Weights::new();
        let mut gradient = Buffer::new(features.len());
        gradient.copy_from_slice(features);
        let features = (&tape.features[..], self.config.encoder_channels());
        self.last().normalise_backward(&tape.last, features, &mut gradient, &mut gradients);
        for (block, tape) in tape.blocks.iter().enumerate().rev() {
            if let (Some(path), Some((transition, output))) = (transition_path(block), &tape.transition) {
                let unit = self.unit(&path, 3 * block, true);
                let halved = self.config.block_input_channels(block + 1);
                let stride = self.config.block_output_channels(block + 1);
                let mut wide = pool::mean_backward(&tape.grid, halved, &gradient, stride);
                unit.normalise_backward(transition, (output, halved), &mut wide, &mut gradients);
                let channels = self.config.block_output_channels(block);
                gradient = Buffer::zeros(tape.rows.len());
                let (stride, count) = (channels, tape.grid.pixels);
                let sparse = Some((tape.dense, &tape.mask));
                let input = Pixels { values: &tape.rows, stride, count, sparse };
                conv1x1_backward(unit.convolution(), input, &wide, &mut gradient);
                unit.insert_grad(conv1x1_weight_grad(unit.convolution(), input, &wide), &mut gradients);
            }
            for layer in (0..self.config.layers_per_block).rev() {
                self.layer_backward((block, layer), tape, &mut gradient, &mut gradients);
            }
        }
        self.stem_backward(&tape.stem, &gradient, &mut gradients);
        gradients
    }

    /// The statistics of every batch norm, for the running ones.
    pub fn statistics(&self, tape: &DenseNetTape) -> Vec<NormStatistics> {
        let mut list = Vec::new();
        let mut push = |path: String, tape: &UnitTape, grid: &Grid| {
            let part = |of: fn(&Statistics) -> f32| tape.statistics.iter().map(of).collect();
            let (mean, variance) = (part(|s| s.mean), part(|s| s.variance));
            list.push(NormStatistics { path, mean, variance, count: grid.pixels });
        };
        push("encoder.stem.norm".into(), &tape.stem.unit, &tape.stem.grid);
        for (block, tape) in tape.blocks.iter().enumerate() {
            for (layer, LayerTape { reduce, grow, .. }) in tape.layers.iter().enumerate() {
                push(format!("encoder.blocks.{block}.{layer}.reduce.norm"), reduce, &tape.grid);
                push(format!("encoder.blocks.{block}.{layer}.grow.norm"), grow, &tape.grid);
            }
            if let Some((transition, _)) = &tape.transition {
                push(format!("encoder.transitions.{block}.norm"), transition, &tape.grid);
            }
        }
        push("encoder.last_norm".into(), &tape.last, &tape.blocks[BLOCKS - 1].grid);
        list
    }

    /// A unit with or without dropout; `number` identifies the unit.
    fn unit<'a>(&'a self, path: &'a str, number: usize, drops: bool) -> Unit<'a> {
        let seed = self.seed.wrapping_mul(1009).wrapping_add(number as u32);
        let rate = self.config.encoder_dropout;
        let dropout = (drops && rate > 0.0).then(|| Dropout::new(rate, seed));
        Unit { path, weights: self.weights, relu: true, dropout }
    }

    fn last(&self) -> Unit<'_> {
        Unit { path: "encoder.last_norm", weights: self.weights, relu: false, dropout: None }
    }

    fn with_units<R>(&self, block: usize, layer: usize, run: impl FnOnce(Unit, Unit) -> R) -> R {
        let path = format!("encoder.blocks.{block}.{layer}");
        let (reduce, grow) = (format!("{path}.reduce"), format!("{path}.grow"));
        let number = 3 * BLOCKS * (layer + 1) + 3 * block;
        run(self.unit(&reduce, number + 1, true), self.unit(&grow, number + 2, true))
    }

    /// One dense layer: reads the channels so far and writes its own after them.
    fn layer(
        &self,
        (block, layer): (usize, usize),
        rows: &mut [f32],
        (dense, mask): (usize, &mut NonzeroMask),
        grid: &Grid,
    ) -> LayerTape {
        let inputs = self.config.block_input_channels(block) + layer * self.config.growth_rate;
        let stride = self.config.block_output_channels(block);
        self.with_units(block, layer, |reduce, grow| {
            let sparse = Some((dense, &*mask));
            let input = Pixels { values: rows, stride, count: grid.pixels, sparse };
            let values = conv1x1(reduce.convolution(), input);
            let mut reduced = Buffer::new(values.len());
            let reduce = reduce.normalise(values, &mut reduced, self.config.bottleneck_channels());
            let values = conv3x3(grow.convolution(), &reduced, grid);
            let grow = grow.normalise(values, &mut rows[inputs..], stride);
            let own = inputs..inputs + self.config.growth_rate;
            Kernels::detect().mark_nonzero(mask, own, (&rows[inputs..], stride));
            LayerTape { reduce, reduced, grow }
        })
    }

    /// The backward pass of [`Self::layer`]: from the gradient of its own channels, accumulates that of the previous ones.
    fn layer_backward(
        &self,
        (block, layer): (usize, usize),
        BlockTape { grid, rows, dense, mask, layers, .. }: &BlockTape,
        gradient: &mut [f32],
        gradients: &mut Weights,
    ) {
        let growth = self.config.growth_rate;
        let inputs = self.config.block_input_channels(block) + layer * growth;
        let stride = self.config.block_output_channels(block);
        let LayerTape { reduce: reduce_tape, reduced, grow: grow_tape } = &layers[layer];
        self.with_units(block, layer, |reduce, grow| {
            let mut own = Buffer::new(grid.pixels * growth);
            for (own, gradient) in own.chunks_exact_mut(growth).zip(gradient.chunks_exact(stride)) {
                own.copy_from_slice(&gradient[inputs..][..growth]);
            }
            grow.normalise_backward(grow_tape, (&rows[inputs..], stride), &mut own, gradients);
            grow.insert_grad(conv3x3_weight_grad(grow.convolution(), reduced, grid, &own), gradients);
            let mut middle = conv3x3_backward(grow.convolution(), &own, grid);
            let output = (&reduced[..], self.config.bottleneck_channels());
            reduce.normalise_backward(reduce_tape, output, &mut middle, gradients);
            let input = Pixels { values: rows, stride, count: grid.pixels, sparse: Some((*dense, mask)) };
            reduce.insert_grad(conv1x1_weight_grad(reduce.convolution(), input, &middle), gradients);
            conv1x1_backward(reduce.convolution(), input, &middle, gradient);
        });
    }

    /// The stem's convolution, which halves the pictures.
    fn stem(&self, pixels: &[f32], pictures: &Grid) -> StemTape {
        let grid = pictures.halved();
        let unit = self.unit("encoder.stem", 0, false);
        let patches = patches(pixels, pictures, &grid);
        let input = Pixels { values: &patches, stride: TAPS, count: grid.pixels, sparse: None };
        let values = conv1x1(unit.convolution(), input);
        let mut output = Buffer::new(values.len());
        let unit = unit.normalise(values, &mut output, self.config.stem_channels());
        StemTape { grid, patches, unit, output }
    }

    fn stem_backward(&self, tape: &StemTape, gradient: &[f32], gradients: &mut Weights) {
        let StemTape { grid, patches, unit: unit_tape, output } = tape;
        let unit = self.unit("encoder.stem", 0, false);
        let channels = self.config.stem_channels();
        let pixels = pool::Pixels { grid, values: output, channels };
        let mut wide = pool::max_backward(pixels, gradient, self.config.block_output_channels(0));
        unit.normalise_backward(unit_tape, (output, channels), &mut wide, gradients);
        let input = Pixels { values: patches, stride: TAPS, count: grid.pixels, sparse: None };
        unit.insert_grad(conv1x1_weight_grad(unit.convolution(), input, &wide), gradients);
    }
}

fn transition_path(block: usize) -> Option<String> {
    (block + 1 < BLOCKS).then(|| format!("encoder.transitions.{block}"))
}

/// The input of the stem at every second pixel (im2col), with zeros outside of the pictures: `[pixels][7 * 7]`
fn patches(pixels: &[f32], pictures: &Grid, half: &Grid) -> Buffer {
    let mut patches = Buffer::zeros(half.pixels * TAPS);
    let rows = pictures.pictures().iter().zip(half.pictures());
    let rows: Vec<_> =
        rows.flat_map(|(big, small)| (0..small.height).map(move |y| (big, small, y))).collect();
    let targets = split_lengths(&mut patches, rows.iter().map(|(_, small, _)| small.width * TAPS));
    rows.into_par_iter().zip(targets).for_each(|((big, _, y), target)| {
        for down in 0..STEM {
            let Some(from) = (2 * y + down).checked_sub(STEM / 2).filter(|&from| from < big.height) else {
                continue;
            };
            let line = &pixels[big.start + from * big.width..][..big.width];
            for (x, patch) in target.chunks_exact_mut(TAPS).enumerate() {
                let row = &mut patch[down * STEM..][..STEM];
                match (2 * x).checked_sub(STEM / 2).and_then(|first| line.get(first..first + STEM)) {
                    Some(seen) => row.copy_from_slice(seen),
                    None => {
                        for (across, value) in row.iter_mut().enumerate() {
                            let from = (2 * x + across).wrapping_sub(STEM / 2);
                            *value = line.get(from).copied().unwrap_or(0.0);
                        }
                    }
                }
            }
        }
    });
    patches
}
