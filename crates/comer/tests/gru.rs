//! The GRU decoder of the engine against PyTorch (`data/make_tiny_gru.py`), and a step of several prefixes against one.

use comer::internal::engine::Features;
use comer::internal::engine::any_decoder::AnyDecoder;
use comer::internal::engine::decoder::Decoder;
use comer::internal::step_decoder::StepDecoder;
use comer::internal::{ModelConfig, TokenId, weights::Weights};
use comer_testing::GruGolden;

/// What the decoder attends to in a picture: the projected features with positions, normalised, in f64.
fn memory(golden: &GruGolden, picture: usize) -> Features {
    let (weights, d) = (&golden.weights, golden.config.d_model);
    let get = |weights: &Weights, name: &str| -> Vec<f64> {
        weights[name].data.iter().map(|&x| f64::from(x)).collect()
    };
    let rows = golden.golden.get("input.features");
    let channels = rows.shape[1];
    let before: usize = golden.sizes[..picture].iter().map(|(height, width)| height * width).sum();
    let (height, width) = golden.sizes[picture];
    let [weight, bias] = ["weight", "bias"].map(|leaf| get(weights, &format!("encoder.projection.{leaf}")));
    let [scale, shift] = ["weight", "bias"].map(|leaf| get(weights, &format!("encoder.norm.{leaf}")));
    let cell = |cell: usize| {
        let features = &rows.data[(before + cell) * channels..][..channels];
        let position = |part: usize, whole: usize, k: usize| {
            let frequency = 10000f64.powf(-2.0 * (k / 2) as f64 / (d / 2) as f64);
            let angle = part as f64 / (whole as f64 + 1e-6) * std::f64::consts::TAU * frequency;
            if k.is_multiple_of(2) { angle.sin() } else { angle.cos() }
        };
        let value = |k: usize| {
            let products = features.iter().zip(&weight[k * channels..]).map(|(x, w)| f64::from(*x) * w);
            let (part, whole) =
                if k < d / 2 { (cell % width + 1, width) } else { (cell / width + 1, height) };
            products.sum::<f64>() + bias[k] + position(part, whole, k % (d / 2))
        };
        let values: Vec<f64> = (0..d).map(value).collect();
        let mean = values.iter().sum::<f64>() / d as f64;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d as f64;
        let normal = |(k, x): (usize, &f64)| (x - mean) / (variance + 1e-5).sqrt() * scale[k] + shift[k];
        values.iter().enumerate().map(normal).map(|x| x as f32).collect::<Vec<f32>>()
    };
    Features { height, width, values: (0..height * width).flat_map(cell).collect() }
}

fn log_softmax(logits: &[f32]) -> Vec<f32> {
    let sum: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
    logits.iter().map(|&x| (f64::from(x) - sum.ln()) as f32).collect()
}

fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-5, "{what}: {found}, expected {expected}");
    }
}

#[test]
fn logits_and_attention_of_the_tiny_models_are_pytorchs() {
    for name in ["gru", "gru-stacked"] {
        let golden = GruGolden::tiny(name);
        let (vocab, heads) = (golden.vocab(), golden.config.heads);
        let decoder = AnyDecoder::new(&golden.config, vocab, &golden.weights).unwrap();
        for (index, [tokens, _]) in golden.sequences().iter().enumerate() {
            let features = memory(&golden, index / 2);
            let cells = features.height * features.width;
            let mut state = decoder.start(&features).unwrap();
            let logits = &golden.golden.get(&format!("eval.logits.{index}")).data;
            let maps = &golden.golden.get(&format!("eval.attention.{index}")).data;
            let mut coverage = vec![0.0; heads * cells];
            for (step, trace) in state.trace(tokens).unwrap().iter().enumerate() {
                let what = format!("{name}, sequence {index}, step {step}");
                assert_close(&trace.log_probs, &log_softmax(&logits[step * vocab..][..vocab]), &what);
                let [layer] = &trace.layers[..] else { panic!("one layer has attention") };
                assert_close(&layer.attention, &maps[step * heads * cells..][..heads * cells], &what);
                assert_close(&layer.coverage, &coverage, &what);
                coverage.iter_mut().zip(&layer.attention).for_each(|(sum, x)| *sum += x);
            }
        }
    }
}

#[test]
fn prefixes_in_one_batch_are_independent_of_each_other() {
    let golden = GruGolden::tiny("gru-stacked");
    let vocab = golden.vocab();
    let decoder = AnyDecoder::new(&golden.config, vocab, &golden.weights).unwrap();
    let features = memory(&golden, 1);
    // (parents, tokens) of each step; row 2 of the last step has the prefix 1 9 4 6.
    let steps: [(&[usize], &[TokenId]); 4] = [
        (&[0, 0], &[1, 2]),
        (&[0, 0, 1], &[7, 9, 5]),
        (&[2, 1, 1, 0], &[3, 4, 8, 3]),
        (&[0, 3, 1], &[6, 6, 6]),
    ];
    let mut state = decoder.start(&features).unwrap();
    state.on_all_cores();
    let mut prefixes: Vec<Vec<TokenId>> = vec![Vec::new(); 2];
    for (parents, tokens) in steps {
        let log_probs = state.step(parents, tokens).to_vec();
        let grow = |(&parent, &token): (&usize, &TokenId)| {
            let before: &[TokenId] = prefixes.get(parent).map_or(&[], Vec::as_slice);
            [before, &[token]].concat()
        };
        prefixes = parents.iter().zip(tokens).map(grow).collect();
        for (row, prefix) in prefixes.iter().enumerate() {
            let alone = decoder.start(&features).unwrap().trace(prefix).unwrap();
            assert_close(&log_probs[row * vocab..][..vocab], &alone[prefix.len() - 1].log_probs, "a prefix");
        }
    }
    assert_eq!(prefixes[2], [1, 9, 4, 6]);
}

#[test]
fn dropout_and_drop_attention_are_for_training_only() {
    let golden = GruGolden::tiny("gru-stacked");
    let features = memory(&golden, 0);
    let [plain, dropping] = [0.0, 0.9].map(|rate| {
        let config = ModelConfig { dropout: rate, drop_attention: rate, ..golden.config.clone() };
        let decoder = AnyDecoder::new(&config, golden.vocab(), &golden.weights).unwrap();
        let traces = decoder.start(&features).unwrap().trace(&[1, 5, 9, 7, 13]).unwrap();
        traces.into_iter().map(|trace| trace.log_probs).collect::<Vec<_>>()
    });
    assert_eq!(plain, dropping);
}

#[test]
fn a_decoder_of_another_kind_and_bad_input_are_errors() {
    let golden = GruGolden::tiny("gru");
    let error = Decoder::new(&golden.config, golden.vocab(), &golden.weights).err().unwrap();
    assert_eq!(error.to_string(), "decoder is gru, expected transformer here");
    let mut weights = golden.weights.clone();
    weights.remove("decoder.attention.conv.weight");
    let error = AnyDecoder::new(&golden.config, golden.vocab(), &weights).err().unwrap();
    assert!(error.to_string().contains("decoder.attention.conv.weight is missing"), "{error}");
    let decoder = AnyDecoder::new(&golden.config, golden.vocab(), &golden.weights).unwrap();
    assert!(decoder.start(&Features { height: 0, width: 3, values: Vec::new() }).is_err());
    let mut state = decoder.start(&memory(&golden, 0)).unwrap();
    assert!(state.trace(&[1, 20]).is_err());
}
