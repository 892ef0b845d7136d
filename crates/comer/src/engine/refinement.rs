//! The attention refinement module (section 3.4 of the paper): what was read before takes attention away from now.
//!
//! Equation 9, R = norm(max(0, coverage * K + b) W), with the batch norm folded into W. The coverage is the sum of the
//! attention of all earlier steps, so that one running sum for each prefix replaces the sums over the whole prefix, and
//! prefixes that differ in their last token only share one refinement.

use super::kernels::panels::{Panels, Rows, product};
use super::kernels::{Activation, Kernels};
use crate::config::{COVERAGE_KERNEL, ModelConfig, NORM_EPSILON};
use crate::weights::Weights;

const MARGIN: usize = COVERAGE_KERNEL / 2;

/// The grid of cells that the encoder made of an image, and the same with a margin for the convolution.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    height: usize,
    width: usize,
    /// Where each kernel row of each channel starts, seen from a cell of the first channel.
    offsets: Vec<usize>,
}

impl Grid {
    pub(super) fn new(height: usize, width: usize, channels: usize) -> Self {
        let mut grid = Self { height, width, offsets: Vec::new() };
        let (plane, line) = (grid.plane(), grid.line());
        grid.offsets = (0..channels)
            .flat_map(|channel| (0..COVERAGE_KERNEL).map(move |y| channel * plane + y * line))
            .collect();
        grid
    }

    pub(super) fn cells(&self) -> usize {
        self.height * self.width
    }

    /// Cells in a row, with the margin.
    fn line(&self) -> usize {
        self.width + 2 * MARGIN
    }

    /// Cells of one channel, with the margin.
    fn plane(&self) -> usize {
        (self.height + 2 * MARGIN) * self.line()
    }

    /// Adds a map without margin to one with it.
    fn add(&self, map: &[f32], plane: &mut [f32]) {
        let lines = plane.chunks_exact_mut(self.line()).skip(MARGIN);
        for (line, map) in lines.zip(map.chunks_exact(self.width)) {
            for (sum, x) in line[MARGIN..].iter_mut().zip(map) {
                *sum += x;
            }
        }
    }
}

/// The weights of the module, shared by all layers but the first.
pub(super) struct Refinement {
    convolution: Panels,
    projection: Panels,
    channels: usize,
    inputs: usize,
    heads: usize,
}

impl Refinement {
    /// The module of a model whose weights were checked.
    pub(super) fn new(config: &ModelConfig, weights: &Weights) -> Self {
        let tensor = |name: &str| &weights[&format!("decoder.refinement.{name}")].data;
        let (channels, inputs, heads) = (config.coverage_channels, config.coverage_inputs(), config.heads);
        let kernel = tensor("conv.weight");
        let bias = tensor("conv.bias");
        let projection = tensor("projection.weight");
        let (scale, shift) = (tensor("norm.weight"), tensor("norm.bias"));
        let (mean, variance) = (tensor("norm.mean"), tensor("norm.variance"));
        let factor = |head: usize| scale[head] / (variance[head] + NORM_EPSILON as f32).sqrt();
        let taps = inputs * COVERAGE_KERNEL * COVERAGE_KERNEL;
        Self {
            convolution: Panels::pack(channels, taps, |channel, tap| kernel[channel * taps + tap])
                .with_bias(|channel| bias[channel]),
            projection: Panels::pack(heads, channels, |head, channel| {
                projection[head * channels + channel] * factor(head)
            })
            .with_bias(|head| shift[head] - mean[head] * factor(head)),
            channels,
            inputs,
            heads,
        }
    }
}

/// The running sums of one layer, one for each prefix that the next step grows from.
#[derive(Default)]
pub(super) struct CoverageSums {
    /// `[prefixes, inputs, plane]`
    sums: Vec<f32>,
    spare: Vec<f32>,
}

impl CoverageSums {
    /// One empty prefix that nothing was read in.
    pub(super) fn start(&mut self, refinement: &Refinement, grid: &Grid) {
        self.sums.clear();
        self.sums.resize(refinement.inputs * grid.plane(), 0.0);
    }

    /// Grows new prefixes: each takes the sums of an earlier one and adds the attention that it paid in its last step.
    /// `maps` are the sources of attention, each `[rows, heads, cells]`; a prefix is `(earlier prefix, row)`.
    pub(super) fn grow(
        &mut self,
        grid: &Grid,
        maps: &[&[f32]],
        prefixes: impl Iterator<Item = (usize, usize)>,
    ) {
        let (cells, plane) = (grid.cells(), grid.plane());
        let channels = grid.offsets.len() / COVERAGE_KERNEL;
        let heads = channels / maps.len();
        self.spare.clear();
        for (earlier, row) in prefixes {
            let start = self.spare.len();
            self.spare.extend_from_slice(&self.sums[earlier * channels * plane..][..channels * plane]);
            let attention =
                maps.iter().flat_map(|map| map[row * heads * cells..][..heads * cells].chunks_exact(cells));
            for (plane, map) in self.spare[start..].chunks_exact_mut(plane).zip(attention) {
                grid.add(map, plane);
            }
        }
        std::mem::swap(&mut self.sums, &mut self.spare);
    }

    /// Writes what to take off the attention's energies, `[prefixes, heads, cells]`, on as many threads as the
    /// kernels use.
    pub(super) fn refine(&self, kernels: Kernels, refinement: &Refinement, grid: &Grid, out: &mut Vec<f32>) {
        let (cells, heads, channels) = (grid.cells(), refinement.heads, refinement.channels);
        let each = refinement.inputs * grid.plane();
        out.resize(self.sums.len() / each * heads * cells, 0.0);
        kernels.for_each_chunk(out, heads * cells, |prefix, out| {
            let planes = &self.sums[prefix * each..][..each];
            // `[cells, channels]`, then `[cells, heads]`
            let (mut hidden, mut projected) = (vec![0.0; cells * channels], vec![0.0; cells * heads]);
            for (y, hidden) in hidden.chunks_exact_mut(grid.width * channels).enumerate() {
                let rows = Rows {
                    values: &planes[y * grid.line()..],
                    count: grid.width,
                    stride: 1,
                    offsets: &grid.offsets,
                    run: COVERAGE_KERNEL,
                };
                product(kernels, rows, &refinement.convolution, hidden, channels, Activation::Relu);
            }
            let rows = Rows::plain(&hidden, cells, channels, channels);
            product(kernels, rows, &refinement.projection, &mut projected, heads, Activation::None);
            for (head, out) in out.chunks_exact_mut(cells).enumerate() {
                out.iter_mut().zip(projected[head..].iter().step_by(heads)).for_each(|(out, x)| *out = *x);
            }
        });
    }

    /// Makes one prefix of each of the `steps` of a formula: what all steps before it attended to. `maps` are the sources
    /// of attention, each `[steps, heads, cells]`.
    pub(super) fn add_up(&mut self, grid: &Grid, maps: &[&[f32]], steps: usize) {
        let inputs = grid.offsets.len() / COVERAGE_KERNEL;
        self.sums.clear();
        self.sums.resize(inputs * grid.plane(), 0.0);
        let mut whole = self.sums.clone();
        for step in 1..steps {
            self.grow(grid, maps, std::iter::once((0, step - 1)));
            whole.extend_from_slice(&self.sums);
        }
        self.sums = whole;
    }

    /// The coverage of a prefix without the margin, `[inputs, cells]`.
    pub(super) fn maps(&self, grid: &Grid, prefix: usize) -> Vec<f32> {
        let inputs = grid.offsets.len() / COVERAGE_KERNEL;
        let planes = self.sums.chunks_exact(grid.plane()).skip(prefix * inputs).take(inputs);
        let lines = planes.flat_map(|plane| plane.chunks_exact(grid.line()).skip(MARGIN).take(grid.height));
        lines.flat_map(|line| &line[MARGIN..][..grid.width]).copied().collect()
    }
}
