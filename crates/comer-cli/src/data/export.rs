//! `comer data export`: draws a stroke set as images with captions in CROHME's layout.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer_files::OutputFolder;
use comer_train::stroke_set::{self, Record};
use rayon::prelude::*;
use serde_json::json;

use crate::args::ThreadArgs;
use crate::output::{Progress, message, print};

/// Draw a stroke set as CROHME's images are drawn, for `comer evaluate` and for other programs.
///
/// Writes OUT_DIR/SPLIT/img/ID.png and OUT_DIR/SPLIT/caption.txt. Expressions that cannot be drawn are left out and
/// reported. An existing split is not changed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer data export sets/validation.jsonl data
  comer evaluate --data data --split validation")]
pub struct Arguments {
    /// Stroke set, made by `comer data import`.
    set: PathBuf,
    /// Folder of the data set.
    out_dir: PathBuf,
    /// Name of the split [default: that of the stroke set].
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    let stem = || arguments.set.file_stem().and_then(|stem| stem.to_str()).map(str::to_string);
    let split = arguments.split.clone().or_else(stem).unwrap_or_default();
    if split.is_empty() || split.starts_with('.') || split.contains(['/', '\\']) {
        bail!("--split {split:?}: expected the name of one folder");
    }
    let target = arguments.out_dir.join(&split);
    if target.exists() {
        bail!("{}: already exists, expected a new split (--split names another)", target.display());
    }
    let records = stroke_set::read(&arguments.set)?;
    let names = unique_names(&records);
    let writing = || format!("cannot write {}", target.display());
    let folder = OutputFolder::create(&target).with_context(writing)?;
    let progress = Progress::new(records.len());
    let drawn: Vec<Result<String, String>> = records
        .par_iter()
        .zip(&names)
        .map(|(record, name)| {
            progress.advance();
            match draw(record) {
                Err(reason) => Ok(Err(format!("{}: {reason}", record.id))),
                Ok(png) => {
                    folder.write(format!("img/{name}.png"), &png).with_context(writing)?;
                    Ok(Ok(format!("{name}\t{}\n", record.tokens)))
                }
            }
        })
        .collect::<Result<_>>()?;
    drop(progress);
    let count = drawn.iter().filter(|line| line.is_ok()).count();
    if count == 0 {
        bail!("{}: none of its {} expressions could be drawn", arguments.set.display(), records.len());
    }
    let mut captions = String::new();
    for line in drawn {
        match line {
            Ok(line) => captions += &line,
            Err(reason) => message(format_args!("left out: {reason}")),
        }
    }
    folder.write("caption.txt", captions.as_bytes()).with_context(writing)?;
    folder.finish().with_context(writing)?;
    let text = match arguments.json {
        true => format!(
            "{:#}\n",
            json!({ "split": split, "folder": target, "expressions": records.len(), "drawn": count })
        ),
        false => format!("{}: {count} of {} expressions\n", target.display(), records.len()),
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// A file name for each record: its id without separators, with a number if the name is taken.
fn unique_names(records: &[Record]) -> Vec<String> {
    let mut taken = HashSet::new();
    // The number to try next for each id, because a set may have one id many times.
    let mut numbers = HashMap::new();
    let name = |record: &Record| {
        let plain: String = record
            .id
            .chars()
            .map(|c| if c.is_control() || ['/', '\\', ':'].contains(&c) { '-' } else { c })
            .collect();
        let base = plain.trim_start_matches('.').to_string();
        let next = numbers.entry(base.clone()).or_insert(1);
        loop {
            let name = if *next == 1 { base.clone() } else { format!("{base}-{next}") };
            *next += 1;
            if !name.is_empty() && taken.insert(name.clone()) {
                return name;
            }
        }
    };
    records.iter().map(name).collect()
}

fn draw(record: &Record) -> Result<Vec<u8>, String> {
    let picture = record.ink()?.draw().map_err(|error| error.to_string())?;
    let png = picture.to_png().map_err(|error| error.to_string())?;
    // An image that no network can read is left out.
    picture.fit().map_err(|error| error.to_string())?;
    Ok(png)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_stay_in_the_folder() {
        let record = |id: &str| Record {
            id: id.into(),
            tokens: "1".into(),
            strokes: vec![vec![0, 0, 0, 100]],
            symbols: Vec::new(),
            writer: None,
            pen: None,
        };
        let records = ["a", "../a", "a", "", "a-2", "b/c"].map(record);
        assert_eq!(unique_names(&records), ["a", "-a", "a-2", "-2", "a-2-2", "b-c"]);
        // As many as a set may have, in linear time.
        let same = vec![record("a"); 100_000];
        assert_eq!(unique_names(&same)[99_999], "a-100000");
        assert!(draw(&records[0]).unwrap().starts_with(b"\x89PNG"));
        assert!(draw(&Record { strokes: vec![vec![1]], ..record("x") }).is_err());
    }
}
