//! `comer man`: manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::output::print;

/// Print the manual page, or write the pages of all subcommands to a folder.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer man | man -l -
  comer man --out ~/.local/share/man/man1")]
pub struct Arguments {
    /// Write comer.1, comer-recognize.1 and so on to this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, command: clap::Command) -> Result<ExitCode> {
    match &arguments.out {
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            clap_mangen::generate_to(command, folder).with_context(|| folder.display().to_string())?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            print(String::from_utf8(page)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
