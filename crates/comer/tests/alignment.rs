//! Where a formula was read: the reference's maps for the released weights, and what holds for any model.

use comer::alignment::{Direction, PassStep};
use comer::{AlignmentDetail, Image, Input, RecognizeOptions, Recognizer};
use comer_testing::{Golden, crohme_picture, golden_model, shared};

const COVERAGES: [&str; 4] = ["bttr", "self", "cross", "fusion"];

/// A picture with a stroke across it.
fn picture() -> Input {
    let ink = |x: usize, y: usize| (x / 2).abs_diff(y) < 3;
    let pixels = (0..90 * 60).map(|i| if ink(i % 90, i / 90) { 255 } else { 0 }).collect();
    Input::from_image(Image::new(90, 60, pixels).unwrap()).unwrap()
}

/// From the picture on, through the encoder and the facade.
#[test]
fn the_maps_of_the_released_weights_are_the_references() {
    let (Some(weights), Some(golden), Some(data)) = (
        shared("models/released.ckpt"),
        shared("golden/released-forward.safetensors"),
        shared("data/crohme.zip"),
    ) else {
        return;
    };
    let model =
        comer::internal::checkpoint::import(weights, comer::internal::Vocab::crohme(), &Default::default())
            .unwrap();
    let recognizer = Recognizer::new(model).unwrap();
    let golden = Golden::open(golden);
    let picture = crohme_picture(&data, "2014", &golden.metadata["single"]);
    let tokens = golden.get("single.tokens");
    let (steps, heads) = (tokens.shape[1], recognizer.config().heads);
    // The row that is read from the left starts with its start token.
    let formula: Vec<u16> = tokens.data[1..steps].iter().map(|&token| token as u16).collect();
    let formula = comer::internal::Vocab::crohme().decode(&formula);
    let alignment = recognizer.align(&Input::from_image(picture).unwrap(), &formula).unwrap();
    let cells = alignment.height * alignment.width;
    let compare = |row: usize, step: usize, name: &str, found: &[f32]| {
        for (layer, found) in found.chunks_exact(heads * cells).enumerate() {
            let Some(expected) = golden.tensors.get(&format!("single.layer{layer}.{name}")) else {
                assert!(layer == 0 && found.iter().all(|&value| value == 0.0), "{name} of layer {layer}");
                continue;
            };
            for (head, found) in found.chunks_exact(cells).enumerate() {
                let expected = &expected.data[((row * heads + head) * steps + step) * cells..][..cells];
                for (cell, (found, expected)) in found.iter().zip(expected).enumerate() {
                    let place =
                        format!("{name}, row {row}, step {step}, layer {layer}, head {head}, cell {cell}");
                    assert!((found - expected).abs() <= 1e-4, "{place}: {found}, expected {expected}");
                }
            }
        }
    };
    for (row, pass) in alignment.passes.iter().enumerate() {
        assert_eq!(pass.steps.len(), steps);
        for (number, step) in pass.steps.iter().enumerate() {
            compare(row, number, "attention", &step.attention);
            compare(row, number, "refinement", &step.refinement);
        }
    }
}

#[test]
fn a_recognition_tells_what_was_asked_for() {
    for name in COVERAGES {
        let recognizer = Recognizer::new(golden_model(name)).unwrap();
        let read = |alignment| {
            let options = RecognizeOptions::new().greedy().alignment(alignment);
            recognizer.recognize_with(&picture(), &options).unwrap()
        };
        let (none, less, more) =
            (read(AlignmentDetail::None), read(AlignmentDetail::Attention), read(AlignmentDetail::Full));
        assert_eq!(none.alignment, None);
        let (less, alignment) = (less.alignment.unwrap(), more.alignment.unwrap());
        assert!(less.passes.is_empty());
        assert_eq!((&less.attention, &less.ink), (&alignment.attention, &alignment.ink));
        assert_eq!(alignment.ink.regions.len(), 1);

        let (config, tokens) = (recognizer.config(), &more.best.tokens);
        let cells = alignment.height * alignment.width;
        assert_eq!((alignment.height, alignment.width), (4, 6));
        assert_eq!(alignment.attention.len(), tokens.len());
        let maps = config.decoder_layers * config.heads * cells;
        for pass in &alignment.passes {
            assert_eq!((pass.layers, pass.heads), (config.decoder_layers, config.heads));
            assert_eq!(pass.steps.len(), tokens.len() + 1);
            let mut coverage = vec![0.0; maps];
            for step in &pass.steps {
                for map in [&step.attention, &step.refinement, &step.coverage] {
                    assert_eq!(map.len(), maps);
                }
                for map in step.attention.chunks_exact(cells) {
                    assert!((map.iter().sum::<f32>() - 1.0).abs() < 1e-4);
                }
                assert_eq!(step.coverage, coverage, "{name}: what was attended to before");
                coverage.iter_mut().zip(&step.attention).for_each(|(sum, now)| *sum += now);
                let refined = step.refinement.iter().any(|&value| value != 0.0);
                assert_eq!(refined, name != "bttr", "{name}");
            }
        }
        let [left, right] = &alignment.passes[..] else { panic!("two directions") };
        assert_eq!((left.direction, right.direction), (Direction::LeftToRight, Direction::RightToLeft));
        for (number, step) in left.steps.iter().enumerate() {
            let last = left.mean(&step.attention, Some(config.decoder_layers - 1), None);
            if let Some(attention) = alignment.attention.get(number) {
                assert!(last.iter().zip(attention).all(|(a, b)| (a - b).abs() < 1e-6));
            }
        }
        check_tokens(&left.steps, tokens.iter().map(|token| token.text.as_str()), "<eos>");
        check_tokens(&right.steps, tokens.iter().rev().map(|token| token.text.as_str()), "<sos>");
        assert!(left.steps.iter().take(tokens.len()).enumerate().all(|(i, step)| step.index == Some(i)));
        let last = tokens.len() - 1;
        assert!(right.steps.iter().take(last + 1).enumerate().all(|(i, step)| step.index == Some(last - i)));
        // The greedy search wrote what was likeliest, as far as the grammar let it.
        for (step, token) in left.steps.iter().zip(tokens) {
            assert!((step.token.confidence - token.confidence).abs() < 1e-4);
        }
    }
}

fn check_tokens<'a>(steps: &[PassStep], tokens: impl Iterator<Item = &'a str>, end: &'a str) {
    let found: Vec<&str> = steps.iter().map(|step| step.token.text.as_str()).collect();
    assert_eq!(found, tokens.chain([end]).collect::<Vec<_>>());
    assert_eq!(steps.last().unwrap().index, None);
    for step in steps {
        assert_eq!(step.runners_up.len(), 5);
        assert!(step.runners_up.is_sorted_by(|a, b| a.confidence >= b.confidence));
        assert!(step.runners_up.iter().all(|other| other.text != step.token.text));
    }
}

#[test]
fn a_formula_that_cannot_be_read_is_refused_by_name() {
    let recognizer = Recognizer::new(golden_model("fusion")).unwrap();
    let error = recognizer.align(&picture(), r"x \nonsense").unwrap_err().to_string();
    assert!(error.contains(r"\nonsense"), "{error}");
    let empty = recognizer.align(&picture(), "").unwrap();
    assert!(empty.attention.is_empty() && empty.passes.iter().all(|pass| pass.steps.len() == 1));
    assert_eq!(empty.ink.unread, 1.0);
}
