//! Compares the trainable model with the authors' implementation: every layer, loss, gradient and update.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, SgdConfig};
use burn::prelude::*;
use comer::Image;
use comer::internal::weights::{Weights, parameter_count, tensor_specs};
use comer::internal::{ModelConfig, Vocab};
use comer_burn::model::position::Padding;
use comer_burn::model::targets::Targets;
use comer_burn::model::{Comer, picture_tensors};
use comer_burn::padded_batch::PaddedBatch;
use comer_testing::{Golden, crohme_picture, golden_model, shared};

const TINY: [&str; 4] = ["bttr", "self", "cross", "fusion"];

#[test]
fn every_layer_of_the_tiny_models_matches() {
    for name in TINY {
        let golden = Golden::tiny(name);
        let mut check = Check::new(name);
        let device = Device::flex();
        let model = Comer::new(&golden.model("weights."), &device).unwrap();
        let (pictures, padding, targets) = inputs(&golden, &device);

        let densenet = model.encoder().densenet(pictures.clone());
        check.near("densenet", values(densenet), &golden.get("eval.densenet").data, 1e-4);
        let (features, feature_padding) = model.encoder().forward(pictures, &padding);
        check.near("features", values(features.clone()), &golden.get("eval.features").data, 1e-4);
        assert_eq!(feature_padding.values, flags(&golden, "eval.feature_padding"));

        let tokens = targets.inputs(&device);
        let decoded = model.decoder().forward(features.repeat(&[2, 1, 1, 1]), &feature_padding, tokens);
        for (index, layer) in decoded.layers.into_iter().enumerate() {
            let expected = |part: &str| &golden.get(&format!("eval.layer{index}.{part}")).data;
            check.near(
                &format!("layer {index}"),
                values(layer.output.swap_dims(0, 1)),
                expected("out"),
                1e-4,
            );
            check.near(&format!("attention {index}"), values(layer.attention), expected("attention"), 1e-4);
            if let Some(refinement) = layer.refinement {
                check.near(&format!("refinement {index}"), values(refinement), expected("refinement"), 1e-4);
            } else {
                assert!(index == 0 || name == "bttr", "{name}: layer {index} is not refined");
            }
        }
        check.near("logits", values(decoded.logits.clone()), &golden.get("eval.logits").data, 1e-4);
        check.near("loss", values(targets.loss(decoded.logits)), &golden.get("eval.loss").data, 1e-5);
        check.report();
    }
}

#[test]
fn gradients_and_three_training_steps_of_the_tiny_models_match() {
    for name in TINY {
        let golden = Golden::tiny(name);
        let mut check = Check::new(name);
        let device = Device::flex().autodiff();
        let start = golden.model("weights.");
        let mut model = Comer::new(&start, &device).unwrap();
        let (pictures, padding, targets) = inputs(&golden, &device);
        let mut optimizer = SgdConfig::new()
            .with_momentum(Some(MomentumConfig { momentum: 0.9, dampening: 0.0, nesterov: false }))
            .with_weight_decay(Some(WeightDecayConfig::new(1e-4)))
            .init();
        let mut losses = Vec::new();
        for step in 0..3 {
            let decoded = model.forward(pictures.clone(), &padding, targets.inputs(&device));
            let loss = targets.loss(decoded.logits);
            losses.extend(values(loss.clone()));
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            if step == 0 {
                let expected = golden.model_gradients(&start);
                let found = gradients_by_name(&model, &gradients);
                for (tensor, expected) in &expected {
                    let found =
                        found.get(tensor).unwrap_or_else(|| panic!("{name}: {tensor} has no gradient"));
                    check.relative(tensor, found, expected, 1e-3);
                }
                assert_eq!(found.len(), expected.len());
            }
            model = optimizer.step(0.08, model, gradients);
        }
        check.near("losses", losses, &golden.get("train.losses").data, 1e-4);
        let after = golden.model("train.after3.");
        for (tensor, found) in model.weights() {
            check.near(&tensor, found.data, &after.weights[&tensor].data, 1e-3);
        }
        check.report();
    }
}

#[test]
fn weights_round_trip_through_a_model() {
    for name in TINY {
        let golden = golden_model(name);
        let model = Comer::new(&golden, &Device::flex()).unwrap();
        assert_eq!(model.weights(), golden.weights);
    }
}

#[test]
fn the_default_model_has_the_papers_parameters() {
    let config = ModelConfig::default();
    let model = comer_train::initial::random_model(config.clone(), Vocab::crohme(), 0).unwrap();
    let statistics: usize = tensor_specs(&config, 113)
        .iter()
        .filter(|spec| !spec.trainable)
        .map(|spec| spec.shape.iter().product::<usize>())
        .sum();
    let counted = Comer::new(&model, &Device::flex()).unwrap().num_params();
    assert_eq!(counted - statistics, 6_389_041);
    assert_eq!(parameter_count(&config, 113), 6_389_041);
}

#[test]
fn the_released_weights_match_on_real_pictures() {
    let (Some(checkpoint), Some(golden), Some(data)) = (
        shared("models/released.ckpt"),
        shared("golden/released-forward.safetensors"),
        shared("data/crohme.zip"),
    ) else {
        return;
    };
    let golden = Golden::open(golden);
    let hints = comer::internal::checkpoint::Hints::default();
    let model = comer::internal::checkpoint::import(checkpoint, Vocab::crohme(), &hints).unwrap();
    let device = Device::flex();
    let model = Comer::new(&model, &device).unwrap();
    let names: Vec<String> = serde_json::from_str(&golden.metadata["names"]).unwrap();
    let mut check = Check::new("released");

    let pictures: Vec<Image> = names.iter().map(|name| crohme_picture(&data, "2014", name)).collect();
    let (batch, padding) = picture_tensors(&PaddedBatch::new(&pictures), &device);
    let (features, padding) = model.encoder().forward(batch, &padding);
    assert_eq!(padding.values, flags(&golden, "eval.feature_padding"));
    check.near("features", values(features.clone()), &golden.get("eval.features").data, 1e-3);
    let targets = targets(&golden);
    let decoded = model.decoder().forward(features.repeat(&[2, 1, 1, 1]), &padding, targets.inputs(&device));
    check.near("logits", values(decoded.logits.clone()), &golden.get("eval.logits").data, 1e-3);
    check.near("loss", values(targets.loss(decoded.logits)), &golden.get("eval.loss").data, 1e-4);

    let alone = crohme_picture(&data, "2014", &golden.metadata["single"]);
    let (batch, padding) = picture_tensors(&PaddedBatch::new(&[alone]), &device);
    let densenet = model.encoder().densenet(batch.clone());
    check.near("single densenet", values(densenet), &golden.get("single.densenet").data, 1e-3);
    let (features, padding) = model.encoder().forward(batch, &padding);
    check.near("single features", values(features.clone()), &golden.get("single.features").data, 1e-3);
    let tokens = golden.get("single.tokens");
    let ids: Vec<i32> = tokens.data.iter().map(|&id| id as i32).collect();
    let tokens = Tensor::from_data(TensorData::new(ids, tokens.shape.clone()), &device);
    let decoded = model.decoder().forward(features.repeat(&[2, 1, 1, 1]), &padding, tokens);
    check.near("single logits", values(decoded.logits), &golden.get("single.logits").data, 1e-3);
    for (index, layer) in decoded.layers.into_iter().enumerate() {
        let expected = |part: &str| &golden.get(&format!("single.layer{index}.{part}")).data;
        check.near(
            &format!("single attention {index}"),
            values(layer.attention),
            expected("attention"),
            1e-4,
        );
        if let Some(refinement) = layer.refinement {
            let name = format!("single refinement {index}");
            check.near(&name, values(refinement), expected("refinement"), 1e-4);
        }
    }
    check.report();
}

/// The pictures, their padding and the targets of a golden file.
fn inputs(golden: &Golden, device: &Device) -> (Tensor<4>, Padding, Targets) {
    let pictures = golden.get("input.images");
    let [batch, _, height, width] = pictures.shape[..] else { panic!("four dimensions") };
    let padding = Padding { batch, height, width, values: flags(golden, "input.padding") };
    let data = TensorData::new(pictures.data.clone(), pictures.shape.clone());
    (Tensor::from_data(data, device), padding, targets(golden))
}

fn targets(golden: &Golden) -> Targets {
    let ids = |name: &str| golden.get(name).data.iter().map(|&id| id as i32).collect();
    let shape = &golden.get("input.tokens").shape;
    Targets { rows: shape[0], steps: shape[1], inputs: ids("input.tokens"), targets: ids("input.targets") }
}

fn flags(golden: &Golden, name: &str) -> Vec<bool> {
    golden.get(name).data.iter().map(|&flag| flag != 0.0).collect()
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

/// The gradients of a model under the names of its parameters.
fn gradients_by_name(model: &Comer, gradients: &GradientsParams) -> BTreeMap<String, Vec<f32>> {
    struct Collector<'a> {
        gradients: &'a GradientsParams,
        by_name: BTreeMap<String, Vec<f32>>,
        path: Vec<String>,
    }
    impl ModuleVisitor for Collector<'_> {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.path.push(name.into());
        }

        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.pop();
        }

        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.gradients.get::<D>(param.id) {
                self.by_name.insert(self.path.join(".").replace("densenet.", ""), values(gradient));
            }
        }
    }
    let mut collector = Collector { gradients, by_name: BTreeMap::new(), path: Vec::new() };
    model.visit(&mut collector);
    collector.by_name
}

/// Compares values and reports the largest differences.
struct Check {
    model: &'static str,
    worst: BTreeMap<&'static str, (f32, String)>,
}

impl Check {
    fn new(model: &'static str) -> Self {
        Self { model, worst: BTreeMap::new() }
    }

    fn near(&mut self, name: &str, found: Vec<f32>, expected: &[f32], most: f32) {
        assert_eq!(found.len(), expected.len(), "{}: {name}", self.model);
        let off =
            found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, |worst, off| off.max(worst));
        self.record("absolute", name, off, most);
        assert!(found.iter().all(|x| x.is_finite()), "{}: {name} is not finite", self.model);
    }

    /// The norm of the difference relative to the norm of the expected values, which is at least 1e-5: the bias of the
    /// refinement's batch norm shifts all cells equally, which softmax ignores, so its gradient is rounding only.
    fn relative(&mut self, name: &str, found: &[f32], expected: &[f32], most: f32) {
        assert_eq!(found.len(), expected.len(), "{}: {name}", self.model);
        let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>().sqrt();
        let difference = norm(&mut found.iter().zip(expected).map(|(a, b)| a - b));
        self.record("relative", name, difference / norm(&mut expected.iter().copied()).max(1e-5), most);
    }

    fn record(&mut self, kind: &'static str, name: &str, off: f32, most: f32) {
        assert!(off <= most, "{}: {name} is off by {off}, expected at most {most}", self.model);
        let worst = self.worst.entry(kind).or_default();
        if off >= worst.0 {
            *worst = (off, name.to_string());
        }
    }

    fn report(&self) {
        for (kind, (off, name)) in &self.worst {
            eprintln!("{}: largest {kind} difference {off:.1e} ({name})", self.model);
        }
    }
}

trait Gradients {
    fn model_gradients(&self, model: &comer::internal::ModelFile) -> BTreeMap<String, Vec<f32>>;
}

impl Gradients for Golden {
    /// The golden gradients under the names of the model file: they are read like the weights of a model.
    fn model_gradients(&self, model: &comer::internal::ModelFile) -> BTreeMap<String, Vec<f32>> {
        let trainable =
            tensor_specs(&model.config, model.vocab.len()).into_iter().filter(|spec| spec.trainable);
        let weights: Weights = self.model("train.grad.").weights;
        trainable.map(|spec| (spec.name.clone(), weights[&spec.name].data.clone())).collect()
    }
}
