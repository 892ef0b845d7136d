//! Optimisers: SGD with momentum and AdamW, with gradient clipping and averaged weights.
//!
//! Weights stay in host memory and devices only compute gradients, so all devices share one optimiser and one checkpoint
//! format, and a run can resume on another device.

use comer::internal::weights::{Tensor, Weights};
use rayon::prelude::*;

use crate::recipe::{Optimizer, OptimizerKind};

/// State of the optimiser between steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptimizerState {
    /// Completed steps.
    pub steps: u64,
    /// The momentum (SGD) or first moment (AdamW); empty before the first step.
    pub first: Weights,
    /// The second moment; AdamW only.
    pub second: Weights,
    /// The averaged weights, including running statistics; empty without averaging.
    pub average: Weights,
}

/// Added to the denominator of AdamW.
const EPSILON: f32 = 1e-8;

/// The L2 norm over all gradients.
pub fn grad_norm(gradients: &Weights) -> f64 {
    let sum = |tensor: &Tensor| tensor.data.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    // Summed in the order of the names: the result does not depend on the number of threads.
    let sums: Vec<f64> = gradients.par_iter().map(|(_, tensor)| sum(tensor)).collect();
    sums.iter().sum::<f64>().sqrt()
}

impl OptimizerState {
    /// Updates `weights` by one step with the learning rate `rate`. `norm` is the norm of `gradients`, for clipping.
    /// Tensors without a gradient do not change.
    pub fn step(
        &mut self,
        recipe: &Optimizer,
        rate: f64,
        weights: &mut Weights,
        gradients: &Weights,
        norm: f64,
    ) {
        self.steps += 1;
        fill(&mut self.first, gradients);
        if recipe.kind == OptimizerKind::Adamw {
            fill(&mut self.second, gradients);
        }
        let clip_scale =
            if recipe.clip > 0.0 && norm > recipe.clip { recipe.clip / norm } else { 1.0 } as f32;
        let trained = weights.iter_mut().filter(|(name, _)| gradients.contains_key(*name));
        match recipe.kind {
            OptimizerKind::Sgd => {
                let rule = Sgd {
                    rate: rate as f32,
                    momentum: recipe.momentum as f32,
                    decay: recipe.weight_decay as f32,
                    clip_scale,
                };
                let first = self.first.iter_mut().filter(|(name, _)| gradients.contains_key(*name));
                let parts: Vec<_> = trained.zip(first).collect();
                parts.into_par_iter().for_each(|((name, weight), (_, first))| {
                    rule.step(&mut weight.data, &mut first.data, &gradients[name].data);
                });
            }
            OptimizerKind::Adamw => {
                let steps = i32::try_from(self.steps).unwrap_or(i32::MAX);
                let correction = |beta: f64| (1.0 - beta.powi(steps)) as f32;
                let [first, second] = recipe.betas;
                let rule = Adamw {
                    rate: rate as f32,
                    betas: [first as f32, second as f32],
                    corrections: [correction(first), correction(second)],
                    clip_scale,
                };
                let first = self.first.iter_mut().filter(|(name, _)| gradients.contains_key(*name));
                let second = self.second.iter_mut().filter(|(name, _)| gradients.contains_key(*name));
                let parts: Vec<_> = trained.zip(first.zip(second)).collect();
                parts.into_par_iter().for_each(|((name, weight), ((_, first), (_, second)))| {
                    // Norms and biases have one dimension.
                    let decay = if weight.shape.len() > 1 { recipe.weight_decay as f32 } else { 0.0 };
                    rule.step(
                        &mut weight.data,
                        &mut first.data,
                        &mut second.data,
                        &gradients[name].data,
                        decay,
                    );
                });
            }
        }
    }

    /// Updates the averaged weights. The decay is smaller in the first steps, when there is little to average.
    pub fn update_average(&mut self, recipe: &Optimizer, weights: &Weights) {
        if recipe.average == 0.0 {
            return;
        }
        if self.average.is_empty() {
            self.average = weights.clone();
            return;
        }
        let warm_up = (1.0 + self.steps as f64) / (10.0 + self.steps as f64);
        let decay = recipe.average.min(warm_up) as f32;
        self.average.par_iter_mut().for_each(|(name, average)| {
            let Some(weight) = weights.get(name) else { return };
            for (average, &weight) in average.data.iter_mut().zip(&weight.data) {
                *average += (1.0 - decay) * (weight - *average);
            }
        });
    }
}

/// Adds zeros for gradients without a moment, so that both have the same names in the same order.
fn fill(moments: &mut Weights, gradients: &Weights) {
    for (name, tensor) in gradients {
        if !moments.contains_key(name) {
            let data = vec![0.0; tensor.data.len()];
            moments.insert(name.clone(), Tensor { shape: tensor.shape.clone(), data });
        }
    }
}

struct Sgd {
    rate: f32,
    momentum: f32,
    decay: f32,
    clip_scale: f32,
}

impl Sgd {
    fn step(&self, weights: &mut [f32], first: &mut [f32], gradients: &[f32]) {
        for ((weight, first), &gradient) in weights.iter_mut().zip(first).zip(gradients) {
            let gradient = gradient * self.clip_scale + self.decay * *weight;
            *first = self.momentum * *first + gradient;
            *weight -= self.rate * *first;
        }
    }
}

struct Adamw {
    rate: f32,
    betas: [f32; 2],
    corrections: [f32; 2],
    clip_scale: f32,
}

impl Adamw {
    fn step(
        &self,
        weights: &mut [f32],
        first: &mut [f32],
        second: &mut [f32],
        gradients: &[f32],
        decay: f32,
    ) {
        let [a, b] = self.betas;
        for (((weight, first), second), &gradient) in weights.iter_mut().zip(first).zip(second).zip(gradients)
        {
            let gradient = gradient * self.clip_scale;
            *first += (1.0 - a) * (gradient - *first);
            *second += (1.0 - b) * (gradient * gradient - *second);
            let deviation = (*second / self.corrections[1]).sqrt() + EPSILON;
            *weight -= self.rate * (*first / self.corrections[0] / deviation + decay * *weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f32]) -> Tensor {
        Tensor { shape: vec![1, values.len()], data: values.to_vec() }
    }

    fn named(values: &[f32]) -> Weights {
        Weights::from([("weight".to_string(), tensor(values))])
    }

    /// Three steps on the sum of the squared weights. The expected numbers are those of `torch.optim.SGD(lr=0.1, momentum=0.8,
    /// weight_decay=0.01)` and of `torch.optim.AdamW(lr=0.1, weight_decay=0.01)`.
    #[test]
    fn steps_equal_those_of_pytorch() {
        for (kind, expected) in [
            (OptimizerKind::Sgd, [0.062_242, -0.248_968, 0.373_452]),
            (OptimizerKind::Adamw, [0.203_712_4, -1.694_944_5, 2.691_703_6]),
        ] {
            let recipe = Optimizer { kind, weight_decay: 0.01, momentum: 0.8, ..Optimizer::default() };
            let (mut weights, mut state) = (named(&[0.5, -2.0, 3.0]), OptimizerState::default());
            for _ in 0..3 {
                let gradient: Vec<f32> = weights["weight"].data.iter().map(|x| 2.0 * x).collect();
                state.step(&recipe, 0.1, &mut weights, &named(&gradient), 0.0);
            }
            for (found, expected) in weights["weight"].data.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{kind:?}: {weights:?}");
            }
        }
    }

    /// Moments belong to a name, not to a position: here `b` has one and `a` is new.
    #[test]
    fn moments_are_found_by_name() {
        let recipe = Optimizer { momentum: 0.5, weight_decay: 0.0, ..Optimizer::default() };
        let two = |a: f32, b: f32| {
            Weights::from([("a".to_string(), tensor(&[a])), ("b".to_string(), tensor(&[b]))])
        };
        let mut state = OptimizerState { first: named(&[8.0]), ..OptimizerState::default() };
        let remembered = state.first.remove("weight").unwrap();
        state.first.insert("b".into(), remembered);
        let mut weights = two(0.0, 0.0);
        state.step(&recipe, 1.0, &mut weights, &two(1.0, 1.0), 0.0);
        assert_eq!((weights["a"].data[0], weights["b"].data[0]), (-1.0, -5.0));
    }

    #[test]
    fn gradients_are_clipped() {
        let recipe = Optimizer { momentum: 0.0, weight_decay: 0.0, clip: 1.0, ..Optimizer::default() };
        let (mut weights, gradients) = (named(&[0.0, 0.0]), named(&[3.0, 4.0]));
        let norm = grad_norm(&gradients);
        assert_eq!(norm, 5.0);
        OptimizerState::default().step(&recipe, 1.0, &mut weights, &gradients, norm);
        for (found, expected) in weights["weight"].data.iter().zip([-0.6, -0.8]) {
            assert!((found - expected).abs() < 1e-6, "{weights:?}");
        }
    }

    #[test]
    fn the_average_follows_the_weights() {
        let recipe = Optimizer { average: 0.9, ..Optimizer::default() };
        let mut state = OptimizerState { steps: 1000, ..OptimizerState::default() };
        state.update_average(&recipe, &named(&[1.0]));
        state.update_average(&recipe, &named(&[2.0]));
        assert!((state.average["weight"].data[0] - 1.1).abs() < 1e-6);
    }
}
