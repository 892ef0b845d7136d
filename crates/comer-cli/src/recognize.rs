//! `comer recognize`: pictures and ink in, LaTeX out.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use comer::alignment::Region;
use comer::internal::config::{SearchConfig, Strategy};
use comer::{AlignmentDetail, Candidate, Input, InputOptions, Recognition, RecognizeOptions, Recognizer};
use comer_eval::find_files;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::common::{ModelArgument, progress_bar, use_threads};

/// Read handwritten formulas: pictures (png, jpeg, bmp, webp, tiff, gif), InkML or a JSON of strokes.
///
/// Prints the LaTeX of each input on a line of its own, after its name if there are several. Folders are searched for
/// pictures and ink; `-` reads one input from stdin. The exit code is 0 only if every input was read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer recognize photo.jpg
  comer recognize --json --nbest 5 scans/ ink.inkml
  curl -s https://example.org/formula.png | comer recognize -")]
pub struct Arguments {
    /// Files, folders, or - for stdin.
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    model: ModelArgument,
    /// Print one JSON object a line instead of LaTeX.
    #[arg(long)]
    json: bool,
    /// How many answers to give; more than one only with --json.
    #[arg(long, value_name = "N", default_value_t = 1)]
    nbest: usize,
    #[command(flatten)]
    search: SearchArguments,
    /// With --json: where in the picture each token was read, and each region of ink.
    #[arg(long, requires = "json")]
    alignment: bool,
    /// Take pictures as they are (white ink on black): nothing is cleaned, cropped or scaled.
    #[arg(long)]
    raw: bool,
    /// Write the picture that the network saw (a PNG); for one input.
    #[arg(long, value_name = "FILE")]
    debug_image: Option<PathBuf>,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// How to search.
#[derive(clap::Args)]
pub struct SearchArguments {
    /// Prefixes that each reading direction keeps.
    #[arg(long, value_name = "N", default_value_t = SearchConfig::default().beam)]
    pub beam: usize,
    /// The quickest search: one prefix, from the left only.
    #[arg(long, conflicts_with = "one_direction")]
    pub greedy: bool,
    /// Search from the left only.
    #[arg(long)]
    pub one_direction: bool,
    /// Let answers be ill-formed LaTeX, as the authors' implementation does.
    #[arg(long)]
    pub no_grammar: bool,
}

impl SearchArguments {
    pub fn config(&self, answers: usize) -> SearchConfig {
        let strategy = match (self.greedy, self.one_direction) {
            (true, _) => Strategy::Greedy,
            (_, true) => Strategy::LeftToRight,
            _ => Strategy::Joint,
        };
        SearchConfig {
            strategy,
            beam: self.beam,
            grammar: !self.no_grammar,
            answers,
            ..SearchConfig::default()
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    use_threads(arguments.threads)?;
    // JSON tells how much of the ink was read, for which the formula is read once more.
    let alignment = if arguments.json { AlignmentDetail::Attention } else { AlignmentDetail::None };
    let search = arguments.search.config(arguments.nbest);
    search.validate()?;
    let inputs = collect(&arguments.inputs)?;
    if arguments.debug_image.is_some() && inputs.len() != 1 {
        bail!("--debug-image is for one input, but there are {}", inputs.len());
    }
    let recognizer = arguments.model.open()?;
    let clean = InputOptions::new().raw(arguments.raw);
    let mut options = RecognizeOptions::new().search(search).alignment(alignment);
    if inputs.len() > 1 {
        // One thread for each input; a single one uses all cores.
        options = options.threads(1);
    }
    let bar = progress_bar(inputs.len());
    let mut failed = 0;
    let mut out = std::io::stdout().lock();
    for group in inputs.chunks(4 * rayon::current_num_threads()) {
        let results: Vec<_> = group
            .par_iter()
            .with_max_len(1)
            .map(|path| {
                let start = Instant::now();
                let result = recognize(&recognizer, path, &clean, &options, arguments.debug_image.as_deref());
                bar.inc(1);
                (result, start.elapsed().as_secs_f64() * 1000.0)
            })
            .collect();
        for (path, (result, milliseconds)) in group.iter().zip(results) {
            let name = path.display().to_string();
            match result {
                Ok(recognition) if arguments.json => {
                    let mut object = to_json(&name, &recognition, milliseconds);
                    if arguments.alignment {
                        add_alignment(&mut object, &recognition);
                    }
                    writeln!(out, "{object}")?;
                }
                Ok(recognition) if inputs.len() > 1 => writeln!(out, "{name}\t{}", recognition.best.latex)?,
                Ok(recognition) => writeln!(out, "{}", recognition.best.latex)?,
                Err(error) => {
                    failed += 1;
                    bar.suspend(|| eprintln!("comer: {name}: {error:#}"));
                    if arguments.json {
                        writeln!(out, "{}", json!({ "name": name, "error": format!("{error:#}") }))?;
                    }
                }
            }
        }
        out.flush()?;
    }
    bar.finish_and_clear();
    if failed > 0 && inputs.len() > 1 {
        eprintln!("comer: {failed} of {} inputs could not be read", inputs.len());
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn recognize(
    recognizer: &Recognizer,
    path: &Path,
    clean: &InputOptions,
    options: &RecognizeOptions,
    debug_image: Option<&Path>,
) -> Result<Recognition> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        bytes = std::fs::read(path)?;
    }
    let input = Input::from_bytes_with(&bytes, clean)?;
    if let Some(debug) = debug_image {
        comer::internal::model_file::write_atomic(debug, &input.image().to_png()?)?;
    }
    Ok(recognizer.recognize_with(&input, options)?)
}

/// The files that the arguments name, those in folders sorted. A missing file stays in the list and fails in its turn.
fn collect(arguments: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut inputs = Vec::new();
    for path in arguments {
        if !path.is_dir() {
            inputs.push(path.clone());
            continue;
        }
        let found = find_files(path, Input::EXTENSIONS)?;
        if found.is_empty() {
            bail!(
                "{}: no picture or ink in this folder, expected files ending in {}",
                path.display(),
                Input::EXTENSIONS.join(", ")
            );
        }
        inputs.extend(found);
    }
    Ok(inputs)
}

fn to_json(name: &str, recognition: &Recognition, milliseconds: f64) -> Value {
    let mut object = recognition_json(recognition);
    object["name"] = name.into();
    object["milliseconds"] = json!((milliseconds * 10.0).round() / 10.0);
    object
}

/// A recognition as JSON.
pub fn recognition_json(recognition: &Recognition) -> Value {
    let formula = |formula: &Candidate| {
        let token = |token: &comer::Token| json!({ "token": token.text, "confidence": token.confidence });
        json!({
            "latex": formula.latex,
            "tokens": formula.tokens.iter().map(token).collect::<Vec<_>>(),
            "confidence": formula.confidence,
            "score": formula.score,
        })
    };
    let mut object = formula(&recognition.best);
    object["alternatives"] = recognition.alternatives.iter().map(formula).collect();
    if let Some(alignment) = &recognition.alignment {
        object["ink"] = json!({ "unread": alignment.ink.unread, "reread": alignment.ink.reread });
    }
    object
}

/// Adds where each token was read, and what was made of each piece of ink.
pub fn add_alignment(object: &mut Value, recognition: &Recognition) {
    let Some(alignment) = &recognition.alignment else { return };
    object["alignment"] =
        json!({ "height": alignment.height, "width": alignment.width, "attention": alignment.attention });
    let region = |region: &Region| {
        json!({
            "left": region.left,
            "top": region.top,
            "width": region.width,
            "height": region.height,
            "pixels": region.pixels,
            "attention": region.attention,
            "shared": region.shared,
            "coverage": region.coverage,
            "unread": region.is_unread(),
            "reread": region.is_reread(),
        })
    };
    object["ink"]["regions"] = alignment.ink.regions.iter().map(region).collect();
}
