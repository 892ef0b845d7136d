//! The GRU decoder at work on one image, step by step (section 3.1 of the paper).
//!
//! A prefix is its states and the sum of its attention so far. `W_f F` is computed once for an image, and the part of the
//! coverage once for all prefixes that differ in their last token only.

use super::Features;
use super::coverage_window::Window;
use super::gru_decoder::{Gru, GruDecoder};
use super::kernels::panels::{Panels, Rows, product};
use super::kernels::rows::{coverage_energies, gru_gates, log_softmax, softmax};
use super::kernels::{Activation, Kernels};
use super::trace::{LayerTrace, StepTrace};
use crate::error::{Error, Result};
use crate::step_decoder::StepDecoder;
use crate::token::TokenId;

/// The decoder at work on one image: the prefixes of the last step, and their states.
pub struct GruState<'a> {
    decoder: &'a GruDecoder,
    /// The decoder's, on the thread that calls or on all cores.
    kernels: Kernels,
    window: Window,
    /// The part of the coverage's kernel that overlaps the image.
    coverage_kernel: Panels,
    /// `W_f F + b`, `[cells, attention_width]`
    features: Vec<f32>,
    /// `[cells, d_model / heads]` of each head.
    values: Vec<Panels>,
    /// The first states of each layer, `[d_model]`.
    initial: Vec<Vec<f32>>,
    is_started: bool,
    /// The states of each layer, `[rows, d_model]`.
    states: Vec<Vec<f32>>,
    /// The sum of the attention before the last step, for each row: `[rows, heads, cells]`.
    coverage: Vec<f32>,
    /// The attention of the last step, `[rows, heads, cells]`.
    attention: Vec<f32>,
    /// The log-probabilities, `[rows, vocab]`.
    output: Vec<f32>,
}

impl GruDecoder {
    /// Prepares to decode `features`.
    pub fn start(&self, features: &Features) -> Result<GruState<'_>> {
        let d = self.config.d_model;
        features.check(d)?;
        let (heads, width) = (self.config.heads, self.config.attention_width);
        let window = Window::new(heads, features.height, features.width);
        let (cells, taps, slice) = (window.cells(), window.taps(), d / heads);
        let kernel = window.crop(&self.coverage_kernel);
        let memory = &features.values;
        let mut mean = vec![0.0; d];
        for cell in memory.chunks_exact(d) {
            mean.iter_mut().zip(cell).for_each(|(sum, x)| *sum += x / cells as f32);
        }
        let initial = |linear: &Panels| {
            let mut state = multiply(self.kernels.alone(), linear, &mean, d);
            state.iter_mut().for_each(|x| *x = x.tanh());
            state
        };
        let mut state = GruState {
            decoder: self,
            kernels: self.kernels.alone(),
            window,
            coverage_kernel: Panels::pack(width, taps, |column, tap| kernel[column * taps + tap]),
            features: multiply(self.kernels, &self.features, memory, d),
            values: (0..heads)
                .map(|head| Panels::pack(slice, cells, |k, cell| memory[cell * d + head * slice + k]))
                .collect(),
            initial: self.initial.iter().map(initial).collect(),
            is_started: false,
            states: Vec::new(),
            coverage: Vec::new(),
            attention: Vec::new(),
            output: Vec::new(),
        };
        state.restart();
        Ok(state)
    }
}

impl StepDecoder for GruState<'_> {
    fn vocab_size(&self) -> usize {
        self.decoder.vocab
    }

    fn restart(&mut self) {
        self.is_started = false;
        self.states.clone_from(&self.initial);
        let maps = self.maps();
        self.coverage = vec![0.0; maps];
        self.attention = vec![0.0; maps];
    }

    fn step(&mut self, parents: &[usize], tokens: &[TokenId]) -> &[f32] {
        assert_eq!(parents.len(), tokens.len(), "every token has a parent");
        let (decoder, kernels) = (self.decoder, self.kernels);
        let (d, rows) = (decoder.config.d_model, tokens.len());
        let parents = if self.is_started { parents.to_vec() } else { vec![0; rows] };
        self.is_started = true;
        for states in &mut self.states {
            *states = gather(states, &parents, d);
        }
        let tokens: Vec<usize> = tokens.iter().map(|&token| usize::from(token)).collect();
        let token_parts = gather(&decoder.token_parts, &tokens, 3 * d);
        let state_parts = multiply(kernels, &decoder.token_state, &self.states[0], d);
        gru_gates(kernels, &token_parts, &state_parts, d, &mut self.states[0]);
        self.attend(&parents);
        let context = self.context(rows);
        run_gru(kernels, &decoder.context_gru, &context, &mut self.states[0]);
        for (layer, gru) in decoder.stacked.iter().enumerate() {
            let (below, above) = self.states.split_at_mut(layer + 1);
            run_gru(kernels, gru, &below[layer], &mut above[0]);
        }
        let last = self.states.last().map_or(&[][..], Vec::as_slice);
        let tokens = gather(&decoder.embedding, &tokens, d);
        let parts = tokens.chunks_exact(d).zip(last.chunks_exact(d)).zip(context.chunks_exact(d));
        let inputs: Vec<f32> = parts.flat_map(|((y, s), c)| [y, s, c]).flatten().copied().collect();
        let hidden = multiply(kernels, &decoder.readout, &inputs, 3 * d);
        let largest: Vec<f32> = hidden.as_chunks::<2>().0.iter().map(|&[a, b]| a.max(b)).collect();
        self.output = multiply(kernels, &decoder.output, &largest, d / 2);
        log_softmax(kernels, &mut self.output, decoder.vocab);
        &self.output
    }
}

impl GruState<'_> {
    /// Uses the threads of the current rayon pool, which changes no result.
    pub fn on_all_cores(&mut self) {
        self.kernels = self.decoder.kernels;
    }

    /// Numbers of the attention maps of a row.
    fn maps(&self) -> usize {
        self.decoder.config.heads * self.window.cells()
    }

    /// The attention of rows whose states after the first GRU are in `states[0]`; adds that of their parents to the coverage.
    fn attend(&mut self, parents: &[usize]) {
        let (decoder, kernels, maps) = (self.decoder, self.kernels, self.maps());
        let (d, width, cells) = (decoder.config.d_model, decoder.config.attention_width, self.window.cells());
        self.coverage.iter_mut().zip(&self.attention).for_each(|(sum, x)| *sum += x);
        let mut grown = parents.to_vec();
        grown.sort_unstable();
        grown.dedup();
        let mut hidden = vec![0.0; grown.len() * cells * width]; // [grown, cells, width]
        for (&parent, hidden) in grown.iter().zip(hidden.chunks_exact_mut(cells * width)) {
            let patches = self.window.patches(&self.coverage[parent * maps..][..maps]);
            let taps = self.window.taps();
            let rows = Rows::plain(&patches, cells, taps, taps);
            product(kernels, rows, &self.coverage_kernel, hidden, width, Activation::None);
            hidden.iter_mut().zip(&self.features).for_each(|(sum, x)| *sum += x);
        }
        self.coverage = gather(&self.coverage, parents, maps);
        let queries = multiply(kernels, &decoder.query, &self.states[0], d);
        self.attention.resize(parents.len() * maps, 0.0);
        kernels.for_each_chunk(&mut self.attention, maps, |row, energies| {
            let place = grown.iter().position(|parent| *parent == parents[row]).unwrap_or(0);
            let hidden = &hidden[place * cells * width..][..cells * width];
            coverage_energies(kernels, hidden, &queries[row * width..][..width], &decoder.energy, energies);
            softmax(kernels, energies, cells);
        });
    }

    /// The contexts of the last step, `[rows, d_model]`.
    fn context(&self, rows: usize) -> Vec<f32> {
        let (d, cells, maps) = (self.decoder.config.d_model, self.window.cells(), self.maps());
        let slice = d / self.values.len();
        let mut context = vec![0.0; rows * d];
        for (head, values) in self.values.iter().enumerate() {
            let shares = Rows::plain(&self.attention[head * cells..], rows, maps, cells);
            product(self.kernels, shares, values, &mut context[head * slice..], d, Activation::None);
        }
        context
    }

    /// Feeds `tokens` to the decoder, the start token first, and records each step. The attention is that of one layer.
    pub fn trace(&mut self, tokens: &[TokenId]) -> Result<Vec<StepTrace>> {
        if let Some(token) = tokens.iter().find(|&&token| usize::from(token) >= self.vocab_size()) {
            return Err(Error::UnknownToken { token: format!("number {token}") });
        }
        self.restart();
        let step = |&token: &TokenId| {
            let log_probs = self.step(&[0], &[token]).to_vec();
            let layer = LayerTrace {
                output: self.states.last().cloned().unwrap_or_default(),
                attention: self.attention.clone(),
                coverage: self.coverage.clone(),
                refinement: Vec::new(),
            };
            StepTrace { log_probs, layers: vec![layer] }
        };
        let steps = tokens.iter().map(step).collect();
        // Other searches start from the beginning.
        self.restart();
        Ok(steps)
    }
}

/// Rows of `width` numbers in the order of `indices`.
fn gather(values: &[f32], indices: &[usize], width: usize) -> Vec<f32> {
    indices.iter().flat_map(|index| &values[index * width..][..width]).copied().collect()
}

/// `rows * matrix` for as many whole rows of `depth` as there are.
fn multiply(kernels: Kernels, matrix: &Panels, rows: &[f32], depth: usize) -> Vec<f32> {
    let count = rows.len() / depth;
    let mut out = vec![0.0; count * matrix.columns()];
    let rows = Rows::plain(rows, count, depth, depth);
    product(kernels, rows, matrix, &mut out, matrix.columns(), Activation::None);
    out
}

/// One step of a GRU: `input` and `states` are `[rows, d]`.
fn run_gru(kernels: Kernels, gru: &Gru, input: &[f32], states: &mut [f32]) {
    let d = gru.state.columns() / 3;
    let input = multiply(kernels, &gru.input, input, d);
    let state = multiply(kernels, &gru.state, states, d);
    gru_gates(kernels, &input, &state, d, states);
}
