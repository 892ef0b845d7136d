//! The hyper-parameters of a model and of the search. The defaults are the paper's.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::token::TokenId;

/// The input of the attention refinement module (section 3.5 of the paper).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// No refinement at all: the BTTR baseline.
    None,
    /// The coverage of the layer's own attention.
    #[serde(rename = "self")]
    SelfOnly,
    /// The coverage of the previous layer's refined attention.
    Cross,
    /// Both, concatenated: the paper's best model.
    #[default]
    Fusion,
}

impl Coverage {
    /// Whether the previous layer's refined attention is part of the coverage.
    pub fn uses_cross(self) -> bool {
        matches!(self, Coverage::Cross | Coverage::Fusion)
    }

    /// Whether the layer's own attention is part of the coverage.
    pub fn uses_self(self) -> bool {
        matches!(self, Coverage::SelfOnly | Coverage::Fusion)
    }
}

/// The decoder of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecoderKind {
    /// The transformer of BTTR and CoMER.
    #[default]
    Transformer,
    /// Two GRUs around an attention with coverage (section 3.1 of the paper): WAP, DenseWAP and models after them.
    Gru,
}

/// The directions that a model writes formulas in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// From left to right and from right to left, with the same weights.
    #[default]
    Both,
    /// From left to right only.
    LeftToRight,
}

/// The shape of the network. `Default` is the paper's CoMER (Fusion).
///
/// Keys that came after the first release are written only where they differ from the default, so that models that do not
/// need them can be opened by older versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// The decoder. That of kind `gru` ignores `coverage` and `feed_forward`.
    #[serde(skip_serializing_if = "is_default")]
    pub decoder: DecoderKind,
    /// The directions in which formulas are written; a transformer needs both.
    #[serde(skip_serializing_if = "is_default")]
    pub directions: Directions,
    /// Width of the decoder and of the features it reads; a multiple of 4 and of `heads`.
    pub d_model: usize,
    /// Channels that each dense layer adds; the stem makes twice, a bottleneck four times as many.
    pub growth_rate: usize,
    /// Dense layers in each of the three blocks of the encoder.
    pub layers_per_block: usize,
    /// Dropout after each activation of the encoder.
    pub encoder_dropout: f64,
    /// Attention heads of the decoder.
    pub heads: usize,
    /// Layers of the decoder. The first of a GRU decoder has the attention, the others are plain GRUs above it.
    pub decoder_layers: usize,
    /// Width of the decoder's feed-forward networks.
    pub feed_forward: usize,
    /// Dropout on the decoder's residual branches, attention weights and feed-forward activations. That of a GRU decoder is
    /// before the output layer only.
    pub dropout: f64,
    /// Channels of the convolution over the coverage: the refinement module's, or that of the attention of a GRU decoder.
    pub coverage_channels: usize,
    /// The input of the refinement module.
    pub coverage: Coverage,
    /// GRU decoder: width of the hidden layer of the attention; a multiple of `heads`.
    #[serde(skip_serializing_if = "is_default_attention_width")]
    pub attention_width: usize,
    /// GRU decoder, in training: the share of attention maps whose largest weight is set to 0 (drop attention).
    #[serde(skip_serializing_if = "is_default")]
    pub drop_attention: f64,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            d_model: 256,
            growth_rate: 24,
            layers_per_block: 16,
            encoder_dropout: 0.2,
            heads: 8,
            decoder_layers: 3,
            feed_forward: 1024,
            dropout: 0.3,
            coverage_channels: 32,
            coverage: Coverage::Fusion,
            decoder: DecoderKind::Transformer,
            directions: Directions::Both,
            attention_width: ATTENTION_WIDTH,
            drop_attention: 0.0,
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_default_attention_width(width: &usize) -> bool {
    *width == ATTENTION_WIDTH
}

/// Pixels along each side of a cell of the features: the encoder halves its image four times, rounding up.
pub const CELL_SIZE: usize = 16;

/// Dense blocks of the encoder.
pub const BLOCKS: usize = 3;

/// Side of the refinement module's first convolution.
pub const COVERAGE_KERNEL: usize = 5;

/// Side of the convolution over the coverage of a GRU decoder.
pub const GRU_COVERAGE_KERNEL: usize = 11;

/// The default of [`ModelConfig::attention_width`]: DenseWAP's.
const ATTENTION_WIDTH: usize = 512;

/// Epsilon of every batch norm and layer norm.
pub const NORM_EPSILON: f64 = 1e-5;

impl ModelConfig {
    /// Checks that the hyper-parameters are consistent and within limits.
    pub fn validate(&self) -> Result<()> {
        let sizes = [
            ("d_model", self.d_model, 8192),
            ("growth_rate", self.growth_rate, 1024),
            ("layers_per_block", self.layers_per_block, 256),
            ("heads", self.heads, 256),
            ("decoder_layers", self.decoder_layers, 256),
            ("feed_forward", self.feed_forward, 65536),
            ("coverage_channels", self.coverage_channels, 4096),
            ("attention_width", self.attention_width, 65536),
        ];
        for (field, value, most) in sizes {
            if value == 0 || value > most {
                return Err(Error::Config {
                    field,
                    found: value.to_string(),
                    expected: format!("a whole number from 1 to {most}"),
                });
            }
        }
        if !self.d_model.is_multiple_of(4) || !self.d_model.is_multiple_of(self.heads) {
            return Err(Error::Config {
                field: "d_model",
                found: self.d_model.to_string(),
                expected: format!("a multiple of 4 and of heads ({})", self.heads),
            });
        }
        if self.decoder == DecoderKind::Gru && !self.attention_width.is_multiple_of(self.heads) {
            return Err(Error::Config {
                field: "attention_width",
                found: self.attention_width.to_string(),
                expected: format!("a multiple of heads ({})", self.heads),
            });
        }
        if self.decoder == DecoderKind::Transformer && self.directions != Directions::Both {
            return Err(Error::Config {
                field: "directions",
                found: "left-to-right".into(),
                expected: "both, or decoder = \"gru\"".into(),
            });
        }
        if self.decoder == DecoderKind::Transformer && self.drop_attention != 0.0 {
            return Err(Error::Config {
                field: "drop_attention",
                found: self.drop_attention.to_string(),
                expected: "0, or decoder = \"gru\"".into(),
            });
        }
        let shares = [
            ("encoder_dropout", self.encoder_dropout),
            ("dropout", self.dropout),
            ("drop_attention", self.drop_attention),
        ];
        for (field, value) in shares {
            if !(0.0..1.0).contains(&value) {
                return Err(Error::Config {
                    field,
                    found: value.to_string(),
                    expected: "a number from 0 to below 1".into(),
                });
            }
        }
        Ok(())
    }

    /// An error unless the decoder is of this kind.
    pub fn require_decoder(&self, kind: DecoderKind) -> Result<()> {
        let name = |kind| if kind == DecoderKind::Gru { "gru" } else { "transformer" };
        if self.decoder == kind {
            return Ok(());
        }
        let (found, expected) = (name(self.decoder).into(), format!("{} here", name(kind)));
        Err(Error::Config { field: "decoder", found, expected })
    }

    /// Channels after the stem.
    pub fn stem_channels(&self) -> usize {
        2 * self.growth_rate
    }

    /// Channels between a dense layer's two convolutions.
    pub fn bottleneck_channels(&self) -> usize {
        4 * self.growth_rate
    }

    /// Channels that dense block `block` (from 0) starts with: the stem's, or half of what the block before ended with.
    pub fn block_input_channels(&self, block: usize) -> usize {
        if block == 0 { self.stem_channels() } else { self.block_output_channels(block - 1) / 2 }
    }

    /// Channels that dense block `block` (from 0) ends with.
    pub fn block_output_channels(&self, block: usize) -> usize {
        self.block_input_channels(block) + self.layers_per_block * self.growth_rate
    }

    /// Channels that the encoder's last block gives to the projection.
    pub fn encoder_channels(&self) -> usize {
        self.block_output_channels(BLOCKS - 1)
    }

    /// Width of one attention head.
    pub fn head_width(&self) -> usize {
        self.d_model / self.heads
    }

    /// Layers of the decoder with attention to the image.
    pub fn attention_layers(&self) -> usize {
        match self.decoder {
            DecoderKind::Transformer => self.decoder_layers,
            DecoderKind::Gru => 1,
        }
    }

    /// Whether the attention is refined by its coverage (section 3.4 of the paper).
    pub fn is_refined(&self) -> bool {
        self.decoder == DecoderKind::Transformer && self.coverage != Coverage::None
    }

    /// Attention maps that the refinement module is given: one per head and source, cross before self.
    pub fn coverage_inputs(&self) -> usize {
        self.heads * (usize::from(self.coverage.uses_cross()) + usize::from(self.coverage.uses_self()))
    }
}

/// How to search for the best formula.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Beam search in both directions, each scoring what the other found: the paper's method, and the most accurate.
    #[default]
    Joint,
    /// Beam search from left to right only: about half the work.
    LeftToRight,
    /// The most likely token at each step, left to right: the fastest.
    Greedy,
}

/// The margin within which prefixes are kept: see `docs/benchmarks.md` for what other margins cost.
const MARGIN: f32 = 4.0;

/// The settings of the search. `Default` is the paper's, restricted to well-formed LaTeX.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchConfig {
    /// How to search.
    pub strategy: Strategy,
    /// The most prefixes that each direction keeps.
    pub beam: usize,
    /// Prefixes whose sum of log-probabilities is below the best one's by more than this are dropped. `None` keeps the whole
    /// beam, as the reference does.
    pub margin: Option<f32>,
    /// The longest formula in tokens, the start token counted.
    pub max_length: usize,
    /// A formula's score is the sum of its log-probabilities divided by its length to this power.
    pub alpha: f32,
    /// Whether formulas must be well-formed LaTeX (see `grammar.rs`).
    pub grammar: bool,
    /// Whether the language model, if there is one, adds to the scores (see `language_model.rs`).
    pub language_model: bool,
    /// How many answers to return.
    pub answers: usize,
    /// The token that the formula must have at each position, if it is known; the last one is.
    #[serde(skip)]
    pub fixed: Vec<Option<TokenId>>,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self {
            strategy: Strategy::Joint,
            beam: 10,
            margin: Some(MARGIN),
            max_length: 200,
            alpha: 1.0,
            grammar: true,
            language_model: true,
            answers: 1,
            fixed: Vec::new(),
        }
    }
}

impl SearchConfig {
    /// Whether formulas are searched from both ends. From the right, the positions of fixed tokens are not known before
    /// the formula is complete.
    pub(crate) fn searches_both_directions(&self) -> bool {
        self.strategy == Strategy::Joint && self.fixed.is_empty()
    }

    /// Checks that the settings are within limits.
    pub fn validate(&self) -> Result<()> {
        let sizes = [
            ("beam", self.beam, 1, 1000),
            ("max_length", self.max_length, 2, 10_000),
            ("answers", self.answers, 1, 1000),
        ];
        for (field, value, least, most) in sizes {
            if !(least..=most).contains(&value) {
                let expected = format!("a whole number from {least} to {most}");
                return Err(Error::Config { field, found: value.to_string(), expected });
            }
        }
        if !(0.0..=10.0).contains(&self.alpha) {
            let expected = "a number from 0 to 10".into();
            return Err(Error::Config { field: "alpha", found: self.alpha.to_string(), expected });
        }
        if let Some(margin) = self.margin.filter(|margin| !(0.0..=1e6).contains(margin)) {
            let expected = "a number from 0 to 1000000".into();
            return Err(Error::Config { field: "margin", found: margin.to_string(), expected });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_papers_encoder() {
        let config = ModelConfig::default();
        config.validate().unwrap();
        let channels: Vec<_> = (0..BLOCKS)
            .map(|block| (config.block_input_channels(block), config.block_output_channels(block)))
            .collect();
        assert_eq!(channels, [(48, 432), (216, 600), (300, 684)]);
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        let cases = [
            (ModelConfig { d_model: 0, ..Default::default() }, "d_model"),
            (ModelConfig { d_model: 30, heads: 3, ..Default::default() }, "d_model"),
            (ModelConfig { d_model: 256, heads: 7, ..Default::default() }, "d_model"),
            (ModelConfig { growth_rate: usize::MAX, ..Default::default() }, "growth_rate"),
            (ModelConfig { dropout: 1.0, ..Default::default() }, "dropout"),
            (ModelConfig { encoder_dropout: f64::NAN, ..Default::default() }, "encoder_dropout"),
            (ModelConfig { directions: Directions::LeftToRight, ..Default::default() }, "directions"),
            (ModelConfig { drop_attention: 0.1, ..Default::default() }, "drop_attention"),
            (
                ModelConfig { decoder: DecoderKind::Gru, attention_width: 100, ..Default::default() },
                "attention_width",
            ),
        ];
        for (config, field) in cases {
            let message = config.validate().unwrap_err().to_string();
            assert!(message.contains(field), "{message}");
        }
    }

    #[test]
    fn keys_of_the_gru_decoder_are_written_only_where_they_are_used() {
        let text = serde_json::to_string(&ModelConfig::default()).unwrap();
        assert!(
            text.starts_with(r#"{"d_model":256,"#) && text.ends_with(r#""coverage":"fusion"}"#),
            "{text}"
        );
        let gru = ModelConfig {
            decoder: DecoderKind::Gru,
            directions: Directions::LeftToRight,
            attention_width: 256,
            drop_attention: 0.1,
            ..Default::default()
        };
        let text = serde_json::to_string(&gru).unwrap();
        assert!(text.contains(r#""decoder":"gru","directions":"left-to-right""#), "{text}");
        assert_eq!(serde_json::from_str::<ModelConfig>(&text).unwrap(), gru);
    }

    #[test]
    fn unknown_fields_are_refused() {
        let error = serde_json::from_str::<ModelConfig>(r#"{"d_modell": 3}"#).unwrap_err();
        assert!(error.to_string().contains("d_modell"), "{error}");
    }
}
