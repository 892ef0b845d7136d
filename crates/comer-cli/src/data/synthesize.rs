//! `comer data synthesize`: what the synthesis of a recipe makes, as a stroke set or as a sheet to look at.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer::internal::Vocab;
use comer::internal::model_file::write_atomic;
use comer_train::recipe::Recipe;
use comer_train::samples::{Sample, Samples};
use comer_train::stroke_set::{self, Record};
use comer_train::synthesis::Kind;
use rayon::prelude::*;

use crate::args::ThreadArgs;
use crate::explanation::canvas::Canvas;
use crate::explanation::png::png;
use crate::output::message;

/// Make samples as the [[data]] of kind "synthesis" of a recipe does, and write them down.
///
/// OUT ending in .jsonl becomes a stroke set; ending in .png, a sheet of pictures with their captions.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer data synthesize configs/bundled.toml --data sets --kind formulas --count 100 --out sheet.png
  comer data synthesize configs/bundled.toml --data sets --count 5000 --seed 3 --out made.jsonl")]
pub struct Arguments {
    /// The recipe.
    recipe: PathBuf,
    /// The folder of its sets.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// What to write: a .jsonl or a .png.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How to make the samples [default: as the recipe shares them out].
    #[arg(long)]
    kind: Option<KindName>,
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    count: u64,
    /// The seed [default: the recipe's].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Ways to make a sample.
#[derive(Clone, Copy, clap::ValueEnum)]
enum KindName {
    /// Real layouts in other hands.
    Hands,
    /// Parts of real expressions, cut out and swapped.
    Parts,
    /// Formulas of lists, laid out.
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
    let make = |number: u64| {
        let kind = match arguments.kind {
            Some(KindName::Hands) => Kind::Hands,
            Some(KindName::Parts) => Kind::Parts,
            Some(KindName::Formulas) => Kind::Formulas,
            None => synthesizer.kind(seed, number),
        };
        synthesizer.make_kind(kind, &samples.training, seed, number)
    };
    let made: Vec<Sample> = (0..arguments.count).into_par_iter().map(make).collect();
    match arguments.out.extension().and_then(|ending| ending.to_str()) {
        Some("jsonl") => {
            let record = |sample: &Sample| {
                let ink = sample.ink.as_ref().expect("what is made has ink");
                let mut record = Record::of(&sample.name, &vocab.decode(&sample.tokens), ink);
                // Traced strokes keep their scale.
                record.pen = ink.scale().map(|_| 3.0);
                record
            };
            stroke_set::write(&arguments.out, &made.iter().map(record).collect::<Vec<_>>())?;
        }
        Some("png") => write_atomic(&arguments.out, &png(&sheet(&made, &vocab)?)?)?,
        _ => bail!("{}: expected a name ending in .jsonl or .png", arguments.out.display()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Width and height of a picture's place on the sheet, and how many stand side by side.
const CELL: (usize, usize) = (380, 150);
const COLUMNS: usize = 5;
const CAPTION: usize = 14;

/// Pictures in rows, black on white, each over its caption.
fn sheet(made: &[Sample], vocab: &Vocab) -> Result<Canvas> {
    let rows = made.len().div_ceil(COLUMNS).max(1);
    let mut canvas = Canvas::new(CELL.0 * COLUMNS, CELL.1 * rows, [255; 3]);
    for (number, sample) in made.iter().enumerate() {
        let (left, top) = (number % COLUMNS * CELL.0, number / COLUMNS * CELL.1);
        let picture = sample.picture()?.into_owned();
        let room = (CELL.0 - 8, CELL.1 - CAPTION - 4);
        let factor =
            (room.0 as f64 / picture.width() as f64).min(room.1 as f64 / picture.height() as f64).min(1.0);
        let picture = if factor < 1.0 { picture.scale(factor)? } else { picture };
        for (place, &pixel) in picture.pixels().iter().enumerate() {
            let (x, y) = (place % picture.width(), place / picture.width());
            if x < room.0 && y < room.1 {
                canvas.mix(left + x, top + y, [0; 3], f32::from(pixel) / 255.0);
            }
        }
        let caption = vocab.decode(&sample.tokens);
        let shown: String = caption.chars().take(56).collect();
        canvas.text(&shown, left as f32 + 4.0, (top + CELL.1 - CAPTION) as f32, 8.0, [0, 70, 160]);
    }
    Ok(canvas)
}
