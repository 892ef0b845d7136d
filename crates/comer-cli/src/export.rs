//! `comer export`: writes a model as ONNX files for other runtimes.

mod decoder;
mod encoder;
mod layers;
mod onnx;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer::internal::TokenId;
use comer::internal::config::DecoderKind;
use comer::internal::vocab::{EOS, PAD, SOS};
use serde_json::json;

use crate::args::ModelArgs;
use crate::output::{message, write_file};

/// Export a model to ONNX.
///
/// Writes encoder.onnx (a picture of any size to features), decoder_step.onnx (one decoding step and its state) and
/// vocab.json. docs/onnx.md describes their inputs and outputs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer export onnx
  comer export onnx --model fusion.safetensors
  python3 examples/onnx_greedy.py onnx formula.png")]
pub struct Arguments {
    /// The folder to write to; created if it does not exist.
    out: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let model = arguments.model.read()?;
    if model.config.decoder != DecoderKind::Transformer {
        bail!(
            "the decoder of this model is a GRU: expected a transformer, the only one that can be exported to ONNX"
        );
    }
    let out = &arguments.out;
    std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    let tokens: Vec<&str> =
        (0..model.vocab.len()).filter_map(|id| model.vocab.token(id as TokenId)).collect();
    let vocab = json!({ "tokens": tokens, "pad": PAD, "sos": SOS, "eos": EOS });
    let config = serde_json::to_string(&model.config)?;
    let metadata = [("config", config.as_str())];
    write_file(&out.join("encoder.onnx"), &encoder::graph(&model).into_model("encoder", &metadata))?;
    write_file(
        &out.join("decoder_step.onnx"),
        &decoder::graph(&model).into_model("decoder_step", &metadata),
    )?;
    write_file(&out.join("vocab.json"), serde_json::to_string_pretty(&vocab)?.as_bytes())?;
    message(format_args!("{}: encoder.onnx, decoder_step.onnx, vocab.json", out.display()));
    Ok(ExitCode::SUCCESS)
}
