//! `comer train-lm`: estimates a language model from lists of formulas.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer::internal::{TokenId, Vocab};
use comer_eval::files::read_truths;
use comer_train::language_model::{Line, Options, Text, parse_list, perplexities, train};
use serde_json::json;

use crate::args::{ThreadArgs, read_vocab};
use crate::output::{print, print_json, write_file};

/// Estimate a language model from lists of formulas, for --language-model.
///
/// A list is a text file with a formula on each line, its tokens separated by spaces; a count or a name and a tab may
/// stand before it. A set of strokes (jsonl) and the captions of a split of a data set (PATH:SPLIT) are lists as well.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer train-lm formulas.txt --out formulas.lm
  comer train-lm crohme.zip:train wiki.txt school.txt=0.5 --exclude crohme.zip:2014 --exclude crohme.zip:2016 \\
      --held-out validation.jsonl --out formulas.lm --json")]
pub struct Arguments {
    /// The lists, each with its weight if that is not 1.
    #[arg(required = true, value_name = "LIST[=WEIGHT]")]
    lists: Vec<String>,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Formulas of this list stay out, whatever their length; may be given several times.
    #[arg(long, value_name = "LIST")]
    exclude: Vec<String>,
    /// Formulas that it is tested on, which stay out as well.
    #[arg(long, value_name = "LIST")]
    held_out: Option<String>,
    /// Write the formulas that it is estimated from to this file, as a list.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Count a formula as often as its list says [default: once in each list].
    #[arg(long)]
    counts: bool,
    /// Tokens of the longest n-grams, 2 to 8.
    #[arg(long, value_name = "N", default_value_t = Options::default().order)]
    order: usize,
    /// Most bytes of the file: the n-grams that matter least are left out.
    #[arg(long, value_name = "N", default_value_t = Options::default().max_bytes)]
    max_bytes: usize,
    /// How much the search makes of it, against 1 for each direction of the decoder.
    #[arg(long, value_name = "WEIGHT", default_value_t = Options::default().weight)]
    weight: f32,
    /// The greatest share of the letters' probability that goes to letters seen before in the same formula.
    #[arg(long, value_name = "SHARE", default_value_t = Options::default().share)]
    recurrence: f32,
    /// The vocabulary, one token a line [default: CROHME's].
    #[arg(long, value_name = "FILE")]
    vocab: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    let vocab = read_vocab(arguments.vocab.as_deref())?;
    let mut exclude: HashSet<Vec<TokenId>> = HashSet::new();
    for list in &arguments.exclude {
        exclude.extend(encode(&vocab, &read_list(list)?));
    }
    let held_out = match &arguments.held_out {
        Some(list) => encode(&vocab, &read_list(list)?),
        None => Vec::new(),
    };
    let tests = exclude.len();
    exclude.extend(held_out.iter().cloned());

    let mut text = Text::default();
    for argument in &arguments.lists {
        let (list, weight) = list_and_weight(argument)?;
        let formulas = read_list(list)?;
        let formulas = formulas.iter().map(|(count, formula)| (*count, formula.as_str()));
        text.add(&list_name(list), formulas, weight, arguments.counts, &vocab, &exclude);
    }
    if let Some(path) = &arguments.text {
        let line = |line: &Line| format!("{}\t{}\n", line.count, vocab.decode(&line.tokens));
        write_file(path, text.lines.iter().map(line).collect::<String>().as_bytes())?;
    }
    let options = Options {
        order: arguments.order,
        max_bytes: arguments.max_bytes,
        weight: arguments.weight,
        share: arguments.recurrence,
        ..Options::default()
    };
    let mut model = train(&text, &vocab, &options)?;

    let counts = [model.forward.counts(), model.backward.counts()];
    let perplexity = (!held_out.is_empty()).then(|| perplexities(&model, &held_out));
    let provenance = json!({
        "program": concat!("comer ", env!("CARGO_PKG_VERSION")),
        "lists": text.lists,
        "counts": arguments.counts,
        "excluded lists": arguments.exclude.iter().map(|list| list_name(list)).collect::<Vec<_>>(),
        "excluded formulas": tests,
        "held out": arguments.held_out.as_deref().map(list_name),
        "held-out formulas": held_out.len(),
        "perplexity": perplexity,
    });
    model.provenance = provenance.as_object().cloned().unwrap_or_default();
    let bytes = model.to_bytes()?;
    if bytes.len() > arguments.max_bytes {
        bail!("the file would take {} bytes, expected at most {}", bytes.len(), arguments.max_bytes);
    }
    write_file(&arguments.out, &bytes)?;

    if arguments.json {
        print_json(&json!({ "file": arguments.out, "bytes": bytes.len(), "ngrams": counts,
            "provenance": provenance }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = String::new();
    for list in &text.lists {
        writeln!(
            out,
            "{}: {} formulas, weight {}, {} excluded, {} with unknown tokens",
            list.name, list.formulas, list.weight, list.excluded, list.unknown
        )?;
    }
    writeln!(out, "n-grams by length: {:?} left to right, {:?} right to left", counts[0], counts[1])?;
    if let Some([forward, backward]) = perplexity {
        writeln!(
            out,
            "perplexity of {} held-out formulas: {forward:.2} left to right, {backward:.2} right to left",
            held_out.len()
        )?;
    }
    writeln!(out, "{}: {} bytes", arguments.out.display(), bytes.len())?;
    print(out)?;
    Ok(ExitCode::SUCCESS)
}

fn encode(vocab: &Vocab, formulas: &[(u32, String)]) -> Vec<Vec<TokenId>> {
    formulas.iter().filter_map(|(_, formula)| vocab.encode(formula).ok()).collect()
}

fn list_and_weight(argument: &str) -> Result<(&str, f64)> {
    match argument.rsplit_once('=') {
        Some((list, weight)) if !Path::new(argument).exists() => match weight.parse::<f64>() {
            Ok(weight) if weight > 0.0 && weight <= 1e6 => Ok((list, weight)),
            _ => bail!("{argument}: the weight is {weight:?}, expected a number above 0 and at most 1000000"),
        },
        _ => Ok((argument, 1.0)),
    }
}

/// The name of a list's file without its folders, with its split.
fn list_name(list: &str) -> String {
    list.rsplit('/').next().unwrap_or(list).to_string()
}

/// The formulas of a list and their counts.
fn read_list(list: &str) -> Result<Vec<(u32, String)>> {
    match list.rsplit_once(':') {
        Some((path, split)) if !Path::new(list).exists() => {
            let truths = read_truths(Path::new(path), Some(split)).with_context(|| list.to_string())?;
            Ok(truths.truths.into_iter().filter_map(|truth| Some((1, truth.caption?))).collect())
        }
        _ => {
            let text = comer_files::read_text(Path::new(list), comer_files::limit::TEXT)
                .with_context(|| list.to_string())?;
            parse_list(&text).map_err(|reason| anyhow::anyhow!("{list}: {reason}"))
        }
    }
}
