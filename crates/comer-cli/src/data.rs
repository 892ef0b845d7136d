//! `comer data`: creates and checks data sets.

mod check;
#[cfg(feature = "train")]
mod clean;
#[cfg(feature = "train")]
mod export;
#[cfg(feature = "train")]
mod import;
#[cfg(feature = "train")]
mod photograph;
mod render;
#[cfg(feature = "train")]
mod synthesize;

use std::process::ExitCode;

use anyhow::Result;

/// Create or check a data set.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Render(render::Arguments),
    #[cfg(feature = "train")]
    Import(import::Arguments),
    #[cfg(feature = "train")]
    Export(export::Arguments),
    #[cfg(feature = "train")]
    Clean(clean::Arguments),
    #[cfg(feature = "train")]
    Photograph(photograph::Arguments),
    #[cfg(feature = "train")]
    Synthesize(synthesize::Arguments),
    Check(check::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Render(arguments) => render::run(arguments),
        #[cfg(feature = "train")]
        Command::Import(arguments) => import::run(arguments),
        #[cfg(feature = "train")]
        Command::Export(arguments) => export::run(arguments),
        #[cfg(feature = "train")]
        Command::Clean(arguments) => clean::run(arguments),
        #[cfg(feature = "train")]
        Command::Photograph(arguments) => photograph::run(arguments),
        #[cfg(feature = "train")]
        Command::Synthesize(arguments) => synthesize::run(arguments),
        Command::Check(arguments) => check::run(arguments),
    }
}
