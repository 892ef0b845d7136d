//! Training is equal on one device, on two devices, on the CPU network and on wgpu.

use std::sync::atomic::AtomicBool;

use comer::Image;
use comer::internal::dataset::StoredImage;
use comer::internal::{ModelConfig, Vocab};
use comer::{Ink, Point, Stroke};
use comer_burn::{BurnBackend, device};
use comer_train::backend::by_name;
use comer_train::recipe::{Batches, Data, Order, Recipe};
use comer_train::run_folder::RunFolder;
use comer_train::samples::{Sample, Samples};
use comer_train::trainer::Trainer;

/// Pictures of one size with formulas of one length, so that nothing is padded.
fn samples() -> Samples {
    let sample = |index: usize| {
        let pixels = (0..48 * 32).map(|pixel| if (pixel * (index + 3)) % 11 < 3 { 255 } else { 0 }).collect();
        let tokens = (0..4).map(|position| 3 + ((index + position * 7) % 20) as u16).collect();
        let picture = Image::new(48, 32, pixels).unwrap();
        let point = |x: usize, y: usize| Point { x: x as f64, y: y as f64 };
        let stroke = Stroke { points: vec![point(0, 0), point(10 + index, 28)] };
        let ink = Ink::new(vec![stroke]).unwrap();
        Sample::with_picture(index.to_string(), tokens, StoredImage::new(&picture).unwrap())
            .with_strokes(ink, vec![30 + index as u16])
    };
    Samples { training: (0..24).map(sample).collect(), ..Samples::default() }
}

fn recipe() -> Recipe {
    let mut recipe = Recipe {
        epochs: 2,
        model: ModelConfig {
            d_model: 16,
            growth_rate: 4,
            layers_per_block: 2,
            encoder_dropout: 0.0,
            heads: 2,
            decoder_layers: 3,
            feed_forward: 32,
            dropout: 0.0,
            coverage_channels: 4,
            ..ModelConfig::default()
        },
        data: Data { hold_out: 0.0, ..Data::default() },
        batches: Batches { pictures: 3, pixels: 320_000, order: Order::Random, accumulate: 4 },
        ..Recipe::default()
    };
    recipe.augmentation.scale = [1.0, 1.0];
    recipe.optimizer.rate = 0.02;
    recipe.loss.label_smoothing = 0.1;
    recipe.loss.symbols = 0.5;
    recipe
}

/// The losses of all steps, including symbol losses.
fn losses(devices: &str) -> Vec<f64> {
    let (recipe, vocab, samples, stop) = (recipe(), Vocab::crohme(), samples(), AtomicBool::new(false));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut backend = by_name(devices, &recipe, |name| {
        Ok(Box::new(BurnBackend::new(&recipe, vocab.clone(), &device(name)?)))
    })
    .unwrap();
    let trainer = Trainer {
        recipe: &recipe,
        vocab: &vocab,
        samples: &samples,
        backend: backend.as_mut(),
        folder: Some(RunFolder::create(&path, &recipe, "").unwrap()),
        stop: &stop,
        provenance: Default::default(),
        cpu_clock: &|| 0.0,
    };
    let outcome = trainer.run(Trainer::start(&recipe, &vocab).unwrap(), &mut |_| {}).unwrap();
    assert!(outcome.finished);
    let log = std::fs::read_to_string(path.join("log.jsonl")).unwrap();
    let losses = |line: &str| {
        let step: serde_json::Value = serde_json::from_str(line).unwrap();
        ["loss", "symbols"].map(|key| step[key].as_f64().unwrap())
    };
    log.lines().flat_map(losses).collect()
}

#[test]
fn several_devices_and_the_cpu_network_train_like_one_device_of_burn() {
    let one = losses("cpu-burn");
    assert_eq!(one.len(), 8);
    assert!(one[6] < one[0] && one[7] < one[1], "the loss did not fall: {one:?}");
    for devices in ["cpu-burn,cpu-burn", "cpu", "cpu,cpu-burn,cpu"] {
        let found = losses(devices);
        for (a, b) in one.iter().zip(&found) {
            assert!((a - b).abs() < 1e-4, "{devices}: {found:?}, one device {one:?}");
        }
        assert_eq!(found.len(), one.len());
    }
}

/// On a machine without a GPU, Mesa's software Vulkan (lavapipe) is the device.
#[cfg(feature = "wgpu")]
#[test]
fn wgpu_trains_like_the_cpu_network() {
    let drivers = |folder| std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
    if cfg!(target_os = "linux") && !["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"].into_iter().any(drivers)
    {
        return comer_testing::skip("no Vulkan driver: install mesa-vulkan-drivers");
    }
    let (expected, found) = (losses("cpu"), losses("wgpu"));
    assert_eq!(found.len(), expected.len());
    for (a, b) in expected.iter().zip(&found) {
        assert!((a - b).abs() < 1e-3, "wgpu {found:?}, CPU {expected:?}");
    }
}
