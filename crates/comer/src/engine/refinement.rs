//! The attention refinement module (section 3.4 of the paper): what was read before takes attention away from now.
//!
//! Equation 9, R = norm(max(0, coverage * K + b) W), with the batch norm folded into W. The coverage is the sum of the
//! attention of all earlier steps, so that one running sum for each prefix replaces the sums over the whole prefix, and
//! prefixes that differ in their last token only share one refinement.

use super::kernels::{Activation, Kernels, PackedConv5x5, PackedMatrix};
use crate::config::{ModelConfig, NORM_EPSILON};
use crate::weights::Weights;

/// The grid of cells that the encoder made of an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) height: usize,
    pub(super) width: usize,
}

impl Grid {
    pub(super) fn cells(self) -> usize {
        self.height * self.width
    }
}

/// The weights of the module, shared by all layers but the first.
pub(super) struct Refinement {
    convolution: PackedConv5x5,
    projection: PackedMatrix,
    channels: usize,
    inputs: usize,
    heads: usize,
}

impl Refinement {
    /// The module of a model whose weights were checked.
    pub(super) fn new(config: &ModelConfig, weights: &Weights, kernels: Kernels) -> Self {
        let tensor = |name: &str| &weights[&format!("decoder.refinement.{name}")].data;
        let (channels, inputs, heads) = (config.coverage_channels, config.coverage_inputs(), config.heads);
        let projection = tensor("projection.weight");
        let (scale, shift) = (tensor("norm.weight"), tensor("norm.bias"));
        let (mean, variance) = (tensor("norm.mean"), tensor("norm.variance"));
        let factor = |head: usize| scale[head] / (variance[head] + NORM_EPSILON as f32).sqrt();
        let bias: Vec<f32> = (0..heads).map(|head| shift[head] - mean[head] * factor(head)).collect();
        Self {
            convolution: PackedConv5x5::from_rows(&kernels, tensor("conv.weight"), tensor("conv.bias")),
            projection: PackedMatrix::new(&kernels, &bias, channels, |head, channel| {
                projection[head * channels + channel] * factor(head)
            }),
            channels,
            inputs,
            heads,
        }
    }
}

/// The running sums of one layer, one for each prefix that the next step grows from.
#[derive(Default)]
pub(super) struct CoverageSums {
    /// `[prefixes, cells, inputs]`
    sums: Vec<f32>,
    spare: Vec<f32>,
    /// `[prefixes, cells, channels]`
    hidden: Vec<f32>,
    /// `[prefixes, cells, heads]`
    projected: Vec<f32>,
}

impl CoverageSums {
    /// One empty prefix that nothing was read in.
    pub(super) fn start(&mut self, refinement: &Refinement, grid: Grid) {
        self.sums.clear();
        self.sums.resize(grid.cells() * refinement.inputs, 0.0);
    }

    /// Grows new prefixes: each takes the sums of an earlier one and adds the attention that it paid in its last step.
    /// `maps` are the sources of attention, each `[rows, heads, cells]`; a prefix is `(earlier prefix, row)`.
    pub(super) fn grow(
        &mut self,
        refinement: &Refinement,
        grid: Grid,
        maps: &[&[f32]],
        prefixes: impl Iterator<Item = (usize, usize)>,
    ) {
        let each = grid.cells() * refinement.inputs;
        self.spare.clear();
        for (earlier, row) in prefixes {
            self.spare.extend_from_slice(&self.sums[earlier * each..][..each]);
            let start = self.spare.len() - each;
            add(&mut self.spare[start..], maps, row, grid.cells(), refinement);
        }
        std::mem::swap(&mut self.sums, &mut self.spare);
    }

    /// Writes what to take off the attention's energies, `[prefixes, heads, cells]`, on as many threads as the
    /// kernels use.
    pub(super) fn refine(
        &mut self,
        kernels: Kernels,
        refinement: &Refinement,
        grid: Grid,
        out: &mut Vec<f32>,
    ) {
        let &Refinement { channels, inputs, heads, .. } = refinement;
        let (cells, rows) = (grid.cells(), self.sums.len() / inputs);
        self.hidden.resize(rows * channels, 0.0);
        self.projected.resize(rows * heads, 0.0);
        out.resize(rows * heads, 0.0);
        let sizes = vec![(grid.height, grid.width); rows / cells];
        let hidden = (&mut self.hidden[..], channels);
        kernels.conv5x5(&refinement.convolution, (&self.sums, inputs), &sizes, Activation::Relu, hidden);
        let projected = (&mut self.projected[..], heads);
        kernels.matmul(&refinement.projection, (&self.hidden, channels), rows, Activation::None, projected);
        let prefixes = out.chunks_exact_mut(heads * cells).zip(self.projected.chunks_exact(heads * cells));
        for (out, projected) in prefixes {
            for (head, out) in out.chunks_exact_mut(cells).enumerate() {
                out.iter_mut().zip(projected[head..].iter().step_by(heads)).for_each(|(out, x)| *out = *x);
            }
        }
    }

    /// Makes one prefix of each of the `steps` of a formula: what all steps before it attended to. `maps` are the sources
    /// of attention, each `[steps, heads, cells]`.
    pub(super) fn add_up(&mut self, refinement: &Refinement, grid: Grid, maps: &[&[f32]], steps: usize) {
        self.start(refinement, grid);
        let each = self.sums.len();
        for step in 1..steps {
            let start = self.sums.len();
            self.sums.extend_from_within(start - each..);
            add(&mut self.sums[start..], maps, step - 1, grid.cells(), refinement);
        }
    }

    /// The coverage of a prefix, `[inputs, cells]`.
    pub(super) fn maps(&self, refinement: &Refinement, grid: Grid, prefix: usize) -> Vec<f32> {
        let each = grid.cells() * refinement.inputs;
        let sums = &self.sums[prefix * each..][..each];
        (0..refinement.inputs)
            .flat_map(|input| sums[input..].iter().step_by(refinement.inputs))
            .copied()
            .collect()
    }
}

/// Adds the attention of a row to the sums of a prefix, `[cells, inputs]`.
fn add(sums: &mut [f32], maps: &[&[f32]], row: usize, cells: usize, refinement: &Refinement) {
    let Refinement { heads, inputs, .. } = *refinement;
    let maps = maps.iter().flat_map(|map| map[row * heads * cells..][..heads * cells].chunks_exact(cells));
    for (input, map) in maps.enumerate() {
        sums[input..].iter_mut().step_by(inputs).zip(map).for_each(|(sum, x)| *sum += x);
    }
}
