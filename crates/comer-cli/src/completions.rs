//! `comer completions`: shell completion scripts.

use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::output::print;

/// Print a shell completion script.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer completions bash > ~/.local/share/bash-completion/completions/comer
  comer completions zsh > ~/.zfunc/_comer
  comer completions fish > ~/.config/fish/completions/comer.fish")]
pub struct Arguments {
    /// The shell.
    shell: Shell,
}

pub fn run(arguments: &Arguments, mut command: clap::Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "comer", &mut script);
    print(String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
