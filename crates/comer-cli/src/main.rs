//! The `comer` program: parses the command line and hands over to one file per subcommand.

#[cfg(feature = "train")]
mod ablate;
mod bench;
mod common;
mod compare;
mod data;
mod evaluate;
mod explain;
mod export;
mod import;
mod model;
mod recognize;
mod score;
mod serve;
#[cfg(feature = "train")]
mod train;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Handwritten mathematics in, LaTeX out.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
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
    Ablate(ablate::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
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
        Command::Ablate(arguments) => ablate::run(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("comer: {error:#}");
            ExitCode::FAILURE
        }
    }
}
