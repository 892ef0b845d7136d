//! Batches: which samples share one, and background threads that prepare them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use comer::Image;
use comer::internal::TokenId;
use rand::seq::SliceRandom;

use crate::augment::{SymbolDonors, augment_sample};
use crate::epoch_samples::epoch_samples;
use crate::error::{Error, Result};
use crate::random::generator;
use crate::recipe::{Batches, Order, Recipe};
use crate::samples::{SampleRef, Samples};

/// Pictures and their formulas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Each in its own size, not padded.
    pub pictures: Vec<Image>,
    /// The tokens of each picture.
    pub formulas: Vec<Vec<TokenId>>,
    /// The symbol of each cell of each picture (see [`crate::symbols`]).
    pub symbols: Vec<Vec<TokenId>>,
}

/// The samples of each batch of an epoch; a function of the seed and the epoch.
pub fn plan(samples: &Samples, recipe: &Recipe, epoch: usize) -> Vec<Vec<SampleRef>> {
    let mut random = generator([recipe.seed, epoch as u64, u64::MAX, 0]);
    let area = |sample: SampleRef| (samples.area(sample, recipe.seed), sample);
    let mut order: Vec<(usize, SampleRef)> =
        epoch_samples(samples, recipe, epoch).into_iter().map(area).collect();
    let limits = &recipe.batches;
    match limits.order {
        Order::Area => {
            order.sort_by_key(|&(area, _)| area);
            let mut batches = group(&order, limits, recipe.size(epoch));
            batches.shuffle(&mut random);
            batches
        }
        Order::Random => {
            order.shuffle(&mut random);
            for step in order.chunks_mut(limits.pictures * limits.accumulate) {
                balance(step, limits.accumulate);
            }
            group(&order, limits, recipe.size(epoch))
        }
    }
}

/// Reorders the samples of a step so that its batches have similar areas, and devices wait less for each other.
fn balance(step: &mut [(usize, SampleRef)], batches: usize) {
    step.sort_by_key(|&(area, _)| Reverse(area));
    let capacity = step.len().div_ceil(batches);
    let mut bins = vec![(0, Vec::new()); batches];
    // The largest samples first, each to the batch with the smallest area so far.
    for &sample in step.iter() {
        let free = bins.iter_mut().filter(|(_, bin)| bin.len() < capacity);
        let (sum, bin) = free.min_by_key(|(sum, _)| *sum).expect("the batches have room for all samples");
        *sum += sample.0;
        bin.push(sample);
    }
    let balanced: Vec<(usize, SampleRef)> = bins.into_iter().flat_map(|(_, bin)| bin).collect();
    step.copy_from_slice(&balanced);
}

/// Fills batches in the given order up to the limits.
fn group(order: &[(usize, SampleRef)], limits: &Batches, size: f64) -> Vec<Vec<SampleRef>> {
    let mut batches: Vec<Vec<SampleRef>> = Vec::new();
    let mut largest = 0.0f64;
    for &(area, sample) in order {
        let area = area as f64 * size * size;
        match batches.last_mut() {
            Some(batch)
                if batch.len() < limits.pictures
                    && largest.max(area) * (batch.len() + 1) as f64 <= limits.pixels as f64 =>
            {
                batch.push(sample);
                largest = largest.max(area);
            }
            _ => {
                batches.push(vec![sample]);
                largest = area;
            }
        }
    }
    batches
}

/// Prepares batch `index` of the plan.
pub fn prepare(
    samples: &Samples,
    donors: &SymbolDonors,
    recipe: &Recipe,
    epoch: usize,
    index: usize,
    batch_samples: &[SampleRef],
) -> Result<Batch> {
    let mut random = generator([recipe.seed, epoch as u64, index as u64, 0]);
    let size = recipe.size(epoch);
    let mut batch = Batch::default();
    for &sample in batch_samples {
        let sample = samples.sample(sample, recipe.seed);
        let (picture, symbols) = augment_sample(&sample, donors, &recipe.augmentation, size, &mut random)
            .map_err(|error| Error::Data(format!("{}: {error}", sample.name)))?;
        batch.pictures.push(picture);
        batch.symbols.push(symbols);
        batch.formulas.push(sample.tokens.clone());
    }
    Ok(batch)
}

/// Calls `use_batch` with the batches of an epoch from index `first` on, in order, while threads prepare the next ones.
/// `use_batch` returns whether to continue. Batches that are not `wanted` are empty.
pub fn for_each_batch(
    samples: &Samples,
    recipe: &Recipe,
    epoch: usize,
    first: usize,
    wanted: impl Fn(usize) -> bool + Sync,
    mut use_batch: impl FnMut(usize, Batch) -> Result<bool>,
) -> Result<()> {
    const WORKERS: usize = 2;
    const PREFETCH: usize = 4;
    let plan = plan(samples, recipe, epoch);
    let donors = SymbolDonors::new(&samples.training);
    let next = AtomicUsize::new(first);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(PREFETCH);
        for _ in 0..WORKERS {
            let (sender, plan, next, donors, wanted) = (sender.clone(), &plan, &next, &donors, &wanted);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(batch_samples) = plan.get(index) else { break };
                    let batch = match wanted(index) {
                        true => prepare(samples, donors, recipe, epoch, index, batch_samples),
                        false => Ok(Batch::default()),
                    };
                    // The receiver is gone if the epoch was stopped early.
                    if sender.send((index, batch)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        // Workers finish in any order.
        let mut pending = BTreeMap::new();
        for index in first..plan.len() {
            let batch = loop {
                if let Some(batch) = pending.remove(&index) {
                    break batch;
                }
                let Ok((done, batch)) = receiver.recv() else {
                    return Err(Error::Data("a thread that prepares batches panicked".into()));
                };
                pending.insert(done, batch);
            };
            if !use_batch(index, batch?)? {
                break;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use comer::internal::dataset::StoredImage;

    use super::*;
    use crate::samples::Sample;

    fn stored(sample: SampleRef) -> usize {
        match sample {
            SampleRef::Stored(index) => index,
            SampleRef::Synthetic { .. } => panic!("no set is synthetic"),
        }
    }

    fn samples(count: usize) -> Samples {
        let sample = |index: usize| {
            let (width, height) = (20 + 7 * (index % 13), 16 + index % 5);
            let picture = Image::new(width, height, vec![0; width * height]).unwrap();
            Sample::with_picture(
                index.to_string(),
                vec![3 + index as u16],
                StoredImage::new(&picture).unwrap(),
            )
        };
        Samples { training: (0..count).map(sample).collect(), ..Samples::default() }
    }

    fn recipe(order: Order) -> Recipe {
        let batches = Batches { pictures: 4, pixels: 6000, order, accumulate: 1 };
        Recipe { batches, ..Recipe::default() }
    }

    #[test]
    fn batches_respect_their_limits_and_contain_every_sample_once() {
        let samples = samples(50);
        for order in [Order::Area, Order::Random] {
            let recipe = recipe(order);
            let plans = [0, 1].map(|epoch| plan(&samples, &recipe, epoch));
            assert_ne!(plans[0], plans[1]);
            assert_eq!(plans[0], plan(&samples, &recipe, 0));
            let mut all: Vec<usize> = plans[0].iter().flatten().map(|&sample| stored(sample)).collect();
            all.sort();
            assert_eq!(all, (0..50).collect::<Vec<_>>());
            for batch in &plans[0] {
                let largest = batch.iter().map(|&sample| samples.area(sample, 0)).max().unwrap();
                assert!(batch.len() <= 4 && (batch.len() == 1 || largest * batch.len() <= 6000), "{batch:?}");
            }
        }
    }

    #[test]
    fn batches_of_a_step_have_similar_areas() {
        let samples = samples(64);
        let batches = Batches { pictures: 8, pixels: 1 << 30, order: Order::Random, accumulate: 2 };
        let plan = plan(&samples, &Recipe { batches, ..Recipe::default() }, 0);
        assert_eq!(plan.len(), 8);
        for step in plan.chunks_exact(2) {
            let [a, b] = [&step[0], &step[1]]
                .map(|batch| batch.iter().map(|&sample| samples.area(sample, 0)).sum::<usize>() as f64);
            assert!((a / b - 1.0).abs() < 0.1, "{a} and {b}");
        }
    }

    #[test]
    fn batches_are_in_order_and_equal_when_resumed_in_the_middle() {
        let (samples, recipe) = (samples(40), recipe(Order::Random));
        let collect = |first, wanted: fn(usize) -> bool| {
            let mut list = Vec::new();
            let result = for_each_batch(&samples, &recipe, 3, first, wanted, |index, batch| {
                list.push((index, batch));
                Ok(true)
            });
            result.unwrap();
            list
        };
        let all = collect(0, |_| true);
        assert_eq!(
            all.iter().map(|(index, _)| *index).collect::<Vec<_>>(),
            (0..all.len()).collect::<Vec<_>>()
        );
        assert_eq!(collect(4, |_| true), all[4..]);
        // What another process computes is not made here.
        for ((place, batch), (_, expected)) in collect(0, |place| place % 2 == 1).iter().zip(&all) {
            assert_eq!(*batch, if place % 2 == 1 { expected.clone() } else { Batch::default() });
        }
    }

    #[test]
    fn an_epoch_can_be_stopped_early() {
        let (samples, recipe) = (samples(40), recipe(Order::Area));
        let mut seen = 0;
        for_each_batch(
            &samples,
            &recipe,
            0,
            0,
            |_| true,
            |_, _| {
                seen += 1;
                Ok(seen < 2)
            },
        )
        .unwrap();
        assert_eq!(seen, 2);
    }
}
