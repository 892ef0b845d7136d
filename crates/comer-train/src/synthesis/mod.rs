//! Makes training samples that nobody wrote as they are, from what people did write.
//!
//! | kind | |
//! |---|---|
//! | [`Kind::Hands`] | the symbols of a real expression replaced by those of another writer ([`other_hands`]) |
//! | [`Kind::Parts`] | parts of real expressions, and expressions with swapped parts ([`recombine`]) |
//! | [`Kind::Formulas`] | formulas of a list, laid out as people write ([`layout`]), with the glyphs of one writer |
//!
//! A sample depends on the seed and on its number alone. Strokes are drawn by the rule of real ink.

pub mod align;
pub mod geometry;
pub mod glyphs;
pub mod layout;
pub mod metrics;
pub mod other_hands;
pub mod recombine;
pub mod tree;
pub mod words;

use std::collections::HashSet;
use std::path::Path;

use comer::Ink;
use comer::internal::vocab::PAD;
use comer::internal::{TokenId, Vocab};
use comer::{InkSymbol, Stroke};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};
use rayon::prelude::*;

use self::align::{Mark, align};
use self::geometry::Rect;
use self::glyphs::Library;
use self::layout::Layout;
use self::metrics::Metrics;
use self::recombine::{Piece, Rows, Written};
use self::tree::{Grammar, Row};
use self::words::Words;
use crate::error::{Error, Result};
use crate::random::generator;
use crate::recipe::DataSet;
use crate::sample::Sample;

/// How a sample is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A real layout in another hand.
    Hands,
    /// Parts of real expressions.
    Parts,
    /// A formula of a list.
    Formulas,
}

/// Attempts before a real sample is taken as it is.
const ATTEMPTS: usize = 30;
/// Pixels of a picture for each symbol in it, about.
const LEAF_AREA: usize = 3000;

/// All that samples are made from.
#[derive(Debug)]
pub struct Synthesizer {
    shares: [f64; 3],
    grammar: Grammar,
    metrics: Metrics,
    words: Words,
    labels: Vec<String>,
    library: Library,
    /// Real expressions whose symbols are known: the sample, its tree, and the symbol of each leaf.
    layouts: Vec<(usize, Row, Vec<usize>)>,
    rows: Rows,
    formulas: Vec<Row>,
    excluded: HashSet<Vec<TokenId>>,
    most_tokens: usize,
    most_pixels: usize,
}

impl Synthesizer {
    /// Reads what a set of kind `synthesis` names, and takes symbols and layouts from the training samples.
    pub fn new(folder: &Path, set: &DataSet, training: &[Sample], vocab: &Vocab) -> Result<Self> {
        let grammar = Grammar::new(vocab).map_err(Error::Data)?;
        let metrics = Metrics::new(vocab).map_err(Error::Data)?;
        let mut library = Library::default();
        for name in &set.glyphs {
            library.read(&folder.join(name), vocab)?;
        }
        for sample in training {
            let Some(ink) = sample.ink.as_ref().filter(|ink| ink.scale().is_none()) else { continue };
            let writer = sample.writer.as_deref().unwrap_or(&sample.name);
            for symbol in ink.symbols() {
                let token = sample.strokes[symbol.strokes[0]];
                if token != PAD {
                    library.add(token, writer, &strokes_of(symbol, ink));
                }
            }
        }
        library.finish();
        let layouts: Vec<(usize, Row, Vec<usize>)> = training
            .par_iter()
            .enumerate()
            .filter_map(|(number, sample)| find_layout(&grammar, number, sample))
            .collect();
        let mut rows = Rows::new();
        for (number, (_, row, _)) in layouts.iter().enumerate() {
            recombine::collect(&mut rows, number, row);
        }
        let labels: Vec<String> = (0..vocab.len()).map(|token| vocab.decode(&[token as TokenId])).collect();
        let words = Words::new(vocab, &metrics);
        let excluded: HashSet<Vec<TokenId>> = read_lists(folder, &set.exclude, vocab)?.into_iter().collect();
        let mut formulas = Vec::new();
        for tokens in read_lists(folder, &set.formulas, vocab)? {
            let row = grammar
                .parse(&tokens)
                .filter(|_| tokens.len() <= set.most_tokens && !excluded.contains(&tokens));
            let known = |row: &Row| {
                grammar.leaves(row).iter().all(|leaf| words.parts(leaf).iter().all(|part| library.has(*part)))
            };
            formulas.extend(row.filter(known));
        }
        let shares = set.shares;
        let missing = [
            (shares[0] > 0.0 && layouts.is_empty(), "expressions with known symbols"),
            (shares[1] > 0.0 && rows.is_empty(), "expressions with known structure"),
            (shares[2] > 0.0 && formulas.is_empty(), "formulas, which `formulas` should name,"),
        ];
        if let Some((_, what)) = missing.iter().find(|(missing, _)| *missing) {
            return Err(Error::Data(format!(
                "[[data]] {}: there are no {what} to make samples from",
                set.path
            )));
        }
        Ok(Self {
            shares,
            grammar,
            metrics,
            words,
            labels,
            library,
            layouts,
            rows,
            formulas,
            excluded,
            most_tokens: set.most_tokens,
            most_pixels: set.most_pixels,
        })
    }

    /// What there is to make samples from, in words.
    pub fn describe(&self) -> String {
        format!("{:?}, {} layouts, {} formulas", self.library, self.layouts.len(), self.formulas.len())
    }

    /// How the sample of a number is made.
    pub fn kind(&self, seed: u64, number: u64) -> Kind {
        let at = generator([seed, number, 0, 2]).random::<f64>() * self.shares.iter().sum::<f64>();
        match at {
            _ if at < self.shares[0] => Kind::Hands,
            _ if at < self.shares[0] + self.shares[1] => Kind::Parts,
            _ => Kind::Formulas,
        }
    }

    /// The sample of a number.
    pub fn make(&self, training: &[Sample], seed: u64, number: u64) -> Sample {
        self.make_kind(self.kind(seed, number), training, seed, number)
    }

    /// The sample of a number, made in a certain way.
    pub fn make_kind(&self, kind: Kind, training: &[Sample], seed: u64, number: u64) -> Sample {
        let mut random = generator([seed, number, 1, 2]);
        for _ in 0..ATTEMPTS {
            let made = match kind {
                Kind::Hands => self.other_hand(training, &mut random),
                Kind::Parts => self.parts(training, &mut random),
                Kind::Formulas => self.formula(&mut random),
            };
            if let Some((written, scale)) = made
                && let Some(sample) = self.sample(written, scale, number)
            {
                return sample;
            }
        }
        training[random.random_range(0..training.len())].clone()
    }

    /// About how many pixels the picture of a number has, without making it.
    pub fn area(&self, training: &[Sample], seed: u64, number: u64) -> usize {
        let mut random = generator([seed, number, 1, 2]);
        let of_layout = |place: usize| training[self.layouts[place].0].area();
        match self.kind(seed, number) {
            Kind::Hands => of_layout(random.random_range(0..self.layouts.len())),
            Kind::Parts => of_layout(random.random_range(0..self.layouts.len())) * 2 / 3,
            Kind::Formulas => {
                let row = &self.formulas[random.random_range(0..self.formulas.len())];
                LEAF_AREA * tree::leaf_count(row)
            }
        }
    }

    /// A sample of what was written, unless it is excluded or too large.
    fn sample(&self, written: Written, scale: Option<f64>, number: u64) -> Option<Sample> {
        let tokens = self.grammar.tokens(&written.row);
        if tokens.len() > self.most_tokens || self.excluded.contains(&tokens) {
            return None;
        }
        debug_assert!(recombine::agrees(&self.grammar, &written));
        let (mut strokes, mut names, mut symbols) = (Vec::new(), Vec::new(), Vec::new());
        for Piece { token, strokes: own } in written.pieces {
            let first = strokes.len();
            names.extend(own.iter().map(|_| token));
            strokes.extend(own);
            let label = self.labels[token as usize].clone();
            symbols.push(InkSymbol { label, strokes: (first..strokes.len()).collect() });
        }
        let ink = Ink::new(strokes).and_then(|ink| ink.with_symbols(symbols)).ok()?.with_scale(scale);
        let sample = Sample::with_ink(format!("made {number}"), tokens, ink, names).ok()?;
        (sample.area() <= self.most_pixels).then_some(sample)
    }

    /// A real expression with its strokes by leaf.
    fn written(&self, training: &[Sample], number: usize) -> Option<(Written, Option<f64>)> {
        let (sample, row, order) = &self.layouts[number];
        let ink = training[*sample].ink.as_ref()?;
        let piece = |&symbol: &usize| {
            let symbol = &ink.symbols()[symbol];
            Piece { token: training[*sample].strokes[symbol.strokes[0]], strokes: strokes_of(symbol, ink) }
        };
        Some((Written { row: row.clone(), pieces: order.iter().map(piece).collect() }, ink.scale()))
    }

    fn other_hand(&self, training: &[Sample], random: &mut impl Rng) -> Option<(Written, Option<f64>)> {
        let (mut written, _) = self.written(training, random.random_range(0..self.layouts.len()))?;
        let needed = self.needed(written.pieces.iter().map(|piece| piece.token));
        let mut hand = self.library.hand(&needed, random);
        for piece in &mut written.pieces {
            let label = &self.labels[piece.token as usize];
            let new =
                other_hands::replace(piece.token, label, &piece.strokes, &mut hand, &self.words, random);
            if let Some(strokes) = new {
                piece.strokes = strokes;
            }
        }
        // By now these are strokes of a pen, wherever the layout comes from.
        Some((written, None))
    }

    /// The symbols that a writer should have, each once.
    fn needed(&self, tokens: impl Iterator<Item = TokenId>) -> Vec<TokenId> {
        let mut needed: Vec<TokenId> = tokens
            .filter(|&token| !other_hands::is_kept(&self.labels[token as usize]))
            .flat_map(|token| self.words.parts(&token).to_vec())
            .collect();
        needed.sort();
        needed.dedup();
        needed
    }

    fn parts(&self, training: &[Sample], random: &mut impl Rng) -> Option<(Written, Option<f64>)> {
        let number = random.random_range(0..self.layouts.len());
        let (written, scale) = self.written(training, number)?;
        if random.random::<bool>() {
            let part = recombine::cut(&written, &self.labels, random)?;
            // A part of a traced expression is as large as it would have been by itself.
            let grown = recombine::mean_height(&written.pieces) / recombine::mean_height(&part.pieces);
            return Some((part, scale.map(|scale| scale * grown)));
        }
        let places = tree::inner_rows(&written.row);
        let (path, first) = places.choose(random)?;
        let mut tree = written.row.clone();
        let count = tree::leaf_count(tree::row_at(&mut tree, path)?);
        let donors = self.rows.get(&path[path.len() - 1].1)?;
        let (donor, donor_path, donor_first, donor_count) = donors.choose(random)?;
        let (mut other, _) = self.written(training, *donor)?;
        let row = tree::row_at(&mut other.row, donor_path)?.clone();
        let pieces = other.pieces[*donor_first..donor_first + donor_count].to_vec();
        let other = Written { row, pieces };
        if other.row == *tree::row_at(&mut tree, path)? {
            return None;
        }
        Some((recombine::swap(&written, path, *first, count, &other)?, scale))
    }

    fn formula(&self, random: &mut impl Rng) -> Option<(Written, Option<f64>)> {
        let row = &self.formulas[random.random_range(0..self.formulas.len())];
        let needed = self.needed(self.grammar.leaves(row).into_iter());
        let hand = self.library.hand(&needed, random);
        let mut layout = Layout {
            metrics: &self.metrics,
            grammar: &self.grammar,
            labels: &self.labels,
            words: &self.words,
            hand,
            random,
        };
        let pieces = layout.write(row)?;
        Some((Written { row: row.clone(), pieces }, None))
    }
}

fn strokes_of(symbol: &InkSymbol, ink: &Ink) -> Vec<Stroke> {
    symbol.strokes.iter().map(|&stroke| ink.strokes()[stroke].clone()).collect()
}

/// The tree of a sample and the symbol of each leaf, if all strokes belong to symbols and these to leaves.
fn find_layout(grammar: &Grammar, number: usize, sample: &Sample) -> Option<(usize, Row, Vec<usize>)> {
    let ink = sample.ink.as_ref()?;
    if sample.strokes.contains(&PAD) {
        return None;
    }
    let row = grammar.parse(&sample.tokens)?;
    let mark = |symbol: &InkSymbol| Mark {
        token: sample.strokes[symbol.strokes[0]],
        place: Rect::of(symbol.strokes.iter().map(|&stroke| &ink.strokes()[stroke])),
    };
    let marks: Vec<Mark> = ink.symbols().iter().map(mark).collect();
    let order = align(grammar, &row, &marks)?;
    Some((number, row, order))
}

/// The formulas of lists: a line's tokens stand after its last tab. Lines that the vocabulary cannot write are left out.
fn read_lists(folder: &Path, names: &[String], vocab: &Vocab) -> Result<Vec<Vec<TokenId>>> {
    let mut formulas = Vec::new();
    for name in names {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path).map_err(|reason| Error::File { path, reason })?;
        let formula = |line: &str| vocab.encode(line.rsplit('\t').next().unwrap_or(line).trim()).ok();
        formulas.extend(text.lines().filter_map(formula).filter(|tokens| !tokens.is_empty()));
    }
    Ok(formulas)
}

#[cfg(test)]
mod tests;
