//! Measures the layout of handwriting in stroke sets, for `src/synthesis/metrics.txt`.
//!
//! ```text
//! cargo run --release -p comer-train --example measure_layout sets/crohme.jsonl sets/extra.jsonl > metrics.txt
//! ```
//!
//! Rows are normalised first: the size and baseline of a row are fitted to the known sizes of its symbols, and the sizes of
//! symbols are the medians over all rows. The two alternate.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::path::Path;

use comer::internal::{TokenId, Vocab};
use comer_train::stroke_set;
use comer_train::synthesis::align::{SymbolBox, align};
use comer_train::synthesis::geometry::Rect;
use comer_train::synthesis::tree::{Atom, RowRelation, TreeGrammar, TreeNode, leaf_count};

/// Height and vertical centre of symbols with a nominal size.
fn nominal(label: &str) -> Option<(f64, f64)> {
    match label {
        "a" | "c" | "e" | "m" | "n" | "o" | "r" | "s" | "u" | "v" | "w" | "x" | "z" => Some((0.62, -0.31)),
        "b" | "d" | "h" | "k" | "l" => Some((1.0, -0.5)),
        "g" | "p" | "q" | "y" => Some((0.95, -0.12)),
        _ if label.len() == 1 && label.chars().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()) => {
            Some((1.0, -0.5))
        }
        _ => None,
    }
}

/// Number of alternations.
const ITERATIONS: usize = 5;

/// The unit and baseline of a row.
#[derive(Clone, Copy)]
struct Frame {
    size: f64,
    baseline: f64,
}

struct Measurement<'a> {
    vocab: &'a Vocab,
    sizes: BTreeMap<TokenId, (f64, f64)>,
    symbols: BTreeMap<TokenId, Vec<[f64; 3]>>,
    measures: BTreeMap<&'static str, Vec<f64>>,
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    if values.is_empty() { f64::NAN } else { values[values.len() / 2] }
}

impl Measurement<'_> {
    fn add(&mut self, name: &'static str, value: f64) {
        if value.is_finite() {
            self.measures.entry(name).or_default().push(value);
        }
    }

    /// The frame of a row, if at least `least` of its symbols, not counting `without`, have known sizes.
    fn frame(&self, row: &[TreeNode], places: &[Rect], without: usize, least: usize) -> Option<Frame> {
        let mut leaf = 0;
        let mut known = Vec::new();
        for node in row {
            if let Atom::Symbol(token) = node.atom
                && let Some(&(height, middle)) = self.sizes.get(&token)
                && height > 0.4
                && places[leaf].height() > 0.0
                && leaf != without
            {
                known.push((height, middle, places[leaf]));
            }
            leaf += node.leaf_count();
        }
        if known.len() < least {
            return None;
        }
        let count = known.len() as f64;
        let logarithm = |(height, _, place): &(f64, f64, Rect)| (place.height() / height).ln();
        let size = (known.iter().map(logarithm).sum::<f64>() / count).exp();
        let baseline = |(_, middle, place): &(f64, f64, Rect)| place.center().y - size * middle;
        Some(Frame { size, baseline: known.iter().map(baseline).sum::<f64>() / count })
    }

    fn row(&mut self, row: &[TreeNode], places: &[Rect], last_iteration: bool) {
        let frame = self.frame(row, places, usize::MAX, 1);
        let mut leaf = 0;
        let mut before: Option<(Rect, TokenId)> = None;
        let brackets = ["(", "[", "\\{"];
        let mut ys = Vec::new();
        for (index, node) in row.iter().enumerate() {
            let count = node.leaf_count();
            let own = &places[leaf..leaf + count];
            let core = own[0];
            let whole = own.iter().copied().fold(Rect::EMPTY, Rect::union);
            if let Some(frame) = frame {
                if let Atom::Symbol(token) = node.atom
                    && let Some(frame) = self.frame(row, places, leaf, 2)
                {
                    let unit = |value: f64| value / frame.size;
                    let size =
                        [unit(core.width()), unit(core.height()), unit(core.center().y - frame.baseline)];
                    self.symbols.entry(token).or_default().push(size);
                    if let Some(&(_, middle)) = self.sizes.get(&token) {
                        ys.push((unit(core.center().x), unit(core.center().y - frame.baseline) - middle));
                    }
                }
                if last_iteration {
                    self.relations(node, own, frame);
                    let token = match node.atom {
                        Atom::Symbol(token) => token,
                        _ => TokenId::MAX,
                    };
                    if let Some((last, last_token)) = before {
                        let gap = (whole.left - last.right) / frame.size;
                        self.add(self.gap_name(last_token, token), gap);
                    }
                    before = Some((whole, token));
                    if let Atom::Symbol(token) = node.atom
                        && brackets.contains(&self.vocab.decode(&[token]).as_str())
                        && node.sub.is_none()
                        && let Some(inside) = self.enclosed(&row[index..], &places[leaf..])
                    {
                        self.add("bracket.height", core.height() / inside.height());
                    }
                }
            }
            let mut inner = leaf + 1;
            for (_, row) in node.rows() {
                let count = leaf_count(row);
                self.row(row, &places[inner..inner + count], last_iteration);
                inner += count;
            }
            leaf += count;
        }
        if last_iteration && ys.len() >= 5 {
            // Least squares.
            let n = ys.len() as f64;
            let (mx, my) = (ys.iter().map(|y| y.0).sum::<f64>() / n, ys.iter().map(|y| y.1).sum::<f64>() / n);
            let over: f64 = ys.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
            let under: f64 = ys.iter().map(|(x, _)| (x - mx).powi(2)).sum();
            self.add("row.slope", over / under);
        }
    }

    /// The box of what a bracket at the beginning of a row encloses, if it is taller than a symbol.
    fn enclosed(&self, row: &[TreeNode], places: &[Rect]) -> Option<Rect> {
        let label = |node: &TreeNode| match node.atom {
            Atom::Symbol(token) => self.vocab.decode(&[token]),
            _ => String::new(),
        };
        let close = match label(&row[0]).as_str() {
            "(" => ")",
            "[" => "]",
            _ => "\\}",
        };
        let open = label(&row[0]);
        let (mut depth, mut leaf, mut inside) = (0, 0, Rect::EMPTY);
        for node in row {
            let own = label(node);
            depth += i32::from(own == open) - i32::from(own == close);
            if depth == 0 {
                return (inside.height() > 0.0).then_some(inside);
            }
            let count = node.leaf_count();
            if own != open && own != close {
                inside = places[leaf..leaf + count].iter().copied().fold(inside, Rect::union);
            }
            leaf += count;
        }
        None
    }

    fn gap_name(&self, before: TokenId, after: TokenId) -> &'static str {
        let label = |token: TokenId| {
            if token == TokenId::MAX { String::new() } else { self.vocab.decode(&[token]) }
        };
        let (before, after) = (label(before), label(after));
        let any = |list: &[&str]| list.contains(&before.as_str()) || list.contains(&after.as_str());
        if any(&["=", "<", ">", "\\leq", "\\geq", "\\neq", "\\rightarrow", "\\in"]) {
            "gap.relation"
        } else if any(&["+", "-", "\\pm", "\\times", "\\div", "\\cdot", "/"]) {
            "gap.operator"
        } else if any(&["(", ")", "[", "]", "\\{", "\\}", "|"]) {
            "gap.bracket"
        } else if any(&["\\sin", "\\cos", "\\tan", "\\log", "\\lim", "\\sum", "\\int"]) {
            "gap.function"
        } else {
            "gap"
        }
    }

    fn relations(&mut self, node: &TreeNode, own: &[Rect], frame: Frame) {
        let core = own[0];
        let mut inner = 1;
        let mut around = Rect::EMPTY;
        for (relation, row) in node.rows() {
            let count = leaf_count(row);
            let places = &own[inner..inner + count];
            let whole = places.iter().copied().fold(Rect::EMPTY, Rect::union);
            inner += count;
            let unit = |value: f64| value / frame.size;
            if let Some(script) = self.frame(row, places, usize::MAX, 1) {
                let ratio = script.size / frame.size;
                let shift = unit(script.baseline - frame.baseline);
                match relation {
                    RowRelation::Superscript => {
                        self.add("sup.size", ratio);
                        self.add("sup.shift", shift);
                    }
                    RowRelation::Subscript => {
                        self.add("sub.size", ratio);
                        self.add("sub.shift", shift);
                    }
                    RowRelation::Below | RowRelation::Above => self.add("limit.size", ratio),
                    RowRelation::Numerator | RowRelation::Denominator => self.add("fraction.size", ratio),
                    RowRelation::Index => self.add("index.size", ratio),
                    RowRelation::Radicand => {}
                }
            }
            match relation {
                RowRelation::Superscript => self.add("sup.gap", unit(whole.left - core.right)),
                RowRelation::Subscript => self.add("sub.gap", unit(whole.left - core.right)),
                RowRelation::Below => self.add("limit.gap", unit(whole.top - core.bottom)),
                RowRelation::Above => self.add("limit.gap", unit(core.top - whole.bottom)),
                RowRelation::Numerator => self.add("fraction.gap", unit(core.center().y - whole.bottom)),
                RowRelation::Denominator => self.add("fraction.gap", unit(whole.top - core.center().y)),
                RowRelation::Radicand => {
                    self.add("root.above", unit(whole.top - core.top));
                    self.add("root.hook", unit(whole.left - core.left));
                    self.add("root.after", unit(core.right - whole.right));
                }
                RowRelation::Index => {}
            }
            around = around.union(whole);
        }
        if let Atom::Fraction(..) = node.atom {
            self.add("fraction.axis", (core.center().y - frame.baseline) / frame.size);
            self.add("fraction.overhang", (around.left - core.left) / frame.size);
            self.add("fraction.overhang", (core.right - around.right) / frame.size);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vocab = Vocab::crohme();
    let grammar = TreeGrammar::new(&vocab)?;
    let (mut layouts, mut all) = (Vec::new(), 0);
    for path in std::env::args().skip(1) {
        for record in stroke_set::read(Path::new(&path))? {
            let (tokens, ink, _) = record.read(&vocab)?;
            all += 1;
            let Some(row) = grammar.parse(&tokens) else { continue };
            let boxes: Vec<SymbolBox> = ink
                .symbols()
                .iter()
                .filter_map(|symbol| {
                    let bounds = Rect::of(symbol.strokes.iter().map(|&stroke| &ink.strokes()[stroke]));
                    Some(SymbolBox { token: *vocab.encode(&symbol.label).ok()?.first()?, bounds })
                })
                .collect();
            if let Some(order) = align(&grammar, &row, &boxes) {
                let places: Vec<Rect> = order.iter().map(|&symbol| boxes[symbol].bounds).collect();
                layouts.push((row, places));
            }
        }
    }
    println!("# Measured by the example measure_layout on {} of {all} expressions.", layouts.len());
    let sizes = vocab
        .tokens()
        .iter()
        .filter_map(|label| Some((*vocab.encode(label).ok()?.first()?, nominal(label)?)));
    let mut measurement = Measurement {
        vocab: &vocab,
        sizes: sizes.collect(),
        symbols: BTreeMap::new(),
        measures: BTreeMap::new(),
    };
    for iteration in 0..ITERATIONS {
        measurement.symbols.clear();
        for (row, places) in &layouts {
            measurement.row(row, places, iteration + 1 == ITERATIONS);
        }
        if iteration + 1 < ITERATIONS {
            for (token, sizes) in &measurement.symbols {
                let of =
                    |column: usize| median(&mut sizes.iter().map(|size| size[column]).collect::<Vec<_>>());
                measurement.sizes.insert(*token, (of(1), of(2)));
            }
            // The unit is the height of a digit.
            let digits =
                ["1", "2", "3", "4", "5"].map(|digit| vocab.encode(digit).expect("a digit is a token")[0]);
            let unit = digits.iter().map(|digit| measurement.sizes[digit].0).sum::<f64>() / 5.0;
            measurement.sizes.values_mut().for_each(|size| *size = (size.0 / unit, size.1 / unit));
        }
    }
    for (token, sizes) in &measurement.symbols {
        let mut columns = [0, 1, 2].map(|column| sizes.iter().map(|size| size[column]).collect::<Vec<_>>());
        let [width, height, center] = [0, 1, 2].map(|column| median(&mut columns[column]));
        let deviation = spread(&columns[2]);
        println!("symbol {} {width:.3} {height:.3} {center:.3} {deviation:.3}", vocab.decode(&[*token]));
    }
    // What the sets do not show is like something else: on the axis of the plus sign, or as large as a sum.
    let token = |label: &str| vocab.encode(label).expect("a token of CROHME")[0];
    for (rare, like, on_axis) in
        [("\\cdot", ".", true), ("\\cdots", "\\ldots", true), ("\\Pi", "\\sum", false)]
    {
        if measurement.symbols.contains_key(&token(rare)) {
            continue;
        }
        let sizes = &measurement.symbols[&token(like)];
        let mut columns = [0, 1, 2].map(|column| sizes.iter().map(|size| size[column]).collect::<Vec<_>>());
        let [width, height, mut center] = [0, 1, 2].map(|column| median(&mut columns[column]));
        if on_axis {
            center =
                median(&mut measurement.symbols[&token("+")].iter().map(|size| size[2]).collect::<Vec<_>>());
        }
        println!("symbol {rare} {width:.3} {height:.3} {center:.3} {:.3}", spread(&columns[2]));
    }
    // How much the size of one symbol varies within its row.
    let mut ratios = Vec::new();
    for (token, sizes) in &measurement.symbols {
        let height = measurement.sizes.get(token).map_or(1.0, |size| size.0);
        ratios.extend(sizes.iter().map(|size| size[1] / height).filter(|_| height > 0.4));
    }
    measurement.measures.insert("symbol.size", ratios);
    // No index of a root stands beside enough symbols of known size.
    let indices = measurement.measures["sup.size"].iter().map(|size| 0.8 * size).collect();
    measurement.measures.entry("index.size").or_insert(indices);
    for (name, values) in &mut measurement.measures {
        let mean = median(values);
        println!("measure {name} {mean:.3} {:.3}", spread(values));
    }
    Ok(())
}

/// Half of the distance between the sorted values at 16 and 84 %: the deviation, whatever the outliers are.
fn spread(sorted: &[f64]) -> f64 {
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    (at(0.84) - at(0.16)) / 2.0
}
