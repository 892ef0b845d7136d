//! The whole way from picture to tokens over CROHME 2014, beside the reference's answers and CPU times:
//! `cargo bench -p comer --bench search`.
//!
//! One thread, CPU time, the search that recognition does unless told otherwise. `--exact` searches as the reference does;
//! `--greedy` and `--left-to-right` search less; `--margins 4,6,none` compares several margins on the same features;
//! `--language-model FILE` adds one; `--model FILE` takes another model than the released weights; `--split 2016` another
//! set, which has no reference answers; `--every N` takes every Nth picture only; `--isa avx2` (or `plain`, ...) forces an
//! instruction set; `--differences` prints answers that are not the reference's.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::collections::HashMap;
use std::time::Duration;

use comer::internal::checkpoint::{Hints, import};
use comer::internal::config::{SearchConfig, Strategy};
use comer::internal::dataset::Dataset;
use comer::internal::engine::decoder::Decoder;
use comer::internal::engine::decoder_state::DecoderState;
use comer::internal::engine::encoder::Encoder;
use comer::internal::engine::kernels::{Isa, Kernels};
use comer::internal::grammar::Grammar;
use comer::internal::language_model::LanguageModel;
use comer::internal::search::search;
use comer::internal::step_decoder::StepDecoder;
use comer::internal::{ModelFile, Vocab, vocab::TokenId};
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
    let exact = flag("--exact");
    let margins: Vec<Option<f32>> = match option("--margins") {
        Some(list) => list.split(',').map(|margin| margin.parse().ok()).collect(),
        None => vec![SearchConfig::default().margin.filter(|_| !exact)],
    };
    let configs = margins.into_iter().map(|margin| SearchConfig {
        strategy,
        margin,
        grammar: !exact,
        language_model: !exact,
        ..Default::default()
    });
    let mut runs: Vec<Run> = configs.map(|config| Run { config, ..Run::default() }).collect();

    let model = match option("--model") {
        Some(path) => ModelFile::open(path).expect("a model"),
        None => import(weights, Vocab::crohme(), &Hints::default()).expect("the released weights"),
    };
    let encoder = Encoder::with_kernels(&model.config, &model.weights, kernels);
    let decoder =
        Decoder::with_kernels(&model.config, model.vocab.len(), &model.weights, kernels).expect("a decoder");
    let grammar = Grammar::new(&model.vocab);
    let language_model =
        option("--language-model").map(|path| LanguageModel::open(path).expect("a language model"));
    let split = option("--split").unwrap_or_else(|| "2014".into());
    let set = Dataset::open(&data, &split).expect("CROHME");
    let golden = std::fs::read_to_string(golden).expect("the reference's answers");
    let golden: HashMap<String, serde_json::Value> = golden
        .lines()
        .filter(|_| split == "2014")
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .map(|line: serde_json::Value| (line["name"].as_str().expect("a name").to_string(), line))
        .collect();

    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let samples: Vec<_> = set
        .samples
        .iter()
        .filter(|sample| golden.is_empty() || golden.contains_key(&sample.name))
        .step_by(every)
        .collect();
    pool.install(|| {
        for sample in &samples {
            let picture = sample.image.decode().and_then(|image| image.fit()).expect("a picture that fits");
            let start = thread_cpu_time();
            let features = encoder.encode(&picture).expect("features");
            let encoder_time = thread_cpu_time() - start;
            for run in &mut runs {
                let start = thread_cpu_time();
                let reading = decoder.start(&features).expect("a reading");
                let mut counted = Counted { reading, steps: 0, rows: 0 };
                let answers =
                    search(&mut counted, &run.config, &grammar, language_model.as_ref(), &|| Ok(()))
                        .expect("no interrupt");
                let times = Times { encoder: encoder_time, search: thread_cpu_time() - start };
                run.steps += counted.steps;
                run.rows += counted.rows;
                let empty: &[TokenId] = &[];
                let (tokens, score) =
                    answers.first().map_or((empty, f32::NAN), |answer| (&answer.tokens, answer.score));
                let found = model.vocab.decode(tokens);
                run.written += tokens.len();
                run.right += usize::from(sample.caption == found);
                run.add(&found, score, times, golden.get(&sample.name));
                if flag("--differences")
                    && golden.get(&sample.name).is_some_and(|line| line["pred"] != found.as_str())
                {
                    println!("{}\n  found     {score} {found}", sample.name);
                    println!("  reference {}", golden[&sample.name]["pred"]);
                    println!("  caption   {}", sample.caption);
                }
            }
        }
    });
    for run in &runs {
        run.print(kernels.isa(), samples.len());
    }
}

/// One way to search, and what it found.
#[derive(Default)]
struct Run {
    config: SearchConfig,
    same: usize,
    right: usize,
    /// The greatest difference to the reference's scores where the answers are the same.
    worst: f64,
    written: usize,
    steps: usize,
    rows: usize,
    /// All pictures, and those of more than 40 tokens: how many, our times and the reference's.
    sums: [(u32, Times, Duration); 2],
}

impl Run {
    fn add(&mut self, found: &str, score: f32, times: Times, reference: Option<&serde_json::Value>) {
        let length = reference.map_or(found, |line| line["pred"].as_str().expect("a prediction")).split(' ');
        let is_long = length.count() > 40;
        for ((pictures, sum, sum_of_reference), counts) in self.sums.iter_mut().zip([true, is_long]) {
            if counts {
                *pictures += 1;
                sum.encoder += times.encoder;
                sum.search += times.search;
                *sum_of_reference += reference.map_or(Duration::ZERO, |line| {
                    Duration::from_secs_f64(line["cpu"].as_f64().expect("a time"))
                });
            }
        }
        if let Some(line) = reference.filter(|line| line["pred"] == found) {
            self.same += 1;
            let difference = (f64::from(score) - line["score"].as_f64().expect("a score")).abs();
            self.worst = self.worst.max(difference);
        }
    }

    fn print(&self, isa: Isa, pictures: usize) {
        println!("{isa:?}, {:?}", self.config);
        println!("{} of {pictures} as the reference, scores to {:.1e}", self.same, self.worst);
        println!("{} tokens in {} steps with {} rows", self.written, self.steps, self.rows);
        println!("{} as the caption: {:.2} %", self.right, 100.0 * self.right as f64 / pictures as f64);
        for ((pictures, times, reference), what) in self.sums.iter().zip(["all", "over 40 tokens"]) {
            let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from((*pictures).max(1));
            println!(
                "{what}: encoder {:.1} ms, search {:.1} ms, reference {:.0} ms: {:.1} times less",
                each(times.encoder),
                each(times.search),
                each(*reference),
                reference.as_secs_f64() / (times.encoder + times.search).as_secs_f64()
            );
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Times {
    encoder: Duration,
    search: Duration,
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
