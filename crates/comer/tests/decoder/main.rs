//! The decoder and the joint search against the reference's numbers, and cached decoding against plain decoding.

mod plain;

use comer::Image;
use comer::alignment::Direction;
use comer::internal::config::{SearchConfig, Strategy};
use comer::internal::engine::Features;
use comer::internal::engine::decoder::Decoder;
use comer::internal::engine::encoder::Encoder;
use comer::internal::grammar::Grammar;
use comer::internal::search::search;
use comer::internal::step_decoder::StepDecoder;
use comer::internal::vocab::{EOS, SOS, TokenId};
use comer::internal::weights::Tensor;
use comer_testing::{Golden, crohme_picture, golden_model, shared};

const COVERAGES: [&str; 4] = ["bttr", "self", "cross", "fusion"];

/// The features of one picture of a padded batch without the padding, and the numbers of its cells in the batch.
fn cropped(features: &Tensor, padding: &Tensor, picture: usize) -> (Features, Vec<usize>) {
    let (width, d) = (features.shape[2], features.shape[3]);
    let area = features.shape[1] * width;
    let cells: Vec<usize> = (0..area).filter(|cell| padding.data[picture * area + cell] == 0.0).collect();
    let inner_width = cells.iter().take_while(|&&cell| cell < width).count();
    let values = cells.iter().flat_map(|cell| &features.data[(picture * area + cell) * d..][..d]).copied();
    (Features { height: cells.len() / inner_width, width: inner_width, values: values.collect() }, cells)
}

fn rows(tokens: &Tensor) -> Vec<Vec<TokenId>> {
    tokens.data.chunks(tokens.shape[1]).map(|row| row.iter().map(|&x| x as TokenId).collect()).collect()
}

fn assert_close(found: &[f32], expected: impl Iterator<Item = f32>, what: &str) {
    let expected: Vec<f32> = expected.collect();
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert!((found - expected).abs() <= 1e-4, "{what} at {index}: {found}, expected {expected}");
    }
}

fn log_softmax(logits: &[f32]) -> impl Iterator<Item = f32> {
    let sum: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
    logits.iter().map(move |&x| (f64::from(x) - sum.ln()) as f32)
}

/// Compares what the engine does, given tokens, with everything that a golden file says under `prefix`.
fn compare(model: &comer::internal::ModelFile, golden: &Golden, prefix: &str, tokens: &Tensor) {
    let (config, vocab) = (&model.config, model.vocab.len());
    let decoder = Decoder::new(config, vocab, &model.weights).unwrap();
    let get = |name: &str| golden.tensors.get(&format!("{prefix}.{name}"));
    let (features, padding) = (get("features").unwrap(), get("feature_padding").unwrap());
    let (pictures, area) = (features.shape[0], features.shape[1] * features.shape[2]);
    let (batch, steps) = (tokens.shape[0], tokens.shape[1]);
    for (row, tokens) in rows(tokens).iter().enumerate() {
        let (features, cells) = cropped(features, padding, row % pictures);
        let mut reading = decoder.start(&features).unwrap();
        for (step, trace) in reading.trace(tokens).unwrap().iter().enumerate() {
            let what = format!("{prefix} row {row} step {step}");
            let logits = &get("logits").unwrap().data[(row * steps + step) * vocab..][..vocab];
            assert_close(&trace.log_probs, log_softmax(logits), &format!("{what} logits"));
            for (index, layer) in trace.layers.iter().enumerate() {
                let d = config.d_model;
                let maps = |map: &Tensor| -> Vec<f32> {
                    let rows =
                        (0..config.heads).map(|head| ((row * config.heads + head) * steps + step) * area);
                    rows.flat_map(|start| cells.iter().map(move |cell| start + cell))
                        .map(|i| map.data[i])
                        .collect()
                };
                if let Some(out) = get(&format!("layer{index}.out")) {
                    let expected = out.data[(step * batch + row) * d..][..d].iter().copied();
                    assert_close(&layer.output, expected, &format!("{what} layer {index} output"));
                }
                if let Some(attention) = get(&format!("layer{index}.attention")) {
                    let expected = maps(attention).into_iter();
                    assert_close(&layer.attention, expected, &format!("{what} layer {index} attention"));
                }
                let expected = get(&format!("layer{index}.refinement")).map(maps).unwrap_or_default();
                if !expected.is_empty() || index == 0 {
                    let expected = expected.into_iter();
                    assert_close(&layer.refinement, expected, &format!("{what} layer {index} refinement"));
                }
            }
        }
    }
}

#[test]
fn every_layer_of_the_tiny_models_is_the_references() {
    for name in COVERAGES {
        let golden = Golden::tiny(name);
        compare(&golden.model("weights."), &golden, "eval", golden.get("input.tokens"));
    }
}

#[test]
fn every_layer_of_the_released_model_is_the_references() {
    let (Some(weights), Some(golden)) =
        (shared("models/released.ckpt"), shared("golden/released-forward.safetensors"))
    else {
        return;
    };
    let model =
        comer::internal::checkpoint::import(weights, comer::internal::Vocab::crohme(), &Default::default())
            .unwrap();
    let golden = Golden::open(golden);
    compare(&model, &golden, "eval", golden.get("input.tokens"));
    compare(&model, &golden, "single", golden.get("single.tokens"));
}

/// A picture of a golden batch without its padding.
fn picture(golden: &Golden, index: usize) -> Image {
    let (images, padding) = (golden.get("input.images"), golden.get("input.padding"));
    let (height, width) = (images.shape[2], images.shape[3]);
    let inside = |y: usize, x: usize| padding.data[(index * height + y) * width + x] == 0.0;
    let size = ((0..height).filter(|&y| inside(y, 0)).count(), (0..width).filter(|&x| inside(0, x)).count());
    let pixel = |y: usize, x: usize| (images.data[(index * height + y) * width + x] * 255.0) as u8;
    let pixels = (0..size.0).flat_map(|y| (0..size.1).map(move |x| pixel(y, x))).collect();
    Image::new(size.1, size.0, pixels).unwrap()
}

#[test]
fn the_joint_search_of_the_tiny_models_is_the_references() {
    let config = SearchConfig { beam: 3, max_length: 12, grammar: false, margin: None, ..Default::default() };
    for name in COVERAGES {
        let golden = Golden::tiny(name);
        let model = golden.model("weights.");
        let encoder = Encoder::new(&model.config, &model.weights);
        let decoder = Decoder::new(&model.config, model.vocab.len(), &model.weights).unwrap();
        for index in 0..3 {
            let features = encoder.encode(&picture(&golden, index)).unwrap();
            let mut reading = decoder.start(&features).unwrap();
            let answers =
                search(&mut reading, &config, &Grammar::new(&model.vocab), None, &|| Ok(())).unwrap();
            let expected = &golden.get(&format!("search.{index}.tokens")).data;
            let found: Vec<f32> = answers[0].tokens.iter().map(|&token| f32::from(token)).collect();
            assert_eq!(&found, expected, "{name} picture {index}");
            let score = golden.get(&format!("search.{index}.score")).data[0];
            assert!((answers[0].score - score).abs() < 1e-4, "{name} {index}: {} {score}", answers[0].score);
        }
    }
}

/// Every 70th picture of CROHME 2014; the search bench compares all of them.
#[test]
fn the_joint_search_of_the_released_model_is_the_references_and_can_be_kept_well_formed() {
    let (Some(weights), Some(golden), Some(data)) =
        (shared("models/released.ckpt"), shared("golden/search-2014.jsonl"), shared("data/crohme.zip"))
    else {
        return;
    };
    let model =
        comer::internal::checkpoint::import(weights, comer::internal::Vocab::crohme(), &Default::default())
            .unwrap();
    let encoder = Encoder::new(&model.config, &model.weights);
    let decoder = Decoder::new(&model.config, model.vocab.len(), &model.weights).unwrap();
    let grammar = Grammar::new(&model.vocab);
    for line in std::fs::read_to_string(golden).unwrap().lines().step_by(70) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let name = line["name"].as_str().unwrap();
        let features = encoder.encode(&crohme_picture(&data, "2014", name).fit().unwrap()).unwrap();
        let mut reading = decoder.start(&features).unwrap();
        let config = SearchConfig { grammar: false, margin: None, ..Default::default() };
        let answer = &search(&mut reading, &config, &grammar, None, &|| Ok(())).unwrap()[0];
        assert_eq!(model.vocab.decode(&answer.tokens), line["pred"].as_str().unwrap(), "{name}");
        assert!((f64::from(answer.score) - line["score"].as_f64().unwrap()).abs() < 1e-3, "{name}");

        let fast = SearchConfig::default();
        let formed = &search(&mut reading, &fast, &grammar, None, &|| Ok(())).unwrap()[0];
        let whole_beam = SearchConfig { margin: None, ..fast };
        let slow = &search(&mut reading, &whole_beam, &grammar, None, &|| Ok(())).unwrap()[0];
        assert_eq!(formed.tokens, slow.tokens, "{name}: the margin costs nothing here");
        let mut state = grammar.start(Direction::LeftToRight);
        let mut allowed = Vec::new();
        for &token in &formed.tokens {
            grammar.allowed(&state, 1000, &mut allowed);
            assert!(allowed[usize::from(token)], "{name}: {}", model.vocab.decode(&formed.tokens));
            state = grammar.advance(&state, token);
        }
        assert!(state.complete(), "{name}: {}", model.vocab.decode(&formed.tokens));
    }
}

/// Steps many prefixes at once, moves them about as a search does, and asks the oracle about each whole prefix.
#[test]
fn cached_decoding_equals_plain_decoding() {
    for name in COVERAGES {
        let golden = Golden::tiny(name);
        let model = golden.model("weights.");
        let decoder = Decoder::new(&model.config, model.vocab.len(), &model.weights).unwrap();
        let (features, _) = cropped(golden.get("eval.features"), golden.get("eval.feature_padding"), 1);
        let mut reading = decoder.start(&features).unwrap();
        let vocab = model.vocab.len();
        for _ in 0..2 {
            reading.restart();
            let mut prefixes: Vec<Vec<TokenId>> = vec![vec![SOS], vec![EOS]];
            let mut parents = vec![0; 2];
            for step in 0..9 {
                let last: Vec<TokenId> = prefixes.iter().map(|prefix| prefix[step]).collect();
                let log_probs = reading.step(&parents, &last).to_vec();
                for (row, prefix) in prefixes.iter().enumerate() {
                    let expected = plain::decode(&model, &features, prefix)[step].clone();
                    let found = &log_probs[row * vocab..][..vocab];
                    assert_close(found, expected.iter().map(|&x| x as f32), &format!("{name} {prefix:?}"));
                }
                // More rows, then fewer, in another order, some parents twice and some never; padding among them.
                let count = [5, 7, 7, 3, 6, 1, 4, 4, 2][step];
                parents = (0..count).map(|row| (row * 5 + step) % prefixes.len()).collect();
                let next = |row: usize| ((row * 31 + step * 17) % vocab) as TokenId;
                let grown = parents.iter().enumerate().map(|(row, &parent)| {
                    [&prefixes[parent][..], &[if row == 2 { 0 } else { next(row) }]].concat()
                });
                prefixes = grown.collect();
            }
        }
    }
}

#[test]
fn features_that_do_not_fit_are_refused() {
    let model = golden_model("fusion");
    let decoder = Decoder::new(&model.config, model.vocab.len(), &model.weights).unwrap();
    for (height, width, count) in [(0, 0, 0), (2, 3, 191), (2, 3, 193), (1, 0, 32)] {
        let error = decoder.start(&Features { height, width, values: vec![0.0; count] }).err().unwrap();
        assert!(error.to_string().contains("expected"), "{error}");
    }
    let features = Features { height: 1, width: 1, values: vec![0.5; 32] };
    let mut reading = decoder.start(&features).unwrap();
    assert!(reading.trace(&[SOS, 999]).is_err());
    let config = SearchConfig { strategy: Strategy::Greedy, ..Default::default() };
    assert_eq!(
        search(&mut reading, &config, &Grammar::new(&model.vocab), None, &|| Ok(())).unwrap().len(),
        1
    );

    let mut weights = model.weights.clone();
    weights.remove("decoder.output.bias");
    let error = Decoder::new(&model.config, model.vocab.len(), &weights).err().unwrap();
    assert!(error.to_string().contains("decoder.output.bias"), "{error}");
}

#[test]
fn a_search_ends_at_the_first_step_after_an_interrupt() {
    let golden = Golden::tiny("fusion");
    let model = golden.model("weights.");
    let features = Encoder::new(&model.config, &model.weights).encode(&picture(&golden, 0)).unwrap();
    let decoder = Decoder::new(&model.config, model.vocab.len(), &model.weights).unwrap();
    let config = SearchConfig { beam: 3, max_length: 8, ..SearchConfig::default() };
    let grammar = Grammar::new(&model.vocab);
    let asked = std::cell::Cell::new(0);
    let stop_at = |most: usize| {
        asked.set(0);
        let interrupt = || {
            asked.set(asked.get() + 1);
            if asked.get() > most { Err(comer::Error::Cancelled) } else { Ok(()) }
        };
        search(&mut decoder.start(&features).unwrap(), &config, &grammar, None, &interrupt)
    };
    assert!(!stop_at(usize::MAX).unwrap().is_empty());
    let questions = asked.get();
    assert!(questions > 4, "{questions}");
    for most in 0..questions {
        assert!(matches!(stop_at(most), Err(comer::Error::Cancelled)), "{most}");
        assert_eq!(asked.get(), most + 1);
    }
}

#[test]
fn an_interrupted_recognition_is_an_error() {
    use comer::{CancelToken, Error, Input, RecognizeOptions, Recognizer};
    let golden = Golden::tiny("fusion");
    let input = Input::from_image(picture(&golden, 0)).unwrap();
    let recognizer = Recognizer::new(golden.model("weights.")).unwrap();
    let token = CancelToken::new();
    let options = RecognizeOptions::new().beam(2).max_tokens(4).cancel_token(&token);
    recognizer.recognize_with(&input, &options).unwrap();
    let late = options.clone().deadline(std::time::Instant::now());
    assert!(matches!(recognizer.recognize_with(&input, &late), Err(Error::DeadlineExceeded)));
    token.cancel();
    assert!(matches!(recognizer.recognize_with(&input, &options), Err(Error::Cancelled)));
    let none = recognizer.recognize_with(&input, &RecognizeOptions::new().threads(0)).unwrap_err();
    assert!(none.to_string().contains("threads"), "{none}");
}

#[test]
fn a_recognition_does_not_depend_on_the_number_of_threads() {
    use comer::{Input, RecognizeOptions, Recognizer};
    for coverage in COVERAGES {
        let golden = Golden::tiny(coverage);
        let recognizer = Recognizer::new(golden.model("weights.")).unwrap();
        let options = RecognizeOptions::new().beam(4).max_tokens(11).nbest(3);
        let input = Input::from_image(picture(&golden, 0)).unwrap();
        let alone = recognizer.recognize_with(&input, &options.clone().threads(1)).unwrap();
        assert_eq!(recognizer.recognize_with(&input, &options).unwrap(), alone);
        for threads in [2, 3, 8] {
            let found = recognizer.recognize_with(&input, &options.clone().threads(threads)).unwrap();
            assert_eq!(found, alone, "{coverage} on {threads} threads");
        }
    }
}
