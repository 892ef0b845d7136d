//! Gated recurrent units: the gates of a step over rows of states, forward and backward.
//!
//! With the rows of the input part `W_i x + b_i` and of the state part `W_s h + b_s` in the order r, z, n:
//! `r = sigmoid(i_r + s_r)`, `z = sigmoid(i_z + s_z)`, `n = tanh(i_n + r s_n)`, `h' = (1 - z) n + z h`.

use comer::internal::weights::Weights;

use super::linear::Linear;
use super::product::Matrix;
use super::simd::vectorised;
use super::softmax::{sigmoid, tanh};

/// A GRU of the model file.
pub(super) struct Gru<'a> {
    pub input: Linear<'a>,
    pub state: Linear<'a>,
    width: usize,
}

/// What the backward pass needs of all steps.
pub(super) struct GruTape {
    /// The states before, `[rows][d]`.
    pub previous: Vec<f32>,
    /// The states after, `[rows][d]`.
    pub next: Vec<f32>,
    gates: Vec<f32>, // [rows][r, z, n, s_n]
}

/// The gradients of the input part and the state part of all steps, each `[rows][3 d]`.
pub(super) struct GruGradients {
    pub input: Vec<f32>,
    state: Vec<f32>,
}

impl<'a> Gru<'a> {
    pub fn new(weights: &'a Weights, path: &str) -> Self {
        let [input, state] = ["input", "state"].map(|leaf| Linear::new(weights, format!("{path}.{leaf}")));
        let width = weights[&format!("{path}.state.weight")].shape[1];
        Self { input, state, width }
    }

    pub fn tape(&self, rows: usize) -> GruTape {
        let zeros = |width: usize| vec![0.0; rows * width];
        GruTape { previous: zeros(self.width), next: zeros(self.width), gates: zeros(4 * self.width) }
    }

    pub fn gradients(&self, rows: usize) -> GruGradients {
        let zeros = || vec![0.0; rows * 3 * self.width];
        GruGradients { input: zeros(), state: zeros() }
    }

    /// Rows `rows` of all steps: from their input parts (`[rows][3 d]`) and the states before them.
    pub fn forward(&self, tape: &mut GruTape, rows: std::ops::Range<usize>, input: &[f32], previous: &[f32]) {
        let d = self.width;
        let state = self.state.forward(Matrix::rows(previous, rows.len(), d, d));
        tape.previous[rows.start * d..rows.end * d].copy_from_slice(previous);
        let next = &mut tape.next[rows.start * d..rows.end * d];
        let gates = &mut tape.gates[rows.start * 4 * d..rows.end * 4 * d];
        vectorised(
            #[inline(always)]
            || {
                let parts = input.chunks_exact(3 * d).zip(state.chunks_exact(3 * d));
                let states = previous.chunks_exact(d).zip(next.chunks_exact_mut(d));
                for (((input, state), (h, next)), gates) in
                    parts.zip(states).zip(gates.chunks_exact_mut(4 * d))
                {
                    let (r, rest) = gates.split_at_mut(d);
                    let (z, rest) = rest.split_at_mut(d);
                    let (n, s) = rest.split_at_mut(d);
                    for i in 0..d {
                        r[i] = sigmoid(input[i] + state[i]);
                        z[i] = sigmoid(input[d + i] + state[d + i]);
                        s[i] = state[2 * d + i];
                        n[i] = tanh(input[2 * d + i] + r[i] * s[i]);
                        next[i] = n[i] + z[i] * (h[i] - n[i]);
                    }
                }
            },
        );
    }

    /// From the gradient of the states after rows `rows`: stores those of both parts and returns that of the states before.
    pub fn backward(
        &self,
        tape: &GruTape,
        rows: std::ops::Range<usize>,
        gradient: &[f32],
        gradients: &mut GruGradients,
    ) -> Vec<f32> {
        let d = self.width;
        let mut result = vec![0.0; gradient.len()];
        let (first, last) = (rows.start * 3 * d, rows.end * 3 * d);
        let (inputs, states) = (&mut gradients.input[first..last], &mut gradients.state[first..last]);
        let (previous, gates) = (&tape.previous[rows.start * d..], &tape.gates[rows.start * 4 * d..]);
        vectorised(
            #[inline(always)]
            || {
                let parts = inputs.chunks_exact_mut(3 * d).zip(states.chunks_exact_mut(3 * d));
                let rows = gradient.chunks_exact(d).zip(result.chunks_exact_mut(d));
                let tape = previous.chunks_exact(d).zip(gates.chunks_exact(4 * d));
                for (((input, state), (g, result)), (h, gates)) in parts.zip(rows).zip(tape) {
                    let (r, rest) = gates.split_at(d);
                    let (z, rest) = rest.split_at(d);
                    let (n, s) = rest.split_at(d);
                    for i in 0..d {
                        let candidate = g[i] * (1.0 - z[i]) * (1.0 - n[i] * n[i]);
                        let update = g[i] * (h[i] - n[i]) * z[i] * (1.0 - z[i]);
                        let reset = candidate * s[i] * r[i] * (1.0 - r[i]);
                        (input[i], input[d + i], input[2 * d + i]) = (reset, update, candidate);
                        (state[i], state[d + i], state[2 * d + i]) = (reset, update, candidate * r[i]);
                        result[i] = g[i] * z[i];
                    }
                }
            },
        );
        self.state.backward_add(&gradients.state[first..last], &mut result);
        result
    }

    /// Stores the gradients of the weights, given the inputs of all steps (`[rows][d]`), and returns that of the inputs.
    pub fn insert_grad(
        &self,
        tape: &GruTape,
        inputs: &[f32],
        gradients: &GruGradients,
        weights: &mut Weights,
    ) -> Vec<f32> {
        let d = self.width;
        let rows = |values| Matrix::rows(values, inputs.len() / d, d, d);
        self.input.insert_grad(rows(inputs), &gradients.input, weights);
        self.state.insert_grad(rows(&tape.previous), &gradients.state, weights);
        self.input.backward(&gradients.input)
    }
}
