//! `comer recognize`: images and ink in, LaTeX out.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use comer::internal::latex::tokenize;
use comer::{
    AlignmentDetail, Candidate, Constraints, Input, InputOptions, Recognition, RecognizeOptions, Recognizer,
};
use comer_eval::find_files;
use rayon::prelude::*;
use serde_json::json;

use crate::args::{ModelArgs, SearchArgs, ThreadArgs};
use crate::output::{Progress, add_alignment, message, read_input, recognition_json, write_file};

/// Recognize handwritten formulas: images (png, jpeg, bmp, webp, tiff, gif), InkML, or strokes as JSON.
///
/// Prints one line of LaTeX per input, after the input's name and a tab if there are several. Folders are searched for
/// images and ink; - reads one input from stdin. The exit code is 0 if every input was recognized, and 1 otherwise.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer recognize photo.jpg
  comer recognize --nbest 5 ink.inkml
  comer recognize --prefix 'f(x) =' function.png
  comer recognize --json scans/ > scans.jsonl
  curl -s https://example.org/formula.png | comer recognize -")]
pub struct Arguments {
    /// Files, folders, or - for stdin.
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
    /// Print N answers per input, the best first, each on its own line.
    #[arg(long, value_name = "N", default_value_t = 1)]
    nbest: usize,
    /// Print tokens separated by spaces instead of compact LaTeX.
    #[arg(long, conflicts_with = "json")]
    tokens: bool,
    /// Print MathML instead of LaTeX.
    #[arg(long, conflicts_with_all = ["json", "tokens"])]
    mathml: bool,
    /// Print one JSON object per input.
    #[arg(long)]
    json: bool,
    /// With --json: where each token was read, and each region of ink.
    #[arg(long, requires = "json")]
    alignment: bool,
    /// Find only formulas that start with this LaTeX.
    #[arg(long, value_name = "LATEX")]
    prefix: Option<String>,
    #[command(flatten)]
    search: SearchArgs,
    /// Use images as they are (white ink on black): no cleaning, cropping or scaling.
    #[arg(long)]
    raw: bool,
    /// Write the image that the network sees as a PNG; for a single input.
    #[arg(long, value_name = "FILE")]
    debug_image: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Print no progress bar and no error messages; the exit code is unchanged.
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print the confidence and the time of each input to stderr.
    #[arg(short, long)]
    verbose: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    // JSON reports how much of the ink was read, which takes a second pass over the formula.
    let alignment = if arguments.json { AlignmentDetail::Attention } else { AlignmentDetail::None };
    let search = arguments.search.resolve(arguments.nbest)?;
    let mut options = RecognizeOptions::new().search(search).alignment(alignment);
    if let Some(prefix) = &arguments.prefix {
        options = options.constraints(Constraints::new().prefix(tokenize(prefix)));
    }
    let inputs = collect(&arguments.inputs)?;
    if arguments.debug_image.is_some() && inputs.len() != 1 {
        bail!("--debug-image: expected one input, found {}", inputs.len());
    }
    if inputs.len() > 1 {
        // One thread per input; a single input uses all cores.
        options = options.threads(1);
    }
    let recognizer = arguments.model.open()?;
    let progress = if arguments.quiet { Progress::hidden() } else { Progress::new(inputs.len()) };
    let mut failed = 0;
    for group in inputs.chunks(4 * rayon::current_num_threads()) {
        let results: Vec<_> = group
            .par_iter()
            .with_max_len(1)
            .map(|path| {
                let start = Instant::now();
                let result = recognize(&recognizer, path, arguments, &options);
                progress.advance();
                (result, start.elapsed())
            })
            .collect();
        let mut lines = String::new();
        for (path, (result, time)) in group.iter().zip(results) {
            let name = path.display().to_string();
            match &result {
                Ok(recognition) if arguments.verbose => progress.message(format_args!(
                    "{name}: confidence {:.3}, {:.1} ms",
                    recognition.best.confidence,
                    milliseconds(time)
                )),
                Err(error) if !arguments.quiet => progress.message(format_args!("{name}: {error:#}")),
                _ => {}
            }
            failed += usize::from(result.is_err());
            lines += &format(arguments, &name, &result, time, inputs.len() > 1);
        }
        progress.print(lines)?;
    }
    drop(progress);
    if failed > 0 && inputs.len() > 1 && !arguments.quiet {
        message(format_args!("{failed} of {} inputs could not be recognized", inputs.len()));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The lines on stdout for one input.
fn format(
    arguments: &Arguments,
    name: &str,
    result: &Result<Recognition>,
    time: Duration,
    several: bool,
) -> String {
    let mut lines = String::new();
    match result {
        Err(error) if arguments.json => {
            let _ = writeln!(lines, "{}", json!({ "name": name, "error": format!("{error:#}") }));
        }
        Err(_) => {}
        Ok(recognition) if arguments.json => {
            let mut object = recognition_json(recognition);
            object["name"] = name.into();
            object["milliseconds"] = json!((milliseconds(time) * 10.0).round() / 10.0);
            if arguments.alignment {
                add_alignment(&mut object, recognition);
            }
            let _ = writeln!(lines, "{object}");
        }
        Ok(recognition) => {
            for formula in recognition.candidates() {
                let prefix = if several { format!("{name}\t") } else { String::new() };
                let _ = writeln!(lines, "{prefix}{}", text(formula, arguments));
            }
        }
    }
    lines
}

fn text(candidate: &Candidate, arguments: &Arguments) -> String {
    if arguments.tokens {
        return candidate.tokenized();
    }
    // Ill-formed LaTeX, which is possible only without the grammar, stays LaTeX.
    let mathml = arguments.mathml.then(|| comer_eval::mathml::mathml(&candidate.latex).ok()).flatten();
    mathml.unwrap_or_else(|| candidate.latex.clone())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn recognize(
    recognizer: &Recognizer,
    path: &Path,
    arguments: &Arguments,
    options: &RecognizeOptions,
) -> Result<Recognition> {
    let bytes = read_input(path)?;
    let input = Input::from_bytes_with(&bytes, &InputOptions::new().raw(arguments.raw))?;
    if let Some(debug) = &arguments.debug_image {
        write_file(debug, &input.image().to_png()?)?;
    }
    Ok(recognizer.recognize_with(&input, options)?)
}

/// The files that the arguments name; those of a folder are sorted. A missing file fails when its turn comes.
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
                "{}: no images or ink in this folder, expected files ending in {}",
                path.display(),
                Input::EXTENSIONS.join(", ")
            );
        }
        inputs.extend(found);
    }
    Ok(inputs)
}
