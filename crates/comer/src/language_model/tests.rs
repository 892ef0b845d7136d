//! Probabilities that sum to 1, agree with hand-made ones, and survive any damage to their file.

use super::*;
use crate::token::{EOS, PAD, SOS};

/// The n-grams of `a b` and `a a` over the letters a, b and c, with probabilities made up: `(tokens, probability)`.
fn hand_made(start: TokenId) -> Vec<(Vec<TokenId>, f64)> {
    let end = if start == SOS { EOS } else { SOS };
    let (a, b, c) = (3, 4, 5);
    let mut ngrams = vec![
        (vec![start], 1.0),
        (vec![end], 0.3),
        (vec![a], 0.4),
        (vec![b], 0.2),
        (vec![c], 0.1),
        (vec![start, a], 0.9),
        (vec![a, end], 0.35),
        (vec![a, a], 0.25),
        (vec![a, b], 0.3),
        (vec![b, end], 0.8),
        (vec![start, a, b], 0.5),
        (vec![start, a, a], 0.4),
        (vec![a, b, end], 0.95),
    ];
    ngrams.sort_by_key(|(tokens, _)| (tokens.len(), tokens.clone()));
    ngrams
}

fn ngrams(start: TokenId) -> Ngrams {
    let list = hand_made(start);
    Ngrams::new(6, start, list.iter().map(|(tokens, probability)| (&tokens[..], *probability))).unwrap()
}

fn model() -> LanguageModel {
    let vocab = Vocab::new(["a", "b", "c"]).unwrap();
    LanguageModel {
        forward: ngrams(SOS),
        backward: ngrams(EOS),
        recurrence: Recurrence::of_letters(0.5, 2.0, &vocab).unwrap(),
        vocab,
        weight: 0.25,
        provenance: Map::new(),
    }
}

/// Every prefix of at most four letters.
fn prefixes() -> Vec<Vec<TokenId>> {
    let mut prefixes: Vec<Vec<TokenId>> = vec![vec![]];
    let mut from = 0;
    for _ in 0..4 {
        let to = prefixes.len();
        for index in from..to {
            prefixes
                .extend((3..6).map(|token| [&prefixes[index][..], &[token]].concat()).collect::<Vec<_>>());
        }
        from = to;
    }
    prefixes
}

#[test]
fn probabilities_are_those_worked_out_by_hand() {
    let ngrams = ngrams(SOS);
    let (a, b, c) = (3, 4, 5);
    let probability = |prefix: &[TokenId], next| {
        let context = prefix.iter().fold(ngrams.start(), |context, &token| ngrams.advance(context, token));
        ngrams.log_probability(context, next).exp()
    };
    // Those of the list are rounded, by little.
    for (tokens, expected) in hand_made(SOS).iter().filter(|(tokens, _)| tokens != &[SOS]) {
        let (next, context) = tokens.split_last().unwrap();
        let found = match context {
            [SOS, rest @ ..] => probability(rest, *next),
            // After c nothing was seen: the context is what follows it.
            rest => probability(&[&[c], rest].concat(), *next),
        };
        assert!(
            (f64::from(found) - expected).abs() < 0.02 * expected,
            "{tokens:?}: {found}, expected {expected}"
        );
    }
    // The others follow from those: what a context leaves over goes by the next shorter one.
    let p = |prefix: &[TokenId], next| probability(prefix, next);
    let single = |next| p(&[c], next);
    let after_a = |next| p(&[c, a], next);
    let backoff_start = (1.0 - p(&[], a)) / (1.0 - single(a));
    let backoff_a =
        (1.0 - after_a(EOS) - after_a(a) - after_a(b)) / (1.0 - single(EOS) - single(a) - single(b));
    let backoff_start_a = (1.0 - p(&[a], b) - p(&[a], a)) / (1.0 - after_a(b) - after_a(a));
    let backoff_a_b = (1.0 - p(&[a, b], EOS)) / (1.0 - p(&[c, b], EOS));
    let backoff_b = (1.0 - p(&[c, b], EOS)) / (1.0 - single(EOS));
    let cases: [(&[TokenId], TokenId, f32); 6] = [
        (&[], b, backoff_start * single(b)),
        (&[c, a], c, backoff_a * single(c)),
        (&[a], EOS, backoff_start_a * after_a(EOS)),
        (&[a], c, backoff_start_a * backoff_a * single(c)),
        (&[a, b], a, backoff_a_b * backoff_b * single(a)),
        (&[a, b, c], a, single(a)),
    ];
    for (prefix, next, expected) in cases {
        let found = probability(prefix, next);
        assert!((found - expected).abs() < 1e-5, "{prefix:?} {next}: {found}, expected {expected}");
    }
    assert_eq!((ngrams.order(), ngrams.counts()), (3, vec![5, 5, 3]));
    assert_eq!(probability(&[], PAD) + probability(&[], SOS), 0.0);
}

#[test]
fn probabilities_sum_to_one_after_every_prefix() {
    let model = model();
    let mut row = Vec::new();
    for direction in [Direction::LeftToRight, Direction::RightToLeft] {
        for prefix in prefixes() {
            let start = model.start(direction);
            let state = prefix.iter().fold(start, |state, &token| model.advance(&state, token));
            model.log_probabilities(&state, &mut row);
            let sum: f32 = row.iter().map(|value| value.exp()).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{direction:?} {prefix:?}: {sum}");
        }
    }
}

#[test]
fn one_token_at_a_time_is_the_same_as_the_whole() {
    let model = model();
    let plain = LanguageModel { recurrence: Recurrence::default(), ..model.clone() };
    let mut row = Vec::new();
    for direction in [Direction::LeftToRight, Direction::RightToLeft] {
        for formula in prefixes() {
            let (mut state, mut sum) = (model.start(direction), 0.0);
            for &token in formula.iter().chain([&direction.ends().1]) {
                model.log_probabilities(&state, &mut row);
                sum += row[usize::from(token)];
                state = model.advance(&state, token);
            }
            let whole: f32 = model.score(direction, &formula).iter().sum();
            assert!((sum - whole).abs() < 1e-5, "{formula:?}");
            // A row and a single token agree.
            let single = plain.ngrams(direction).score(&formula);
            let rows = plain.score(direction, &formula);
            assert!(single.iter().zip(&rows).all(|(a, b)| (a - b).abs() < 1e-5), "{formula:?}");
        }
    }
}

#[test]
fn letters_that_were_seen_are_likelier() {
    let model = model();
    let plain = LanguageModel { recurrence: Recurrence::default(), ..model.clone() };
    let (a, c) = (3, 5);
    let score = |model: &LanguageModel, formula: &[TokenId]| model.score(Direction::LeftToRight, formula);
    let (with, without) = (score(&model, &[c, c, a]), score(&plain, &[c, c, a]));
    assert_eq!(with[0], without[0], "nothing was seen before the first");
    // One c was seen: the share is 0.5 / 3, all of it c's; the letters have what the end has not.
    let letters = 1.0 - score(&plain, &[c])[1].exp();
    let expected = without[1].exp() * (1.0 - 0.5 / 3.0) + 0.5 / 3.0 * letters;
    assert!((with[1].exp() - expected).abs() < 1e-5);
    assert!(with[2] < without[2], "another letter is less likely");
    assert!((with[3] - without[3]).abs() < 1e-6, "the end is no letter");
}

#[test]
fn letters_are_found_in_a_vocabulary() {
    let vocab = Vocab::crohme();
    let recurrence = Recurrence::of_letters(0.5, 2.0, &vocab).unwrap();
    let tokens = recurrence.to_stored(&vocab);
    let text = serde_json::to_string(&tokens).unwrap();
    assert!(text.contains("\"x\"") && text.contains("\"X\"") && text.contains(r#""\\theta""#), "{text}");
    assert!(!text.contains("\"2\"") && !text.contains(r#""\\sin""#) && !text.contains("\"{\""), "{text}");
    assert!(Recurrence::of_letters(1.0, 2.0, &vocab).is_err());
    assert!(Recurrence::of_letters(0.5, f32::NAN, &vocab).is_err());
}

#[test]
fn files_are_read_back_as_they_were_and_are_always_the_same() {
    let mut model = model();
    model.provenance.insert("text".into(), "a b".into());
    let bytes = model.to_bytes().unwrap();
    assert_eq!(LanguageModel::from_bytes("bytes", &bytes).unwrap(), model);
    assert_eq!(model.clone().to_bytes().unwrap(), bytes);
    assert!(LanguageModel { weight: -1.0, ..model.clone() }.to_bytes().is_err());
    assert!(LanguageModel { weight: f32::NAN, ..model }.to_bytes().is_err());
}

#[test]
fn damaged_files_are_errors() {
    let bytes = model().to_bytes().unwrap();
    for length in 0..bytes.len() {
        assert!(LanguageModel::from_bytes("cut", &bytes[..length]).is_err(), "cut to {length}");
    }
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x15;
        let result = LanguageModel::from_bytes("damaged", &damaged);
        let harmless = place > 8 && bytes[place] == b' ';
        assert!(harmless || result.is_err(), "byte {place} of {}", bytes.len());
    }
    let message = LanguageModel::from_bytes("my.lm", &[0; 100]).unwrap_err().to_string();
    assert!(message.contains("my.lm") && message.contains("expected safetensors"), "{message}");
}

#[test]
fn damaged_ngrams_are_errors_or_probabilities() {
    let bytes = ngrams(SOS).to_bytes();
    let mut read = 0;
    for place in 0..bytes.len() {
        for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut damaged = bytes.clone();
            damaged[place] ^= change;
            if let Ok(ngrams) = Ngrams::from_bytes(6, SOS, &damaged) {
                read += 1;
                let mut row = vec![0.0; 6];
                for prefix in prefixes() {
                    let start = ngrams.start();
                    let context = prefix.iter().fold(start, |context, &token| ngrams.advance(context, token));
                    ngrams.log_probabilities(context, &mut row);
                    assert!(row.iter().all(|value| !value.is_nan()));
                    assert!(ngrams.score(&prefix).len() == prefix.len() + 1);
                }
            }
        }
    }
    assert!(read > 0, "changes of unused probabilities do no harm");
    for length in 0..bytes.len() {
        assert!(Ngrams::from_bytes(6, SOS, &bytes[..length]).is_err());
    }
    assert!(Ngrams::from_bytes(6, SOS, &[&bytes[..], &[0]].concat()).is_err());
    assert!(Ngrams::from_bytes(7, SOS, &bytes).is_err(), "another vocabulary");
}

#[test]
fn ngrams_without_their_parts_are_refused() {
    let list = hand_made(SOS);
    for missing in 0..list.len() {
        let rest: Vec<_> = list.iter().enumerate().filter(|(index, _)| *index != missing).collect();
        let rest: Vec<_> = rest.into_iter().map(|(_, (tokens, p))| (&tokens[..], *p)).collect();
        let needed = list.iter().any(|(tokens, _)| {
            let part = &list[missing].0[..];
            tokens.len() > part.len() && (tokens.starts_with(part) || tokens.ends_with(part))
        });
        let result = Ngrams::new(6, SOS, rest.into_iter());
        assert_eq!(result.is_err(), needed || list[missing].0.len() == 1, "without {:?}", list[missing].0);
    }
}

#[test]
fn another_vocabulary_is_named() {
    let model = model();
    model.check_vocab(&model.vocab.clone()).unwrap();
    for (tokens, named) in [(vec!["a", "x", "c"], "\"x\""), (vec!["a", "b"], "no token")] {
        let message = model.check_vocab(&Vocab::new(tokens).unwrap()).unwrap_err().to_string();
        assert!(message.contains(named) && message.contains("vocabulary"), "{message}");
    }
}
