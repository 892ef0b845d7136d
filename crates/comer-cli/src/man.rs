//! `comer man`: manual pages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::output::{print, write_file};

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
            let mut command = command.disable_help_subcommand(true);
            command.build();
            write_pages(&command, folder)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            print(String::from_utf8(page)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and of its subcommands.
fn write_pages(command: &clap::Command, folder: &Path) -> Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, folder)?;
    }
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    write_file(&folder.join(man.get_filename()), &page)
}
