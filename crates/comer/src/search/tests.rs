//! The search over a made-up decoder whose every formula can be scored by hand.

use super::*;
use crate::language_model::{Ngrams, Recurrence};
use crate::token::{EOS, PAD, SOS};
use crate::vocab::Vocab;

/// A decoder whose probabilities are a function of the prefix: noise that grows with `doubt`.
struct Fake {
    vocab: usize,
    seed: u64,
    doubt: f64,
    prefixes: Vec<Vec<TokenId>>,
    /// How many rows it was asked for.
    rows: usize,
    output: Vec<f32>,
}

impl Fake {
    fn new(vocab: usize, seed: u64, doubt: f64) -> Self {
        Self { vocab, seed, doubt, prefixes: Vec::new(), rows: 0, output: Vec::new() }
    }

    /// The log-probabilities after a prefix; reserved tokens that end nothing are next to impossible.
    fn log_probs(&self, prefix: &[TokenId]) -> Vec<f32> {
        let mut state = prefix.iter().fold(self.seed, |state, &token| {
            (state ^ u64::from(token)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
        });
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1u64 << 24) as f64
        };
        let mut energies: Vec<f64> = (0..self.vocab).map(|_| noise() * self.doubt).collect();
        let end = if prefix[0] == SOS { EOS } else { SOS };
        for reserved in [PAD, SOS, EOS].into_iter().filter(|&token| token != end) {
            energies[usize::from(reserved)] = -40.0;
        }
        let sum: f64 = energies.iter().map(|x| x.exp()).sum();
        energies.iter().map(|x| (x - sum.ln()) as f32).collect()
    }

    /// The log-probabilities of a printed formula in one direction, the end's last.
    fn formula(&self, direction: Direction, formula: &[TokenId]) -> Vec<f32> {
        let (start, end) = direction.ends();
        let mut prefix = vec![start];
        let written = direction.order(formula).into_iter().chain([end]);
        let log_prob = |token: TokenId| {
            let log_prob = self.log_probs(&prefix)[usize::from(token)];
            prefix.push(token);
            log_prob
        };
        written.map(log_prob).collect()
    }
}

impl StepDecoder for Fake {
    fn vocab_size(&self) -> usize {
        self.vocab
    }

    fn restart(&mut self) {
        self.prefixes.clear();
    }

    fn step(&mut self, parents: &[usize], tokens: &[TokenId]) -> &[f32] {
        self.rows += tokens.len();
        let first = self.prefixes.is_empty();
        let prefix = |(&parent, &token): (&usize, &TokenId)| {
            let before = if first { &[][..] } else { &self.prefixes[parent] };
            [before, &[token]].concat()
        };
        self.prefixes = parents.iter().zip(tokens).map(prefix).collect();
        self.output = self.prefixes.iter().flat_map(|prefix| self.log_probs(prefix)).collect();
        &self.output
    }
}

fn letters() -> (Vocab, Grammar) {
    let vocab = Vocab::new(["a", "b", "c"]).unwrap();
    let grammar = Grammar::new(&vocab);
    (vocab, grammar)
}

/// Every formula of at most `longest` letters with its best joint score, the best first. `from_left`: only that direction
/// finds formulas.
fn all_formulas(fake: &Fake, longest: usize, from_left: bool) -> Vec<(f32, Vec<TokenId>)> {
    let mut formulas: Vec<Vec<TokenId>> = vec![Vec::new()];
    for index in 0.. {
        let Some(formula) = formulas.get(index).filter(|formula| formula.len() < longest).cloned() else {
            break;
        };
        formulas.extend((3..6).map(|letter| [&formula[..], &[letter]].concat()));
    }
    let score = |formula: Vec<TokenId>| {
        let sums = [Direction::LeftToRight, Direction::RightToLeft].map(|direction| {
            let log_probs = fake.formula(direction, &formula);
            (log_probs.iter().sum::<f32>(), log_probs[formula.len()])
        });
        // At the length limit the direction that found it does not have to say that it ends.
        let [(left, left_end), (right, right_end)] = sums;
        let unsaid = if from_left { left_end } else { left_end.min(right_end) };
        let unsaid = if formula.len() == longest { unsaid } else { 0.0 };
        ((left + right - unsaid) / (formula.len() + 1) as f32, formula)
    };
    let mut scored: Vec<_> = formulas.into_iter().map(score).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored
}

#[test]
fn a_beam_of_all_prefixes_finds_the_best_formulas() {
    let (_, grammar) = letters();
    for seed in 0..30 {
        let mut fake = Fake::new(6, seed, [1.0, 4.0, 12.0][seed as usize % 3]);
        let config = SearchConfig {
            beam: 700,
            margin: None,
            max_length: 5,
            answers: 4,
            grammar: seed % 2 == 0,
            ..Default::default()
        };
        let found = search(&mut fake, &config, &grammar, None, &|| Ok(())).unwrap();
        let expected = all_formulas(&fake, 4, false);
        assert_eq!(found.len(), 4);
        for (found, (score, tokens)) in found.iter().zip(&expected) {
            assert!((found.score - score).abs() < 1e-5, "seed {seed}: {} {score}", found.score);
            assert_eq!(&found.tokens, tokens, "seed {seed}");
        }
    }
}

#[test]
fn fixed_tokens_leave_the_best_formulas_that_have_them() {
    let (_, grammar) = letters();
    for (seed, fixed) in
        [vec![Some(4)], vec![Some(3), Some(3)], vec![None, Some(5)], vec![None, None, Some(3)]]
            .into_iter()
            .cycle()
            .take(40)
            .enumerate()
    {
        let mut fake = Fake::new(6, seed as u64, [1.0, 4.0, 12.0][seed % 3]);
        let grammar_on = seed % 2 == 0;
        let config = SearchConfig {
            beam: 700,
            margin: None,
            max_length: 5,
            answers: 4,
            grammar: grammar_on,
            fixed: fixed.clone(),
            ..Default::default()
        };
        let found = search(&mut fake, &config, &grammar, None, &|| Ok(())).unwrap();
        let has_them = |tokens: &[TokenId]| {
            let mut pairs = fixed.iter().zip(0..);
            pairs.all(|(fixed, position)| {
                tokens.get(position).is_some_and(|&token| fixed.is_none_or(|fixed| fixed == token))
            })
        };
        let expected = all_formulas(&fake, 4, true);
        let expected: Vec<_> = expected.iter().filter(|(_, tokens)| has_them(tokens)).take(4).collect();
        assert_eq!(found.len(), 4);
        for (found, (score, tokens)) in found.iter().zip(expected) {
            assert_eq!(&found.tokens, tokens, "seed {seed}");
            assert!((found.score - score).abs() < 1e-5, "seed {seed}: {} {score}", found.score);
            for (position, fixed) in fixed.iter().enumerate() {
                assert_eq!(found.token_confidence(position) == 1.0, fixed.is_some(), "seed {seed}");
            }
        }
    }
}

/// A language model of the three letters: `b` is usual after `a`, and `c` is rare.
fn letter_model(vocab: &Vocab) -> LanguageModel {
    let ngrams = |start: TokenId, end: TokenId| {
        let mut list =
            vec![(vec![start], 1.0), (vec![end], 0.3), (vec![3], 0.4), (vec![4], 0.25), (vec![5], 0.05)];
        list.extend([(vec![start, 3], 0.7), (vec![3, 4], 0.6), (vec![4, end], 0.5)]);
        list.sort_by_key(|(tokens, _)| (tokens.len(), tokens.clone()));
        let list = list.iter().map(|(tokens, probability)| (&tokens[..], *probability));
        Ngrams::new(vocab.len(), start, list).unwrap()
    };
    LanguageModel {
        forward: ngrams(SOS, EOS),
        backward: ngrams(EOS, SOS),
        recurrence: Recurrence::of_letters(0.5, 2.0, vocab).unwrap(),
        vocab: vocab.clone(),
        weight: 0.4,
        provenance: Default::default(),
    }
}

#[test]
fn with_a_language_model_its_share_is_added_to_the_decoders() {
    let (vocab, grammar) = letters();
    let model = letter_model(&vocab);
    let mut changed = 0;
    for seed in 0..60 {
        let mut fake = Fake::new(6, seed, [1.0, 4.0, 12.0][seed as usize % 3]);
        let strategy = if seed % 4 == 3 { Strategy::LeftToRight } else { Strategy::Joint };
        let config = SearchConfig { strategy, beam: 5, max_length: 15, answers: 3, ..Default::default() };
        let answers = search(&mut fake, &config, &grammar, Some(&model), &|| Ok(())).unwrap();
        let mut common = None;
        for answer in &answers {
            let mean = |direction_score: &DirectionScore| -> f32 {
                let decoder = fake.formula(direction_score.direction, &answer.tokens);
                let ended = decoder.len() - usize::from(direction_score.end.is_none());
                decoder[..ended].iter().sum::<f32>() / ended.max(answer.tokens.len() + 1) as f32
            };
            let usual = |direction_score: &DirectionScore| -> f32 {
                model
                    .score(direction_score.direction, &direction_score.direction.order(&answer.tokens))
                    .iter()
                    .sum()
            };
            let [decoder, usual] = [
                answer.by_direction.iter().map(mean).sum::<f32>(),
                answer.by_direction.iter().map(usual).sum::<f32>(),
            ];
            // One length for all candidates.
            let length = 0.4 * usual / (answer.score - decoder);
            assert!((length - length.round()).abs() < 1e-2 && length > 0.5, "seed {seed}: {length}");
            assert_eq!(*common.get_or_insert(length.round()), length.round(), "seed {seed}");
            // DirectionScores stay the decoder's own.
            for direction_score in &answer.by_direction {
                let own = fake.formula(direction_score.direction, &answer.tokens);
                assert_eq!(
                    direction_score.tokens,
                    direction_score.direction.order(&own[..answer.tokens.len()])
                );
            }
        }
        let off = SearchConfig { language_model: false, ..config.clone() };
        let without = search(&mut fake, &off, &grammar, Some(&model), &|| Ok(())).unwrap();
        assert_eq!(
            without,
            search(&mut fake, &config, &grammar, None, &|| Ok(())).unwrap(),
            "off is as if there were none"
        );
        changed += usize::from(without[0].tokens != answers[0].tokens);
    }
    assert!(changed > 10, "it changed {changed} answers");
}

#[test]
fn with_a_language_model_one_answer_is_the_first_of_many() {
    let (vocab, grammar) = letters();
    let model = letter_model(&vocab);
    for seed in 0..300 {
        let mut fake = Fake::new(6, seed, [2.0, 6.0, 20.0][seed as usize % 3]);
        let one = SearchConfig { beam: 3, margin: None, max_length: 12, ..Default::default() };
        let many = SearchConfig { answers: 100, ..one.clone() };
        let one = search(&mut fake, &one, &grammar, Some(&model), &|| Ok(())).unwrap();
        let many = search(&mut fake, &many, &grammar, Some(&model), &|| Ok(())).unwrap();
        assert_eq!(one[0].tokens, many[0].tokens, "seed {seed}");
        assert!((one[0].score - many[0].score).abs() < 1e-5, "seed {seed}");
    }
}

#[test]
fn asking_for_one_answer_finds_the_first_of_many() {
    let (_, grammar) = letters();
    for seed in 0..300 {
        let mut fake = Fake::new(6, seed, [2.0, 6.0, 20.0][seed as usize % 3]);
        let one = SearchConfig { beam: 3, margin: None, max_length: 12, ..Default::default() };
        // More answers than there are candidates: nothing is given up early.
        let many = SearchConfig { answers: 100, ..one.clone() };
        let (one, many) = (
            search(&mut fake, &one, &grammar, None, &|| Ok(())).unwrap(),
            search(&mut fake, &many, &grammar, None, &|| Ok(())).unwrap(),
        );
        assert_eq!(one[0].tokens, many[0].tokens, "seed {seed}");
        assert!((one[0].score - many[0].score).abs() < 1e-6, "seed {seed}");
        assert!(many.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn a_margin_saves_rows_and_costs_no_answers() {
    let (_, grammar) = letters();
    let run = |fake: &mut Fake, config: &SearchConfig| {
        fake.rows = 0;
        let answers = search(fake, config, &grammar, None, &|| Ok(())).unwrap();
        (answers, fake.rows)
    };
    let (mut all_rows, mut rows_with_margin) = (0, 0);
    for seed in 0..200 {
        let mut fake = Fake::new(6, seed, [2.0, 6.0, 40.0][seed as usize % 3]);
        let exact = SearchConfig { beam: 6, margin: None, max_length: 14, answers: 5, ..Default::default() };
        let wide = SearchConfig { margin: Some(1e6), ..exact.clone() };
        let narrow = SearchConfig { margin: Some(3.0), ..exact.clone() };
        let (expected, all) = run(&mut fake, &exact);
        assert_eq!(run(&mut fake, &wide), (expected.clone(), all), "seed {seed}: nothing to drop");
        let found = run(&mut fake, &narrow).0;
        assert_eq!(found.len(), expected.len(), "seed {seed}: as many answers as were asked for");
        let one = |config: &SearchConfig| SearchConfig { answers: 1, ..config.clone() };
        all_rows += run(&mut fake, &one(&exact)).1;
        rows_with_margin += run(&mut fake, &one(&narrow)).1;
    }
    assert!(rows_with_margin * 2 < all_rows, "{rows_with_margin} rows instead of {all_rows}");
}

#[test]
fn direction_scores_are_the_decoders_and_confidences_are_probabilities() {
    let (_, grammar) = letters();
    for seed in 0..30 {
        let mut fake = Fake::new(6, seed, 8.0);
        let config = SearchConfig { beam: 4, max_length: 9, answers: 5, ..Default::default() };
        for answer in search(&mut fake, &config, &grammar, None, &|| Ok(())).unwrap() {
            assert_eq!(answer.by_direction.len(), 2);
            let mut product = 1.0;
            for direction_score in &answer.by_direction {
                let mut expected = fake.formula(direction_score.direction, &answer.tokens);
                let end = expected.pop().unwrap();
                let expected = direction_score.direction.order(&expected);
                assert_eq!(direction_score.tokens, expected, "seed {seed} {:?}", direction_score.direction);
                assert!(direction_score.end.is_none_or(|said| said == end));
                product *= (expected.iter().sum::<f32>() + direction_score.end.unwrap_or(0.0)).exp();
            }
            assert!((answer.confidence() - product.sqrt()).abs() < 1e-6);
            for index in 0..answer.tokens.len() {
                assert!((0.0..=1.0).contains(&answer.token_confidence(index)));
            }
            assert_eq!(answer.token_confidence(answer.tokens.len()), 0.0);
        }
    }
}

#[test]
fn greedy_takes_the_most_likely_token_each_time() {
    let (_, grammar) = letters();
    for seed in 0..50 {
        let mut fake = Fake::new(6, seed, 6.0);
        let config = SearchConfig { strategy: Strategy::Greedy, max_length: 20, ..Default::default() };
        let found = search(&mut fake, &config, &grammar, None, &|| Ok(())).unwrap();
        let mut expected = vec![SOS];
        while expected.len() < 20 {
            let log_probs = fake.log_probs(&expected);
            let best = (0..6).max_by(|&a, &b| log_probs[a].total_cmp(&log_probs[b])).unwrap() as TokenId;
            if best == EOS {
                break;
            }
            expected.push(best);
        }
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].tokens, expected[1..], "seed {seed}");
    }
}

#[test]
fn with_the_grammar_every_answer_is_well_formed_even_at_the_length_limit() {
    let vocab =
        Vocab::new(["a", "{", "}", "^", "_", "\\frac", "\\sqrt", "[", "]", "\\sum", "\\limits"]).unwrap();
    let grammar = Grammar::new(&vocab);
    let mut allowed = Vec::new();
    for seed in 0..60 {
        let strategy = [Strategy::Joint, Strategy::LeftToRight, Strategy::Greedy][seed as usize % 3];
        let max_length = 2 + seed as usize % 17;
        let mut fake = Fake::new(vocab.len(), seed, 6.0);
        let config = SearchConfig { strategy, beam: 5, max_length, answers: 10, ..Default::default() };
        let answers = search(&mut fake, &config, &grammar, None, &|| Ok(())).unwrap();
        assert!(!answers.is_empty(), "seed {seed}");
        for answer in answers {
            assert!(answer.tokens.len() < max_length);
            let mut state = grammar.start(Direction::LeftToRight);
            for &token in &answer.tokens {
                grammar.allowed(&state, 1000, &mut allowed);
                assert!(allowed[usize::from(token)], "{}", vocab.decode(&answer.tokens));
                state = grammar.advance(&state, token);
            }
            assert!(state.complete(), "{}", vocab.decode(&answer.tokens));
        }
    }
}

#[test]
fn impossible_settings_are_refused_by_name() {
    for (config, field) in [
        (SearchConfig { beam: 0, ..Default::default() }, "beam"),
        (SearchConfig { max_length: 1, ..Default::default() }, "max_length"),
        (SearchConfig { alpha: f32::NAN, ..Default::default() }, "alpha"),
        (SearchConfig { answers: 0, ..Default::default() }, "answers"),
        (SearchConfig { margin: Some(-1.0), ..Default::default() }, "margin"),
        (SearchConfig { margin: Some(f32::NAN), ..Default::default() }, "margin"),
    ] {
        let message = config.validate().unwrap_err().to_string();
        assert!(message.contains(field), "{message}");
    }
    SearchConfig::default().validate().unwrap();
}
