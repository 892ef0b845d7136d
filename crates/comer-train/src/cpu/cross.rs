//! Cross-attention to the cells of the picture with attention refinement (section 3.5 of the paper), forward and backward.

mod norm;

use comer::internal::weights::Weights;
use rayon::prelude::*;

use self::norm::Head;
use super::attention::{Heads, Rows, scale_rows, softmax_rows, softmax_rows_backward, with_dropout};
use super::buffer::Buffer;
use super::decoder_batch::{DecoderBatch, Sequence, Site};
use super::densenet::NormStatistics;
use super::linear::{Linear, add};
use super::norm::Statistics;
use super::product::Matrix;
use super::refinement::{
    Refinement, RefinementGradients, Shape, Source, accumulate_coverage, coverage_backward,
};

/// Cross-attention of one layer.
pub(super) struct CrossAttention<'a> {
    pub batch: &'a DecoderBatch<'a>,
    /// `[cells][d_model]`
    pub memory: &'a [f32],
    pub layer: usize,
}

/// What the backward pass and the next layer need.
pub(super) struct CrossTape {
    queries: Vec<f32>,     // [tokens][d_model]
    keys_values: Vec<f32>, // [cells][keys, values]
    mixed: Vec<f32>,       // [tokens][d_model]
    sequences: Vec<SequenceAttention>,
    norm: Vec<Statistics>, // of each head; empty without refinement
}

/// The attention of one sequence, `[heads][steps][cells]`.
struct SequenceAttention {
    /// The weights before dropout.
    weights: Vec<f32>,
    refined: Option<RefinementTape>,
}

impl SequenceAttention {
    /// The input of the norm of the refinement.
    fn refinement(&self) -> Option<&[f32]> {
        Some(&self.refined.as_ref()?.values)
    }
}

struct RefinementTape {
    /// The weights before refinement and dropout; empty if the coverage does not use them.
    plain: Vec<f32>,
    /// The input of the norm.
    values: Vec<f32>,
    /// The activations between the convolutions.
    hidden: Buffer,
}

/// The gradients of the inputs.
pub(super) struct CrossGradients {
    pub x: Vec<f32>,      // [tokens][d_model]
    pub memory: Vec<f32>, // [cells][d_model]
    /// Of the weights of the previous layer after dropout, for each sequence; empty if the coverage does not use them.
    pub previous: Vec<Vec<f32>>,
}

impl<'a> CrossAttention<'a> {
    fn linear(&self, leaf: &str) -> Linear<'a> {
        Linear::new(self.batch.weights, format!("decoder.layers.{}.cross_attention.{leaf}", self.layer))
    }

    /// The rows of the packed weights for queries, and those for keys and values.
    fn packed(&self) -> [Linear<'a>; 2] {
        let d = self.batch.config.d_model;
        [self.linear("packed").rows(0, d), self.linear("packed").rows(d, 2 * d)]
    }

    fn d_model(&self) -> usize {
        self.batch.config.d_model
    }

    /// `[tokens, d_model]`
    fn tokens<'v>(&self, values: &'v [f32]) -> Matrix<'v> {
        Matrix::rows(values, self.batch.tokens, self.d_model(), self.d_model())
    }

    fn cells(&self) -> Matrix<'a> {
        Matrix::rows(self.memory, self.batch.cells.pixels, self.d_model(), self.d_model())
    }

    /// The rows of a sequence.
    fn rows<'v>(&self, values: &'v [f32], sequence: &Sequence) -> Rows<'v> {
        let d = self.d_model();
        Rows { values: &values[sequence.first * d..], count: sequence.steps(), stride: d }
    }

    /// The keys and values of a picture.
    fn keys_and_values<'v>(&self, keys_values: &'v [f32], picture: usize) -> [Rows<'v>; 2] {
        let (d, region) = (self.d_model(), self.batch.cells.pictures()[picture]);
        [0, d].map(|column| Rows {
            values: &keys_values[region.start * 2 * d + column..],
            count: region.height * region.width,
            stride: 2 * d,
        })
    }

    /// The sources of the coverage of sequence `index`: the weights of the previous layer, then those of this layer.
    fn sources<'v>(&self, index: usize, previous: &'v CrossTape, plain: &'v [f32]) -> Vec<Source<'v>> {
        let (coverage, offset) = (self.batch.config.coverage, self.batch.sequences[index].offset);
        let source =
            |weights, layer, site| Source { weights, dropout: self.batch.dropout(layer, site), offset };
        let weights = &previous.sequences[index].weights;
        let cross = coverage.uses_cross().then(|| source(weights, self.layer - 1, Site::CrossWeights));
        let own = coverage.uses_self().then(|| source(plain, self.layer, Site::PlainWeights));
        cross.into_iter().chain(own).collect()
    }

    /// `[tokens][d_model]` to the same. `previous` is the previous layer; none for the first.
    pub fn forward(&self, x: &[f32], previous: Option<&CrossTape>) -> (Vec<f32>, CrossTape) {
        let (batch, heads, d) = (self.batch, Heads::new(self.batch), self.d_model());
        let [query, key_value] = self.packed();
        let mut queries = query.forward(self.tokens(x));
        scale_rows(&mut queries, d, d, heads.scale());
        let keys_values = key_value.forward(self.cells());
        let refinement = Refinement::new(batch.config, batch.weights).zip(previous);
        let attend = |(index, sequence): (usize, &Sequence)| {
            let [keys, _] = self.keys_and_values(&keys_values, index / 2);
            let energies = heads.dot_products(self.rows(&queries, sequence), keys);
            let refine = |(refinement, previous): &(Refinement, &CrossTape)| {
                let mut plain = Vec::new();
                if batch.config.coverage.uses_self() {
                    plain.clone_from(&energies);
                    softmax_rows(&mut plain, sequence.cells());
                }
                let shape = shape(sequence);
                let coverage =
                    accumulate_coverage(shape, heads.count, &self.sources(index, previous, &plain));
                let (values, hidden) = refinement.forward(shape, &coverage);
                RefinementTape { plain, values, hidden }
            };
            let refined = refinement.as_ref().map(refine);
            SequenceAttention { weights: energies, refined }
        };
        let mut sequences: Vec<SequenceAttention> =
            batch.sequences.par_iter().enumerate().map(attend).collect();
        let refined: Vec<&[f32]> = sequences.iter().filter_map(SequenceAttention::refinement).collect();
        let norm = norm::statistics(&refined, heads.count);
        let normal = norm::heads(batch.weights, &norm);

        let mut mixed = vec![0.0; batch.tokens * d];
        let dropout = batch.dropout(self.layer, Site::CrossWeights);
        let parts = batch.tokens_of_sequences(&mut mixed, d);
        let sequence_parts = batch.sequences.par_iter().zip(&mut sequences).zip(parts).enumerate();
        sequence_parts.for_each(|(index, ((sequence, attention), mixed))| {
            let SequenceAttention { weights, refined } = attention;
            if let Some(refined) = refined {
                norm::subtract(weights, &refined.values, &normal);
            }
            softmax_rows(weights, sequence.cells());
            let [_, values] = self.keys_and_values(&keys_values, index / 2);
            heads.weighted_sum(&with_dropout(weights, dropout, sequence.offset), values, mixed, d);
        });
        let output = self.linear("output").forward(self.tokens(&mixed));
        (output, CrossTape { queries, keys_values, mixed, sequences, norm })
    }

    /// From the gradient of the output and, from the next layer, that of the weights after dropout
    /// (`attention_gradients`, for each sequence, or empty).
    pub fn backward(
        &self,
        tape: &CrossTape,
        previous: Option<&CrossTape>,
        x: &[f32],
        gradient: &[f32],
        attention_gradients: &[Vec<f32>],
        gradients: &mut Weights,
    ) -> CrossGradients {
        let (batch, heads, d) = (self.batch, Heads::new(self.batch), self.d_model());
        let output = self.linear("output");
        output.insert_grad(self.tokens(&tape.mixed), gradient, gradients);
        let mixed = output.backward(gradient);
        let mut keys_values = vec![0.0; batch.cells.pixels * 2 * d];
        let mut energies = self.energies_backward(tape, &mixed, attention_gradients, &mut keys_values);
        let refined = tape.sequences.iter().zip(&energies);
        let refined: Vec<(&[f32], &[f32])> = refined
            .filter_map(|(attention, energies)| Some((attention.refinement()?, &energies[..])))
            .collect();
        let normal = norm::backward(batch.weights, &tape.norm, &refined, gradients);

        let refinement = Refinement::new(batch.config, batch.weights).zip(previous);
        let mut queries = vec![0.0; batch.tokens * d];
        let parts = (
            batch.pairs(),
            energies.par_chunks_mut(2),
            batch.tokens_of_pairs(&mut queries, d),
            batch.cells_of_pairs(&mut keys_values, 2 * d),
        );
        let source_gradients =
            parts.into_par_iter().enumerate().map(|(picture, (pair, energies, mut queries, keys_values))| {
                let [keys, _] = self.keys_and_values(&tape.keys_values, picture);
                let mut source_gradients = Vec::with_capacity(2);
                for ((index, sequence), energies) in (2 * picture..).zip(pair).zip(energies) {
                    if let Some((refinement, previous)) = &refinement {
                        source_gradients.push(self.refinement_backward(
                            refinement,
                            (tape, previous),
                            index,
                            &normal,
                            energies,
                        ));
                    }
                    let target = queries.split_off_mut(..sequence.steps() * d).expect("rows of all tokens");
                    heads.weighted_sum(energies, keys, target, d);
                    scale_rows(target, d, d, heads.scale());
                    heads.weighted_sum_transposed(
                        energies,
                        self.rows(&tape.queries, sequence),
                        keys_values,
                        2 * d,
                        index % 2 > 0,
                    );
                }
                source_gradients
            });
        let source_gradients: Vec<Vec<SequenceGradients>> = source_gradients.collect();
        let (previous, sums): (Vec<_>, Vec<_>) = source_gradients.into_iter().flatten().unzip();
        if let Some((refinement, _)) = &refinement {
            sums.iter().for_each(|sums| refinement.accumulate_grad(sums, gradients));
        }
        let [query, key_value] = self.packed();
        query.insert_grad(self.tokens(x), &queries, gradients);
        key_value.insert_grad(self.cells(), &keys_values, gradients);
        CrossGradients { x: query.backward(&queries), memory: key_value.backward(&keys_values), previous }
    }

    /// The gradient of the energies before the last softmax, for each sequence; also writes that of the values.
    fn energies_backward(
        &self,
        tape: &CrossTape,
        mixed: &[f32],
        attention_gradients: &[Vec<f32>],
        keys_values: &mut [f32],
    ) -> Vec<Vec<f32>> {
        let (batch, heads, d) = (self.batch, Heads::new(self.batch), self.d_model());
        let dropout = batch.dropout(self.layer, Site::CrossWeights);
        let parts = (batch.pairs(), batch.cells_of_pairs(keys_values, 2 * d)).into_par_iter().enumerate();
        let per_picture = parts.map(|(picture, (pair, keys_values))| {
            let [_, values] = self.keys_and_values(&tape.keys_values, picture);
            [0, 1].map(|which| {
                let (index, sequence) = (2 * picture + which, &pair[which]);
                let (weights, mixed) = (&tape.sequences[index].weights, self.rows(mixed, sequence));
                let used = with_dropout(weights, dropout, sequence.offset);
                heads.weighted_sum_transposed(&used, mixed, &mut keys_values[d..], 2 * d, which > 0);
                let mut energies = heads.dot_products(mixed, values);
                if let Some(attention_gradients) = attention_gradients.get(index) {
                    add(&mut energies, attention_gradients);
                }
                softmax_rows_backward(weights, &mut energies, sequence.cells(), dropout, sequence.offset);
                energies
            })
        });
        let per_picture: Vec<[Vec<f32>; 2]> = per_picture.collect();
        per_picture.into_iter().flatten().collect()
    }

    /// Backward through the refinement of a sequence and its coverage. Adds the gradient by way of this layer's weights to
    /// that of the energies, and returns that of the previous layer's weights.
    fn refinement_backward(
        &self,
        refinement: &Refinement,
        (tape, previous): (&CrossTape, &CrossTape),
        index: usize,
        normal: &[Head],
        energies: &mut [f32],
    ) -> SequenceGradients {
        let Some(refined) = &tape.sequences[index].refined else {
            unreachable!("refined in the forward pass")
        };
        let (sequence, coverage) = (&self.batch.sequences[index], self.batch.config.coverage);
        let (shape, heads) = (shape(sequence), normal.len());
        let values = norm::backward_input(energies, &refined.values, normal);
        let sources = self.sources(index, previous, &refined.plain);
        let covered = accumulate_coverage(shape, heads, &sources);
        let (covered, sums) = refinement.backward(shape, &covered, &refined.hidden, &values);
        let mut source_gradients = coverage_backward(shape, heads * sources.len(), &covered);
        if coverage.uses_self() {
            let mut own = source_gradients.split_off((sources.len() - 1) * energies.len());
            let dropout = self.batch.dropout(self.layer, Site::PlainWeights);
            softmax_rows_backward(&refined.plain, &mut own, sequence.cells(), dropout, sequence.offset);
            add(energies, &own);
        }
        (source_gradients, sums)
    }
}

impl CrossTape {
    /// The statistics of the norm of the refinement, if there is one.
    pub fn statistics(&self) -> Option<NormStatistics> {
        let values = |sequence: &SequenceAttention| sequence.weights.len() / self.norm.len().max(1);
        (!self.norm.is_empty()).then(|| NormStatistics {
            path: norm::PATH.into(),
            mean: self.norm.iter().map(|head| head.mean).collect(),
            variance: self.norm.iter().map(|head| head.variance).collect(),
            count: self.sequences.iter().map(values).sum(),
        })
    }
}

/// Gradients from one sequence: of the weights of the previous layer after dropout, and of the refinement.
type SequenceGradients = (Vec<f32>, RefinementGradients);

fn shape(sequence: &Sequence) -> Shape {
    Shape { steps: sequence.steps(), height: sequence.height, width: sequence.width }
}
