//! The weights of the GRU decoder with coverage attention, packed once (section 3.1 of the paper); `gru_state.rs` runs them.

use super::decoder::check;
use super::kernels::panels::{Panels, Rows, product};
use super::kernels::{Activation, Kernels};
use crate::config::{DecoderKind, ModelConfig};
use crate::error::Result;
use crate::weights::Weights;

/// The decoder's weights, packed once for the kernels; shared by all states.
pub struct GruDecoder {
    pub(super) config: ModelConfig,
    pub(super) vocab: usize,
    pub(super) kernels: Kernels,
    /// `[vocab, d_model]`
    pub(super) embedding: Vec<f32>,
    /// The input part of the first GRU for each token, `[vocab, 3 d_model]`.
    pub(super) token_parts: Vec<f32>,
    /// From the mean feature to the first state of each layer.
    pub(super) initial: Vec<Panels>,
    pub(super) token_state: Panels,
    pub(super) features: Panels,
    pub(super) query: Panels,
    /// The convolution over the coverage and the linear layer after it as one: `[attention_width, heads, 11, 11]`.
    pub(super) coverage_kernel: Vec<f32>,
    /// The vector of the energies, `[attention_width]`.
    pub(super) energy: Vec<f32>,
    pub(super) context_gru: Gru,
    /// The GRUs above the attention.
    pub(super) stacked: Vec<Gru>,
    pub(super) readout: Panels,
    pub(super) output: Panels,
}

/// A GRU that reads a vector of the same width as its state.
pub(super) struct Gru {
    pub(super) input: Panels,
    pub(super) state: Panels,
}

impl GruDecoder {
    /// Packs the decoder of a model whose vocabulary has `vocab` tokens.
    pub fn new(config: &ModelConfig, vocab: usize, weights: &Weights) -> Result<Self> {
        config.require_decoder(DecoderKind::Gru)?;
        check(config, vocab, weights, "decoder.")?;
        let (d, kernels) = (config.d_model, Kernels::detect());
        let tensor = |name: &str| &weights[&format!("decoder.{name}")];
        let matrix = |path: &str| {
            let tensor = tensor(&format!("{path}.weight"));
            let inputs = tensor.shape[1];
            Panels::pack(tensor.shape[0], inputs, |column, k| tensor.data[column * inputs + k])
                .halved(kernels)
        };
        let linear = |path: &str| {
            let bias = &tensor(&format!("{path}.bias")).data;
            matrix(path).with_bias(|column| bias[column])
        };
        let gru = |path: &str| {
            let [input, state] = ["input", "state"].map(|leaf| linear(&format!("{path}.{leaf}")));
            Gru { input, state }
        };
        let embedding = tensor("embedding.weight").data.clone();
        let token_gru = gru("token_gru");
        let mut token_parts = vec![0.0; vocab * 3 * d];
        let tokens = Rows::plain(&embedding, vocab, d, d);
        product(kernels, tokens, &token_gru.input, &mut token_parts, 3 * d, Activation::None);
        Ok(Self {
            vocab,
            kernels,
            embedding,
            token_parts,
            initial: (0..config.decoder_layers).map(|layer| linear(&format!("initial.{layer}"))).collect(),
            token_state: token_gru.state,
            features: linear("attention.features"),
            query: matrix("attention.state"),
            coverage_kernel: coverage_kernel(config, weights),
            energy: tensor("attention.energy.weight").data.clone(),
            context_gru: gru("context_gru"),
            stacked: (1..config.decoder_layers).map(|layer| gru(&format!("stacked_gru.{layer}"))).collect(),
            readout: linear("readout"),
            output: linear("output"),
            config: config.clone(),
        })
    }
}

/// The kernel of the convolution and the linear layer after it, `[attention_width, heads, 11, 11]`: both are linear.
fn coverage_kernel(config: &ModelConfig, weights: &Weights) -> Vec<f32> {
    let conv = &weights["decoder.attention.conv.weight"].data;
    let linear = &weights["decoder.attention.coverage.weight"].data;
    let taps = conv.len() / config.coverage_channels;
    let mut kernel = vec![0.0; config.attention_width * taps];
    for (kernel, row) in kernel.chunks_exact_mut(taps).zip(linear.chunks_exact(config.coverage_channels)) {
        for (factor, conv) in row.iter().zip(conv.chunks_exact(taps)) {
            kernel.iter_mut().zip(conv).for_each(|(sum, x)| *sum += factor * x);
        }
    }
    kernel
}
