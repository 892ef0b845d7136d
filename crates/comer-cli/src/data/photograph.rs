//! `comer data photograph`: synthetic photographs of pages with handwritten formulas, with the truth.

mod page;
mod random;
mod scene;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer_files::OutputFolder;
use comer_train::stroke_set::{self, Record};
use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;
use rayon::prelude::*;
use serde_json::json;

use crate::args::ThreadArgs;
use crate::output::{Progress, print};
use page::Page;
use random::Random;
use scene::Style;

/// Photograph formulas of a stroke set: ink on paper, with a pen, light, a lens and JPEG, all from a seed.
///
/// Writes OUT/NUMBER.jpg and OUT/truth.jsonl: for each photograph its formulas as records of a stroke set, each with its
/// box [left, top, right, bottom] in pixels, and the boxes of text lines. `comer evaluate --photographs OUT` reads them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer data photograph sets/validation.jsonl --style desk --count 60 --out photos
  comer data photograph sets/validation.jsonl --style desk --formulas 5 --text 2 --seed 7 --out pages")]
pub struct Arguments {
    /// The stroke set.
    ink: PathBuf,
    /// The folder to write; it must not exist.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Photographs to make.
    #[arg(long, value_name = "N", default_value_t = 20)]
    count: usize,
    /// Formulas of a page: from 1 to this many.
    #[arg(long, value_name = "N", default_value_t = 1)]
    formulas: usize,
    /// Lines of text among the formulas, at most.
    #[arg(long, value_name = "N", default_value_t = 0)]
    text: usize,
    /// What the photographs are like.
    #[arg(long, value_enum, default_value = "desk")]
    style: Style,
    /// Long side of a photograph in pixels; the short one is three quarters of it.
    #[arg(long, value_name = "PIXELS", default_value_t = 3648)]
    side: usize,
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    if !(400..=8000).contains(&arguments.side) || !(1..=20).contains(&arguments.formulas) {
        bail!("expected --side from 400 to 8000 and --formulas from 1 to 20");
    }
    let records = stroke_set::read(&arguments.ink)?;
    let records: Vec<Record> = records.into_iter().filter(|record| record.ink().is_ok()).collect();
    if records.is_empty() {
        bail!("{}: expected at least one formula", arguments.ink.display());
    }
    let letters = page::letters(&records);
    let writing = || format!("cannot write {}", arguments.out.display());
    let folder = OutputFolder::create(&arguments.out).with_context(writing)?;
    let progress = Progress::new(arguments.count);
    let make = |number: usize| -> Result<String> {
        let mut random = Random::new(arguments.seed, number as u64);
        let wanted = page::Wanted { formulas: arguments.formulas, text: arguments.text, number };
        let page = Page::write(&records, &letters, &wanted, &mut random)?;
        let photograph = scene::photograph(&page, arguments.style, arguments.side, &mut random);
        let name = format!("{number:04}.jpg");
        let mut file = Vec::new();
        let (width, height) = (photograph.width as u32, photograph.height as u32);
        JpegEncoder::new_with_quality(&mut file, photograph.quality).encode(
            &photograph.pixels,
            width,
            height,
            ExtendedColorType::Rgb8,
        )?;
        folder.write(&name, &file).with_context(writing)?;
        progress.advance();
        let formula =
            |(record, bounds): (&usize, &[f64; 4])| json!({ "box": bounds, "record": records[*record] });
        let truth = json!({
            "name": name,
            "width": width,
            "height": height,
            "formulas": page.formulas().zip(&photograph.formulas).map(formula).collect::<Vec<_>>(),
            "text": photograph.text,
        });
        Ok(format!("{truth}\n"))
    };
    let lines: Vec<String> = (0..arguments.count).into_par_iter().map(make).collect::<Result<_>>()?;
    drop(progress);
    folder.write("truth.jsonl", lines.concat().as_bytes()).with_context(writing)?;
    folder.finish().with_context(writing)?;
    print(format!("{}: {} photographs\n", arguments.out.display(), lines.len()))?;
    Ok(ExitCode::SUCCESS)
}
