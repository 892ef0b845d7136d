//! The decoder at work on one image, step by step (sections 3.2 to 3.5 of the paper).
//!
//! What a prefix needs to be continued is kept, so that a step costs the same wherever it stands: keys and values of
//! the image once for all rows; keys and values of what was written, found through a table of row numbers instead of
//! being copied from beam to beam; and the running sums of attention that the refinement looks at.

use super::Features;
use super::decoder::{Decoder, Layer, Scratch};
use super::kernels::panels::{Panels, Rows, product};
use super::kernels::rows::{Cached, attend, log_softmax, softmax};
use super::kernels::{Activation, Kernels};
use super::refinement::{CoverageSums, Grid};
use crate::config::ModelConfig;
use crate::error::Result;
use crate::step_decoder::StepDecoder;
use crate::token::{PAD, TokenId};

/// Keys and values of an image for one layer, packed for each head.
pub(super) struct Memory {
    /// `[head_width, cells]` of each head.
    keys: Vec<Panels>,
    /// `[cells, head_width]` of each head.
    values: Vec<Panels>,
}

impl Memory {
    pub(super) fn new(config: &ModelConfig, projected: &[f32], cells: usize) -> Self {
        let (d, width) = (config.d_model, config.head_width());
        let part = |head: usize, cell: usize, from: usize, k: usize| {
            projected[cell * 2 * d + from + head * width + k]
        };
        let scale = key_scale(config);
        Self {
            keys: (0..config.heads)
                .map(|head| Panels::pack(cells, width, |cell, k| part(head, cell, 0, k) * scale))
                .collect(),
            values: (0..config.heads)
                .map(|head| Panels::pack(width, cells, |k, cell| part(head, cell, d, k)))
                .collect(),
        }
    }
}

/// Keys are multiplied by this once, instead of every energy.
fn key_scale(config: &ModelConfig) -> f32 {
    (config.head_width() as f32).powf(-0.5)
}

/// The attention of the last step in one layer, each `[rows, heads, cells]`.
#[derive(Clone, Default)]
pub(super) struct Maps {
    /// Before refinement; empty where it is not needed.
    plain: Vec<f32>,
    /// After refinement, or the only one where there is none.
    pub(super) refined: Vec<f32>,
}

/// The decoder at work on one image: the prefixes of the last step, and the caches to extend them.
pub struct DecoderState<'a> {
    pub(super) decoder: &'a Decoder,
    /// The decoder's, on the thread that calls or on all cores.
    kernels: Kernels,
    pub(super) grid: Grid,
    memories: Vec<Memory>,
    position: usize,
    /// Keys and values of every row ever stepped, per layer.
    caches: Vec<Vec<f32>>,
    cached_rows: u32,
    /// For each row of the last step, the cached rows of its tokens.
    pub(super) histories: Vec<Vec<u32>>,
    /// For each row of the last step, the coverage sums it started from.
    pub(super) prefixes: Vec<usize>,
    /// Per layer from the second on.
    pub(super) coverage: Vec<CoverageSums>,
    pub(super) attention: Vec<Maps>,
    pub(super) scratch: Scratch,
    /// The log-probabilities, `[rows, vocab]`.
    output: Vec<f32>,
    /// Whether the rows are the steps of one formula, each the prefix of the next, instead of prefixes of one length.
    pub(super) at_once: bool,
}

impl Decoder {
    /// Prepares to decode `features`.
    pub fn start(&self, features: &Features) -> Result<DecoderState<'_>> {
        let (d, cells) = (self.config.d_model, features.height * features.width);
        features.check(d)?;
        let mut projected = vec![0.0; cells * 2 * d];
        let memories = self.layers.iter().map(|layer| {
            let rows = Rows::plain(&features.values, cells, d, d);
            product(self.kernels, rows, &layer.cross_memory, &mut projected, 2 * d, Activation::None);
            Memory::new(&self.config, &projected, cells)
        });
        let memories = memories.collect();
        let grid = Grid { height: features.height, width: features.width };
        Ok(DecoderState::new(self, grid, memories))
    }
}

impl<'a> DecoderState<'a> {
    pub(super) fn new(decoder: &'a Decoder, grid: Grid, memories: Vec<Memory>) -> Self {
        let layers = memories.len();
        let refined = if decoder.refinement.is_some() { layers - 1 } else { 0 };
        let mut state = Self {
            decoder,
            kernels: decoder.kernels.alone(),
            grid,
            memories,
            position: 0,
            caches: vec![Vec::new(); layers],
            cached_rows: 0,
            histories: Vec::new(),
            prefixes: Vec::new(),
            coverage: std::iter::repeat_with(CoverageSums::default).take(refined).collect(),
            attention: vec![Maps::default(); layers],
            scratch: Scratch::default(),
            output: Vec::new(),
            at_once: false,
        };
        state.restart();
        state
    }

    /// Uses the threads of the current rayon pool, which changes no result.
    pub fn on_all_cores(&mut self) {
        self.kernels = self.decoder.kernels;
    }
}

impl StepDecoder for DecoderState<'_> {
    fn vocab_size(&self) -> usize {
        self.decoder.vocab
    }

    fn restart(&mut self) {
        self.position = 0;
        self.cached_rows = 0;
        self.caches.iter_mut().for_each(Vec::clear);
        self.histories.clear();
        self.prefixes.clear();
        if let Some(refinement) = &self.decoder.refinement {
            self.coverage.iter_mut().for_each(|sums| sums.start(refinement, self.grid));
        }
    }

    fn step(&mut self, parents: &[usize], tokens: &[TokenId]) -> &[f32] {
        assert_eq!(parents.len(), tokens.len(), "every token has a parent");
        let (decoder, rows, d) = (self.decoder, tokens.len(), self.decoder.config.d_model);
        self.begin(parents, tokens);
        let mut scratch = std::mem::take(&mut self.scratch);
        decoder.embed(tokens, self.position, &mut scratch);
        for (index, layer) in decoder.layers.iter().enumerate() {
            self.write_attention(index, layer, &mut scratch);
            self.read_attention(index, layer, &mut scratch);
            decoder.feed_forward(layer, &mut scratch);
        }
        decoder.linear(&decoder.output, &scratch.x, d, &mut self.output, Activation::None);
        log_softmax(decoder.kernels, &mut self.output, decoder.vocab);
        self.scratch = scratch;
        self.position += 1;
        self.cached_rows += rows as u32;
        &self.output
    }
}

impl DecoderState<'_> {
    /// Sets the tables of the new rows: their histories and the coverage that they start from.
    fn begin(&mut self, parents: &[usize], tokens: &[TokenId]) {
        let mut grown: Vec<usize> = parents.to_vec();
        if self.position == 0 {
            self.histories = vec![Vec::new(); tokens.len()];
            self.prefixes = vec![0; tokens.len()];
        } else {
            grown.sort_unstable();
            grown.dedup();
            let config = &self.decoder.config;
            let refinement = self.decoder.refinement.iter().cycle();
            for (index, (sums, refinement)) in self.coverage.iter_mut().zip(refinement).enumerate() {
                let mut sources: Vec<&[f32]> = Vec::with_capacity(2);
                if config.coverage.uses_cross() {
                    sources.push(&self.attention[index].refined);
                }
                if config.coverage.uses_self() {
                    sources.push(&self.attention[index + 1].plain);
                }
                let prefixes = grown.iter().map(|&row| (self.prefixes[row], row));
                sums.grow(refinement, self.grid, &sources, prefixes);
            }
            self.histories = parents.iter().map(|&parent| self.histories[parent].clone()).collect();
            let prefix = |parent: &usize| grown.iter().position(|row| row == parent).unwrap_or(0);
            self.prefixes = parents.iter().map(prefix).collect();
        }
        for (row, (history, &token)) in self.histories.iter_mut().zip(tokens).enumerate() {
            // Padding is never attended to.
            if token != PAD {
                history.push(self.cached_rows + row as u32);
            }
        }
    }

    /// Attention over what was written.
    pub(super) fn write_attention(&mut self, index: usize, layer: &Layer, scratch: &mut Scratch) {
        let (decoder, d) = (self.decoder, self.decoder.config.d_model);
        decoder.linear(&layer.self_packed, &scratch.x, d, &mut scratch.packed, Activation::None);
        let (cache, scale) = (&mut self.caches[index], key_scale(&decoder.config));
        for packed in scratch.packed.chunks_exact(3 * d) {
            cache.extend(packed[d..2 * d].iter().map(|key| key * scale));
            cache.extend_from_slice(&packed[2 * d..]);
        }
        scratch.context.resize(self.histories.len() * d, 0.0);
        let contexts = scratch.context.chunks_exact_mut(d);
        for ((packed, positions), context) in
            scratch.packed.chunks_exact(3 * d).zip(&self.histories).zip(contexts)
        {
            let cached = Cached { rows: cache, width: d, heads: decoder.config.heads, positions };
            attend(decoder.kernels, &cached, &packed[..d], &mut scratch.scores, context);
        }
        decoder.linear(&layer.self_output, &scratch.context, d, &mut scratch.branch, Activation::None);
        layer.self_norm.apply(decoder.kernels, &mut scratch.x, &scratch.branch);
    }

    /// Attention over the image, refined by what was attended to before.
    pub(super) fn read_attention(&mut self, index: usize, layer: &Layer, scratch: &mut Scratch) {
        let (decoder, rows, cells) = (self.decoder, self.histories.len(), self.grid.cells());
        let (d, heads, width) = (decoder.config.d_model, decoder.config.heads, decoder.config.head_width());
        let (before, maps) = self.attention.split_at_mut(index);
        let (memory, maps, kernels) = (&self.memories[index], &mut maps[0], self.kernels);
        decoder.linear(&layer.cross_query, &scratch.x, d, &mut scratch.packed, Activation::None);
        maps.refined.resize(rows * heads * cells, 0.0);
        for (head, keys) in memory.keys.iter().enumerate() {
            let queries = Rows::plain(&scratch.packed[head * width..], rows, d, width);
            product(
                kernels,
                queries,
                keys,
                &mut maps.refined[head * cells..],
                heads * cells,
                Activation::None,
            );
        }
        if let (Some(refinement), true) = (&decoder.refinement, index > 0) {
            if decoder.config.coverage.uses_self() {
                maps.plain.clone_from(&maps.refined);
                softmax(kernels, &mut maps.plain, cells);
            }
            let coverage = &mut self.coverage[index - 1];
            if self.at_once {
                let mut sources: Vec<&[f32]> = Vec::with_capacity(2);
                if decoder.config.coverage.uses_cross() {
                    sources.push(&before[index - 1].refined);
                }
                if decoder.config.coverage.uses_self() {
                    sources.push(&maps.plain);
                }
                coverage.add_up(refinement, self.grid, &sources, rows);
            }
            coverage.refine(kernels, refinement, self.grid, &mut scratch.refinement);
            let energies = maps.refined.chunks_exact_mut(heads * cells);
            for (energies, &prefix) in energies.zip(&self.prefixes) {
                let refinement = &scratch.refinement[prefix * heads * cells..];
                for (energy, refinement) in energies.iter_mut().zip(refinement) {
                    *energy -= refinement;
                }
            }
        }
        softmax(kernels, &mut maps.refined, cells);
        scratch.context.resize(rows * d, 0.0);
        for (head, values) in memory.values.iter().enumerate() {
            let shares = Rows::plain(&maps.refined[head * cells..], rows, heads * cells, cells);
            product(kernels, shares, values, &mut scratch.context[head * width..], d, Activation::None);
        }
        decoder.linear(&layer.cross_output, &scratch.context, d, &mut scratch.branch, Activation::None);
        layer.cross_norm.apply(kernels, &mut scratch.x, &scratch.branch);
    }
}
