//! Which samples share a batch, and the pictures of a batch, made ready by threads of their own while the network works.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use comer::Image;
use comer::internal::TokenId;
use rand::seq::SliceRandom;

use crate::augment::{self, Hands};
use crate::error::{Error, Result};
use crate::picks::picks;
use crate::random::generator;
use crate::recipe::{Batches, Order, Recipe};
use crate::samples::{Pick, Samples};

/// Pictures and their formulas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Each in its own size.
    pub pictures: Vec<Image>,
    /// The tokens of each.
    pub formulas: Vec<Vec<TokenId>>,
    /// The symbol of each cell of each picture (see [`crate::symbols`]).
    pub symbols: Vec<Vec<TokenId>>,
}

/// The samples of each batch of an epoch. The same for the same seed and epoch.
pub fn plan(samples: &Samples, recipe: &Recipe, epoch: usize) -> Vec<Vec<Pick>> {
    let mut random = generator([recipe.seed, epoch as u64, u64::MAX, 0]);
    let area = |pick: Pick| (samples.area(pick, recipe.seed), pick);
    let mut order: Vec<(usize, Pick)> = picks(samples, recipe, epoch).into_iter().map(area).collect();
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
                deal(step, limits.accumulate);
            }
            group(&order, limits, recipe.size(epoch))
        }
    }
}

/// Reorders the samples of a step so that its batches have about the same area: devices that share them wait less.
fn deal(step: &mut [(usize, Pick)], batches: usize) {
    step.sort_by_key(|&(area, _)| Reverse(area));
    let room = step.len().div_ceil(batches);
    let mut hands = vec![(0, Vec::new()); batches];
    // The largest first, each to the hand that has least so far.
    for &pick in step.iter() {
        let free = hands.iter_mut().filter(|(_, own)| own.len() < room);
        let (sum, own) = free.min_by_key(|(sum, _)| *sum).expect("there is room for all");
        *sum += pick.0;
        own.push(pick);
    }
    let dealt: Vec<(usize, Pick)> = hands.into_iter().flat_map(|(_, own)| own).collect();
    step.copy_from_slice(&dealt);
}

/// Fills batches in the given order up to the limits.
fn group(order: &[(usize, Pick)], limits: &Batches, size: f64) -> Vec<Vec<Pick>> {
    let mut batches: Vec<Vec<Pick>> = Vec::new();
    let mut largest = 0.0f64;
    for &(area, pick) in order {
        let own = area as f64 * size * size;
        match batches.last_mut() {
            Some(batch)
                if batch.len() < limits.pictures
                    && largest.max(own) * (batch.len() + 1) as f64 <= limits.pixels as f64 =>
            {
                batch.push(pick);
                largest = largest.max(own);
            }
            _ => {
                batches.push(vec![pick]);
                largest = own;
            }
        }
    }
    batches
}

/// Makes the batch at a place of the plan.
pub fn make(
    samples: &Samples,
    hands: &Hands,
    recipe: &Recipe,
    epoch: usize,
    place: usize,
    own: &[Pick],
) -> Result<Batch> {
    let mut random = generator([recipe.seed, epoch as u64, place as u64, 0]);
    let size = recipe.size(epoch);
    let mut batch = Batch::default();
    for &pick in own {
        let sample = samples.sample(pick, recipe.seed);
        let (picture, symbols) = augment::vary(&sample, hands, &recipe.augmentation, size, &mut random)
            .map_err(|error| Error::Data(format!("{}: {error}", sample.name)))?;
        batch.pictures.push(picture);
        batch.symbols.push(symbols);
        batch.formulas.push(sample.tokens.clone());
    }
    Ok(batch)
}

/// Hands the batches of an epoch from place `first` on to `use_batch`, in order, while threads make the next ones.
/// `use_batch` answers whether to go on.
pub fn each(
    samples: &Samples,
    recipe: &Recipe,
    epoch: usize,
    first: usize,
    mut use_batch: impl FnMut(usize, Batch) -> Result<bool>,
) -> Result<()> {
    const WORKERS: usize = 2;
    const AHEAD: usize = 4;
    let plan = plan(samples, recipe, epoch);
    let hands = Hands::of(&samples.training);
    let next = AtomicUsize::new(first);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(AHEAD);
        for _ in 0..WORKERS {
            let (sender, plan, next, hands) = (sender.clone(), &plan, &next, &hands);
            scope.spawn(move || {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(own) = plan.get(place) else { break };
                    let batch = make(samples, hands, recipe, epoch, place, own);
                    // Nobody listens any more when the epoch was left early.
                    if sender.send((place, batch)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        // Workers finish in any order.
        let mut early = BTreeMap::new();
        for place in first..plan.len() {
            let batch = loop {
                if let Some(batch) = early.remove(&place) {
                    break batch;
                }
                let Ok((done, batch)) = receiver.recv() else {
                    return Err(Error::Data("a thread that makes batches has died".into()));
                };
                early.insert(done, batch);
            };
            if !use_batch(place, batch?)? {
                break;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Sample;

    fn stored(pick: Pick) -> usize {
        match pick {
            Pick::Stored(index) => index,
            Pick::Made { .. } => panic!("nothing is made"),
        }
    }

    fn samples(count: usize) -> Samples {
        let sample = |index: usize| {
            let (width, height) = (20 + 7 * (index % 13), 16 + index % 5);
            let picture = Image::new(width, height, vec![0; width * height]).unwrap();
            Sample::with_picture(index.to_string(), vec![3 + index as u16], picture)
        };
        Samples { training: (0..count).map(sample).collect(), ..Samples::default() }
    }

    fn recipe(order: Order) -> Recipe {
        let batches = Batches { pictures: 4, pixels: 6000, order, accumulate: 1 };
        Recipe { batches, ..Recipe::default() }
    }

    #[test]
    fn batches_keep_their_limits_and_hold_every_sample_once() {
        let samples = samples(50);
        for order in [Order::Area, Order::Random] {
            let recipe = recipe(order);
            let plans = [0, 1].map(|epoch| plan(&samples, &recipe, epoch));
            assert_ne!(plans[0], plans[1]);
            assert_eq!(plans[0], plan(&samples, &recipe, 0));
            let mut all: Vec<usize> = plans[0].iter().flatten().map(|&pick| stored(pick)).collect();
            all.sort();
            assert_eq!(all, (0..50).collect::<Vec<_>>());
            for batch in &plans[0] {
                let largest = batch.iter().map(|&pick| samples.area(pick, 0)).max().unwrap();
                assert!(batch.len() <= 4 && (batch.len() == 1 || largest * batch.len() <= 6000), "{batch:?}");
            }
        }
    }

    #[test]
    fn the_batches_of_a_step_have_about_the_same_area() {
        let samples = samples(64);
        let batches = Batches { pictures: 8, pixels: 1 << 30, order: Order::Random, accumulate: 2 };
        let plan = plan(&samples, &Recipe { batches, ..Recipe::default() }, 0);
        assert_eq!(plan.len(), 8);
        for step in plan.chunks_exact(2) {
            let [a, b] = [&step[0], &step[1]]
                .map(|batch| batch.iter().map(|&pick| samples.area(pick, 0)).sum::<usize>() as f64);
            assert!((a / b - 1.0).abs() < 0.1, "{a} and {b}");
        }
    }

    #[test]
    fn batches_come_in_order_and_from_the_middle_they_are_the_same() {
        let (samples, recipe) = (samples(40), recipe(Order::Random));
        let collect = |first| {
            let mut list = Vec::new();
            let each = each(&samples, &recipe, 3, first, |place, batch| {
                list.push((place, batch));
                Ok(true)
            });
            each.unwrap();
            list
        };
        let all = collect(0);
        assert_eq!(
            all.iter().map(|(place, _)| *place).collect::<Vec<_>>(),
            (0..all.len()).collect::<Vec<_>>()
        );
        assert_eq!(collect(4), all[4..]);
    }

    #[test]
    fn an_epoch_can_be_left_early() {
        let (samples, recipe) = (samples(40), recipe(Order::Area));
        let mut seen = 0;
        each(&samples, &recipe, 0, 0, |_, _| {
            seen += 1;
            Ok(seen < 2)
        })
        .unwrap();
        assert_eq!(seen, 2);
    }
}
