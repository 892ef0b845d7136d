//! The `comer` program: parses the command line and runs one subcommand.
//!
//! It is a library only so that a fuzz target reaches the server. Nothing in it is a public interface.

#[cfg(feature = "train")]
mod ablate;
mod args;
mod bench;
#[cfg(feature = "train")]
mod calibrate;
mod clock;
mod compare;
mod completions;
mod data;
mod debug_image;
mod evaluate;
mod evaluation;
mod explain;
mod explanation;
mod export;
mod import;
mod man;
mod model;
mod output;
#[cfg(feature = "train")]
mod photographs;
#[cfg(feature = "train")]
mod ranks;
mod reading;
mod recognize;
mod score;
mod serve;
#[cfg(feature = "train")]
mod train;
#[cfg(feature = "train")]
mod train_lm;
#[cfg(feature = "train")]
mod training;
#[cfg(any(feature = "pdf", feature = "svg"))]
mod vector;
mod version;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

#[doc(hidden)]
pub use serve::router;

/// Handwritten mathematics in, LaTeX out.
#[derive(Parser)]
#[command(name = "comer", version = version::SHORT, long_version = version::LONG.as_str(), arg_required_else_help = true)]
#[command(after_help = "Examples:
  comer recognize photo.jpg
  comer serve
  comer help recognize")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Recognize(recognize::Arguments),
    Serve(serve::Arguments),
    Explain(explain::Arguments),
    Evaluate(evaluate::Arguments),
    Score(score::Arguments),
    Compare(compare::Arguments),
    Bench(bench::Arguments),
    Import(import::Arguments),
    Export(export::Arguments),
    Model(model::Arguments),
    Data(data::Arguments),
    #[cfg(feature = "train")]
    Train(train::Arguments),
    #[cfg(feature = "train")]
    TrainLm(train_lm::Arguments),
    #[cfg(feature = "train")]
    Ablate(ablate::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            if let Some(suggestion) = suggestion(&error) {
                eprintln!("{suggestion}");
                return ExitCode::from(2);
            }
            error.exit();
        }
    };
    match run(arguments.command) {
        Ok(code) => code,
        // The reader has seen enough, as in `comer ... | head`.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::message(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Recognize(arguments) => recognize::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Data(arguments) => data::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Model(arguments) => model::run(&arguments),
        Command::Score(arguments) => score::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        #[cfg(feature = "train")]
        Command::Train(arguments) => train::run(&arguments),
        #[cfg(feature = "train")]
        Command::TrainLm(arguments) => train_lm::run(&arguments),
        #[cfg(feature = "train")]
        Command::Ablate(arguments) => ablate::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, Arguments::command()),
        Command::Man(arguments) => man::run(&arguments, Arguments::command()),
    }
}

/// What to say when the first argument is a file and not a command.
fn suggestion(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let path = std::env::args_os().nth(1)?;
    let path = Path::new(&path);
    let extension = path.extension().unwrap_or_default();
    let is_input = comer::Input::EXTENSIONS.iter().any(|own| extension.eq_ignore_ascii_case(own));
    (path.exists() || is_input).then(|| {
        let path = path.display();
        format!("comer: {path} is not a command; to recognize a file:\n  comer recognize {path}")
    })
}
