//! The whole way from picture to tokens over CROHME 2014, beside the reference's answers and CPU times:
//! `cargo bench -p comer --bench search`.
//!
//! One thread, CPU time. `--grammar` keeps to well-formed LaTeX, as recognition does unless told otherwise; `--greedy`
//! and `--left-to-right` search less; `--language-model FILE` adds one; `--every N` takes every Nth picture only; `--isa avx2` (or `plain`, ...) forces
//! an instruction set; `--differences` prints answers that are not the reference's.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::collections::HashMap;
use std::time::Duration;

use comer::internal::checkpoint::{Hints, import};
use comer::internal::config::{SearchConfig, Strategy};
use comer::internal::dataset::{Dataset, LabelledImage};
use comer::internal::engine::decoder::Decoder;
use comer::internal::engine::decoder_state::DecoderState;
use comer::internal::engine::encoder::Encoder;
use comer::internal::engine::kernels::{Isa, Kernels};
use comer::internal::grammar::Grammar;
use comer::internal::language_model::LanguageModel;
use comer::internal::search::search;
use comer::internal::step_decoder::StepDecoder;
use comer::internal::{Vocab, vocab::TokenId};
use comer_testing::{shared, thread_cpu_time};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|i| arguments.get(i + 1)).cloned()
    };
    let (Some(weights), Some(golden), Some(data)) =
        (shared("models/released.ckpt"), shared("golden/search-2014.jsonl"), shared("data/crohme.zip"))
    else {
        return;
    };
    let isa = option("--isa").unwrap_or_default();
    let kernels = Isa::available()
        .find(|isa_here| isa.is_empty() || format!("{isa_here:?}").eq_ignore_ascii_case(&isa))
        .and_then(Kernels::with)
        .unwrap_or_else(|| panic!("no instruction set {isa} here"));
    let every: usize = option("--every").map_or(1, |number| number.parse().expect("a number"));
    let strategy = match (flag("--greedy"), flag("--left-to-right")) {
        (true, _) => Strategy::Greedy,
        (_, true) => Strategy::LeftToRight,
        _ => Strategy::Joint,
    };
    let config = SearchConfig { strategy, grammar: flag("--grammar"), ..Default::default() };

    let model = import(weights, Vocab::crohme(), &Hints::default()).expect("the released weights");
    let encoder = Encoder::with_kernels(&model.config, &model.weights, kernels);
    let decoder =
        Decoder::with_kernels(&model.config, model.vocab.len(), &model.weights, kernels).expect("a decoder");
    let grammar = Grammar::new(&model.vocab);
    let language_model =
        option("--language-model").map(|path| LanguageModel::open(path).expect("a language model"));
    let set = Dataset::open(&data, "2014").expect("CROHME");
    let samples: HashMap<&str, &LabelledImage> =
        set.samples.iter().map(|sample| (sample.name.as_str(), sample)).collect();
    let golden = std::fs::read_to_string(golden).expect("the reference's answers");
    let lines: Vec<serde_json::Value> = golden
        .lines()
        .step_by(every)
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();

    let (mut same, mut right, mut worst, mut times) = (0, 0, 0f64, [Times::default(); 2]);
    let (mut written, mut steps, mut rows) = (0, 0, 0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| {
        for line in &lines {
            let name = line["name"].as_str().expect("a name");
            let expected = line["pred"].as_str().expect("a prediction");
            let picture = samples[name].picture.clone().fit().expect("a picture that fits");
            let start = thread_cpu_time();
            let features = encoder.encode(&picture).expect("features");
            let encoded = thread_cpu_time();
            let reading = decoder.start(&features).expect("a reading");
            let mut counted = Counted { reading, steps: 0, rows: 0 };
            let answers = search(&mut counted, &config, &grammar, language_model.as_ref(), &|| Ok(()))
                .expect("no interrupt");
            let done = thread_cpu_time();

            let empty: &[TokenId] = &[];
            let (tokens, score) =
                answers.first().map_or((empty, f32::NAN), |answer| (&answer.tokens, answer.score));
            let found = model.vocab.decode(tokens);
            right += usize::from(samples[name].caption == found);
            same += usize::from(found == expected);
            let difference = (f64::from(score) - line["score"].as_f64().expect("a score")).abs();
            if found == expected {
                worst = worst.max(difference);
            } else if flag("--differences") {
                println!("{name}\n  expected {} {expected}\n  found    {score} {found}", line["score"]);
                println!("  caption  {}", samples[name].caption);
            }
            written += tokens.len();
            steps += counted.steps;
            rows += counted.rows;
            for (times, counts) in times.iter_mut().zip([true, expected.split(' ').count() > 40]) {
                if counts {
                    times.encoder += encoded - start;
                    times.search += done - encoded;
                    times.reference += Duration::from_secs_f64(line["cpu"].as_f64().expect("a time"));
                    times.pictures += 1;
                }
            }
        }
    });
    println!("{:?}, {config:?}", kernels.isa());
    println!("{same} of {} as the reference, scores to {worst:.1e}", lines.len());
    println!("{written} tokens in {steps} steps with {rows} rows");
    println!("{right} as the caption: {:.2} %", 100.0 * right as f64 / lines.len() as f64);
    for (times, what) in times.iter().zip(["all", "over 40 tokens"]) {
        let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(times.pictures.max(1));
        println!(
            "{what}: encoder {:.1} ms, search {:.1} ms, reference {:.0} ms: {:.1} times less",
            each(times.encoder),
            each(times.search),
            each(times.reference),
            times.reference.as_secs_f64() / (times.encoder + times.search).as_secs_f64()
        );
    }
}

#[derive(Clone, Copy, Default)]
struct Times {
    encoder: Duration,
    search: Duration,
    reference: Duration,
    pictures: u32,
}

/// Counts what the search asks of the decoder.
struct Counted<'a> {
    reading: DecoderState<'a>,
    steps: usize,
    rows: usize,
}

impl StepDecoder for Counted<'_> {
    fn vocab_size(&self) -> usize {
        self.reading.vocab_size()
    }

    fn restart(&mut self) {
        self.reading.restart();
    }

    fn step(&mut self, parents: &[usize], tokens: &[TokenId]) -> &[f32] {
        self.steps += 1;
        self.rows += tokens.len();
        self.reading.step(parents, tokens)
    }
}
