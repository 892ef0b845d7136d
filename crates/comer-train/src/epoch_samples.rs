//! The samples of an epoch: each once, or from each set in proportion to its weight.

use rand::seq::SliceRandom;

use crate::random::generator;
use crate::recipe::Recipe;
use crate::samples::{SampleRef, Samples};

/// The samples of an epoch, set by set. All samples of a set are used, in random order, before any is repeated, even if
/// that takes several epochs.
pub fn epoch_samples(samples: &Samples, recipe: &Recipe, epoch: usize) -> Vec<SampleRef> {
    if recipe.epoch_samples == 0 {
        return (0..samples.training.len()).map(SampleRef::Stored).collect();
    }
    let shares = |epoch: usize| match recipe.data.sets.is_empty() {
        true => vec![recipe.epoch_samples],
        false => recipe.data.shares(epoch, recipe.epoch_samples),
    };
    let mut before = vec![0; samples.sets.len()];
    for earlier in 0..epoch {
        before.iter_mut().zip(shares(earlier)).for_each(|(sum, share)| *sum += share);
    }
    let mut refs = Vec::with_capacity(recipe.epoch_samples);
    for (number, ((set, share), first)) in samples.sets.iter().zip(shares(epoch)).zip(before).enumerate() {
        if set.synthesizer.is_some() {
            let numbers = first as u64..(first + share) as u64;
            refs.extend(numbers.map(|index| SampleRef::Synthetic { set: number, number: index }));
            continue;
        }
        let size = set.samples.len();
        let mut at = first;
        while at < first + share {
            let pass = at / size;
            let mut order: Vec<usize> = set.samples.clone().collect();
            order.shuffle(&mut generator([recipe.seed, pass as u64, number as u64, 1]));
            let until = (first + share).min((pass + 1) * size);
            refs.extend(
                order[at - pass * size..until - pass * size].iter().map(|&index| SampleRef::Stored(index)),
            );
            at = until;
        }
    }
    refs
}

#[cfg(test)]
mod tests {
    use comer::Image;
    use comer::internal::dataset::StoredImage;

    use super::*;
    use crate::samples::{Sample, TrainingSet};

    #[test]
    fn sets_are_sampled_by_weight_and_no_sample_repeats_before_all_are_used() {
        let picture = StoredImage::new(&Image::new(20, 16, vec![0; 320]).unwrap()).unwrap();
        let sample = |index: u16| Sample::with_picture(index.to_string(), vec![3], picture.clone());
        let sets =
            [0..10, 10..17].map(|samples| TrainingSet { name: String::new(), samples, synthesizer: None });
        let samples =
            Samples { training: (0..17).map(sample).collect(), sets: sets.into(), ..Samples::default() };
        let text = "epoch_samples = 9\n[[data]]\npath = \"a\"\nweight = [[0, 2.0], [3, 0.0]]\n[[data]]\npath = \"b\"\n[validation]\nset = \"v\"";
        let recipe = Recipe::parse(text).unwrap();
        let stored = |epoch: usize| -> Vec<usize> {
            let index = |sample| match sample {
                SampleRef::Stored(index) => index,
                SampleRef::Synthetic { .. } => panic!("no set is synthetic"),
            };
            epoch_samples(&samples, &recipe, epoch).into_iter().map(index).collect()
        };
        let epochs: Vec<Vec<usize>> = (0..5).map(stored).collect();
        assert_eq!(epochs, (0..5).map(stored).collect::<Vec<_>>());
        let of = |epoch: usize, set: usize| {
            epochs[epoch].iter().filter(|&index| samples.sets[set].samples.contains(index)).count()
        };
        assert_eq!(
            [0, 1, 2, 3, 4].map(|epoch| (of(epoch, 0), of(epoch, 1))),
            [(6, 3), (6, 3), (6, 3), (0, 9), (0, 9)]
        );
        // 18 of the first set in three epochs, 27 of the second in five.
        for (set, times) in [(0, 1..=2), (1, 3..=4)] {
            for index in samples.sets[set].samples.clone() {
                let seen = epochs.iter().flatten().filter(|&&other| other == index).count();
                assert!(times.contains(&seen), "sample {index} was used {seen} times");
            }
        }
    }
}
