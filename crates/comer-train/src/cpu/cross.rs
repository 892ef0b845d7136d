//! The attention of a formula's tokens to the cells of their picture, refined by what was read before (section 3.5 of
//! the paper), forward and backward.

mod norm;

use comer::internal::weights::Weights;
use rayon::prelude::*;

use self::norm::Head;
use super::attention::{Heads, Rows, dropped, scale_rows, unweigh, weigh};
use super::densenet::NormStatistics;
use super::linear::{Linear, add};
use super::norm::Statistics;
use super::product::Matrix;
use super::refinement::{Refinement, RefinementGradients, Shape, Source, cover, uncover};
use super::scene::{Scene, Sequence, Site};

/// The attention of one layer to the cells.
pub(super) struct CrossAttention<'a> {
    pub scene: &'a Scene<'a>,
    /// `[cells][d_model]`
    pub memory: &'a [f32],
    pub layer: usize,
}

/// What the backward pass needs, and the next layer.
pub(super) struct CrossTape {
    queries: Vec<f32>, // [tokens][d_model]
    both: Vec<f32>,    // [cells][keys, values]
    mixed: Vec<f32>,   // [tokens][d_model]
    sequences: Vec<Attending>,
    norm: Vec<Statistics>, // of each head; empty without refinement
}

/// One sequence's attention, `[heads][steps][cells]`.
struct Attending {
    /// The weights that were used, before dropout.
    weights: Vec<f32>,
    refined: Option<Refined>,
}

impl Attending {
    /// What the refinement's norm was given.
    fn refinement(&self) -> Option<&[f32]> {
        Some(&self.refined.as_ref()?.values)
    }
}

struct Refined {
    /// The weights before refinement and dropout; empty if the coverage does not look at them.
    plain: Vec<f32>,
    /// What the norm was given.
    values: Vec<f32>,
    /// Between the refinement's convolutions.
    hidden: Vec<f32>,
}

/// The gradients of what came in.
pub(super) struct CrossBack {
    pub x: Vec<f32>,      // [tokens][d_model]
    pub memory: Vec<f32>, // [cells][d_model]
    /// Of the previous layer's dropped weights, for each sequence; empty if the coverage does not look at them.
    pub previous: Vec<Vec<f32>>,
}

impl<'a> CrossAttention<'a> {
    fn linear(&self, leaf: &str) -> Linear<'a> {
        Linear::new(self.scene.weights, format!("decoder.layers.{}.cross_attention.{leaf}", self.layer))
    }

    /// The rows of the packed weights that make queries, and those that make keys and values.
    fn packed(&self) -> [Linear<'a>; 2] {
        let d = self.scene.config.d_model;
        [self.linear("packed").rows(0, d), self.linear("packed").rows(d, 2 * d)]
    }

    fn d_model(&self) -> usize {
        self.scene.config.d_model
    }

    /// Numbers for each token as a matrix.
    fn tokens<'v>(&self, values: &'v [f32]) -> Matrix<'v> {
        Matrix::rows(values, self.scene.tokens, self.d_model(), self.d_model())
    }

    fn cells(&self) -> Matrix<'a> {
        Matrix::rows(self.memory, self.scene.cells.pixels, self.d_model(), self.d_model())
    }

    /// A sequence's rows of numbers for each token.
    fn rows<'v>(&self, values: &'v [f32], sequence: &Sequence) -> Rows<'v> {
        let d = self.d_model();
        Rows { values: &values[sequence.first * d..], count: sequence.steps(), stride: d }
    }

    /// A picture's keys and values.
    fn keys_and_values<'v>(&self, both: &'v [f32], picture: usize) -> [Rows<'v>; 2] {
        let (d, place) = (self.d_model(), self.scene.cells.pictures()[picture]);
        [0, d].map(|column| Rows {
            values: &both[place.start * 2 * d + column..],
            count: place.height * place.width,
            stride: 2 * d,
        })
    }

    /// What the coverage of sequence `index` is made of, the previous layer's weights before the own.
    fn sources<'v>(&self, index: usize, previous: &'v CrossTape, plain: &'v [f32]) -> Vec<Source<'v>> {
        let (coverage, place) = (self.scene.config.coverage, self.scene.sequences[index].place);
        let source = |weights, layer, site| Source { weights, drop: self.scene.drop(layer, site), place };
        let weights = &previous.sequences[index].weights;
        let cross = coverage.uses_cross().then(|| source(weights, self.layer - 1, Site::CrossWeights));
        let own = coverage.uses_self().then(|| source(plain, self.layer, Site::PlainWeights));
        cross.into_iter().chain(own).collect()
    }

    /// `[tokens][d_model]` to the same. `previous` is the layer before, for all but the first.
    pub fn forward(&self, x: &[f32], previous: Option<&CrossTape>) -> (Vec<f32>, CrossTape) {
        let (scene, heads, d) = (self.scene, Heads::new(self.scene), self.d_model());
        let [query, key_value] = self.packed();
        let mut queries = query.forward(self.tokens(x));
        scale_rows(&mut queries, d, d, heads.scale());
        let both = key_value.forward(self.cells());
        let refinement = Refinement::new(scene.config, scene.weights).zip(previous);
        let compare = |(index, sequence): (usize, &Sequence)| {
            let [keys, _] = self.keys_and_values(&both, index / 2);
            let energies = heads.compare(self.rows(&queries, sequence), keys);
            let refine = |(refinement, previous): &(Refinement, &CrossTape)| {
                let mut plain = Vec::new();
                if scene.config.coverage.uses_self() {
                    plain.clone_from(&energies);
                    weigh(&mut plain, sequence.cells());
                }
                let shape = shape(sequence);
                let coverage = cover(shape, heads.count, &self.sources(index, previous, &plain));
                let (values, hidden) = refinement.forward(shape, &coverage);
                Refined { plain, values, hidden }
            };
            let refined = refinement.as_ref().map(refine);
            Attending { weights: energies, refined }
        };
        let mut sequences: Vec<Attending> = scene.sequences.par_iter().enumerate().map(compare).collect();
        let refined: Vec<&[f32]> = sequences.iter().filter_map(Attending::refinement).collect();
        let norm = norm::statistics(&refined, heads.count);
        let normal = norm::heads(scene.weights, &norm);

        let mut mixed = vec![0.0; scene.tokens * d];
        let drop = scene.drop(self.layer, Site::CrossWeights);
        let parts = scene.tokens_of_sequences(&mut mixed, d);
        let places = scene.sequences.par_iter().zip(&mut sequences).zip(parts).enumerate();
        places.for_each(|(index, ((sequence, attending), mixed))| {
            let Attending { weights, refined } = attending;
            if let Some(refined) = refined {
                norm::subtract(weights, &refined.values, &normal);
            }
            weigh(weights, sequence.cells());
            let [_, values] = self.keys_and_values(&both, index / 2);
            heads.mix(&dropped(weights, drop, sequence.place), values, mixed, d);
        });
        let output = self.linear("output").forward(self.tokens(&mixed));
        (output, CrossTape { queries, both, mixed, sequences, norm })
    }

    /// From the gradient of the output and that of the dropped weights (`later`, for each sequence, or empty).
    pub fn backward(
        &self,
        tape: &CrossTape,
        previous: Option<&CrossTape>,
        x: &[f32],
        gradient: &[f32],
        later: &[Vec<f32>],
        gradients: &mut Weights,
    ) -> CrossBack {
        let (scene, heads, d) = (self.scene, Heads::new(self.scene), self.d_model());
        let output = self.linear("output");
        output.note(self.tokens(&tape.mixed), gradient, gradients);
        let mixed = output.back(gradient);
        let mut both = vec![0.0; scene.cells.pixels * 2 * d];
        let mut energies = self.energies_back(tape, &mixed, later, &mut both);
        let refined = tape.sequences.iter().zip(&energies);
        let refined: Vec<(&[f32], &[f32])> = refined
            .filter_map(|(attending, energies)| Some((attending.refinement()?, &energies[..])))
            .collect();
        let normal = norm::back(scene.weights, &tape.norm, &refined, gradients);

        let refinement = Refinement::new(scene.config, scene.weights).zip(previous);
        let mut queries = vec![0.0; scene.tokens * d];
        let parts = (
            scene.pairs(),
            energies.par_chunks_mut(2),
            scene.tokens_of_pairs(&mut queries, d),
            scene.cells_of_pairs(&mut both, 2 * d),
        );
        let given =
            parts.into_par_iter().enumerate().map(|(picture, (pair, energies, mut queries, both))| {
                let [keys, _] = self.keys_and_values(&tape.both, picture);
                let mut given = Vec::with_capacity(2);
                for ((index, sequence), energies) in (2 * picture..).zip(pair).zip(energies) {
                    if let Some((refinement, previous)) = &refinement {
                        given.push(self.refine_back(refinement, (tape, previous), index, &normal, energies));
                    }
                    let target = queries.split_off_mut(..sequence.steps() * d).expect("rows of all tokens");
                    heads.mix(energies, keys, target, d);
                    scale_rows(target, d, d, heads.scale());
                    heads.spread(energies, self.rows(&tape.queries, sequence), both, 2 * d, index % 2 > 0);
                }
                given
            });
        let given: Vec<Vec<Given>> = given.collect();
        let (previous, sums): (Vec<_>, Vec<_>) = given.into_iter().flatten().unzip();
        if let Some((refinement, _)) = &refinement {
            sums.iter().for_each(|sums| refinement.note(sums, gradients));
        }
        let [query, key_value] = self.packed();
        query.note(self.tokens(x), &queries, gradients);
        key_value.note(self.cells(), &both, gradients);
        CrossBack { x: query.back(&queries), memory: key_value.back(&both), previous }
    }

    /// The gradient of the energies as the last softmax saw them, for each sequence; writes that of the values too.
    fn energies_back(
        &self,
        tape: &CrossTape,
        mixed: &[f32],
        later: &[Vec<f32>],
        both: &mut [f32],
    ) -> Vec<Vec<f32>> {
        let (scene, heads, d) = (self.scene, Heads::new(self.scene), self.d_model());
        let drop = scene.drop(self.layer, Site::CrossWeights);
        let parts = (scene.pairs(), scene.cells_of_pairs(both, 2 * d)).into_par_iter().enumerate();
        let pulled = parts.map(|(picture, (pair, both))| {
            let [_, values] = self.keys_and_values(&tape.both, picture);
            [0, 1].map(|which| {
                let (index, sequence) = (2 * picture + which, &pair[which]);
                let (weights, mixed) = (&tape.sequences[index].weights, self.rows(mixed, sequence));
                let used = dropped(weights, drop, sequence.place);
                heads.spread(&used, mixed, &mut both[d..], 2 * d, which > 0);
                let mut energies = heads.compare(mixed, values);
                if let Some(later) = later.get(index) {
                    add(&mut energies, later);
                }
                unweigh(weights, &mut energies, sequence.cells(), drop, sequence.place);
                energies
            })
        });
        let pulled: Vec<[Vec<f32>; 2]> = pulled.collect();
        pulled.into_iter().flatten().collect()
    }

    /// Through the refinement of a sequence to its coverage, and from there to the weights that it was made of: adds to
    /// the gradient of the energies what comes by the own ones, answers that of the previous layer's.
    fn refine_back(
        &self,
        refinement: &Refinement,
        (tape, previous): (&CrossTape, &CrossTape),
        index: usize,
        normal: &[Head],
        energies: &mut [f32],
    ) -> Given {
        let Some(refined) = &tape.sequences[index].refined else {
            unreachable!("refined in the forward pass")
        };
        let (sequence, coverage) = (&self.scene.sequences[index], self.scene.config.coverage);
        let (shape, heads) = (shape(sequence), normal.len());
        let values = norm::pull(energies, &refined.values, normal);
        let sources = self.sources(index, previous, &refined.plain);
        let covered = cover(shape, heads, &sources);
        let (covered, sums) = refinement.backward(shape, &covered, &refined.hidden, &values);
        let mut given = uncover(shape, heads * sources.len(), &covered);
        if coverage.uses_self() {
            let mut own = given.split_off((sources.len() - 1) * energies.len());
            let drop = self.scene.drop(self.layer, Site::PlainWeights);
            unweigh(&refined.plain, &mut own, sequence.cells(), drop, sequence.place);
            add(energies, &own);
        }
        (given, sums)
    }
}

impl CrossTape {
    /// The statistics of the refinement's norm, if there was one.
    pub fn statistics(&self) -> Option<NormStatistics> {
        let numbers = |sequence: &Attending| sequence.weights.len() / self.norm.len().max(1);
        (!self.norm.is_empty()).then(|| NormStatistics {
            path: norm::PATH.into(),
            mean: self.norm.iter().map(|head| head.mean).collect(),
            variance: self.norm.iter().map(|head| head.variance).collect(),
            count: self.sequences.iter().map(numbers).sum(),
        })
    }
}

/// What a sequence gives: the gradient of the previous layer's dropped weights, and what it adds to the refinement's.
type Given = (Vec<f32>, RefinementGradients);

fn shape(sequence: &Sequence) -> Shape {
    Shape { steps: sequence.steps(), height: sequence.height, width: sequence.width }
}
