//! The tensors of a model: names, shapes and, once loaded, values.
//!
//! Layouts are the usual ones: a linear map is `[out, in]`, a convolution `[out, in, height, width]`. The packed
//! projection of an attention stacks the rows for queries, keys and values, in this order.

use std::collections::BTreeMap;

use crate::config::{BLOCKS, COVERAGE_KERNEL, Coverage, DecoderKind, GRU_COVERAGE_KERNEL, ModelConfig};

/// A dense tensor of f32 in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The length of each dimension.
    pub shape: Vec<usize>,
    /// The values, in row-major order; as many as the product of `shape`.
    pub data: Vec<f32>,
}

/// A model's tensors by name.
pub type Weights = BTreeMap<String, Tensor>;

/// The name and shape that a model of some config must have.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSpec {
    /// The path of the tensor, such as `encoder.stem.conv.weight`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Whether training changes it by its gradient; the running statistics of batch norms are not.
    pub trainable: bool,
}

/// All tensors of a model with this config and a vocabulary of `vocab` tokens, in the order of computation.
pub fn tensor_specs(config: &ModelConfig, vocab: usize) -> Vec<TensorSpec> {
    let mut list = List(Vec::new());
    let (growth, bottleneck, d) = (config.growth_rate, config.bottleneck_channels(), config.d_model);

    list.conv("encoder.stem.conv", config.stem_channels(), 1, 7);
    list.batch_norm("encoder.stem.norm", config.stem_channels());
    for block in 0..BLOCKS {
        for layer in 0..config.layers_per_block {
            let path = format!("encoder.blocks.{block}.{layer}");
            let input = config.block_input_channels(block) + layer * growth;
            list.conv(&format!("{path}.reduce.conv"), bottleneck, input, 1);
            list.batch_norm(&format!("{path}.reduce.norm"), bottleneck);
            list.conv(&format!("{path}.grow.conv"), growth, bottleneck, 3);
            list.batch_norm(&format!("{path}.grow.norm"), growth);
        }
        if block + 1 < BLOCKS {
            let path = format!("encoder.transitions.{block}");
            let output = config.block_input_channels(block + 1);
            list.conv(&format!("{path}.conv"), output, config.block_output_channels(block), 1);
            list.batch_norm(&format!("{path}.norm"), output);
        }
    }
    list.batch_norm("encoder.last_norm", config.encoder_channels());
    list.conv("encoder.projection", d, config.encoder_channels(), 1);
    list.parameter("encoder.projection.bias", [d]);
    list.layer_norm("encoder.norm", d);

    match config.decoder {
        DecoderKind::Transformer => list.transformer(config, vocab),
        DecoderKind::Gru => list.gru_decoder(config, vocab),
    }
    list.0
}

/// The number of trained parameters: 6 389 041 for the paper's config and CROHME's 113 tokens.
pub fn parameter_count(config: &ModelConfig, vocab: usize) -> usize {
    let specs = tensor_specs(config, vocab);
    specs.iter().filter(|spec| spec.trainable).map(|spec| spec.shape.iter().product::<usize>()).sum()
}

struct List(Vec<TensorSpec>);

impl List {
    fn transformer(&mut self, config: &ModelConfig, vocab: usize) {
        let d = config.d_model;
        self.parameter("decoder.embedding.weight", [vocab, d]);
        self.layer_norm("decoder.embedding_norm", d);
        self.layer_norm("decoder.input_norm", d);
        for layer in 0..config.decoder_layers {
            let path = format!("decoder.layers.{layer}");
            for attention in ["self_attention", "cross_attention"] {
                self.linear(&format!("{path}.{attention}.packed"), 3 * d, d);
                self.linear(&format!("{path}.{attention}.output"), d, d);
                self.layer_norm(&format!("{path}.{attention}_norm"), d);
            }
            self.linear(&format!("{path}.expand"), config.feed_forward, d);
            self.linear(&format!("{path}.contract"), d, config.feed_forward);
            self.layer_norm(&format!("{path}.feed_forward_norm"), d);
        }
        if config.coverage != Coverage::None {
            let channels = config.coverage_channels;
            self.conv("decoder.refinement.conv", channels, config.coverage_inputs(), COVERAGE_KERNEL);
            self.parameter("decoder.refinement.conv.bias", [channels]);
            self.conv("decoder.refinement.projection", config.heads, channels, 1);
            self.batch_norm("decoder.refinement.norm", config.heads);
        }
        self.linear("decoder.output", vocab, d);
    }

    /// The packed weights of a GRU stack the rows of the reset gate, the update gate and the candidate, in this order. The
    /// columns of `readout` are those of the token, the state and the context.
    fn gru_decoder(&mut self, config: &ModelConfig, vocab: usize) {
        let (d, width, channels) = (config.d_model, config.attention_width, config.coverage_channels);
        self.parameter("decoder.embedding.weight", [vocab, d]);
        for layer in 0..config.decoder_layers {
            self.linear(&format!("decoder.initial.{layer}"), d, d);
        }
        self.gru("decoder.token_gru", d);
        self.linear("decoder.attention.features", width, d);
        self.parameter("decoder.attention.state.weight", [width, d]);
        self.conv("decoder.attention.conv", channels, config.heads, GRU_COVERAGE_KERNEL);
        self.parameter("decoder.attention.coverage.weight", [width, channels]);
        self.parameter("decoder.attention.energy.weight", [config.heads, width / config.heads]);
        self.gru("decoder.context_gru", d);
        for layer in 1..config.decoder_layers {
            self.gru(&format!("decoder.stacked_gru.{layer}"), d);
        }
        self.linear("decoder.readout", d, 3 * d);
        self.linear("decoder.output", vocab, d / 2);
    }

    fn gru(&mut self, path: &str, width: usize) {
        self.linear(&format!("{path}.input"), 3 * width, width);
        self.linear(&format!("{path}.state"), 3 * width, width);
    }

    fn push(&mut self, name: &str, shape: impl Into<Vec<usize>>, trainable: bool) {
        self.0.push(TensorSpec { name: name.into(), shape: shape.into(), trainable });
    }

    fn parameter(&mut self, name: &str, shape: impl Into<Vec<usize>>) {
        self.push(name, shape, true);
    }

    fn conv(&mut self, path: &str, output: usize, input: usize, kernel: usize) {
        self.parameter(&format!("{path}.weight"), [output, input, kernel, kernel]);
    }

    fn linear(&mut self, path: &str, output: usize, input: usize) {
        self.parameter(&format!("{path}.weight"), [output, input]);
        self.parameter(&format!("{path}.bias"), [output]);
    }

    fn layer_norm(&mut self, path: &str, width: usize) {
        self.parameter(&format!("{path}.weight"), [width]);
        self.parameter(&format!("{path}.bias"), [width]);
    }

    fn batch_norm(&mut self, path: &str, channels: usize) {
        self.layer_norm(path, channels);
        self.push(&format!("{path}.mean"), [channels], false);
        self.push(&format!("{path}.variance"), [channels], false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_model_has_its_number_of_parameters() {
        assert_eq!(parameter_count(&ModelConfig::default(), 113), 6_389_041);
    }

    #[test]
    fn names_are_distinct_for_every_coverage_and_decoder() {
        let gru = ModelConfig { decoder: DecoderKind::Gru, ..Default::default() };
        let coverages = [Coverage::None, Coverage::SelfOnly, Coverage::Cross, Coverage::Fusion];
        let configs = coverages.map(|coverage| ModelConfig { coverage, ..Default::default() });
        for config in configs.iter().chain([&gru]) {
            let specs = tensor_specs(config, 113);
            let names: std::collections::BTreeSet<_> = specs.iter().map(|spec| &spec.name).collect();
            assert_eq!(names.len(), specs.len());
        }
    }
}
