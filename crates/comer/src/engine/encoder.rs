//! The encoder (section 3.2 of the paper): a DenseNet that turns a picture into features, with a position added to each.
//!
//! Every batch norm is folded into a convolution when the weights are loaded. A dense block works in one buffer: every
//! pixel has room for all the channels that the block ends with, each layer reads those that are there and writes its own
//! behind them, and nothing is ever concatenated. About half of these channels are zeros, because of the ReLU before them; the
//! 1 x 1 convolutions skip them.

mod fold;
mod stem;

use std::sync::{Mutex, PoisonError};

use fold::{Folded, tensor};
use stem::Stem;

use super::Features;
use super::kernels::{
    Activation, Algorithm, Buffer, Kernels, NonzeroMask, PackedConv, SparseMatrix, SparseRows,
};
use crate::config::{BLOCKS, ModelConfig, NORM_EPSILON};
use crate::error::{Error, Result};
use crate::image::{HEIGHT_LIMITS, Image, WIDTH_LIMITS};
use crate::position;
use crate::weights::Weights;

/// The encoder of a model, ready to read pictures; it may be used from many threads at once.
pub struct Encoder {
    kernels: Kernels,
    stem: Stem,
    blocks: Vec<DenseBlock>,
    /// Between the blocks.
    transitions: Vec<SparseMatrix>,
    projection: SparseMatrix,
    /// Of the positions, falling from 1.
    frequencies: Vec<f64>,
    norm_weight: Vec<f32>,
    norm_bias: Vec<f32>,
    /// Buffers to use again: new memory for every picture would cost more than some of the layers.
    buffers: Mutex<Vec<Buffers>>,
}

struct DenseBlock {
    input: usize,
    output: usize,
    layers: Vec<DenseLayer>,
}

struct DenseLayer {
    /// 1 x 1, from all channels before to the bottleneck.
    reduce: SparseMatrix,
    /// 3 x 3, from the bottleneck to the channels that the layer adds.
    grow: PackedConv,
    /// The same, for at most [`DIRECT_PIXELS`] pixels; the first block has more.
    grow_directly: Option<PackedConv>,
}

/// Up to so many pixels, reading four times as many weights takes longer than Winograd's algorithm saves.
const DIRECT_PIXELS: usize = 128;

#[derive(Default)]
struct Buffers {
    /// Of each dense block `[pixels, channels]`.
    dense: [Buffer; BLOCKS],
    /// The pixels of a bottleneck or a transition.
    narrow: Buffer,
    /// Where the pixels of a dense block are not zero.
    mask: NonzeroMask,
}

/// What has just been computed, and what it took: for benchmarks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Such as `block 1, 3x3`.
    pub name: &'static str,
    /// Multiplications and additions of the convolution as the network defines it.
    pub operations: u64,
}

impl Encoder {
    /// Folds and packs the weights of a model for the best kernels of this machine.
    ///
    /// # Panics
    /// If a tensor of [`tensor_specs`](crate::weights::tensor_specs) is missing.
    pub fn new(config: &ModelConfig, weights: &Weights) -> Self {
        Self::with_kernels(config, weights, Kernels::detect())
    }

    /// As [`Self::new`], for kernels of one's choice.
    pub fn with_kernels(config: &ModelConfig, weights: &Weights, kernels: Kernels) -> Self {
        let folded = |path: String| Folded::new(weights, &format!("{path}.conv"), &format!("{path}.norm"));
        let matrix = |folded: Folded| SparseMatrix::from_rows(&kernels, &folded.matrix, &folded.bias);
        let conv = |folded: &Folded, algorithm| {
            PackedConv::from_rows(&kernels, algorithm, &folded.matrix, &folded.bias)
        };
        let blocks = (0..BLOCKS).map(|block| DenseBlock {
            input: config.block_input_channels(block),
            output: config.block_output_channels(block),
            layers: (0..config.layers_per_block)
                .map(|layer| {
                    let grow = folded(format!("encoder.blocks.{block}.{layer}.grow"));
                    DenseLayer {
                        reduce: matrix(folded(format!("encoder.blocks.{block}.{layer}.reduce"))),
                        grow: conv(&grow, Algorithm::Winograd),
                        grow_directly: (block > 0).then(|| conv(&grow, Algorithm::Direct)),
                    }
                })
                .collect(),
        });
        let transitions = (0..BLOCKS - 1).map(|block| matrix(folded(format!("encoder.transitions.{block}"))));
        Self {
            kernels,
            stem: Stem::new(&kernels, &folded("encoder.stem".into())),
            blocks: blocks.collect(),
            transitions: transitions.collect(),
            projection: matrix(Folded::projection(weights)),
            frequencies: position::frequencies(config.d_model / 2),
            norm_weight: tensor(weights, "encoder.norm.weight").to_vec(),
            norm_bias: tensor(weights, "encoder.norm.bias").to_vec(),
            buffers: Mutex::default(),
        }
    }

    /// Reads a picture within the size limits, on the threads of the current rayon pool.
    ///
    /// The result does not depend on their number.
    pub fn encode(&self, picture: &Image) -> Result<Features> {
        self.encode_profiled(picture, &mut |_| ())
    }

    /// As [`Self::encode`], but on this thread only: for those who read many pictures at once.
    pub fn encode_alone(&self, picture: &Image) -> Result<Features> {
        self.encode_on(&self.kernels.alone(), picture, &mut |_| ())
    }

    /// As [`Self::encode`], calling `done` after every stage.
    pub fn encode_profiled(&self, picture: &Image, done: &mut dyn FnMut(Stage)) -> Result<Features> {
        self.encode_on(&self.kernels, picture, done)
    }

    fn encode_on(&self, kernels: &Kernels, picture: &Image, done: &mut dyn FnMut(Stage)) -> Result<Features> {
        let (width, height) = (picture.width(), picture.height());
        let within = |side, (least, most)| (least..=most).contains(&side);
        if !within(height, HEIGHT_LIMITS) || !within(width, WIDTH_LIMITS) {
            let reason = format!(
                "the network reads from {} x {} to {} x {}",
                WIDTH_LIMITS.0, HEIGHT_LIMITS.0, WIDTH_LIMITS.1, HEIGHT_LIMITS.1
            );
            return Err(Error::Image { width, height, reason });
        }
        let spare = || self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffers = spare().pop().unwrap_or_default();
        let features = self.run(kernels, picture, &mut buffers, done);
        spare().push(buffers);
        Ok(features)
    }

    fn run(
        &self,
        kernels: &Kernels,
        picture: &Image,
        buffers: &mut Buffers,
        done: &mut dyn FnMut(Stage),
    ) -> Features {
        let Buffers { dense, narrow, mask } = buffers;
        let mut size = Stem::output_size(picture);
        for (index, block) in self.blocks.iter().enumerate() {
            if let Some(before) = index.checked_sub(1) {
                let (transition, pixels) = (&self.transitions[before], size.0 * size.1);
                let input =
                    SparseRows { values: &dense[before], stride: self.blocks[before].output, mask, first: 0 };
                let output = (narrow.at_least(pixels * block.input), block.input);
                kernels.sparse_matmul(transition, input, pixels, Activation::Relu, output);
                done(Stage::matmul("transitions", transition, pixels));
                let large = size;
                size = (size.0.div_ceil(2), size.1.div_ceil(2));
                let values = dense[index].at_least(size.0 * size.1 * block.output);
                average_pool(kernels, (narrow, large), block.input, (values, block.output));
                done(Stage { name: "pools", operations: 0 });
            } else {
                let values = dense[index].at_least(size.0 * size.1 * block.output);
                self.stem.run(kernels, picture, (values, block.output));
                done(Stage { name: "stem", operations: self.stem.operations(picture) });
            }
            block.run(kernels, (&mut dense[index], mask), size, narrow, (STAGES[index], done));
        }
        let last = self.blocks.len() - 1;
        let (cells, d_model) = (size.0 * size.1, self.norm_weight.len());
        let mut values = vec![0.0; cells * d_model];
        let input = SparseRows { values: &dense[last], stride: self.blocks[last].output, mask, first: 0 };
        kernels.sparse_matmul(&self.projection, input, cells, Activation::None, (&mut values, d_model));
        done(Stage::matmul("projection", &self.projection, cells));
        self.add_positions(&mut values, size);
        done(Stage { name: "positions", operations: 0 });
        Features { height: size.0, width: size.1, values }
    }

    /// Adds the position of each cell to its vector and normalises it.
    fn add_positions(&self, values: &mut [f32], (height, width): (usize, usize)) {
        let d_model = self.norm_weight.len();
        let (down, across) = (positions(height, &self.frequencies), positions(width, &self.frequencies));
        for (cell, vector) in values.chunks_exact_mut(d_model).enumerate() {
            let position = across[cell % width].iter().chain(&down[cell / width]);
            vector.iter_mut().zip(position).for_each(|(value, position)| *value += position);
            let mean = vector.iter().sum::<f32>() / d_model as f32;
            let variance =
                vector.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / d_model as f32;
            let scale = 1.0 / (variance + NORM_EPSILON as f32).sqrt();
            for ((value, weight), bias) in vector.iter_mut().zip(&self.norm_weight).zip(&self.norm_bias) {
                *value = (*value - mean) * scale * weight + bias;
            }
        }
    }
}

impl DenseBlock {
    /// The layers of the block, whose input is in the first channels of `values` already. The mask becomes that of `values`.
    fn run(
        &self,
        kernels: &Kernels,
        (values, mask): (&mut [f32], &mut NonzeroMask),
        (height, width): (usize, usize),
        narrow: &mut Buffer,
        ((reduce, grow), done): ((&'static str, &'static str), &mut dyn FnMut(Stage)),
    ) {
        let pixels = height * width;
        let mut channels = self.input;
        mask.clear(pixels, self.output);
        kernels.mark_nonzero(mask, 0..channels, (values, self.output));
        for layer in &self.layers {
            let bottleneck = layer.reduce.columns();
            let middle = narrow.at_least(pixels * bottleneck);
            kernels.sparse_matmul(
                &layer.reduce,
                SparseRows { values, stride: self.output, mask, first: 0 },
                pixels,
                Activation::Relu,
                (middle, bottleneck),
            );
            done(Stage::matmul(reduce, &layer.reduce, pixels));
            let output = (&mut values[channels..], self.output);
            let conv =
                layer.grow_directly.as_ref().filter(|_| pixels <= DIRECT_PIXELS).unwrap_or(&layer.grow);
            kernels.conv3x3(conv, (middle, bottleneck), &[(height, width)], Activation::Relu, output);
            let own = channels..channels + layer.grow.columns();
            kernels.mark_nonzero(mask, own.clone(), (&values[channels..], self.output));
            done(Stage::conv3x3(grow, conv, pixels));
            channels = own.end;
        }
    }
}

/// The names of each block's stages.
const STAGES: [(&str, &str); BLOCKS] =
    [("block 1, 1x1", "block 1, 3x3"), ("block 2, 1x1", "block 2, 3x3"), ("block 3, 1x1", "block 3, 3x3")];

impl Stage {
    fn matmul(name: &'static str, weights: &SparseMatrix, pixels: usize) -> Self {
        Self { name, operations: 2 * (weights.columns() * weights.depth() * pixels) as u64 }
    }

    fn conv3x3(name: &'static str, weights: &PackedConv, pixels: usize) -> Self {
        Self { name, operations: 2 * (9 * weights.columns() * weights.depth() * pixels) as u64 }
    }
}

/// The encodings of each of `count` cells along a side.
fn positions(count: usize, frequencies: &[f64]) -> Vec<Vec<f32>> {
    (1..=count).map(|cell| position::encode(position::share(cell, count), frequencies).collect()).collect()
}

/// Halves a picture of `channels`, each pixel the mean of those of the four that are there, into pixels a stride apart.
fn average_pool(
    kernels: &Kernels,
    (input, (height, width)): (&[f32], (usize, usize)),
    channels: usize,
    (output, stride): (&mut [f32], usize),
) {
    kernels.for_each_chunk(output, width.div_ceil(2) * stride, |y, output| {
        for (x, output) in output.chunks_exact_mut(stride).enumerate() {
            // Beyond the border the last row or column once more, which leaves the mean as it is.
            let [a, b, c, d] =
                window(height, width, y, x).map(|pixel| &input[pixel * channels..][..channels]);
            let output = &mut output[..channels];
            for i in 0..channels {
                output[i] = 0.25 * (a[i] + b[i] + c[i] + d[i]);
            }
        }
    });
}

/// The four pixels that become pixel `(y, x)` of half the size; those beyond the border are the nearest within.
fn window(height: usize, width: usize, y: usize, x: usize) -> [usize; 4] {
    let (rows, columns) = ([2 * y, (2 * y + 1).min(height - 1)], [2 * x, (2 * x + 1).min(width - 1)]);
    [0, 1, 2, 3].map(|corner| rows[corner / 2] * width + columns[corner % 2])
}
