//! Generates synthetic training samples from real handwriting.
//!
//! | kind | |
//! |---|---|
//! | [`SynthesisKind::OtherWriter`] | the symbols of a real expression replaced by those of another writer ([`other_writer`]) |
//! | [`SynthesisKind::Parts`] | parts of real expressions, and expressions with swapped parts ([`recombine`]) |
//! | [`SynthesisKind::Formulas`] | formulas of a list, laid out by measured distributions ([`layout`]), with the glyphs of one writer |
//!
//! A sample depends only on the seed and its number. Strokes are drawn like real ink.

pub mod align;
pub mod geometry;
pub mod glyphs;
pub mod layout;
pub mod metrics;
pub mod other_writer;
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

use self::align::{SymbolBox, align};
use self::geometry::Rect;
use self::glyphs::GlyphLibrary;
use self::layout::FormulaLayout;
use self::metrics::LayoutMetrics;
use self::recombine::{InkTree, LeafInk, RowIndex};
use self::tree::{Row, TreeGrammar};
use self::words::Words;
use crate::error::{Error, Result};
use crate::random::generator;
use crate::recipe::DataSet;
use crate::sample::Sample;

/// How a sample is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SynthesisKind {
    /// A real layout with the glyphs of another writer.
    OtherWriter,
    /// Parts of real expressions.
    Parts,
    /// A formula of a list.
    Formulas,
}

/// Attempts before an unchanged real sample is used.
const ATTEMPTS: usize = 30;
/// Approximate number of pixels per symbol.
const LEAF_AREA: usize = 3000;

/// Generates samples.
#[derive(Debug)]
pub struct Synthesizer {
    shares: [f64; 3],
    grammar: TreeGrammar,
    metrics: LayoutMetrics,
    words: Words,
    labels: Vec<String>,
    library: GlyphLibrary,
    /// Real expressions whose symbols are known: the sample, its tree, and the symbol of each leaf.
    layouts: Vec<(usize, Row, Vec<usize>)>,
    rows: RowIndex,
    formulas: Vec<Row>,
    excluded: HashSet<Vec<TokenId>>,
    most_tokens: usize,
    most_pixels: usize,
}

impl Synthesizer {
    /// Reads the files of a set of kind `synthesis`, and takes symbols and layouts from the training samples.
    pub fn new(folder: &Path, set: &DataSet, training: &[Sample], vocab: &Vocab) -> Result<Self> {
        let grammar = TreeGrammar::new(vocab).map_err(Error::Data)?;
        let metrics = LayoutMetrics::new(vocab).map_err(Error::Data)?;
        let mut library = GlyphLibrary::default();
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
        let mut rows = RowIndex::new();
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
            (shares[2] > 0.0 && formulas.is_empty(), "formulas (list them in `formulas`)"),
        ];
        if let Some((_, what)) = missing.iter().find(|(missing, _)| *missing) {
            return Err(Error::Data(format!("[[data]] {}: no {what} to generate samples from", set.path)));
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

    /// A summary of the sources, for display.
    pub fn describe(&self) -> String {
        format!("{:?}, {} layouts, {} formulas", self.library, self.layouts.len(), self.formulas.len())
    }

    /// The kind of a sample.
    pub fn kind(&self, seed: u64, number: u64) -> SynthesisKind {
        let at = generator([seed, number, 0, 2]).random::<f64>() * self.shares.iter().sum::<f64>();
        match at {
            _ if at < self.shares[0] => SynthesisKind::OtherWriter,
            _ if at < self.shares[0] + self.shares[1] => SynthesisKind::Parts,
            _ => SynthesisKind::Formulas,
        }
    }

    /// Generates a sample.
    pub fn generate(&self, training: &[Sample], seed: u64, number: u64) -> Sample {
        self.generate_kind(self.kind(seed, number), training, seed, number)
    }

    /// Generates a sample of a given kind.
    pub fn generate_kind(&self, kind: SynthesisKind, training: &[Sample], seed: u64, number: u64) -> Sample {
        let mut random = generator([seed, number, 1, 2]);
        for _ in 0..ATTEMPTS {
            let generated = match kind {
                SynthesisKind::OtherWriter => self.other_writer(training, &mut random),
                SynthesisKind::Parts => self.parts(training, &mut random),
                SynthesisKind::Formulas => self.formula(&mut random),
            };
            if let Some((written, scale)) = generated
                && let Some(sample) = self.sample(written, scale, number)
            {
                return sample;
            }
        }
        training[random.random_range(0..training.len())].clone()
    }

    /// The approximate number of pixels of a sample, without generating it.
    pub fn area(&self, training: &[Sample], seed: u64, number: u64) -> usize {
        let mut random = generator([seed, number, 1, 2]);
        let of_layout = |index: usize| training[self.layouts[index].0].area();
        match self.kind(seed, number) {
            SynthesisKind::OtherWriter => of_layout(random.random_range(0..self.layouts.len())),
            SynthesisKind::Parts => of_layout(random.random_range(0..self.layouts.len())) * 2 / 3,
            SynthesisKind::Formulas => {
                let row = &self.formulas[random.random_range(0..self.formulas.len())];
                LEAF_AREA * tree::leaf_count(row)
            }
        }
    }

    /// The sample of an expression, unless it is excluded or too large.
    fn sample(&self, written: InkTree, scale: Option<f64>, number: u64) -> Option<Sample> {
        let tokens = self.grammar.tokens(&written.row);
        if tokens.len() > self.most_tokens || self.excluded.contains(&tokens) {
            return None;
        }
        debug_assert!(recombine::agrees(&self.grammar, &written));
        let (mut strokes, mut names, mut symbols) = (Vec::new(), Vec::new(), Vec::new());
        for LeafInk { token, strokes: own } in written.leaves {
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

    /// A real expression with the strokes of its leaves.
    fn expression(&self, training: &[Sample], number: usize) -> Option<(InkTree, Option<f64>)> {
        let (sample, row, order) = &self.layouts[number];
        let ink = training[*sample].ink.as_ref()?;
        let leaf = |&symbol: &usize| {
            let symbol = &ink.symbols()[symbol];
            LeafInk { token: training[*sample].strokes[symbol.strokes[0]], strokes: strokes_of(symbol, ink) }
        };
        Some((InkTree { row: row.clone(), leaves: order.iter().map(leaf).collect() }, ink.scale()))
    }

    fn other_writer(&self, training: &[Sample], random: &mut impl Rng) -> Option<(InkTree, Option<f64>)> {
        let (mut written, _) = self.expression(training, random.random_range(0..self.layouts.len()))?;
        let needed = self.needed(written.leaves.iter().map(|leaf| leaf.token));
        let mut writer = self.library.choose_writer(&needed, random);
        for leaf in &mut written.leaves {
            let label = &self.labels[leaf.token as usize];
            let new =
                other_writer::replace(leaf.token, label, &leaf.strokes, &mut writer, &self.words, random);
            if let Some(strokes) = new {
                leaf.strokes = strokes;
            }
        }
        // These are pen strokes now, even if the layout was traced from a picture.
        Some((written, None))
    }

    /// The symbols that are needed from a writer, each once.
    fn needed(&self, tokens: impl Iterator<Item = TokenId>) -> Vec<TokenId> {
        let mut needed: Vec<TokenId> = tokens
            .filter(|&token| !other_writer::is_kept(&self.labels[token as usize]))
            .flat_map(|token| self.words.parts(&token).to_vec())
            .collect();
        needed.sort();
        needed.dedup();
        needed
    }

    fn parts(&self, training: &[Sample], random: &mut impl Rng) -> Option<(InkTree, Option<f64>)> {
        let number = random.random_range(0..self.layouts.len());
        let (written, scale) = self.expression(training, number)?;
        if random.random::<bool>() {
            let part = recombine::random_part(&written, &self.labels, random)?;
            // A part of a traced expression gets the size that it would have on its own.
            let grown = recombine::mean_height(&written.leaves) / recombine::mean_height(&part.leaves);
            return Some((part, scale.map(|scale| scale * grown)));
        }
        let rows = tree::inner_rows(&written.row);
        let (path, first) = rows.choose(random)?;
        let mut tree = written.row.clone();
        let count = tree::leaf_count(tree::row_at(&mut tree, path)?);
        let donors = self.rows.get(&path[path.len() - 1].1)?;
        let (donor, donor_path, donor_first, donor_count) = donors.choose(random)?;
        let (mut other, _) = self.expression(training, *donor)?;
        let row = tree::row_at(&mut other.row, donor_path)?.clone();
        let leaves = other.leaves[*donor_first..donor_first + donor_count].to_vec();
        let other = InkTree { row, leaves };
        if other.row == *tree::row_at(&mut tree, path)? {
            return None;
        }
        Some((recombine::swap(&written, path, *first, count, &other)?, scale))
    }

    fn formula(&self, random: &mut impl Rng) -> Option<(InkTree, Option<f64>)> {
        let row = &self.formulas[random.random_range(0..self.formulas.len())];
        let needed = self.needed(self.grammar.leaves(row).into_iter());
        let writer = self.library.choose_writer(&needed, random);
        let mut layout = FormulaLayout {
            metrics: &self.metrics,
            grammar: &self.grammar,
            labels: &self.labels,
            words: &self.words,
            writer,
            random,
        };
        let leaves = layout.write(row)?;
        Some((InkTree { row: row.clone(), leaves }, None))
    }
}

fn strokes_of(symbol: &InkSymbol, ink: &Ink) -> Vec<Stroke> {
    symbol.strokes.iter().map(|&stroke| ink.strokes()[stroke].clone()).collect()
}

/// The tree of a sample and the symbol of each leaf, if all strokes belong to symbols and these to leaves.
fn find_layout(grammar: &TreeGrammar, number: usize, sample: &Sample) -> Option<(usize, Row, Vec<usize>)> {
    let ink = sample.ink.as_ref()?;
    if sample.strokes.contains(&PAD) {
        return None;
    }
    let row = grammar.parse(&sample.tokens)?;
    let symbol_box = |symbol: &InkSymbol| SymbolBox {
        token: sample.strokes[symbol.strokes[0]],
        bounds: Rect::of(symbol.strokes.iter().map(|&stroke| &ink.strokes()[stroke])),
    };
    let boxes: Vec<SymbolBox> = ink.symbols().iter().map(symbol_box).collect();
    let order = align(grammar, &row, &boxes)?;
    Some((number, row, order))
}

/// The formulas of lists: the tokens are after the last tab of a line. Lines with unknown tokens are skipped.
fn read_lists(folder: &Path, names: &[String], vocab: &Vocab) -> Result<Vec<Vec<TokenId>>> {
    let mut formulas = Vec::new();
    for name in names {
        let path = folder.join(name);
        let text = comer_files::read_text(&path, comer_files::limit::TEXT)
            .map_err(|reason| Error::File { path, reason })?;
        let formula = |line: &str| vocab.encode(line.rsplit('\t').next().unwrap_or(line).trim()).ok();
        formulas.extend(text.lines().filter_map(formula).filter(|tokens| !tokens.is_empty()));
    }
    Ok(formulas)
}

#[cfg(test)]
mod tests;
