//! `comer data render`: draws InkML as images with captions in CROHME's layout.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer::Ink;
use comer_eval::caption::Normalizer;
use comer_eval::{Dialect, LabelGraph, find_files};
use comer_files::OutputFolder;
use rayon::prelude::*;
use serde_json::json;

use crate::args::{ThreadArgs, read_vocab};
use crate::output::{Progress, message, print};

/// Draw every .inkml below a folder as CROHME's images are drawn, with captions in the tokens of a vocabulary.
///
/// Writes OUT_DIR/SPLIT/img/NAME.png, OUT_DIR/SPLIT/caption.txt, and OUT_DIR/SPLIT/left-out.tsv with the files that could
/// not be used and why. Captions are the normalized LaTeX of each file's `truth` annotation. The split appears under its
/// name only when it is complete, and an existing split is not changed. The exit code is 0 if anything was drawn.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer data render inkml/train data
  comer data render downloads/ink data --split extra --vocab tokens.txt --json")]
pub struct Arguments {
    /// Folder to search for ink.
    inkml_dir: PathBuf,
    /// Folder of the data set.
    out_dir: PathBuf,
    /// Name of the split [default: that of INKML_DIR].
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Vocabulary, one token per line [default: CROHME's 110].
    #[arg(long, value_name = "FILE")]
    vocab: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// An ink file and the name of its image.
struct Source {
    path: PathBuf,
    name: Result<String, String>,
}

/// Reasons that are printed; left-out.tsv has all.
const MAX_LISTED: usize = 10;

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    let normalizer = Normalizer::new(read_vocab(arguments.vocab.as_deref())?.tokens());
    let split = split_name(arguments)?;
    let target = arguments.out_dir.join(&split);
    if target.exists() {
        bail!("{}: already exists, expected a new split (--split selects another name)", target.display());
    }
    let paths = find_files(&arguments.inkml_dir, &["inkml"])?;
    if paths.is_empty() {
        bail!("{}: no ink in this folder, expected files ending in inkml", arguments.inkml_dir.display());
    }
    let sources = name_all(paths);

    let writing = || format!("cannot write {}", target.display());
    let folder = OutputFolder::create(&target).with_context(writing)?;
    let progress = Progress::new(sources.len());
    // A file that cannot be drawn is left out; a picture that cannot be written ends everything.
    let drawn = sources
        .par_iter()
        .map(|source| -> Result<Result<(&str, String), String>> {
            progress.advance();
            match draw(source, &normalizer) {
                Err(reason) => Ok(Err(reason)),
                Ok(Drawn { name, caption, png }) => {
                    folder.write(format!("img/{name}.png"), &png).with_context(writing)?;
                    Ok(Ok((name, caption)))
                }
            }
        })
        .collect::<Result<Vec<_>>>();
    drop(progress);

    let relative = |path: &Path| {
        path.strip_prefix(&arguments.inkml_dir)
            .unwrap_or(path)
            .display()
            .to_string()
            .replace(['\t', '\n'], " ")
    };
    let (mut captions, mut left_out, mut renamed) = (String::new(), Vec::new(), Vec::new());
    for (source, result) in sources.iter().zip(drawn?) {
        let file = relative(&source.path);
        match result {
            Ok((name, caption)) => {
                captions += &format!("{name}\t{caption}\n");
                if source.path.file_stem().is_none_or(|stem| stem != name) {
                    renamed.push((file, name));
                }
            }
            Err(reason) => left_out.push((file, reason)),
        }
    }
    let count = sources.len() - left_out.len();
    for (file, reason) in left_out.iter().take(MAX_LISTED) {
        message(format_args!("left out: {file}: {reason}"));
    }
    for (file, name) in &renamed {
        message(format_args!("{file}: the name is taken, its image is {name}"));
    }
    if count == 0 {
        bail!("{}: none of its {} files could be drawn", arguments.inkml_dir.display(), sources.len());
    }
    let table: String = left_out.iter().map(|(file, reason)| format!("{file}\t{reason}\n")).collect();
    folder.write("caption.txt", captions.as_bytes()).with_context(writing)?;
    folder.write("left-out.tsv", table.as_bytes()).with_context(writing)?;
    folder.finish().with_context(writing)?;

    let record = json!({
        "split": split,
        "folder": target,
        "files": sources.len(),
        "drawn": count,
        "left_out": left_out.iter().map(|(name, reason)| json!({ "name": name, "reason": reason })).collect::<Vec<_>>(),
        "renamed": renamed.iter().map(|(file, name)| json!({ "file": file, "name": name })).collect::<Vec<_>>(),
    });
    let text = if arguments.json {
        format!("{record:#}\n")
    } else {
        format!(
            "{}: {count} pictures, {} of {} files left out\n",
            target.display(),
            left_out.len(),
            sources.len()
        )
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn split_name(arguments: &Arguments) -> Result<String> {
    let split = match &arguments.split {
        Some(split) => split.clone(),
        None => {
            let folder = &arguments.inkml_dir;
            let whole = fs::canonicalize(folder).with_context(|| folder.display().to_string())?;
            let name = whole.file_name().and_then(|name| name.to_str());
            name.with_context(|| {
                format!("{}: the folder has no name, expected --split NAME", folder.display())
            })?
            .into()
        }
    };
    if split.is_empty() || split.starts_with('.') || split.contains(['/', '\\']) {
        bail!("--split {split:?}: expected the name of one folder");
    }
    Ok(split)
}

/// Assigns unique names: that of the file, with a number if the name is taken. Copies of a file are left out.
fn name_all(paths: Vec<PathBuf>) -> Vec<Source> {
    let stem = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_string);
    let mut taken: HashSet<String> = paths.iter().filter_map(|path| stem(path)).collect();
    let mut earlier_files: HashMap<String, Vec<PathBuf>> = HashMap::new();
    let mut sources = Vec::with_capacity(paths.len());
    for path in paths {
        let name = match stem(&path) {
            None => Err("the name is not UTF-8".into()),
            Some(name) if name.contains(['\t', '\n', '\r']) => {
                Err("the name has a tab or a line break".into())
            }
            Some(name) => {
                let earlier = earlier_files.entry(name.clone()).or_default();
                let same = earlier.iter().find(|other| same_bytes(other, &path));
                let given = match same {
                    Some(other) => Err(format!("the same file as {}", other.display())),
                    None if earlier.is_empty() => Ok(name),
                    None => {
                        let mut number = 2;
                        while !taken.insert(format!("{name}-{number}")) {
                            number += 1;
                        }
                        Ok(format!("{name}-{number}"))
                    }
                };
                earlier.push(path.clone());
                given
            }
        };
        sources.push(Source { path, name });
    }
    sources
}

fn same_bytes(one: &Path, other: &Path) -> bool {
    let read = |path: &Path| comer_files::read(path, comer_files::limit::INPUT);
    matches!((read(one), read(other)), (Ok(one), Ok(other)) if one == other)
}

/// A picture with its name and caption.
struct Drawn<'a> {
    name: &'a str,
    caption: String,
    png: Vec<u8>,
}

/// Draws one file, or answers why it is left out.
fn draw<'a>(source: &'a Source, normalizer: &Normalizer) -> Result<Drawn<'a>, String> {
    let name = source.name.as_deref().map_err(String::clone)?;
    let text = |error: comer::Error| error.to_string();
    let bytes =
        comer_files::read(&source.path, comer_files::limit::INPUT).map_err(|error| error.to_string())?;
    let ink = Ink::from_inkml(&bytes).map_err(text)?;
    // Keeps the dollar signs: a control space may precede them.
    let latex = ink.annotation("truth").ok_or("no annotation of type truth")?.trim();
    let rejected = |error: comer_eval::Error| format!("LaTeX {latex:?}: {error}").replace(['\t', '\n'], " ");
    let caption = normalizer.normalize(latex).map_err(rejected)?;
    if caption.is_empty() {
        return Err(format!("LaTeX {latex:?}: no visible symbols"));
    }
    LabelGraph::from_latex(&caption, Dialect::Clean).map_err(rejected)?;
    let picture = ink.draw().map_err(text)?;
    let png = picture.to_png().map_err(text)?;
    picture.fit().map_err(text)?;
    Ok(Drawn { name, caption, png })
}
