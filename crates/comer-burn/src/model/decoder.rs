//! The transformer decoder (section 3.5 of the paper), with attention refinement from the second layer on.

use burn::module::{Module, Param};
use burn::nn::{Dropout, DropoutConfig};
use burn::prelude::*;
use burn::tensor::activation::relu;
use burn::tensor::module::embedding;
use comer::internal::config::ModelConfig;
use comer::internal::vocab::PAD;

use super::attention::Attention;
use super::layers::{LayerNorm, Linear, Source};
use super::position::{Padding, token_positions};
use super::refinement::AttentionRefinement;

/// Token embeddings.
#[derive(Module, Debug)]
pub struct Embedding {
    weight: Param<Tensor<2>>, // [tokens, d_model]
}

/// One layer: self-attention, cross-attention and a feed-forward network, each as a residual branch with a layer norm
/// after it.
#[derive(Module, Debug)]
pub struct DecoderLayer {
    self_attention: Attention,
    self_attention_norm: LayerNorm,
    cross_attention: Attention,
    cross_attention_norm: LayerNorm,
    expand: Linear,
    contract: Linear,
    feed_forward_norm: LayerNorm,
    dropout: Dropout,
}

/// Everything under `decoder` in the model file.
#[derive(Module, Debug)]
pub struct DecoderModule {
    embedding: Embedding,
    embedding_norm: LayerNorm,
    input_norm: LayerNorm,
    layers: Vec<DecoderLayer>,
    refinement: Option<AttentionRefinement>,
    output: Linear,
}

/// The output of one layer.
pub struct LayerOutput {
    /// `[batch, steps, d_model]`
    pub output: Tensor<3>,
    /// The refined cross-attention (A-hat): `[batch, heads, steps, cells]`
    pub attention: Tensor<4>,
    /// The refinement term (R): `[batch, heads, steps, cells]`; none in the first layer.
    pub refinement: Option<Tensor<4>>,
}

/// The output of the decoder.
pub struct DecoderOutput {
    /// Logits of the next tokens: `[batch, steps, tokens]`
    pub logits: Tensor<3>,
    /// The outputs of the layers, in order.
    pub layers: Vec<LayerOutput>,
}

impl DecoderModule {
    pub(super) fn new(source: &Source, config: &ModelConfig) -> Self {
        let layer = |index: usize| {
            let path = format!("decoder.layers.{index}");
            DecoderLayer {
                self_attention: Attention::new(source, &format!("{path}.self_attention"), config),
                self_attention_norm: LayerNorm::new(source, &format!("{path}.self_attention_norm")),
                cross_attention: Attention::new(source, &format!("{path}.cross_attention"), config),
                cross_attention_norm: LayerNorm::new(source, &format!("{path}.cross_attention_norm")),
                expand: Linear::new(source, &format!("{path}.expand")),
                contract: Linear::new(source, &format!("{path}.contract")),
                feed_forward_norm: LayerNorm::new(source, &format!("{path}.feed_forward_norm")),
                dropout: DropoutConfig::new(config.dropout).init(),
            }
        };
        Self {
            embedding: Embedding { weight: source.parameter("decoder.embedding.weight") },
            embedding_norm: LayerNorm::new(source, "decoder.embedding_norm"),
            input_norm: LayerNorm::new(source, "decoder.input_norm"),
            layers: (0..config.decoder_layers).map(layer).collect(),
            refinement: AttentionRefinement::from_source(source, config),
            output: Linear::new(source, "decoder.output"),
        }
    }

    /// The forward pass for `features` (`[batch, height, width, d_model]`) and input tokens (`[batch, steps]`). `padding` is
    /// repeated to the size of the batch.
    pub fn forward(&self, features: Tensor<4>, padding: &Padding, tokens: Tensor<2, Int>) -> DecoderOutput {
        let device = features.device();
        let [batch, height, width, d] = features.dims();
        let steps = tokens.dims()[1];
        let memory = features.reshape([batch, height * width, d]);

        let padded_tokens = tokens.clone().equal_elem(i64::from(PAD)).reshape([batch, 1, 1, steps]);
        let future = Tensor::<2, Bool>::tril_mask([steps, steps], 0, &device).reshape([1, 1, steps, steps]);
        let token_mask =
            future.expand([batch, 1, steps, steps]).bool_or(padded_tokens.expand([batch, 1, steps, steps]));
        let cell_mask = padding.mask(&device).repeat(&[batch / padding.batch, 1]).unsqueeze_dims(&[1, 2]);

        let embedded = self.embedding_norm.forward(embedding(self.embedding.weight.val(), tokens));
        let positions = token_positions(steps, d, &device).unsqueeze();
        let mut x = self.input_norm.forward(embedded + positions);
        let mut layers: Vec<LayerOutput> = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let previous = layers.last().map(|layer| layer.attention.clone());
            let refine = self.refinement.as_ref().zip(previous);
            let refine =
                refine.map(|(arm, previous)| move |own: Tensor<4>| arm.forward(previous, own, padding));
            let output = layer.forward(x, memory.clone(), token_mask.clone(), cell_mask.clone(), refine);
            x = output.output.clone();
            layers.push(output);
        }
        DecoderOutput { logits: self.output.forward(x), layers }
    }
}

impl DecoderLayer {
    fn forward(
        &self,
        x: Tensor<3>,
        memory: Tensor<3>,
        token_mask: Tensor<4, Bool>,
        cell_mask: Tensor<4, Bool>,
        refine: Option<impl FnOnce(Tensor<4>) -> Tensor<4>>,
    ) -> LayerOutput {
        let plain = None::<fn(Tensor<4>) -> Tensor<4>>;
        let self_attention = self.self_attention.forward(x.clone(), x.clone(), token_mask, plain);
        let x = self.self_attention_norm.forward(x + self.dropout.forward(self_attention.output));

        let cross = self.cross_attention.forward(x.clone(), memory, cell_mask, refine);
        let x = self.cross_attention_norm.forward(x + self.dropout.forward(cross.output));

        let inner = self.dropout.forward(relu(self.expand.forward(x.clone())));
        let x = self.feed_forward_norm.forward(x + self.dropout.forward(self.contract.forward(inner)));
        LayerOutput { output: x, attention: cross.weights, refinement: cross.refinement }
    }
}
