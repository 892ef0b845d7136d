//! `comer recognize`: images and ink in, LaTeX out.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use comer::internal::latex::tokenize;
use comer::{
    AlignmentDetail, Candidate, Constraints, Formula, Input, InputOptions, RecognizeOptions, Recognizer,
    Warning, aligned,
};
use comer_eval::visible_files;
use rayon::prelude::*;
use serde_json::json;

use crate::args::{ModelArgs, SearchArgs, ThreadArgs};
use crate::debug_image;
use crate::output::{Progress, add_alignment, message, read_input, write_file};
use crate::reading::{Formulas, formula_json, page_json, prepare};
#[cfg(any(feature = "pdf", feature = "svg"))]
use crate::vector;

/// Recognize handwritten formulas: images (png, jpeg, bmp, webp, tiff, gif), InkML, or strokes as JSON.
///
/// Prints one line of LaTeX per formula, after the input's name and a tab if there are several inputs. Folders are searched
/// for images and ink, but for hidden files; - reads one input from stdin. An input that clearly shows several formulas
/// gives one line for each, in reading order. PDF and SVG files are read by programs that were built with the features `pdf`
/// and `svg`; the pages of a PDF are inputs of their own, called FILE#page=1 and so on. The exit code is 0 if every input was recognized, and 1 otherwise.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer recognize photo.jpg
  comer recognize --nbest 5 ink.inkml
  comer recognize --prefix 'f(x) =' function.png
  comer recognize --all page.jpg
  comer recognize --all --aligned derivation.jpg
  comer recognize --min-confidence 0.9 --timeout 5 photo.jpg
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
    /// Separate formulas by the space that they usually have between them, not only where there is clearly more than one.
    #[arg(long, conflicts_with = "one")]
    all: bool,
    /// Read all ink of an input as one formula.
    #[arg(long)]
    one: bool,
    /// Print the formulas of an input as one: the lines of a derivation, aligned at their relation signs.
    #[arg(long, conflicts_with_all = ["one", "nbest", "tokens", "json"])]
    aligned: bool,
    /// Treat a formula with a lower confidence as an error.
    #[arg(long, value_name = "P")]
    min_confidence: Option<f32>,
    /// Give up on an input after this many seconds; on a page of a PDF, after as many for drawing and for reading it.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Read an image file that ends early as far as it goes; not for WebP and TIFF.
    #[arg(long)]
    lenient: bool,
    /// Write a PNG of the page and, below it, of the images that the network sees; for a single input. On the page, each
    /// formula has a box, and ink that was read is green: other ink was dropped.
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

/// Longest time to draw a page of a PDF or SVG file, without --timeout.
#[cfg(any(feature = "pdf", feature = "svg"))]
const DRAWING_TIME: Duration = Duration::from_secs(30);
/// Most names of files of other kinds that are listed.
const NAMED: usize = 10;

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    if let Some(seconds) = arguments.timeout.filter(|seconds| !(0.0..=1e6).contains(seconds)) {
        bail!("--timeout {seconds}: expected seconds from 0 to a million");
    }
    if let Some(confidence) = arguments.min_confidence.filter(|confidence| !(0.0..=1.0).contains(confidence))
    {
        bail!("--min-confidence {confidence}: expected a number from 0 to 1");
    }
    let search = arguments.search.resolve(arguments.nbest)?;
    // How much of the ink was read takes a second pass over the formula.
    let mut options = RecognizeOptions::new().search(search).alignment(AlignmentDetail::Attention);
    if let Some(prefix) = &arguments.prefix {
        options = options.constraints(Constraints::new().prefix(tokenize(prefix)));
    }
    let (inputs, unsupported) = collect(&arguments.inputs)?;
    if arguments.debug_image.is_some() && inputs.len() != 1 {
        bail!("--debug-image: expected one input, found {}", inputs.len());
    }
    if inputs.len() > 1 {
        // One thread per input; a single input uses all cores.
        options = options.threads(1);
    }
    let recognizer = arguments.model.open()?;
    let progress = if arguments.quiet { Progress::hidden() } else { Progress::new(inputs.len()) };
    let (mut count, mut failed) = (0, 0);
    for group in inputs.chunks(4 * rayon::current_num_threads()) {
        let results: Vec<Vec<Read>> = group
            .par_iter()
            .with_max_len(1)
            .map(|path| {
                let read = read(&recognizer, path, arguments, &options);
                progress.advance();
                read
            })
            .collect();
        let several = inputs.len() > 1 || results.iter().any(|read| read.len() > 1);
        let mut lines = String::new();
        for Read { name, result, time } in results.into_iter().flatten() {
            count += 1;
            match &result {
                Ok(page) if !arguments.quiet => {
                    for line in page.notes(arguments.verbose, time) {
                        progress.message(format_args!("{name}: {line}"));
                    }
                }
                Err(error) if !arguments.quiet => progress.message(format_args!("{name}: {error:#}")),
                _ => {}
            }
            failed += usize::from(result.is_err());
            lines += &format(arguments, &name, &result, time, several);
        }
        progress.print(lines)?;
    }
    drop(progress);
    if !unsupported.is_empty() && !arguments.quiet {
        message(format_args!("skipped {}", of_other_kinds(&unsupported)));
    }
    if failed > 0 && count > 1 && !arguments.quiet {
        message(format_args!("{failed} of {count} inputs could not be recognized"));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The result of an input or of a page of a PDF.
struct Read {
    name: String,
    result: Result<Page>,
    time: Duration,
}

/// What was read of an input: at least one formula.
struct Page {
    formulas: Vec<Formula>,
    warnings: Vec<Warning>,
}

impl Page {
    /// An error if a formula is less sure than it has to be.
    fn check(self, arguments: &Arguments) -> Result<Self> {
        let least = arguments.min_confidence.unwrap_or(0.0);
        for formula in &self.formulas {
            let best = &formula.recognition.best;
            if best.confidence < least {
                bail!("confidence {:.3} is below --min-confidence {least}: {}", best.confidence, best.latex);
            }
        }
        Ok(self)
    }

    /// All formulas as one.
    fn aligned(&self) -> String {
        aligned(self.formulas.iter().map(|formula| formula.recognition.latex()))
    }

    /// What to say on stderr.
    fn notes(&self, verbose: bool, time: Duration) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        if verbose {
            let sure =
                self.formulas.iter().map(|formula| format!("{:.3}", formula.recognition.best.confidence));
            let sure = sure.collect::<Vec<_>>().join(", ");
            lines.push(format!("confidence {sure}, {:.1} ms", milliseconds(time)));
        }
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {}", warning.message)));
        for (number, formula) in self.formulas.iter().enumerate() {
            let which =
                if self.formulas.len() > 1 { format!("formula {}: ", number + 1) } else { String::new() };
            lines.extend(
                formula.warnings.iter().map(|warning| format!("warning: {which}{}", warning.message)),
            );
        }
        lines
    }
}

/// The lines on stdout for one input.
fn format(arguments: &Arguments, name: &str, result: &Result<Page>, time: Duration, several: bool) -> String {
    let mut lines = String::new();
    match result {
        Err(error) if arguments.json => {
            let _ = writeln!(lines, "{}", json!({ "name": name, "error": format!("{error:#}") }));
        }
        Err(_) => {}
        Ok(page) if arguments.json => {
            let json = |formula: &Formula| {
                let mut object = formula_json(formula);
                if arguments.alignment {
                    add_alignment(&mut object, &formula.recognition);
                }
                object
            };
            let mut object = page_json(page.formulas.iter().map(json).collect(), &page.warnings);
            object["name"] = name.into();
            object["milliseconds"] = json!((milliseconds(time) * 10.0).round() / 10.0);
            let _ = writeln!(lines, "{object}");
        }
        Ok(page) => {
            let texts: Vec<String> = if arguments.aligned {
                vec![formatted(page.aligned(), arguments)]
            } else {
                let candidates = page.formulas.iter().flat_map(|formula| formula.recognition.candidates());
                candidates.map(|candidate| text(candidate, arguments)).collect()
            };
            for text in texts {
                let prefix = if several { format!("{name}\t") } else { String::new() };
                let _ = writeln!(lines, "{prefix}{text}");
            }
        }
    }
    lines
}

fn text(candidate: &Candidate, arguments: &Arguments) -> String {
    if arguments.tokens {
        return candidate.tokenized();
    }
    formatted(candidate.latex.clone(), arguments)
}

/// LaTeX, or MathML if asked for. Ill-formed LaTeX, which is possible only without the grammar, stays LaTeX.
fn formatted(latex: String, arguments: &Arguments) -> String {
    let mathml = arguments.mathml.then(|| comer_eval::mathml::mathml(&latex).ok()).flatten();
    mathml.unwrap_or(latex)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Reads an input: one result, or one for each page of a PDF.
fn read(
    recognizer: &Recognizer,
    path: &Path,
    arguments: &Arguments,
    options: &RecognizeOptions,
) -> Vec<Read> {
    let mut start = Instant::now();
    let images = images(path, arguments);
    let count = images.len();
    let one = |(number, bytes): (usize, Result<Vec<u8>>)| {
        let page = if count > 1 { format!("#page={}", number + 1) } else { String::new() };
        let result = bytes.and_then(|bytes| {
            if arguments.debug_image.is_some() && count > 1 {
                bail!("--debug-image: expected one page, found {count}");
            }
            recognize(recognizer, &bytes, arguments, options)?.check(arguments)
        });
        let time = start.elapsed();
        start = Instant::now();
        Read { name: format!("{}{page}", path.display()), result, time }
    };
    images.into_iter().enumerate().map(one).collect()
}

/// The content of an input, or each page of a PDF or SVG file as an image.
#[cfg(any(feature = "pdf", feature = "svg"))]
fn images(path: &Path, arguments: &Arguments) -> Vec<Result<Vec<u8>>> {
    let most = arguments.timeout.map_or(DRAWING_TIME, Duration::from_secs_f64);
    read_input(path).map_or_else(|error| vec![Err(error.into())], |bytes| vector::pages(bytes, most))
}

/// The content of an input.
#[cfg(not(any(feature = "pdf", feature = "svg")))]
fn images(path: &Path, _: &Arguments) -> Vec<Result<Vec<u8>>> {
    vec![read_input(path).map_err(Into::into)]
}

fn recognize(
    recognizer: &Recognizer,
    bytes: &[u8],
    arguments: &Arguments,
    options: &RecognizeOptions,
) -> Result<Page> {
    let mut preparation = InputOptions::new().raw(arguments.raw).lenient(arguments.lenient);
    let mut options = options.clone();
    if let Some(seconds) = arguments.timeout {
        let deadline = Instant::now() + Duration::from_secs_f64(seconds);
        preparation = preparation.deadline(deadline);
        options = options.deadline(deadline);
    }
    let formulas = match (arguments.one, arguments.all) {
        (true, _) => Formulas::One,
        (_, true) => Formulas::All,
        _ => Formulas::Auto,
    };
    let (inputs, warnings) = prepare(bytes, &preparation, formulas)?;
    if let Some(debug) = &arguments.debug_image {
        write_file(debug, &debug_image::png(bytes, arguments.lenient, &inputs)?)?;
    }
    let formulas = inputs.into_iter().map(|input| recognizer.recognize_formula(input, &options));
    Ok(Page { formulas: formulas.collect::<comer::Result<_>>()?, warnings })
}

/// The files that the arguments name, and those in folders that are of other kinds; those of a folder are sorted, and
/// hidden ones are left out. A missing file fails when its turn comes.
fn collect(arguments: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut inputs, mut unsupported) = (Vec::new(), Vec::new());
    for path in arguments {
        if !path.is_dir() {
            inputs.push(path.clone());
            continue;
        }
        let (found, others): (Vec<_>, Vec<_>) =
            visible_files(path)?.into_iter().partition(|file| is_read(file));
        if found.is_empty() {
            let others = if others.is_empty() {
                String::new()
            } else {
                format!("; there are {}", of_other_kinds(&others))
            };
            bail!(
                "{}: no images or ink in this folder, expected files ending in {}{others}",
                path.display(),
                extensions().collect::<Vec<_>>().join(", ")
            );
        }
        inputs.extend(found);
        unsupported.extend(others);
    }
    Ok((inputs, unsupported))
}

/// The extensions of the files that are read from folders.
fn extensions() -> impl Iterator<Item = &'static str> {
    #[cfg(any(feature = "pdf", feature = "svg"))]
    let more = vector::EXTENSIONS;
    #[cfg(not(any(feature = "pdf", feature = "svg")))]
    let more: &[&str] = &[];
    Input::EXTENSIONS.iter().chain(more).copied()
}

fn is_read(file: &Path) -> bool {
    let own = file.extension().unwrap_or_default();
    extensions().any(|extension| own.eq_ignore_ascii_case(extension))
}

/// How many files are of other kinds, and the names of the first ones.
fn of_other_kinds(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    let more = files.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let noun = if files.len() == 1 { "file" } else { "files" };
    format!("{} {noun} of other kinds: {}{more}", files.len(), names.join(", "))
}
