//! Sizes and distances of handwriting, measured on real expressions.
//!
//! The example `measure_layout` writes `metrics.txt`. The unit is the height of a digit of the row; x points right, y
//! down, from the baseline of the row. A line is `symbol TOKEN WIDTH HEIGHT CENTER DEVIATION` (medians; the deviation is that
//! of the center) or `measure NAME MEAN DEVIATION`.

use std::collections::BTreeMap;

use comer::internal::{TokenId, Vocab};
use rand::{Rng, RngExt};

/// The box of a symbol in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SymbolSize {
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// Vertical centre, relative to the baseline.
    pub center: f64,
    /// Standard deviation of the centre.
    pub deviation: f64,
}

/// The distribution of a distance or ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
}

impl Measure {
    /// A random value within 1.5 deviations of the mean: others look like mistakes.
    pub fn draw(&self, random: &mut impl Rng) -> f64 {
        self.mean + self.deviation * normal(random)
    }
}

/// A random number, approximately normal, from -1.5 to 1.5.
pub fn normal(random: &mut impl Rng) -> f64 {
    // The sum of three uniform numbers has the variance 1/4.
    let sum: f64 = (0..3).map(|_| random.random::<f64>() - 0.5).sum();
    (2.0 * sum).clamp(-1.5, 1.5)
}

/// Names of the measures.
pub const MEASURES: [&str; 24] = [
    "gap",
    "gap.operator",
    "gap.relation",
    "gap.bracket",
    "gap.function",
    "sup.size",
    "sup.shift",
    "sup.gap",
    "sub.size",
    "sub.shift",
    "sub.gap",
    "limit.size",
    "limit.gap",
    "fraction.size",
    "fraction.gap",
    "fraction.overhang",
    "fraction.axis",
    "root.above",
    "root.hook",
    "root.after",
    "bracket.height",
    "symbol.size",
    "row.slope",
    "index.size",
];

/// The measured distributions.
#[derive(Clone, Debug, Default)]
pub struct LayoutMetrics {
    /// By token.
    pub symbols: BTreeMap<TokenId, SymbolSize>,
    measures: BTreeMap<&'static str, Measure>,
}

impl LayoutMetrics {
    /// The metrics of this crate.
    pub fn new(vocab: &Vocab) -> Result<Self, String> {
        Self::parse(include_str!("metrics.txt"), vocab)
    }

    fn parse(text: &str, vocab: &Vocab) -> Result<Self, String> {
        let mut metrics = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split(' ').collect();
            let number = |index: usize| cells.get(index).and_then(|cell| cell.parse::<f64>().ok());
            let read = || match cells[0] {
                "symbol" => {
                    let size = SymbolSize {
                        width: number(2)?,
                        height: number(3)?,
                        center: number(4)?,
                        deviation: number(5)?,
                    };
                    Some((None, size, None))
                }
                "measure" => {
                    let name = MEASURES.iter().find(|name| **name == cells[1])?;
                    let measure = Measure { mean: number(2)?, deviation: number(3)? };
                    let none = SymbolSize { width: 0.0, height: 0.0, center: 0.0, deviation: 0.0 };
                    Some((Some(*name), none, Some(measure)))
                }
                _ => None,
            };
            let (name, size, measure) = read().ok_or_else(|| format!("metrics: invalid line {line:?}"))?;
            if let (Some(name), Some(measure)) = (name, measure) {
                metrics.measures.insert(name, measure);
            } else if let Ok([token]) = vocab.encode(cells[1]).as_deref() {
                metrics.symbols.insert(*token, size);
            }
        }
        match MEASURES.iter().find(|name| !metrics.measures.contains_key(*name)) {
            Some(name) => Err(format!("metrics: {name} is missing")),
            None => Ok(metrics),
        }
    }

    /// A measure by its name, one of [`MEASURES`].
    pub fn measure(&self, name: &str) -> Measure {
        self.measures[name]
    }

    /// The size of a symbol; that of a digit if it was not measured.
    pub fn symbol(&self, token: TokenId) -> SymbolSize {
        let digit = SymbolSize { width: 0.6, height: 1.0, center: -0.5, deviation: 0.08 };
        self.symbols.get(&token).copied().unwrap_or(digit)
    }
}
