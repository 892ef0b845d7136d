//! The transformer decoder's weights, packed once (sections 3.2 to 3.5 of the paper); `decoder_state.rs` runs them.

use super::kernels::panels::{Panels, Rows, product};
use super::kernels::rows::add_and_normalise;
use super::kernels::{Activation, Kernels};
use super::refinement::Refinement;
use crate::config::{Coverage, DecoderKind, ModelConfig, NORM_EPSILON};
use crate::error::{Error, Result};
use crate::position;
use crate::token::TokenId;
use crate::weights::{Weights, tensor_specs};

/// The decoder's weights, packed once for the kernels; shared by all states.
pub struct Decoder {
    pub(super) config: ModelConfig,
    pub(super) vocab: usize,
    pub(super) kernels: Kernels,
    /// Embeddings, already normalised: `[vocab, d_model]`.
    pub(super) embedding: Vec<f32>,
    /// Of the positional encoding.
    pub(super) frequencies: Vec<f64>,
    pub(super) input_norm: Norm,
    pub(super) layers: Vec<Layer>,
    pub(super) refinement: Option<Refinement>,
    pub(super) output: Panels,
}

pub(super) struct Norm {
    scale: Vec<f32>,
    shift: Vec<f32>,
}

pub(super) struct Layer {
    pub(super) self_packed: Panels,
    pub(super) self_output: Panels,
    pub(super) self_norm: Norm,
    pub(super) cross_query: Panels,
    pub(super) cross_memory: Panels,
    pub(super) cross_output: Panels,
    pub(super) cross_norm: Norm,
    pub(super) expand: Panels,
    pub(super) contract: Panels,
    pub(super) feed_forward_norm: Norm,
}

/// Buffers that live only within a step, kept to save their allocation.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) x: Vec<f32>,
    pub(super) packed: Vec<f32>,
    pub(super) context: Vec<f32>,
    pub(super) branch: Vec<f32>,
    pub(super) wide: Vec<f32>,
    pub(super) scores: Vec<f32>,
    /// What to take off the energies, `[prefixes, heads, cells]`.
    pub(super) refinement: Vec<f32>,
}

impl Decoder {
    /// Packs the decoder of a model whose vocabulary has `vocab` tokens.
    pub fn new(config: &ModelConfig, vocab: usize, weights: &Weights) -> Result<Self> {
        Self::with_kernels(config, vocab, weights, Kernels::detect())
    }

    /// As [`Self::new`], with given kernels.
    pub fn with_kernels(
        config: &ModelConfig,
        vocab: usize,
        weights: &Weights,
        kernels: Kernels,
    ) -> Result<Self> {
        config.require_decoder(DecoderKind::Transformer)?;
        check(config, vocab, weights, "decoder.")?;
        let d = config.d_model;
        let tensor = |name: &str| &weights[name].data;
        let norm = |path: &str| Norm {
            scale: tensor(&format!("{path}.weight")).clone(),
            shift: tensor(&format!("{path}.bias")).clone(),
        };
        let linear = |path: &str, input: usize, rows: std::ops::Range<usize>| {
            let (weight, bias) = (tensor(&format!("{path}.weight")), tensor(&format!("{path}.bias")));
            let first = rows.start;
            Panels::pack(rows.len(), input, |column, k| weight[(first + column) * input + k])
                .with_bias(|column| bias[first + column])
                .halved(kernels)
        };
        let layers = (0..config.decoder_layers).map(|layer| {
            let path = format!("decoder.layers.{layer}");
            let (own, cross) = (format!("{path}.self_attention"), format!("{path}.cross_attention"));
            let wide = config.feed_forward;
            Layer {
                self_packed: linear(&format!("{own}.packed"), d, 0..3 * d),
                self_output: linear(&format!("{own}.output"), d, 0..d),
                self_norm: norm(&format!("{own}_norm")),
                cross_query: linear(&format!("{cross}.packed"), d, 0..d),
                cross_memory: linear(&format!("{cross}.packed"), d, d..3 * d),
                cross_output: linear(&format!("{cross}.output"), d, 0..d),
                cross_norm: norm(&format!("{cross}_norm")),
                expand: linear(&format!("{path}.expand"), d, 0..wide),
                contract: linear(&format!("{path}.contract"), wide, 0..d),
                feed_forward_norm: norm(&format!("{path}.feed_forward_norm")),
            }
        });
        let layers = layers.collect();
        let mut embedding = tensor("decoder.embedding.weight").clone();
        norm("decoder.embedding_norm").apply(kernels, &mut embedding, &vec![0.0; vocab * d]);
        Ok(Self {
            config: config.clone(),
            vocab,
            kernels,
            embedding,
            frequencies: position::frequencies(d),
            input_norm: norm("decoder.input_norm"),
            layers,
            refinement: match config.coverage {
                Coverage::None => None,
                _ => Some(Refinement::new(config, weights, kernels)),
            },
            output: linear("decoder.output", d, 0..vocab),
        })
    }
}

impl Norm {
    pub(super) fn apply(&self, kernels: Kernels, values: &mut [f32], branch: &[f32]) {
        add_and_normalise(kernels, values, branch, &self.scale, &self.shift, NORM_EPSILON as f32);
    }
}

impl Decoder {
    /// `rows * matrix` for as many whole rows of `depth` as there are.
    pub(super) fn linear(
        &self,
        matrix: &Panels,
        rows: &[f32],
        depth: usize,
        out: &mut Vec<f32>,
        activation: Activation,
    ) {
        let count = rows.len() / depth;
        out.resize(count * matrix.columns(), 0.0);
        product(
            self.kernels,
            Rows::plain(rows, count, depth, depth),
            matrix,
            out,
            matrix.columns(),
            activation,
        );
    }

    /// The last part of a layer, on the rows of `scratch.x`.
    pub(super) fn feed_forward(&self, layer: &Layer, scratch: &mut Scratch) {
        let (d, wide) = (self.config.d_model, self.config.feed_forward);
        self.linear(&layer.expand, &scratch.x, d, &mut scratch.wide, Activation::Relu);
        self.linear(&layer.contract, &scratch.wide, wide, &mut scratch.branch, Activation::None);
        layer.feed_forward_norm.apply(self.kernels, &mut scratch.x, &scratch.branch);
    }

    /// Normalised embeddings plus the position, normalised again.
    pub(super) fn embed(&self, tokens: &[TokenId], position: usize, scratch: &mut Scratch) {
        let d = self.config.d_model;
        scratch.x.clear();
        for &token in tokens {
            scratch.x.extend_from_slice(&self.embedding[usize::from(token) * d..][..d]);
        }
        scratch.context.clear();
        scratch.context.extend(position::encode(position as f64, &self.frequencies));
        scratch.branch.clear();
        scratch.branch.extend(scratch.context.iter().cycle().take(tokens.len() * d));
        self.input_norm.apply(self.kernels, &mut scratch.x, &scratch.branch);
    }
}

/// Checks that the weights have every tensor of a path that a model of this config needs, in its shape.
pub(super) fn check(config: &ModelConfig, vocab: usize, weights: &Weights, path: &str) -> Result<()> {
    config.validate()?;
    for spec in tensor_specs(config, vocab).iter().filter(|spec| spec.name.starts_with(path)) {
        let found = weights.get(&spec.name).map(|tensor| (&tensor.shape, tensor.data.len()));
        if found != Some((&spec.shape, spec.shape.iter().product())) {
            let found =
                found.map_or("missing".into(), |(shape, count)| format!("{shape:?} with {count} numbers"));
            let reason = format!("tensor {} is {found}, expected {:?}", spec.name, spec.shape);
            return Err(Error::ModelFile { name: "this model".into(), reason });
        }
    }
    Ok(())
}
