//! The attention refinement module (section 3.4 of the paper): subtracts a function of the coverage from the attention
//! energies.

use burn::module::Module;
use burn::prelude::*;
use burn::tensor::activation::relu;
use comer::internal::config::{Coverage, ModelConfig};

use super::layers::{BatchNorm, Convolution, Source};
use super::position::Padding;

/// Attention refinement: what has been attended to before lowers or raises the energies of the next step.
///
/// In the model it is `decoder.refinement` of the file, shared by all layers except the first. By itself it serves any
/// decoder with multi-head attention over a memory of one row (a sequence) or several (an image); see
/// `examples/sort_bag.rs`.
///
/// ```
/// use burn::prelude::*;
/// use comer_burn::{AttentionRefinement, Coverage, Padding, device};
///
/// let device = device("cpu-burn")?;
/// let refinement = AttentionRefinement::new(4, 16, Coverage::Fusion, &device);
/// // Two sequences, 4 heads, 5 steps, a memory of 7 items in one row.
/// let attention = Tensor::<4>::ones([2, 4, 5, 7], &device) / 7.0;
/// let term = refinement.forward(attention.clone(), attention, &Padding::none(2, 1, 7));
/// assert_eq!(term.dims(), [2, 4, 5, 7]); // to be subtracted from the energies
/// # Ok::<(), comer_train::Error>(())
/// ```
#[derive(Module, Debug)]
pub struct AttentionRefinement {
    conv: Convolution,
    projection: Convolution,
    norm: BatchNorm,
    #[module(skip)]
    coverage: Coverage,
}

/// Side of the convolution over the coverage, as in the paper.
const SIDE: usize = 5;

impl AttentionRefinement {
    /// A module with random weights for `heads` heads, with `hidden` channels between its convolutions.
    ///
    /// # Panics
    /// If the coverage is [`Coverage::None`]: there is nothing to refine with.
    pub fn new(heads: usize, hidden: usize, coverage: Coverage, device: &Device) -> Self {
        assert_ne!(coverage, Coverage::None, "expected a coverage");
        let maps = if coverage == Coverage::Fusion { 2 * heads } else { heads };
        Self {
            conv: Convolution::random([hidden, maps, SIDE, SIDE], true, device),
            projection: Convolution::random([heads, hidden, 1, 1], false, device),
            norm: BatchNorm::identity(heads, device),
            coverage,
        }
    }

    /// None for a model without coverage (BTTR).
    pub(super) fn from_source(source: &Source, config: &ModelConfig) -> Option<Self> {
        (config.coverage != Coverage::None).then(|| Self {
            conv: Convolution::new(source, "decoder.refinement.conv", 1),
            projection: Convolution::new(source, "decoder.refinement.projection", 1),
            norm: BatchNorm::new(source, "decoder.refinement.norm"),
            coverage: config.coverage,
        })
    }

    /// Eq. 13 to 15: the refinement term R, `[batch, heads, steps, cells]`, from the attention of this layer (`own`) and
    /// the refined attention of the previous layer (`previous`), of the same shape.
    pub fn forward(&self, previous: Tensor<4>, own: Tensor<4>, padding: &Padding) -> Tensor<4> {
        let [batch, heads, steps, cells] = own.dims();
        let attention = match self.coverage {
            Coverage::Fusion => Tensor::cat(vec![previous, own], 1),
            Coverage::Cross => previous,
            Coverage::SelfOnly | Coverage::None => own,
        };
        // The coverage of each step: the sum over the previous steps.
        let coverage = attention.clone().cumsum(2) - attention;

        let (height, width) = (padding.height, padding.width);
        let maps = coverage.dims()[1];
        let grid = coverage.swap_dims(1, 2).reshape([batch * steps, maps, height, width]);
        let present = padding.mask(&grid.device()).bool_not().float();
        let count =
            padding.values.iter().filter(|&&padded| !padded).count() * (batch / padding.batch) * steps;
        let present = present
            .reshape([1, padding.batch, 1, cells])
            .repeat(&[batch / padding.batch, 1, steps, 1])
            .reshape([batch * steps, 1, height, width]);

        let x = relu(self.conv.forward(grid)) * present.clone();
        let x = self.norm.forward_masked(self.projection.forward(x), present, count as f32);
        x.reshape([batch, steps, heads, cells]).swap_dims(1, 2)
    }
}
