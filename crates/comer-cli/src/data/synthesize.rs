//! `comer data synthesize`: the synthetic samples of a recipe, as a stroke set or as a sheet of pictures.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer::internal::Vocab;
use comer_train::recipe::Recipe;
use comer_train::samples::{Sample, Samples};
use comer_train::stroke_set::{self, Record};
use comer_train::synthesis::SynthesisKind;
use rayon::prelude::*;

use crate::args::ThreadArgs;
use crate::explanation::canvas::Canvas;
use crate::explanation::png::png;
use crate::output::{message, write_file};

/// Generate the synthetic samples of a recipe ([[data]] of kind "synthesis").
///
/// The output is a stroke set (.jsonl) or a sheet of pictures with captions (.png).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer data synthesize configs/bundled.toml --data sets --kind formulas --count 100 --out sheet.png
  comer data synthesize configs/bundled.toml --data sets --count 5000 --seed 3 --out synthetic.jsonl")]
pub struct Arguments {
    /// Recipe.
    recipe: PathBuf,
    /// Folder of its sets.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Output file, .jsonl or .png.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// SynthesisKind of samples [default: the shares of the recipe].
    #[arg(long)]
    kind: Option<KindName>,
    /// Number of samples.
    #[arg(long, value_name = "N", default_value_t = 100)]
    count: u64,
    /// Seed [default: that of the recipe].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Kinds of synthetic samples.
#[derive(Clone, Copy, clap::ValueEnum)]
enum KindName {
    /// Real layouts with glyphs of other writers.
    Hands,
    /// Parts of real expressions, extracted or swapped.
    Parts,
    /// Formulas of lists, with a new layout.
    Formulas,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    let vocab = Vocab::crohme();
    let recipe = Recipe::open(&arguments.recipe)?;
    let samples = Samples::open(std::slice::from_ref(&arguments.data), &[], &recipe, &vocab)?;
    let synthesizer = samples.sets.iter().find_map(|set| set.synthesizer.as_ref()).with_context(|| {
        format!("{}: expected [[data]] of kind \"synthesis\"", arguments.recipe.display())
    })?;
    message(synthesizer.describe());
    let seed = arguments.seed.unwrap_or(recipe.seed);
    let generate = |number: u64| {
        let kind = match arguments.kind {
            Some(KindName::Hands) => SynthesisKind::OtherWriter,
            Some(KindName::Parts) => SynthesisKind::Parts,
            Some(KindName::Formulas) => SynthesisKind::Formulas,
            None => synthesizer.kind(seed, number),
        };
        synthesizer.generate_kind(kind, &samples.training, seed, number)
    };
    let generated: Vec<Sample> = (0..arguments.count).into_par_iter().map(generate).collect();
    match arguments.out.extension().and_then(|ending| ending.to_str()) {
        Some("jsonl") => {
            let record = |sample: &Sample| {
                let ink = sample.ink.as_ref().expect("synthetic samples have ink");
                let mut record = Record::of(&sample.name, &vocab.decode(&sample.tokens), ink);
                // Traced strokes keep their scale.
                record.pen = ink.scale().map(|_| 3.0);
                record
            };
            stroke_set::write(&arguments.out, &generated.iter().map(record).collect::<Vec<_>>())?;
        }
        Some("png") => write_file(&arguments.out, &png(&sheet(&generated, &vocab)?)?)?,
        _ => bail!("{}: expected a name ending in .jsonl or .png", arguments.out.display()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Width and height of a cell of the sheet, and the number of columns.
const CELL: (usize, usize) = (380, 150);
const COLUMNS: usize = 5;
const CAPTION: usize = 14;

/// Pictures in rows, black on white, each above its caption.
fn sheet(samples: &[Sample], vocab: &Vocab) -> Result<Canvas> {
    let rows = samples.len().div_ceil(COLUMNS).max(1);
    let mut canvas = Canvas::new(CELL.0 * COLUMNS, CELL.1 * rows, [255; 3]);
    for (number, sample) in samples.iter().enumerate() {
        let (left, top) = (number % COLUMNS * CELL.0, number / COLUMNS * CELL.1);
        let picture = sample.picture()?;
        let available = (CELL.0 - 8, CELL.1 - CAPTION - 4);
        let factor = (available.0 as f64 / picture.width() as f64)
            .min(available.1 as f64 / picture.height() as f64)
            .min(1.0);
        let picture = if factor < 1.0 { picture.scale(factor)? } else { picture };
        for (index, &pixel) in picture.pixels().iter().enumerate() {
            let (x, y) = (index % picture.width(), index / picture.width());
            if x < available.0 && y < available.1 {
                canvas.mix(left + x, top + y, [0; 3], f32::from(pixel) / 255.0);
            }
        }
        let caption = vocab.decode(&sample.tokens);
        let shown: String = caption.chars().take(56).collect();
        canvas.text(&shown, left as f32 + 4.0, (top + CELL.1 - CAPTION) as f32, 8.0, [0, 70, 160]);
    }
    Ok(canvas)
}
