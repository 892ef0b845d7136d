//! Initial weights: the distributions of PyTorch's defaults, from a seed, equal on every device.

use comer::Result;
use comer::internal::weights::{Tensor, TensorSpec, Weights, tensor_specs};
use comer::internal::{ModelConfig, ModelFile, Vocab};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A model with random weights.
pub fn random_model(config: ModelConfig, vocab: Vocab, seed: u64) -> Result<ModelFile> {
    config.validate()?;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let specs = tensor_specs(&config, vocab.len());
    let mut weights = Weights::new();
    for spec in &specs {
        let data = draw(spec, &weights, &mut random);
        weights.insert(spec.name.clone(), Tensor { shape: spec.shape.clone(), data });
    }
    Ok(ModelFile { config, vocab, provenance: Default::default(), weights, language_model: None })
}

/// The layer that classifies the symbol of each cell (see [`crate::symbols`]). Used in training only; not in model files.
pub fn symbol_classifier(config: &ModelConfig, vocab: &Vocab, seed: u64) -> Weights {
    classifier("symbols", config, vocab, !seed)
}

/// The layer that tells which tokens are present. Used in training only; not in model files.
pub fn presence_classifier(config: &ModelConfig, vocab: &Vocab, seed: u64) -> Weights {
    classifier("presence", config, vocab, !seed.wrapping_add(1))
}

/// A linear layer from the encoder's cells to the tokens.
fn classifier(path: &str, config: &ModelConfig, vocab: &Vocab, seed: u64) -> Weights {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (outputs, inputs) = (vocab.len(), config.d_model);
    let bound = (inputs as f32).sqrt().recip();
    let weight = Tensor { shape: vec![outputs, inputs], data: uniform(outputs * inputs, bound, &mut random) };
    let bias = Tensor { shape: vec![outputs], data: vec![0.0; outputs] };
    Weights::from([(format!("{path}.weight"), weight), (format!("{path}.bias"), bias)])
}

fn draw(spec: &TensorSpec, drawn: &Weights, random: &mut ChaCha8Rng) -> Vec<f32> {
    let count: usize = spec.shape.iter().product();
    let (path, leaf) = spec.name.rsplit_once('.').unwrap_or(("", &spec.name));
    let is_norm = path.ends_with("norm");
    let attention = path.ends_with("attention.packed") || path.ends_with("attention.output");
    let inputs = |shape: &[usize]| shape[1..].iter().product::<usize>() as f32;
    match leaf {
        "weight" | "variance" if is_norm => vec![1.0; count],
        "bias" | "mean" if is_norm => vec![0.0; count],
        "bias" if attention => vec![0.0; count],
        "weight" if path == "decoder.embedding" => normal(count, random),
        // Xavier: uniform with variance 2 / (inputs + outputs).
        "weight" if path.ends_with("attention.packed") => {
            let bound = (6.0 / (spec.shape[0] + spec.shape[1]) as f32).sqrt();
            uniform(count, bound, random)
        }
        "weight" => uniform(count, inputs(&spec.shape).sqrt().recip(), random),
        // The bias of a linear layer has the bound of its weight, which comes before it in the list.
        _ => uniform(count, inputs(&drawn[&format!("{path}.weight")].shape).sqrt().recip(), random),
    }
}

fn uniform(count: usize, bound: f32, random: &mut ChaCha8Rng) -> Vec<f32> {
    (0..count).map(|_| random.random_range(-bound..bound)).collect()
}

/// Box-Muller: two uniform numbers for each normal one.
fn normal(count: usize, random: &mut ChaCha8Rng) -> Vec<f32> {
    let mut one = || {
        let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
        ((-2.0 * radius.ln()).sqrt() * (angle * std::f64::consts::TAU).cos()) as f32
    };
    (0..count).map(|_| one()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_have_the_expected_standard_deviation() {
        let model = random_model(ModelConfig::default(), Vocab::crohme(), 7).unwrap();
        model.validate().unwrap();
        for (name, deviation) in [
            ("encoder.stem.conv.weight", 1.0 / (3.0f64 * 49.0).sqrt()),
            ("encoder.projection.weight", 1.0 / (3.0f64 * 684.0).sqrt()),
            ("encoder.projection.bias", 1.0 / (3.0f64 * 684.0).sqrt()),
            ("decoder.embedding.weight", 1.0),
            ("decoder.layers.0.self_attention.packed.weight", (2.0f64 / 1024.0).sqrt()),
            ("decoder.layers.0.self_attention.packed.bias", 0.0),
            ("decoder.layers.1.cross_attention.output.bias", 0.0),
            ("decoder.layers.2.expand.weight", 1.0 / (3.0f64 * 256.0).sqrt()),
            ("decoder.refinement.norm.mean", 0.0),
        ] {
            let data = &model.weights[name].data;
            let found = (data.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / data.len() as f64).sqrt();
            assert!((found - deviation).abs() <= 0.1 * deviation, "{name}: {found}, expected {deviation}");
        }
    }

    #[test]
    fn equal_seeds_give_equal_weights() {
        let model = |seed| random_model(ModelConfig::default(), Vocab::crohme(), seed).unwrap();
        assert_eq!(model(1), model(1));
        assert_ne!(model(1), model(2));
    }
}
