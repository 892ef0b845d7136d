//! Multi-head attention (section 3.1 of the paper) whose energies may be refined before they weigh the values.

use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig};
use burn::prelude::*;
use burn::tensor::activation::softmax;
use comer::internal::config::ModelConfig;

use super::layers::{Linear, Source};

/// A `self_attention` or `cross_attention` of the model file.
#[derive(Module, Debug)]
pub struct Attention {
    packed: Linear, // rows for queries, keys and values
    output: Linear,
    dropout: Dropout,
    heads: usize,
}

/// What an attention gives.
pub struct Attended {
    /// `[batch, steps, d_model]`
    pub output: Tensor<3>,
    /// The weights that were used, refined or not: `[batch, heads, steps, cells]`
    pub weights: Tensor<4>,
    /// What the refinement subtracted from the energies: `[batch, heads, steps, cells]`
    pub refinement: Option<Tensor<4>>,
}

impl Attention {
    pub(super) fn new(source: &Source, path: &str, config: &ModelConfig) -> Self {
        Self {
            packed: Linear::new(source, &format!("{path}.packed")),
            output: Linear::new(source, &format!("{path}.output")),
            dropout: DropoutConfig::new(config.dropout).init(),
            heads: config.heads,
        }
    }

    /// Attends from `query` (`[batch, steps, d_model]`) to `memory` (`[batch, cells, d_model]`) but for the cells where
    /// `hidden` (`[batch or 1, 1, steps or 1, cells]`) is true. `refine` is given the plain weights and answers what to
    /// subtract from the energies.
    pub fn forward(
        &self,
        query: Tensor<3>,
        memory: Tensor<3>,
        hidden: Tensor<4, Bool>,
        refine: Option<impl FnOnce(Tensor<4>) -> Tensor<4>>,
    ) -> Attended {
        let [batch, steps, d] = query.dims();
        let cells = memory.dims()[1];
        let width = d / self.heads;
        let split =
            |x: Tensor<3>, length: usize| x.reshape([batch, length, self.heads, width]).swap_dims(1, 2);
        let queries = split(self.packed.forward_rows(query, 0, d) * (width as f64).powf(-0.5), steps);
        let both = self.packed.forward_rows(memory, d, 2 * d);
        let keys = split(both.clone().narrow(2, 0, d), cells);
        let values = split(both.narrow(2, d, d), cells);

        let energies = queries.matmul(keys.swap_dims(2, 3)); // [batch, heads, steps, cells]
        let hidden = hidden.expand(energies.dims());
        let weigh = |energies: Tensor<4>| {
            self.dropout.forward(softmax(energies.mask_fill(hidden.clone(), f32::NEG_INFINITY), 3))
        };
        let mut weights = weigh(energies.clone());
        let refinement = refine.map(|refine| refine(weights.clone()));
        if let Some(refinement) = &refinement {
            weights = weigh(energies - refinement.clone());
        }
        let mixed = weights.clone().matmul(values).swap_dims(1, 2).reshape([batch, steps, d]);
        Attended { output: self.output.forward(mixed), weights, refinement }
    }
}
