//! `comer import`: converts a PyTorch checkpoint to a model file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use comer::internal::checkpoint::{self, Hints};
use comer::internal::weights::parameter_count;
use comer::internal::{Coverage, Precision};

use crate::args::read_vocab;
use crate::output::message;

/// Convert a PyTorch checkpoint of the reference implementation to a model file.
///
/// Reads a Lightning .ckpt, a plain .pt or a .safetensors file. No code in the file is executed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer import epoch=151.ckpt fusion.safetensors
  comer import weights.pt small.safetensors --f16 --vocab tokens.txt --heads 8 --coverage cross")]
pub struct Arguments {
    /// Checkpoint to read.
    checkpoint: PathBuf,
    /// Model file to write.
    model: PathBuf,
    /// Store the weights in 16 bits, which halves the size.
    #[arg(long)]
    f16: bool,
    /// Vocabulary, one token per line, in the order of training [default: CROHME's 110].
    #[arg(long, value_name = "FILE")]
    vocab: Option<PathBuf>,
    /// Attention heads, if the checkpoint does not say.
    #[arg(long, value_name = "N")]
    heads: Option<usize>,
    /// Coverage, if the checkpoint does not say.
    #[arg(long)]
    coverage: Option<CoverageArgument>,
}

#[derive(Clone, Copy, ValueEnum)]
enum CoverageArgument {
    None,
    #[value(name = "self")]
    SelfOnly,
    Cross,
    Fusion,
}

impl From<CoverageArgument> for Coverage {
    fn from(argument: CoverageArgument) -> Self {
        match argument {
            CoverageArgument::None => Coverage::None,
            CoverageArgument::SelfOnly => Coverage::SelfOnly,
            CoverageArgument::Cross => Coverage::Cross,
            CoverageArgument::Fusion => Coverage::Fusion,
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let vocab = read_vocab(arguments.vocab.as_deref())?;
    let hints = Hints { heads: arguments.heads, coverage: arguments.coverage.map(Into::into) };
    let model = checkpoint::import(&arguments.checkpoint, vocab, &hints)?;
    let precision = if arguments.f16 { Precision::F16 } else { Precision::F32 };
    model.save(&arguments.model, precision)?;
    message(format_args!(
        "{}: {:?} coverage, {} tokens, {} parameters",
        arguments.model.display(),
        model.config.coverage,
        model.vocab.len(),
        parameter_count(&model.config, model.vocab.len()),
    ));
    Ok(ExitCode::SUCCESS)
}
