//! `comer explain`: shows where each token was read, as an image, an animation or a page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer::alignment::Direction;
use comer::internal::config::Directions;
use comer::internal::latex;
use comer::{AlignmentDetail, Input, InputOptions, RecognizeOptions, Recognizer, Token};

use crate::args::{ModelArgs, SearchArgs, ThreadArgs};
use crate::explanation::view::{Choice, Map, View};
use crate::explanation::{animation, html, png, sheet, svg};
use crate::output::{message, read_input, write_file};

/// Show how a formula was read: attention, refinement and coverage of each token.
///
/// The extension of --out selects the format: .html is a page with every map of both directions, .png and .svg have one
/// panel per step, .gif is an animation. Unread ink is outlined in red, ink that was read twice in violet.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer explain photo.jpg --out reading.html
  comer explain ink.inkml --out sheet.png --map refinement --layer 3
  comer explain ink.inkml --out wrong.gif --map attention --formula 'x^{2}'")]
pub struct Arguments {
    /// Image or ink file, or - for stdin.
    input: PathBuf,
    /// Output file: .html, .png, .gif or .svg.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
    /// Map to show, or to show first on a page [default: refinement, or attention if the model has none].
    #[arg(long, value_enum)]
    map: Option<Map>,
    /// Decoder layer, from 1 [default: the mean over all].
    #[arg(long, value_name = "N")]
    layer: Option<usize>,
    /// Attention head, from 1 [default: the mean over all].
    #[arg(long, value_name = "N")]
    head: Option<usize>,
    /// Show the right-to-left direction.
    #[arg(long)]
    right_to_left: bool,
    /// Explain this formula instead of the best answer.
    #[arg(long, value_name = "LATEX")]
    formula: Option<String>,
    #[command(flatten)]
    search: SearchArgs,
    /// Use images as they are (white ink on black): no cleaning, cropping or scaling.
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// The format of the output.
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
            _ => bail!("{}: unknown format, expected .html, .png, .gif or .svg", path.display()),
        })
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    // Checked before the recognition, which takes longer.
    let format = Format::of(&arguments.out)?;
    let name = arguments.input.display().to_string();
    let search = arguments.search.resolve(1)?;
    let recognizer = arguments.model.open()?;
    let choice = choice(arguments, &recognizer)?;
    let bytes = read_input(&arguments.input).with_context(|| name.clone())?;
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
    write_file(&arguments.out, &file)?;
    let latex = latex::write(tokens.iter().map(|token| token.text.as_str()));
    message(format_args!("{}: {latex}; {}", arguments.out.display(), view.verdict()));
    Ok(ExitCode::SUCCESS)
}

/// What to show, as far as the model has it.
fn choice(arguments: &Arguments, recognizer: &Recognizer) -> Result<Choice> {
    let config = recognizer.config();
    let refined = config.is_refined();
    let number = |name: &str, number: Option<usize>, most: usize| match number {
        Some(number) if number == 0 || number > most => {
            bail!("--{name} {number}: this model has {most}, expected a number from 1 to {most}")
        }
        _ => Ok(number.map(|number| number - 1)),
    };
    let map = arguments.map.unwrap_or(if refined { Map::Refinement } else { Map::Attention });
    let layer = number("layer", arguments.layer, config.attention_layers())?;
    if map == Map::Refinement && !refined {
        bail!("--map refinement: this model has none, expected attention or coverage");
    }
    if map == Map::Refinement && layer == Some(0) {
        bail!("--layer 1: the first layer has no refinement, expected a layer from 2 on or another --map");
    }
    if arguments.right_to_left && config.directions == Directions::LeftToRight {
        bail!("--right-to-left: this model only writes from left to right");
    }
    let direction = if arguments.right_to_left { Direction::RightToLeft } else { Direction::LeftToRight };
    Ok(Choice { map, layer, head: number("head", arguments.head, config.heads)?, direction })
}
