//! The encoder (section 3.2 of the paper): a DenseNet that turns a picture into features, with a position added to each.
//!
//! Every batch norm is folded into a convolution when the weights are loaded. A dense block works in one buffer: its
//! pixels lie in blocks of sixteen with room for all the channels that the block ends with, each layer reads those that
//! are there and writes its own behind them, and nothing is ever concatenated.

mod fold;
mod stem;

use std::sync::{Mutex, PoisonError};

use fold::{Folded, tensor};
use stem::Stem;

use super::Features;
use super::kernels::{Activation, BLOCK, Buffer, Kernels, Layout, PackedRows, Planes};
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
    transitions: Vec<PackedRows>,
    projection: PackedRows,
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
    reduce: PackedRows,
    /// 3 x 3, from the bottleneck to the channels that the layer adds.
    grow: PackedRows,
}

#[derive(Default)]
struct Buffers {
    /// The channels of each dense block, in blocks of sixteen pixels.
    dense: [Buffer; BLOCKS],
    /// The planes of a bottleneck, a transition or the projection.
    planes: Buffer,
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
        let pack = |folded: Folded| PackedRows::new(&kernels, &folded.matrix, &folded.bias);
        let conv =
            |path: String| pack(Folded::new(weights, &format!("{path}.conv"), &format!("{path}.norm")));
        let blocks = (0..BLOCKS).map(|block| DenseBlock {
            input: config.block_input_channels(block),
            output: config.block_output_channels(block),
            layers: (0..config.layers_per_block)
                .map(|layer| DenseLayer {
                    reduce: conv(format!("encoder.blocks.{block}.{layer}.reduce")),
                    grow: conv(format!("encoder.blocks.{block}.{layer}.grow")),
                })
                .collect(),
        });
        let transitions = (0..BLOCKS - 1).map(|block| conv(format!("encoder.transitions.{block}")));
        Self {
            kernels,
            stem: Stem::new(conv("encoder.stem".into())),
            blocks: blocks.collect(),
            transitions: transitions.collect(),
            projection: pack(Folded::projection(weights)),
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
        let Buffers { dense, planes } = buffers;
        let mut size = Stem::output_size(picture);
        for (index, block) in self.blocks.iter().enumerate() {
            let layout = Layout::blocks(block.output);
            if let Some(before) = index.checked_sub(1) {
                let transition = &self.transitions[before];
                let input = (&dense[before][..], Layout::blocks(self.blocks[before].output));
                let between = Planes::new(size.0, size.1);
                planes.at_least(between.length(block.input));
                let output = (&mut planes[between.origin..], Layout::rows(between.stride));
                kernels.multiply(transition, input, between.pixels(), Activation::Relu, output);
                done(Stage::new("transitions", transition, between.pixels()));
                size = (size.0.div_ceil(2), size.1.div_ceil(2));
                let values = dense[index].at_least((size.0 * size.1).div_ceil(BLOCK) * layout.block);
                average_pool(kernels, (planes, between), block.input, (values, layout));
                done(Stage { name: "pools", operations: 0 });
            } else {
                let values = dense[index].at_least((size.0 * size.1).div_ceil(BLOCK) * layout.block);
                self.stem.run(kernels, picture, (values, layout));
                done(Stage { name: "stem", operations: self.stem.operations(picture) });
            }
            block.run(kernels, (&mut dense[index], layout), size, planes, (STAGES[index], done));
        }
        let last = self.blocks.len() - 1;
        let pixels = Planes::new(size.0, size.1);
        planes.at_least(pixels.length(self.norm_weight.len()));
        let input = (&dense[last][..], Layout::blocks(self.blocks[last].output));
        let output = (&mut planes[..], Layout::rows(pixels.stride));
        kernels.multiply(&self.projection, input, pixels.pixels(), Activation::None, output);
        done(Stage::new("projection", &self.projection, pixels.pixels()));
        let features = self.positioned(planes, pixels);
        done(Stage { name: "positions", operations: 0 });
        features
    }

    /// The projection's planes as one vector per cell, with its position added and normalised.
    fn positioned(&self, planes: &[f32], Planes { height, width, stride, .. }: Planes) -> Features {
        let d_model = self.norm_weight.len();
        let (down, across) = (positions(height, &self.frequencies), positions(width, &self.frequencies));
        let mut values = vec![0.0; height * width * d_model];
        for (cell, vector) in values.chunks_exact_mut(d_model).enumerate() {
            let position = across[cell % width].iter().chain(&down[cell / width]);
            for (channel, (value, position)) in vector.iter_mut().zip(position).enumerate() {
                *value = planes[channel * stride + cell] + position;
            }
            let mean = vector.iter().sum::<f32>() / d_model as f32;
            let variance =
                vector.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / d_model as f32;
            let scale = 1.0 / (variance + NORM_EPSILON as f32).sqrt();
            for ((value, weight), bias) in vector.iter_mut().zip(&self.norm_weight).zip(&self.norm_bias) {
                *value = (*value - mean) * scale * weight + bias;
            }
        }
        Features { height, width, values }
    }
}

impl DenseBlock {
    /// The layers of the block, whose input is in the first channels of `values` already.
    fn run(
        &self,
        kernels: &Kernels,
        (values, layout): (&mut [f32], Layout),
        (height, width): (usize, usize),
        planes: &mut Buffer,
        ((reduce, grow), done): ((&'static str, &'static str), &mut dyn FnMut(Stage)),
    ) {
        let narrow = Planes::new(height, width);
        let (pixels, bottleneck) = (narrow.pixels(), self.layers[0].reduce.rows());
        planes.at_least(narrow.length(bottleneck));
        narrow.clear(planes, bottleneck);
        let mut channels = self.input;
        for layer in &self.layers {
            let output = (&mut planes[narrow.origin..], Layout::rows(narrow.stride));
            kernels.multiply(&layer.reduce, (values, layout), pixels, Activation::Relu, output);
            done(Stage::new(reduce, &layer.reduce, pixels));
            let output = (&mut values[channels * BLOCK..], layout);
            kernels.convolve(&layer.grow, (planes, narrow), Activation::Relu, output);
            done(Stage::new(grow, &layer.grow, pixels));
            channels += layer.grow.rows();
        }
    }
}

/// The names of each block's stages.
const STAGES: [(&str, &str); BLOCKS] =
    [("block 1, 1x1", "block 1, 3x3"), ("block 2, 1x1", "block 2, 3x3"), ("block 3, 1x1", "block 3, 3x3")];

impl Stage {
    fn new(name: &'static str, weights: &PackedRows, pixels: usize) -> Self {
        Self { name, operations: 2 * (weights.rows() * weights.depth() * pixels) as u64 }
    }
}

/// The encodings of each of `count` cells along a side.
fn positions(count: usize, frequencies: &[f64]) -> Vec<Vec<f32>> {
    (1..=count).map(|cell| position::encode(position::share(cell, count), frequencies).collect()).collect()
}

/// Halves the planes of a picture, each pixel the mean of those of the four that are there.
fn average_pool(
    kernels: &Kernels,
    (input, planes): (&[f32], Planes),
    channels: usize,
    (output, layout): (&mut [f32], Layout),
) {
    let (height, width) = (planes.height.div_ceil(2), planes.width.div_ceil(2));
    kernels.for_each_chunk(output, layout.block, |block, output| {
        for Run { y, x, lane, length } in runs(block, height, width) {
            let rows = (planes.height - 2 * y).min(2);
            for channel in 0..channels {
                let start = planes.origin + channel * planes.stride + 2 * y * planes.width;
                let top = &input[start + 2 * x..start + planes.width];
                let bottom = &input[start + (rows - 1) * planes.width..][2 * x..planes.width];
                let output = &mut output[channel * layout.row + lane..][..length];
                let pairs = top.as_chunks::<2>().0.iter().zip(bottom.as_chunks::<2>().0);
                for (output, (top, bottom)) in output.iter_mut().zip(pairs) {
                    *output = 0.25 * (top[0] + top[1] + bottom[0] + bottom[1]);
                }
                if x + length == width && planes.width % 2 == 1 {
                    output[length - 1] = 0.5 * (top[top.len() - 1] + bottom[bottom.len() - 1]);
                }
            }
        }
    });
}

/// Neighbouring pixels of one row within a block of sixteen.
struct Run {
    y: usize,
    x: usize,
    /// Where in the block they start.
    lane: usize,
    length: usize,
}

/// The rows that a block of sixteen pixels is made of.
fn runs(block: usize, height: usize, width: usize) -> impl Iterator<Item = Run> {
    let end = ((block + 1) * BLOCK).min(height * width);
    let mut pixel = block * BLOCK;
    std::iter::from_fn(move || {
        (pixel < end).then(|| {
            let (y, x) = (pixel / width, pixel % width);
            let length = (width - x).min(end - pixel);
            pixel += length;
            Run { y, x, lane: (pixel - length) % BLOCK, length }
        })
    })
}
