//! Multi-head attention (section 3.1 of the paper) with optional refinement of its energies.

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

/// The output of an attention layer.
pub struct AttentionOutput {
    /// `[batch, steps, d_model]`
    pub output: Tensor<3>,
    /// The final weights: `[batch, heads, steps, cells]`
    pub weights: Tensor<4>,
    /// The refinement term that was subtracted from the energies: `[batch, heads, steps, cells]`
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

    /// Attends from `query` (`[batch, steps, d_model]`) to `memory` (`[batch, cells, d_model]`), except where `mask`
    /// (`[batch or 1, 1, steps or 1, cells]`) is true. `refine` maps the plain weights to the term that is subtracted from
    /// the energies.
    pub fn forward(
        &self,
        query: Tensor<3>,
        memory: Tensor<3>,
        mask: Tensor<4, Bool>,
        refine: Option<impl FnOnce(Tensor<4>) -> Tensor<4>>,
    ) -> AttentionOutput {
        let [batch, steps, d] = query.dims();
        let cells = memory.dims()[1];
        let width = d / self.heads;
        let split =
            |x: Tensor<3>, length: usize| x.reshape([batch, length, self.heads, width]).swap_dims(1, 2);
        let queries = split(self.packed.forward_rows(query, 0, d) * (width as f64).powf(-0.5), steps);
        let keys_values = self.packed.forward_rows(memory, d, 2 * d);
        let keys = split(keys_values.clone().narrow(2, 0, d), cells);
        let values = split(keys_values.narrow(2, d, d), cells);

        let energies = queries.matmul(keys.swap_dims(2, 3)); // [batch, heads, steps, cells]
        let mask = mask.expand(energies.dims());
        let to_weights = |energies: Tensor<4>| {
            self.dropout.forward(softmax(energies.mask_fill(mask.clone(), f32::NEG_INFINITY), 3))
        };
        let mut weights = to_weights(energies.clone());
        let refinement = refine.map(|refine| refine(weights.clone()));
        if let Some(refinement) = &refinement {
            weights = to_weights(energies - refinement.clone());
        }
        let mixed = weights.clone().matmul(values).swap_dims(1, 2).reshape([batch, steps, d]);
        AttentionOutput { output: self.output.forward(mixed), weights, refinement }
    }
}
