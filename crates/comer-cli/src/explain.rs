//! `comer explain`: where a formula was read, as a picture, an animation or a page.

mod animation;
pub mod canvas;
mod font;
pub mod html;
pub mod png;
mod sheet;
mod svg;
pub mod view;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer::alignment::Direction;
use comer::internal::{Coverage, latex};
use comer::{AlignmentDetail, Input, InputOptions, Recognition, RecognizeOptions, Recognizer, Token};

use crate::common::{ModelArgument, use_threads};
use crate::recognize::SearchArguments;
use view::{Choice, Map, View};

/// Show how a formula is read: where the model looked for each token, what its refinement held back, what it had read.
///
/// The ending of the output decides what is made: .html a page with every map of both directions, .png or .svg a sheet
/// with a panel for each step, .gif an animation. Ink that was never looked at is outlined in red, ink that was read
/// twice in violet.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer explain photo.jpg --out reading.html
  comer explain ink.inkml --out sheet.png --map refinement --layer 3
  comer explain ink.inkml --out wrong.gif --map attention --formula 'x^{2}'")]
pub struct Arguments {
    /// A picture or ink, or - for stdin.
    input: PathBuf,
    /// Where to write: a .html, .png, .gif or .svg file.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    model: ModelArgument,
    /// What to show [default: refinement, or attention if the model has no refinement]; a page starts with it.
    #[arg(long, value_enum)]
    map: Option<Map>,
    /// The decoder's layer, from 1 [default: the mean over all].
    #[arg(long, value_name = "N")]
    layer: Option<usize>,
    /// The layer's head, from 1 [default: the mean over all].
    #[arg(long, value_name = "N")]
    head: Option<usize>,
    /// Show the direction that reads from the right.
    #[arg(long)]
    right_to_left: bool,
    /// Show how this formula is read off the picture instead of the best one.
    #[arg(long, value_name = "LATEX")]
    formula: Option<String>,
    #[command(flatten)]
    search: SearchArguments,
    /// Take pictures as they are (white ink on black): nothing is cleaned, cropped or scaled.
    #[arg(long)]
    raw: bool,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Html,
    Png,
    Gif,
    Svg,
}

impl Format {
    fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        Ok(match ending.as_str() {
            "html" | "htm" => Self::Html,
            "png" => Self::Png,
            "gif" => Self::Gif,
            "svg" => Self::Svg,
            _ => bail!("{}: cannot tell what to write, expected .html, .png, .gif or .svg", path.display()),
        })
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    use_threads(arguments.threads)?;
    // Nobody is to wait for a recognition whose result cannot be written.
    let format = Format::of(&arguments.out)?;
    let name = arguments.input.display().to_string();
    let search = arguments.search.config(1);
    search.validate()?;
    let recognizer = arguments.model.open()?;
    let choice = choice(arguments, &recognizer)?;
    let bytes = read(&arguments.input).with_context(|| name.clone())?;
    let clean = InputOptions::new().raw(arguments.raw);
    let input = Input::from_bytes_with(&bytes, &clean).with_context(|| name.clone())?;
    let (tokens, alignment) = match &arguments.formula {
        Some(formula) => {
            let alignment = recognizer.align(&input, formula).context("--formula")?;
            let steps = alignment.passes.first().map_or(&[][..], |pass| &pass.steps);
            let tokens: Vec<Token> =
                steps.iter().filter(|step| step.index.is_some()).map(|step| step.token.clone()).collect();
            (tokens, alignment)
        }
        None => {
            let options = RecognizeOptions::new().search(search).alignment(AlignmentDetail::Full);
            let recognition = recognizer.recognize_with(&input, &options).with_context(|| name.clone())?;
            (recognition.best.tokens, recognition.alignment.context("no alignment was made")?)
        }
    };
    let view = View { picture: input.image(), tokens: &tokens, alignment: &alignment };
    let file = match format {
        Format::Html => html::html(&name, &view, &choice)?.into_bytes(),
        Format::Png => png::png(&sheet::sheet(&view, &choice))?,
        Format::Gif => animation::gif(&view, &choice)?,
        Format::Svg => svg::svg(&view, &choice)?.into_bytes(),
    };
    comer::internal::model_file::write_atomic(&arguments.out, &file)?;
    let latex = latex::write(tokens.iter().map(|token| token.text.as_str()));
    eprintln!("comer: {}: {latex}; {}", arguments.out.display(), view.verdict());
    Ok(ExitCode::SUCCESS)
}

/// The page of a recognition with its full alignment, for those who wrote the picture just now.
pub fn page(recognizer: &Recognizer, input: &Input, recognition: &Recognition) -> Result<String> {
    let refined = recognizer.config().coverage != Coverage::None;
    let map = if refined { Map::Refinement } else { Map::Attention };
    let choice = Choice { map, layer: None, head: None, direction: Direction::LeftToRight };
    let alignment = recognition.alignment.as_ref().context("no alignment was made")?;
    let view = View { picture: input.image(), tokens: &recognition.best.tokens, alignment };
    html::html("Where the model looked", &view, &choice)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    if path != Path::new("-") {
        return Ok(std::fs::read(path)?);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What to show, as far as the model has it.
fn choice(arguments: &Arguments, recognizer: &Recognizer) -> Result<Choice> {
    let config = recognizer.config();
    let refined = config.coverage != Coverage::None;
    let number = |name: &str, number: Option<usize>, most: usize| match number {
        Some(number) if number == 0 || number > most => {
            bail!("--{name} {number}: this model has {most}, expected a number from 1 to {most}")
        }
        _ => Ok(number.map(|number| number - 1)),
    };
    let map = arguments.map.unwrap_or(if refined { Map::Refinement } else { Map::Attention });
    let layer = number("layer", arguments.layer, config.decoder_layers)?;
    if map == Map::Refinement && !refined {
        bail!("--map refinement: this model has none, expected attention or coverage");
    }
    if map == Map::Refinement && layer == Some(0) {
        bail!("--layer 1: the first layer has no refinement, expected a layer from 2 on or another --map");
    }
    let direction = if arguments.right_to_left { Direction::RightToLeft } else { Direction::LeftToRight };
    Ok(Choice { map, layer, head: number("head", arguments.head, config.heads)?, direction })
}

#[cfg(test)]
mod tests;
