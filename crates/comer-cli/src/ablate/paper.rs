//! What the paper reports for the models that it compares.

use comer::internal::config::Coverage;

/// The paper's own models, in the order of its table 1.
pub const MODELS: [(&str, Coverage); 4] = [
    ("bttr", Coverage::None),
    ("self", Coverage::SelfOnly),
    ("cross", Coverage::Cross),
    ("fusion", Coverage::Fusion),
];

/// A row of the paper's table 2: ExpRate, and the rates with at most one, two and three errors.
type Rates = [Option<f64>; 4];

/// A model's name in the paper, and its rates on CROHME 2014, 2016 and 2019.
struct Entry {
    key: &'static str,
    name: &'static str,
    rates: [Rates; 3],
}

const fn all(exp_rate: f64, one: f64, two: f64, three: f64) -> Rates {
    [Some(exp_rate), Some(one), Some(two), Some(three)]
}

const fn most(exp_rate: f64, one: f64, two: f64) -> Rates {
    [Some(exp_rate), Some(one), Some(two), None]
}

const fn only(exp_rate: f64) -> Rates {
    [Some(exp_rate), None, None, None]
}

const NONE: Rates = [None; 4];

#[rustfmt::skip]
const ENTRIES: [Entry; 11] = [
    Entry { key: "densewap", name: "DenseWAP", rates: [most(43.0, 57.8, 61.9), most(40.1, 54.3, 57.8), most(41.7, 55.5, 59.3)] },
    Entry { key: "densewap-left-to-right", name: "DenseWAP, left to right", rates: [most(43.0, 57.8, 61.9), most(40.1, 54.3, 57.8), most(41.7, 55.5, 59.3)] },
    Entry { key: "densewap-td", name: "DenseWAP-TD", rates: [most(49.1, 64.2, 67.8), most(48.5, 62.3, 65.3), most(51.4, 66.1, 69.1)] },
    Entry { key: "ws-wap", name: "WS-WAP", rates: [only(53.65), all(51.96, 64.34, 70.10, 72.97), NONE] },
    Entry { key: "li", name: "Li et al.", rates: [all(56.59, 69.07, 75.25, 78.60), all(54.58, 69.31, 73.76, 76.02), NONE] },
    Entry { key: "ding", name: "Ding et al.", rates: [only(58.72), all(57.72, 70.01, 76.37, 78.90), all(61.38, 75.15, 80.23, 82.65)] },
    // On 2014 trained by the paper's authors (table 1); their table 2 has what BTTR's authors published: 53.96 on 2014.
    Entry { key: "bttr-no-scale", name: "BTTR without scale augmentation", rates: [only(53.45), most(52.31, 63.90, 68.61), most(52.96, 65.97, 69.14)] },
    Entry { key: "bttr", name: "BTTR (baseline)", rates: [all(55.17, 67.85, 72.11, 74.14), all(56.58, 68.88, 74.19, 76.90), all(59.55, 72.23, 76.06, 78.40)] },
    // Table 1 has these on 2014 alone.
    Entry { key: "self", name: "CoMER (Self)", rates: [only(57.51), NONE, NONE] },
    Entry { key: "cross", name: "CoMER (Cross)", rates: [only(58.11), NONE, NONE] },
    Entry { key: "fusion", name: "CoMER (Fusion)", rates: [all(59.33, 71.70, 75.66, 77.89), all(59.81, 74.37, 80.30, 82.56), all(62.97, 77.40, 81.40, 83.07)] },
];

fn entry(row: &str) -> Option<&'static Entry> {
    // configs/paper.toml is the paper's model.
    let row = if row == "paper" { "fusion" } else { row };
    // A row of several recipes ends with its model.
    ENTRIES
        .iter()
        .filter(|entry| row == entry.key || row.ends_with(&format!("-{}", entry.key)))
        .max_by_key(|entry| entry.key.len())
}

/// The name of a row: the paper's, with the recipe's if it is another.
pub fn label(row: &str) -> String {
    match entry(row) {
        Some(entry) if entry.key == row || row == "paper" => entry.name.into(),
        Some(entry) => format!("{}, {}", entry.name, row.trim_end_matches(entry.key).trim_end_matches('-')),
        None => row.into(),
    }
}

/// The paper's rates of a row on a test set; none if it has none.
pub fn rates(row: &str, test: &str) -> Option<Rates> {
    let set = ["2014", "2016", "2019"].iter().position(|known| *known == test)?;
    let rates = entry(row)?.rates[set];
    rates[0].map(|_| rates)
}
