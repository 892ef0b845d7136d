//! Logits and attention of the decoder against PyTorch (`crates/comer/tests/data/make_tiny_gru.py`).

use comer::internal::TokenId;
use comer_testing::GruGolden;

use super::super::decoder_batch::TokenSequence;
use super::super::densenet::EncoderFeatures;
use super::super::grid::Grid;
use super::super::memory::{Auxiliary, Memory};
use super::*;

/// Compares with a tensor of the golden file, of which an index is part of the name.
fn assert_close(golden: &GruGolden, kind: &str, index: usize, found: &[f32]) -> f32 {
    let expected = &golden.golden.get(&format!("eval.{kind}.{index}")).data;
    assert_eq!(found.len(), expected.len(), "{kind}");
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off <= 1e-5, "{kind} of sequence {index} is off by {off}");
    off
}

#[test]
fn logits_and_attention_of_the_tiny_models_are_pytorchs() {
    for name in ["gru", "gru-stacked"] {
        let golden = GruGolden::tiny(name);
        let sequence = |[inputs, targets]: [Vec<TokenId>; 2]| TokenSequence { inputs, targets };
        let sequences: Vec<TokenSequence> = golden.sequences().into_iter().map(sequence).collect();
        let rows = golden.golden.get("input.features").data.clone();
        let features = EncoderFeatures { grid: Grid::new(golden.sizes.clone()), rows };
        let cells = features.grid.clone();
        let batch = DecoderBatch::new(&golden.config, &golden.weights, 5, cells, &sequences);
        let losses = Auxiliary { symbols: None, presence: 0.0 };
        let memory = Memory::forward(&batch, &features, losses, &mut Weights::new());
        let decoder = GruDecoder::new(&batch, &memory.values);
        let tape = decoder.forward();
        let logits = decoder.read_out(&tape).logits;
        let width = golden.vocab();
        let mut worst = [0f32; 2];
        for (index, sequence) in batch.sequences.iter().enumerate() {
            let rows = &logits[sequence.first * width..][..sequence.steps() * width];
            worst[0] = worst[0].max(assert_close(&golden, "logits", index, rows));
        }
        assert_eq!(tape.attention.len(), sequences.len());
        for (&index, attention) in decoder.steps.order.iter().zip(&tape.attention) {
            worst[1] = worst[1].max(assert_close(&golden, "attention", index, &attention.weights));
        }
        eprintln!("{name}: largest difference of logits {:.1e}, of attention {:.1e}", worst[0], worst[1]);
    }
}
