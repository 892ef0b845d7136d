//! How weights follow gradients: SGD with momentum, AdamW, shortened gradients, averaged weights.
//!
//! The weights live in plain memory and devices are asked for gradients alone, so that there is one optimiser and one
//! checkpoint for all of them, and a run can go on elsewhere.

use comer::internal::weights::{Tensor, Weights};
use rayon::prelude::*;

use crate::recipe::{Optimizer, OptimizerKind};

/// What an optimiser remembers between steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Steps taken.
    pub steps: u64,
    /// The momentum, or the mean of the gradients; empty before the first step.
    pub first: Weights,
    /// The mean of the gradients' squares; AdamW only.
    pub second: Weights,
    /// The averaged weights, the running statistics included; empty if none are wanted.
    pub average: Weights,
}

/// Keeps Adam's divisor away from zero.
const EPSILON: f32 = 1e-8;

/// The length of all gradients together.
pub fn length(gradients: &Weights) -> f64 {
    let sum = |tensor: &Tensor| tensor.data.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    // In the order of the names, so that the sum does not depend on the threads.
    let sums: Vec<f64> = gradients.par_iter().map(|(_, tensor)| sum(tensor)).collect();
    sums.iter().sum::<f64>().sqrt()
}

impl Memory {
    /// One step along `gradients`, whose length is `length`, at a rate. Tensors without a gradient stay.
    pub fn step(
        &mut self,
        recipe: &Optimizer,
        rate: f64,
        weights: &mut Weights,
        gradients: &Weights,
        length: f64,
    ) {
        self.steps += 1;
        if self.first.is_empty() {
            self.first = zeros(gradients);
            if recipe.kind == OptimizerKind::Adamw {
                self.second = zeros(gradients);
            }
        }
        let shorten =
            if recipe.clip > 0.0 && length > recipe.clip { recipe.clip / length } else { 1.0 } as f32;
        let trained = weights.iter_mut().filter(|(name, _)| gradients.contains_key(*name));
        match recipe.kind {
            OptimizerKind::Sgd => {
                let rule = Sgd {
                    rate: rate as f32,
                    momentum: recipe.momentum as f32,
                    decay: recipe.weight_decay as f32,
                    shorten,
                };
                let parts: Vec<_> = trained.zip(self.first.values_mut()).collect();
                parts.into_par_iter().for_each(|((name, weight), first)| {
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
                    shorten,
                };
                let memory = self.first.values_mut().zip(self.second.values_mut());
                let parts: Vec<_> = trained.zip(memory).collect();
                parts.into_par_iter().for_each(|((name, weight), (first, second))| {
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

    /// Moves the averaged weights towards `weights`, quicker in the first steps, when there is little to average.
    pub fn follow(&mut self, recipe: &Optimizer, weights: &Weights) {
        if recipe.average == 0.0 {
            return;
        }
        if self.average.is_empty() {
            self.average = weights.clone();
            return;
        }
        let early = (1.0 + self.steps as f64) / (10.0 + self.steps as f64);
        let stay = recipe.average.min(early) as f32;
        let parts: Vec<_> = self.average.values_mut().zip(weights.values()).collect();
        parts.into_par_iter().for_each(|(average, weight)| {
            for (average, &weight) in average.data.iter_mut().zip(&weight.data) {
                *average += (1.0 - stay) * (weight - *average);
            }
        });
    }
}

fn zeros(like: &Weights) -> Weights {
    let zero = |tensor: &Tensor| Tensor { shape: tensor.shape.clone(), data: vec![0.0; tensor.data.len()] };
    like.iter().map(|(name, tensor)| (name.clone(), zero(tensor))).collect()
}

struct Sgd {
    rate: f32,
    momentum: f32,
    decay: f32,
    shorten: f32,
}

impl Sgd {
    fn step(&self, weights: &mut [f32], first: &mut [f32], gradients: &[f32]) {
        for ((weight, first), &gradient) in weights.iter_mut().zip(first).zip(gradients) {
            let gradient = gradient * self.shorten + self.decay * *weight;
            *first = self.momentum * *first + gradient;
            *weight -= self.rate * *first;
        }
    }
}

struct Adamw {
    rate: f32,
    betas: [f32; 2],
    corrections: [f32; 2],
    shorten: f32,
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
            let gradient = gradient * self.shorten;
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

    /// Three steps down the squares of the weights. The numbers are those of `torch.optim.SGD(lr=0.1, momentum=0.8,
    /// weight_decay=0.01)` and of `torch.optim.AdamW(lr=0.1, weight_decay=0.01)`.
    #[test]
    fn steps_equal_those_of_pytorch() {
        for (kind, expected) in [
            (OptimizerKind::Sgd, [0.062_242, -0.248_968, 0.373_452]),
            (OptimizerKind::Adamw, [0.203_712_4, -1.694_944_5, 2.691_703_6]),
        ] {
            let recipe = Optimizer { kind, weight_decay: 0.01, momentum: 0.8, ..Optimizer::default() };
            let (mut weights, mut memory) = (named(&[0.5, -2.0, 3.0]), Memory::default());
            for _ in 0..3 {
                let gradient: Vec<f32> = weights["weight"].data.iter().map(|x| 2.0 * x).collect();
                memory.step(&recipe, 0.1, &mut weights, &named(&gradient), 0.0);
            }
            for (found, expected) in weights["weight"].data.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{kind:?}: {weights:?}");
            }
        }
    }

    #[test]
    fn long_gradients_are_shortened() {
        let recipe = Optimizer { momentum: 0.0, weight_decay: 0.0, clip: 1.0, ..Optimizer::default() };
        let (mut weights, gradients) = (named(&[0.0, 0.0]), named(&[3.0, 4.0]));
        let long = length(&gradients);
        assert_eq!(long, 5.0);
        Memory::default().step(&recipe, 1.0, &mut weights, &gradients, long);
        for (found, expected) in weights["weight"].data.iter().zip([-0.6, -0.8]) {
            assert!((found - expected).abs() < 1e-6, "{weights:?}");
        }
    }

    #[test]
    fn the_average_follows_the_weights() {
        let recipe = Optimizer { average: 0.9, ..Optimizer::default() };
        let mut memory = Memory { steps: 1000, ..Memory::default() };
        memory.follow(&recipe, &named(&[1.0]));
        memory.follow(&recipe, &named(&[2.0]));
        assert!((memory.average["weight"].data[0] - 1.1).abs() < 1e-6);
    }
}
