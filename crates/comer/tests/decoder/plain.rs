//! The decoder as the paper's equations read, over the whole prefix at once and in f64: the oracle of the engine's.

use comer::internal::engine::Features;
use comer::internal::vocab::{PAD, TokenId};
use comer::internal::{Coverage, ModelFile};

type Matrix = Vec<Vec<f64>>;

fn tensor(model: &ModelFile, name: &str) -> Vec<f64> {
    model.weights[name].data.iter().map(|&x| f64::from(x)).collect()
}

fn linear(model: &ModelFile, path: &str, rows: &Matrix, outputs: std::ops::Range<usize>) -> Matrix {
    let (weight, bias) = (tensor(model, &format!("{path}.weight")), tensor(model, &format!("{path}.bias")));
    let row = |x: &Vec<f64>| {
        let output = |o: usize| bias[o] + dot(&weight[o * x.len()..][..x.len()], x);
        outputs.clone().map(output).collect()
    };
    rows.iter().map(row).collect()
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(x, y)| x * y).sum()
}

fn softmax(row: &mut [f64]) {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.iter_mut().for_each(|x| *x = (*x - most).exp());
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
}

fn add_and_normalise(model: &ModelFile, path: &str, rows: &mut Matrix, branch: &Matrix) {
    let (scale, shift) = (tensor(model, &format!("{path}.weight")), tensor(model, &format!("{path}.bias")));
    for (row, branch) in rows.iter_mut().zip(branch) {
        row.iter_mut().zip(branch).for_each(|(x, y)| *x += y);
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
        for (column, x) in row.iter_mut().enumerate() {
            *x = (*x - mean) / (variance + 1e-5).sqrt() * scale[column] + shift[column];
        }
    }
}

/// Equation 9: the refinement of each step from the attention maps of all steps, `[channels][steps][cells]`.
fn refinement(model: &ModelFile, maps: &[Matrix], height: usize, width: usize) -> Vec<Matrix> {
    let [kernel, bias, projection] = ["conv.weight", "conv.bias", "projection.weight"]
        .map(|name| tensor(model, &format!("decoder.refinement.{name}")));
    let [scale, shift, mean, variance] = ["weight", "bias", "mean", "variance"]
        .map(|name| tensor(model, &format!("decoder.refinement.norm.{name}")));
    let (steps, cells, channels) = (maps[0].len(), height * width, bias.len());
    let mut refinement = vec![vec![vec![0.0; cells]; steps]; scale.len()];
    for step in 0..steps {
        let earlier =
            |map: &Matrix| (0..cells).map(|cell| map[..step].iter().map(|row| row[cell]).sum()).collect();
        let coverage: Matrix = maps.iter().map(earlier).collect();
        for cell in 0..cells {
            let (y, x) = (cell / width, cell % width);
            let hidden = (0..channels).map(|channel| {
                let mut sum = bias[channel];
                for (input, coverage) in coverage.iter().enumerate() {
                    for (dy, dx) in (0..5).flat_map(|dy| (0..5).map(move |dx| (dy, dx))) {
                        if (2..height + 2).contains(&(y + dy)) && (2..width + 2).contains(&(x + dx)) {
                            sum += coverage[(y + dy - 2) * width + x + dx - 2]
                                * kernel[((channel * maps.len() + input) * 5 + dy) * 5 + dx];
                        }
                    }
                }
                f64::max(sum, 0.0)
            });
            let hidden: Vec<f64> = hidden.collect();
            for (head, map) in refinement.iter_mut().enumerate() {
                let projected = dot(&projection[head * channels..][..channels], &hidden);
                map[step][cell] =
                    (projected - mean[head]) / (variance[head] + 1e-5).sqrt() * scale[head] + shift[head];
            }
        }
    }
    refinement
}

/// The log-probabilities of what comes after each token, `[tokens][vocab]`.
pub fn decode(model: &ModelFile, features: &Features, tokens: &[TokenId]) -> Matrix {
    let (config, steps) = (&model.config, tokens.len());
    let (d, heads, head_width) = (config.d_model, config.heads, config.head_width());
    let memory: Matrix =
        features.values.chunks(d).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect();
    let embedding = tensor(model, "decoder.embedding.weight");
    let mut x: Matrix =
        tokens.iter().map(|&token| embedding[usize::from(token) * d..][..d].to_vec()).collect();
    add_and_normalise(model, "decoder.embedding_norm", &mut x, &vec![vec![0.0; d]; steps]);
    let angle =
        |position: usize, i: usize| position as f64 * 10_000f64.powf(-((i / 2 * 2) as f64) / d as f64);
    let encoding = |position: usize| {
        (0..d).map(|i| if i % 2 == 0 { angle(position, i).sin() } else { angle(position, i).cos() }).collect()
    };
    add_and_normalise(model, "decoder.input_norm", &mut x, &(0..steps).map(encoding).collect());

    let energies = |q: &Matrix, k: &Matrix, head: usize| -> Matrix {
        let part = |row: &[f64]| row[head * head_width..][..head_width].to_vec();
        let scale = (head_width as f64).powf(-0.5);
        q.iter().map(|q| k.iter().map(|k| dot(&part(q), &part(k)) * scale).collect()).collect()
    };
    let mix = |maps: &[Matrix], v: &Matrix| -> Matrix {
        let value = |step: usize, i: usize| {
            let map: &Vec<f64> = &maps[i / head_width][step];
            map.iter().zip(v).map(|(share, v)| share * v[i]).sum()
        };
        (0..steps).map(|step| (0..d).map(|i| value(step, i)).collect()).collect()
    };
    let mut before: Vec<Matrix> = Vec::new();
    for layer in 0..config.decoder_layers {
        let path = format!("decoder.layers.{layer}");
        let own = format!("{path}.self_attention");
        let [q, k, v] =
            [0, 1, 2].map(|part| linear(model, &format!("{own}.packed"), &x, part * d..(part + 1) * d));
        let mut maps: Vec<Matrix> = (0..heads).map(|head| energies(&q, &k, head)).collect();
        for (step, row) in maps.iter_mut().flat_map(|map| map.iter_mut().enumerate()) {
            for (key, energy) in row.iter_mut().enumerate() {
                if key > step || tokens[key] == PAD {
                    *energy = f64::NEG_INFINITY;
                }
            }
            softmax(row);
        }
        let branch = linear(model, &format!("{own}.output"), &mix(&maps, &v), 0..d);
        add_and_normalise(model, &format!("{own}_norm"), &mut x, &branch);

        let cross = format!("{path}.cross_attention");
        let q = linear(model, &format!("{cross}.packed"), &x, 0..d);
        let [k, v] =
            [1, 2].map(|part| linear(model, &format!("{cross}.packed"), &memory, part * d..(part + 1) * d));
        let mut maps: Vec<Matrix> = (0..heads).map(|head| energies(&q, &k, head)).collect();
        if layer > 0 && config.coverage != Coverage::None {
            let mut plain = maps.clone();
            plain.iter_mut().flatten().for_each(|row| softmax(row));
            let mut sources = Vec::new();
            if config.coverage.uses_cross() {
                sources.extend(before);
            }
            if config.coverage.uses_self() {
                sources.extend(plain);
            }
            let refinement = refinement(model, &sources, features.height, features.width);
            for (energy, refinement) in
                maps.iter_mut().flatten().flatten().zip(refinement.iter().flatten().flatten())
            {
                *energy -= refinement;
            }
        }
        maps.iter_mut().flatten().for_each(|row| softmax(row));
        let branch = linear(model, &format!("{cross}.output"), &mix(&maps, &v), 0..d);
        add_and_normalise(model, &format!("{cross}_norm"), &mut x, &branch);
        before = maps;

        let mut wide = linear(model, &format!("{path}.expand"), &x, 0..config.feed_forward);
        wide.iter_mut().flatten().for_each(|x| *x = x.max(0.0));
        let branch = linear(model, &format!("{path}.contract"), &wide, 0..d);
        add_and_normalise(model, &format!("{path}.feed_forward_norm"), &mut x, &branch);
    }
    let mut output = linear(model, "decoder.output", &x, 0..model.vocab.len());
    for row in &mut output {
        softmax(row);
        row.iter_mut().for_each(|x| *x = x.ln());
    }
    output
}
