//! `comer model`: describes a model file, or writes a new one: in half precision, with notes, or averaged.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer::internal::weights::parameter_count;
use comer::internal::{ModelFile, Precision};
use serde_json::{Value, json};

use crate::args::{ModelArgs, open_language_model};
use crate::output::{message, print, print_json, printable};

/// Describe a model file; with --out, write a copy in half precision, with notes, or the mean of several.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer model
  comer model runs/default/best.safetensors --json
  comer model runs/default/best.safetensors --out small.safetensors --f16 --note author=me
  comer model best.safetensors --calibrate sets/validation.jsonl --out calibrated.safetensors --f16
  comer model epoch38.safetensors epoch39.safetensors epoch40.safetensors --out mean.safetensors")]
pub struct Arguments {
    /// Model files; several are averaged, which needs --out [default: the model of recognize].
    models: Vec<PathBuf>,
    /// Model file to write.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Store the weights in 16 bits, which halves the size.
    #[arg(long, requires = "out")]
    f16: bool,
    /// Store this language model in the file.
    #[arg(long, value_name = "FILE", requires = "out")]
    language_model: Option<PathBuf>,
    /// Fit confidences on this stroke set, which the model was not trained on, and store the curves in the file.
    #[cfg(feature = "train")]
    #[arg(long, value_name = "JSONL", requires = "out")]
    calibrate: Option<PathBuf>,
    /// With --calibrate: take only N formulas, evenly spread over the set.
    #[cfg(feature = "train")]
    #[arg(long, value_name = "N", requires = "calibrate")]
    take: Option<usize>,
    /// Add an entry to the provenance.
    #[arg(long, value_name = "KEY=VALUE", requires = "out")]
    note: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut license = None;
    let mut models = arguments.models.iter().map(ModelFile::open).collect::<comer::Result<Vec<_>>>()?;
    if models.is_empty() {
        let model = ModelArgs::from_environment();
        license = model.license();
        models.push(model.read()?);
    }
    let count = models.len();
    if count > 1 && arguments.out.is_none() {
        bail!("{count} models: give --out FILE for their mean, or one model to look at");
    }
    let mut model = mean(models)?;
    for note in &arguments.note {
        let (key, value) =
            note.split_once('=').with_context(|| format!("--note {note}: expected KEY=VALUE"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        model.provenance.insert(key.into(), value);
    }
    if let Some(path) = &arguments.language_model {
        model.language_model = Some(open_language_model(path, &model.vocab)?);
    }
    #[cfg(feature = "train")]
    if let Some(set) = &arguments.calibrate {
        crate::calibrate::calibrate(&mut model, set, arguments.take)?;
    }
    if let Some(path) = &arguments.out {
        model.save(path, if arguments.f16 { Precision::F16 } else { Precision::F32 })?;
        message(path.display());
    }
    let parameters = parameter_count(&model.config, model.vocab.len());
    if arguments.json {
        let tokens = model.vocab.tokens();
        print_json(&json!({ "config": model.config, "tokens": tokens, "parameters": parameters,
            "license": license, "provenance": model.provenance }))?;
    } else {
        let license = license.map(|license| format!("license: {license} (non-commercial use)\n"));
        print(describe(&model, parameters) + &license.unwrap_or_default())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The model whose weights are the mean of those of models of one shape.
fn mean(models: Vec<ModelFile>) -> Result<ModelFile> {
    let share = (models.len() as f32).recip();
    let sources: Vec<Value> = models.iter().map(|model| json!(model.provenance)).collect();
    let mut models = models.into_iter();
    let mut mean = models.next().context("no model")?;
    if sources.len() > 1 {
        // The figures of the parts are not those of the mean.
        mean.provenance = [("mean of".to_string(), json!(sources))].into_iter().collect();
    }
    mean.weights.values_mut().flat_map(|tensor| &mut tensor.data).for_each(|x| *x *= share);
    for model in models {
        if model.config != mean.config || model.vocab != mean.vocab {
            bail!("models of different shapes or vocabularies have no mean");
        }
        for (name, sum) in &mut mean.weights {
            sum.data.iter_mut().zip(&model.weights[name].data).for_each(|(sum, x)| *sum += x * share);
        }
    }
    Ok(mean)
}

fn describe(model: &ModelFile, parameters: usize) -> String {
    let mut text = format!(
        "{:?} coverage, {} tokens, {parameters} parameters\n",
        model.config.coverage,
        model.vocab.len()
    );
    let mut long = Vec::new();
    for (key, value) in &model.provenance {
        match one_line(value) {
            Some(value) => text += &format!("{key}: {value}\n"),
            None => long.push(key.as_str()),
        }
    }
    if !long.is_empty() {
        text += &format!("{}: printed by --json\n", long.join(", "));
    }
    printable(&text)
}

/// A value as people write it; none if it does not fit on a line.
fn one_line(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(one_line).collect::<Option<Vec<_>>>()?.join(", "),
        Value::Object(entries) if entries.values().any(Value::is_object) => return None,
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| Some(format!("{key} {}", one_line(value)?));
            entries.iter().map(entry).collect::<Option<Vec<_>>>()?.join(", ")
        }
        other => other.to_string(),
    };
    (text.len() <= 160 && !text.contains('\n')).then_some(text)
}

#[cfg(test)]
mod tests {
    use comer::internal::{ModelConfig, Vocab, weights};

    use super::*;

    fn model(value: f32) -> ModelFile {
        let config =
            ModelConfig { d_model: 8, growth_rate: 4, layers_per_block: 1, ..ModelConfig::default() };
        let vocab = Vocab::crohme();
        let tensor = |spec: weights::TensorSpec| {
            let data = vec![value; spec.shape.iter().product()];
            (spec.name, weights::Tensor { shape: spec.shape, data })
        };
        let weights = weights::tensor_specs(&config, vocab.len()).into_iter().map(tensor).collect();
        ModelFile { config, vocab, provenance: Default::default(), weights, language_model: None }
    }

    #[test]
    fn long_entries_of_the_provenance_are_left_to_json() {
        let mut model = model(1.0);
        model.provenance.insert("figures".into(), json!({ "token_match": 64.5, "search": "joint" }));
        model.provenance.insert("recipe".into(), json!({ "model": { "dropout": 0.3 } }));
        let text = describe(&model, 7);
        assert!(text.contains("figures: search joint, token_match 64.5\n"), "{text}");
        assert!(text.ends_with("recipe: printed by --json\n"), "{text}");
    }

    #[test]
    fn the_provenance_does_not_control_the_terminal() {
        let mut model = model(1.0);
        model.provenance.insert("a\u{1b}]0;title\u{7}".into(), json!("b\u{1b}[2Jc\u{202e}d"));
        model.provenance.insert("lines".into(), json!("e\nlicense: f"));
        let text = describe(&model, 7);
        assert!(text.contains("a\\u{1b}]0;title\\u{7}: b\\u{1b}[2Jc\\u{202e}d\n"), "{text:?}");
        assert!(!text.contains("license") && text.ends_with("lines: printed by --json\n"), "{text:?}");
    }

    #[test]
    fn models_of_one_shape_have_a_mean() {
        let mean_ = mean(vec![model(1.0), model(2.0), model(6.0)]).unwrap();
        assert_eq!(mean_.provenance["mean of"].as_array().unwrap().len(), 3);
        assert!(mean_.weights.values().flat_map(|tensor| &tensor.data).all(|x| (x - 3.0).abs() < 1e-6));
        let mut other = model(1.0);
        other.config.dropout = 0.5;
        assert!(mean(vec![model(1.0), other]).is_err());
    }
}
