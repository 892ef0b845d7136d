//! The encoder against the reference's numbers: first a plain one written out layer by layer, then the fast one
//! against it, on every instruction set, at many sizes and thread counts.

use std::io::Read;

use comer::Error;
use comer::Image;
use comer::internal::checkpoint::{Hints, import};
use comer::internal::config::{BLOCKS, NORM_EPSILON};
use comer::internal::engine::encoder::Encoder;
use comer::internal::engine::kernels::{Isa, Kernels};
use comer::internal::{ModelConfig, ModelFile, Vocab};
use comer_testing::{Golden, golden_model, shared};

/// Channels of a picture, one plane after the other.
#[derive(Clone)]
struct Map {
    channels: usize,
    height: usize,
    width: usize,
    values: Vec<f32>,
}

impl Map {
    fn at(&self, channel: usize, y: isize, x: isize) -> f32 {
        let inside = (0..self.height as isize).contains(&y) && (0..self.width as isize).contains(&x);
        if inside { self.values[(channel * self.height + y as usize) * self.width + x as usize] } else { 0.0 }
    }

    fn from_fn(
        channels: usize,
        height: usize,
        width: usize,
        value: impl Fn(usize, isize, isize) -> f32,
    ) -> Self {
        let mut values = Vec::with_capacity(channels * height * width);
        for channel in 0..channels {
            for y in 0..height as isize {
                values.extend((0..width as isize).map(|x| value(channel, y, x)));
            }
        }
        Self { channels, height, width, values }
    }

    /// Half the size, rounded up, from the pixels that each window really has.
    fn pool(&self, of: impl Fn(&[f32]) -> f32) -> Self {
        Self::from_fn(self.channels, self.height.div_ceil(2), self.width.div_ceil(2), |channel, y, x| {
            let mut window = Vec::new();
            for y in 2 * y..(2 * y + 2).min(self.height as isize) {
                window.extend((2 * x..(2 * x + 2).min(self.width as isize)).map(|x| self.at(channel, y, x)));
            }
            of(&window)
        })
    }
}

/// The encoder as the paper and the released weights define it, nothing folded, one number at a time.
struct PlainEncoder<'a>(&'a ModelFile);

impl PlainEncoder<'_> {
    fn tensor(&self, name: &str) -> &[f32] {
        &self.0.weights[&format!("encoder.{name}")].data
    }

    fn conv(&self, path: &str, input: &Map, stride: usize) -> Map {
        let shape = &self.0.weights[&format!("encoder.{path}.weight")].shape;
        let (weight, side) = (self.tensor(&format!("{path}.weight")), shape[2]);
        let border = (side / 2) as isize;
        let (height, width) = (input.height.div_ceil(stride), input.width.div_ceil(stride));
        Map::from_fn(shape[0], height, width, |row, y, x| {
            let mut sum = 0.0;
            for channel in 0..input.channels {
                for dy in 0..side {
                    for dx in 0..side {
                        let (y, x) = (y * stride as isize + dy as isize, x * stride as isize + dx as isize);
                        sum += weight[((row * input.channels + channel) * side + dy) * side + dx]
                            * input.at(channel, y - border, x - border);
                    }
                }
            }
            sum
        })
    }

    fn norm(&self, path: &str, input: &Map) -> Map {
        let part = |name: &str| self.tensor(&format!("{path}.{name}"));
        let (weight, bias, mean, variance) = (part("weight"), part("bias"), part("mean"), part("variance"));
        Map::from_fn(input.channels, input.height, input.width, |c, y, x| {
            let scale = (variance[c] + NORM_EPSILON as f32).sqrt();
            (input.at(c, y, x) - mean[c]) / scale * weight[c] + bias[c]
        })
    }

    /// Convolution, batch norm, ReLU.
    fn layer(&self, path: &str, input: &Map, stride: usize) -> Map {
        let mut map = self.norm(&format!("{path}.norm"), &self.conv(&format!("{path}.conv"), input, stride));
        map.values.iter_mut().for_each(|value| *value = value.max(0.0));
        map
    }

    fn densenet(&self, picture: &Map) -> Map {
        let largest = |window: &[f32]| window.iter().copied().fold(f32::MIN, f32::max);
        let mean = |window: &[f32]| window.iter().sum::<f32>() / window.len() as f32;
        let mut map = self.layer("stem", picture, 2).pool(largest);
        for block in 0..BLOCKS {
            for layer in 0..self.0.config.layers_per_block {
                let narrow = self.layer(&format!("blocks.{block}.{layer}.reduce"), &map, 1);
                let added = self.layer(&format!("blocks.{block}.{layer}.grow"), &narrow, 1);
                map.values.extend(added.values);
                map.channels += added.channels;
            }
            if block + 1 < BLOCKS {
                map = self.layer(&format!("transitions.{block}"), &map, 1).pool(mean);
            }
        }
        self.norm("last_norm", &map)
    }

    /// `[cells, d_model]`; what lies below `height` and right of `width` is padding, whose features mean nothing.
    fn features(&self, densenet: &Map, (height, width): (usize, usize)) -> Vec<f32> {
        let d = self.0.config.d_model;
        let (weight, bias) = (self.tensor("norm.weight"), self.tensor("norm.bias"));
        let map = self.conv("projection", densenet, 1);
        let mut features = Vec::new();
        for (y, x) in (0..map.height).flat_map(|y| (0..map.width).map(move |x| (y, x))) {
            let position = |i: usize| {
                let (i, place, count) = if i < d / 2 { (i, x, width) } else { (i - d / 2, y, height) };
                let angle = (place + 1) as f32 / (count as f32 + 1e-6) * std::f32::consts::TAU;
                let turned = angle / 10000f32.powf((i / 2 * 2) as f32 / (d / 2) as f32);
                if i % 2 == 0 { turned.sin() } else { turned.cos() }
            };
            let value = |i: usize| {
                map.at(i, y as isize, x as isize) + self.tensor("projection.bias")[i] + position(i)
            };
            let vector: Vec<f32> = (0..d).map(value).collect();
            let mean = vector.iter().sum::<f32>() / d as f32;
            let variance = vector.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / d as f32;
            let scale = (variance + NORM_EPSILON as f32).sqrt();
            features.extend(
                vector
                    .iter()
                    .zip(weight)
                    .zip(bias)
                    .map(|((v, weight), bias)| (v - mean) / scale * weight + bias),
            );
        }
        features
    }

    fn read(&self, picture: &Image) -> Vec<f32> {
        let map = Map {
            channels: 1,
            height: picture.height(),
            width: picture.width(),
            values: picture.pixels().iter().map(|&pixel| f32::from(pixel) / 255.0).collect(),
        };
        let densenet = self.densenet(&map);
        self.features(&densenet, (densenet.height, densenet.width))
    }
}

fn greatest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// A picture of the same scribble each time.
fn scribble(width: usize, height: usize) -> Image {
    let ink = |x: usize, y: usize| {
        let (x, y) = (x as f32, y as f32);
        let on =
            (y - height as f32 * (0.5 + 0.4 * (x / 9.0).sin())).abs() < 1.6 || (x + 2.0 * y) % 53.0 < 2.0;
        if on { 255 - (x as usize * 7 + y as usize) as u8 % 60 } else { 0 }
    };
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| ink(x, y))).collect();
    Image::new(width, height, pixels).unwrap()
}

/// A model with the released weights' shape (or a smaller one's) whose numbers are made up, but tame.
fn made_up_model(config: ModelConfig) -> ModelFile {
    let vocab = Vocab::crohme();
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let mut weights = comer::internal::weights::Weights::new();
    for spec in comer::internal::weights::tensor_specs(&config, vocab.len()) {
        let inputs: usize = spec.shape[1..].iter().product();
        let data = (0..spec.shape.iter().product()).map(|_| match spec.name.rsplit('.').next() {
            Some("variance") => 1.0 + 0.5 * noise(),
            Some("weight") if spec.shape.len() == 1 => 1.0 + 0.3 * noise(),
            Some("weight") => noise() * (4.0 / inputs as f32).sqrt(),
            _ => 0.2 * noise(),
        });
        let data = data.collect();
        weights.insert(spec.name, comer::internal::weights::Tensor { shape: spec.shape, data });
    }
    ModelFile { config, vocab, provenance: Default::default(), weights, language_model: None }
}

#[test]
fn the_plain_encoder_is_the_references() {
    let golden = Golden::tiny("fusion");
    let model = golden_model("fusion");
    let plain = PlainEncoder(&model);
    let (images, densenet) = (golden.get("input.images"), golden.get("eval.densenet"));
    let (features, padding) = (golden.get("eval.features"), golden.get("eval.feature_padding"));
    let [batch, _, height, width] = images.shape[..] else { panic!("{:?}", images.shape) };
    for index in 0..batch {
        let part = |data: &[f32]| data[index * data.len() / batch..(index + 1) * data.len() / batch].to_vec();
        let found = plain.densenet(&Map { channels: 1, height, width, values: part(&images.data) });
        let difference = greatest_difference(&found.values, &part(&densenet.data));
        assert!(difference < 1e-5, "densenet of picture {index}: off by {difference}");

        let padding = part(&padding.data);
        let real = |along: usize, step: usize| (0..along).filter(|i| padding[i * step] == 0.0).count();
        let size = (real(found.height, found.width), real(found.width, 1));
        let (found, expected) = (plain.features(&found, size), part(&features.data));
        let d = model.config.d_model;
        for (cell, _) in padding.iter().enumerate().filter(|(_, padded)| **padded == 0.0) {
            let cell = cell * d..(cell + 1) * d;
            let difference = greatest_difference(&found[cell.clone()], &expected[cell]);
            assert!(difference < 1e-4, "features of picture {index}: off by {difference}");
        }
    }
}

#[test]
fn every_instruction_set_reads_what_the_plain_encoder_reads() {
    // Channels that fill no tile, and the tiny ones of the golden files; sizes that are odd at every halving.
    let small =
        ModelConfig { growth_rate: 5, layers_per_block: 2, d_model: 20, heads: 4, ..Default::default() };
    for model in [golden_model("fusion"), made_up_model(small)] {
        for (width, height) in [(16, 16), (17, 16), (33, 65), (120, 65), (150, 51), (1024, 16), (16, 256)] {
            let picture = scribble(width, height);
            let expected = PlainEncoder(&model).read(&picture);
            for kernels in Isa::available().filter_map(Kernels::with) {
                let encoder = Encoder::with_kernels(&model.config, &model.weights, kernels);
                let features = encoder.encode(&picture).unwrap();
                let quarter = |side: usize| (0..4).fold(side, |side, _| side.div_ceil(2));
                assert_eq!((features.height, features.width), (quarter(height), quarter(width)));
                let difference = greatest_difference(&features.values, &expected);
                assert!(difference < 1e-4, "{:?} {width} x {height}: off by {difference}", kernels.isa());
            }
        }
    }
}

#[test]
fn results_depend_neither_on_threads_nor_on_what_was_read_before() {
    let model = made_up_model(ModelConfig { layers_per_block: 3, ..Default::default() });
    let sizes = [(90, 70), (300, 41), (16, 16), (265, 95)];
    let alone = sizes.map(|(width, height)| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| Encoder::new(&model.config, &model.weights).encode(&scribble(width, height)).unwrap())
    });
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let encoder = Encoder::new(&model.config, &model.weights);
        for _ in 0..2 {
            for ((width, height), alone) in sizes.into_iter().zip(&alone) {
                let features = pool.install(|| encoder.encode(&scribble(width, height)).unwrap());
                assert!(features == *alone, "{width} x {height} on {threads} threads");
                let features = pool.install(|| encoder.encode_alone(&scribble(width, height)).unwrap());
                assert!(features == *alone, "{width} x {height} on one of {threads} threads");
            }
        }
    }
}

#[test]
fn pictures_outside_of_the_limits_are_refused() {
    let model = golden_model("bttr");
    let encoder = Encoder::new(&model.config, &model.weights);
    for (width, height) in [(15, 20), (20, 15), (1025, 100), (100, 257)] {
        let error = encoder.encode(&scribble(width, height)).unwrap_err();
        assert!(matches!(error, Error::Image { .. }), "{error}");
        assert!(error.to_string().contains(&format!("{width} x {height}")), "{error}");
    }
}

#[test]
fn released_weights_give_the_references_features() {
    let (Some(checkpoint), Some(golden), Some(data)) = (
        shared("models/released.ckpt"),
        shared("golden/released-forward.safetensors"),
        shared("data/crohme.zip"),
    ) else {
        return;
    };
    let model = import(checkpoint, Vocab::crohme(), &Hints::default()).unwrap();
    let golden = Golden::open(golden);
    let expected = golden.get("single.features");
    let picture = crohme_picture(&data, &format!("data/2014/img/{}.bmp", golden.metadata["single"]));
    for kernels in Isa::available().filter_map(Kernels::with) {
        let features =
            Encoder::with_kernels(&model.config, &model.weights, kernels).encode(&picture).unwrap();
        assert_eq!([1, features.height, features.width, model.config.d_model], expected.shape[..]);
        let difference = greatest_difference(&features.values, &expected.data);
        assert!(difference < 1e-3, "{:?}: off by {difference}", kernels.isa());
    }
}

/// An 8-bit grey bitmap out of a zip.
fn crohme_picture(zip: &std::path::Path, name: &str) -> Image {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(zip).unwrap()).unwrap();
    let mut bytes = Vec::new();
    archive.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
    let number = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (start, width, height) = (number(10) as usize, number(18) as usize, number(22) as usize);
    assert_eq!(bytes[28], 8, "bits for each pixel");
    let row = |y: usize| &bytes[start + (height - 1 - y) * width.next_multiple_of(4)..][..width];
    Image::new(width, height, (0..height).flat_map(row).copied().collect()).unwrap()
}
