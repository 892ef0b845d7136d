//! The `comer` program: parses the command line and hands over to one file per subcommand.

mod compare;
mod import;
mod score;

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
    Compare(compare::Arguments),
    Import(import::Arguments),
    Score(score::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Score(arguments) => score::run(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("comer: {error:#}");
            ExitCode::FAILURE
        }
    }
}
