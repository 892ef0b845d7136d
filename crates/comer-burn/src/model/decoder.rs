//! The transformer decoder (section 3.5 of the paper): from the second layer on, its attention to the picture is
//! refined by what was read before.

use burn::module::{Module, Param};
use burn::nn::{Dropout, DropoutConfig};
use burn::prelude::*;
use burn::tensor::activation::relu;
use burn::tensor::module::embedding;
use comer::internal::config::ModelConfig;
use comer::internal::vocab::PAD;

use super::attention::Attention;
use super::layers::{LayerNorm, Linear, Source};
use super::position::{Padding, word_positions};
use super::refinement::Refinement;

/// A table of one vector for each token.
#[derive(Module, Debug)]
pub struct Embedding {
    weight: Param<Tensor<2>>, // [tokens, d_model]
}

/// One layer: attention to the formula so far, attention to the picture, a feed-forward network; each added to what
/// came in, then normalised.
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
pub struct Decoder {
    embedding: Embedding,
    embedding_norm: LayerNorm,
    input_norm: LayerNorm,
    layers: Vec<DecoderLayer>,
    refinement: Option<Refinement>,
    output: Linear,
}

/// What one layer computed.
pub struct LayerOutput {
    /// `[batch, steps, d_model]`
    pub output: Tensor<3>,
    /// The attention to the picture that was used (A-hat): `[batch, heads, steps, cells]`
    pub attention: Tensor<4>,
    /// What was subtracted from its energies (R): `[batch, heads, steps, cells]`; none in the first layer.
    pub refinement: Option<Tensor<4>>,
}

/// What the decoder computed.
pub struct Decoded {
    /// Energies of the tokens that follow: `[batch, steps, tokens]`
    pub logits: Tensor<3>,
    /// The layers, the first one first.
    pub layers: Vec<LayerOutput>,
}

impl Decoder {
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
            refinement: Refinement::new(source, config),
            output: Linear::new(source, "decoder.output"),
        }
    }

    /// Reads `features` (`[batch, height, width, d_model]`) after the tokens given (`[batch, steps]`). The rows of
    /// `padding` are repeated as often as needed for the batch.
    pub fn forward(&self, features: Tensor<4>, padding: &Padding, tokens: Tensor<2, Int>) -> Decoded {
        let device = features.device();
        let [batch, height, width, d] = features.dims();
        let steps = tokens.dims()[1];
        let memory = features.reshape([batch, height * width, d]);

        let padded_words = tokens.clone().equal_elem(i64::from(PAD)).reshape([batch, 1, 1, steps]);
        let future = Tensor::<2, Bool>::tril_mask([steps, steps], 0, &device).reshape([1, 1, steps, steps]);
        let hidden_words =
            future.expand([batch, 1, steps, steps]).bool_or(padded_words.expand([batch, 1, steps, steps]));
        let hidden_cells = padding.mask(&device).repeat(&[batch / padding.batch, 1]).unsqueeze_dims(&[1, 2]);

        let words = self.embedding_norm.forward(embedding(self.embedding.weight.val(), tokens));
        let positions = word_positions(steps, d, &device).unsqueeze();
        let mut x = self.input_norm.forward(words + positions);
        let mut layers: Vec<LayerOutput> = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let previous = layers.last().map(|layer| layer.attention.clone());
            let refine = self.refinement.as_ref().zip(previous);
            let refine =
                refine.map(|(arm, previous)| move |own: Tensor<4>| arm.forward(previous, own, padding));
            let output = layer.forward(x, memory.clone(), hidden_words.clone(), hidden_cells.clone(), refine);
            x = output.output.clone();
            layers.push(output);
        }
        Decoded { logits: self.output.forward(x), layers }
    }
}

impl DecoderLayer {
    fn forward(
        &self,
        x: Tensor<3>,
        memory: Tensor<3>,
        hidden_words: Tensor<4, Bool>,
        hidden_cells: Tensor<4, Bool>,
        refine: Option<impl FnOnce(Tensor<4>) -> Tensor<4>>,
    ) -> LayerOutput {
        let plain = None::<fn(Tensor<4>) -> Tensor<4>>;
        let words = self.self_attention.forward(x.clone(), x.clone(), hidden_words, plain);
        let x = self.self_attention_norm.forward(x + self.dropout.forward(words.output));

        let cells = self.cross_attention.forward(x.clone(), memory, hidden_cells, refine);
        let x = self.cross_attention_norm.forward(x + self.dropout.forward(cells.output));

        let inner = self.dropout.forward(relu(self.expand.forward(x.clone())));
        let x = self.feed_forward_norm.forward(x + self.dropout.forward(self.contract.forward(inner)));
        LayerOutput { output: x, attention: cells.weights, refinement: cells.refinement }
    }
}
