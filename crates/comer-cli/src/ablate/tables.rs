//! The tables of an ablation, with the paper's figures for comparison.

use comer_eval::Report;
use comer_eval::repetitions::{RepetitionVariance, Repetitions};
use comer_eval::score::Protocol;
use serde_json::{Value, json};

use super::{RowResult, TestResult, paper};
use crate::output::report_json;

/// A table with a heading.
pub struct Table {
    pub title: String,
    pub note: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// The protocol of a report: the official one where there are label graphs.
pub fn protocol(report: &Report) -> Protocol {
    if report.official.is_some() { Protocol::Official } else { Protocol::Token }
}

impl TestResult {
    fn repetitions(&self) -> Option<Repetitions> {
        let runs = self.scores.iter().map(Vec::as_slice);
        Repetitions::new(runs, protocol(self.reports.first()?))
    }

    /// The mean over the runs of a figure that all reports have.
    pub fn mean(&self, figure: impl Fn(&Report) -> Option<f64>) -> Option<f64> {
        let figures: Option<Vec<f64>> = self.reports.iter().map(figure).collect();
        figures.filter(|own| !own.is_empty()).map(|own| own.iter().sum::<f64>() / own.len() as f64)
    }
}

impl RowResult {
    fn on(&self, test: &str) -> Option<&TestResult> {
        self.tests.iter().find(|found| found.test == test)
    }
}

fn tests(results: &[RowResult]) -> impl Iterator<Item = &str> {
    results.first().into_iter().flat_map(|result| &result.tests).map(|found| found.test.as_str())
}

/// The repetitions of each row on a test set, and how much they differ within a row.
fn repetitions(results: &[RowResult], test: &str) -> (Vec<Option<Repetitions>>, Option<RepetitionVariance>) {
    let all: Vec<_> =
        results.iter().map(|result| result.on(test).and_then(TestResult::repetitions)).collect();
    let variance = RepetitionVariance::pooled(all.iter().flatten());
    (all, variance)
}

/// What the intervals of a test set are over.
fn scope(seeds: Option<RepetitionVariance>) -> String {
    match seeds {
        Some(seeds) => format!(
            "over images and seeds. The standard deviation of seeds, {:.2} points, comes from the rows with several seeds and counts for all rows",
            seeds.deviation()
        ),
        None => {
            "over images. With one seed for each row, they do not say how a second training would turn out"
                .into()
        }
    }
}

fn cell(figure: Option<f64>) -> String {
    figure.map(|figure| format!("{figure:.2}")).unwrap_or_default()
}

/// All tables.
pub fn tables(results: &[RowResult]) -> Vec<Table> {
    let mut tables: Vec<Table> = tests(results).map(|test| rates(results, test)).collect();
    tables.extend(tests(results).filter(|_| results.len() > 2).map(|test| differences(results, test)));
    tables.push(by_errors(results));
    tables.push(Table {
        title: "Cost".into(),
        note: "Of training with its validation. CPU hours are known of runs by this version; those by the clock contain whatever else \
               the machine did.".into(),
        header: ["model", "parameters", "scale augmentation", "seeds", "CPU hours per run", "by the clock"].map(String::from).to_vec(),
        rows: results.iter().map(cost).collect(),
    });
    tables.push(ink(results));
    tables
}

/// ExpRate on a test set with intervals, and the difference to the first row.
fn rates(results: &[RowResult], test: &str) -> Table {
    let (all, seeds) = repetitions(results, test);
    let first = all.first().and_then(Option::as_ref);
    let row = |(index, result): (usize, &RowResult)| {
        let interval = |[low, high]: [f64; 2]| format!("{low:.2} to {high:.2}");
        let own = all[index].as_ref();
        let difference =
            own.zip(first).filter(|_| index > 0).and_then(|(own, first)| own.difference(first, seeds));
        let by_seed: Vec<String> =
            own.into_iter().flat_map(Repetitions::rates).map(|rate| format!("{rate:.2}")).collect();
        let mut cells =
            vec![paper::label(&result.name), cell(own.map(Repetitions::rate)), by_seed.join(", ")];
        cells.push(own.map(|own| interval(own.interval(seeds))).unwrap_or_default());
        cells.extend(match difference {
            Some(found) => [format!("{:+.2}", found.points), interval(found.interval), p_value(found.p)],
            None => [String::new(), String::new(), String::new()],
        });
        cells.push(cell(paper::rates(&result.name, test).and_then(|rates| rates[0])));
        cells
    };
    Table {
        title: format!("ExpRate on {test}"),
        note: format!(
            "With 95 % intervals {}. Differences are to the first row, paired by image, with two-sided p.",
            scope(seeds)
        ),
        header: ["model", "ExpRate", "by seed", "interval", "difference", "interval", "p", "in the paper"]
            .map(String::from)
            .to_vec(),
        rows: results.iter().enumerate().map(row).collect(),
    }
}

fn p_value(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".into() } else { format!("{p:.4}") }
}

/// The difference between every two rows on a test set.
fn differences(results: &[RowResult], test: &str) -> Table {
    let (all, seeds) = repetitions(results, test);
    let row = |(index, result): (usize, &RowResult)| {
        let against = |other: &Option<Repetitions>| {
            let found = all[index].as_ref()?.difference(other.as_ref()?, seeds)?;
            let mark = if found.p < 0.05 { " *" } else { "" };
            Some(format!("{:+.2}{mark}", found.points))
        };
        let cells = all.iter().enumerate().map(|(other, own)| match other < index {
            true => against(own).unwrap_or_default(),
            false => String::new(),
        });
        std::iter::once(paper::label(&result.name)).chain(cells.take(results.len() - 1)).collect()
    };
    let names = results.iter().map(|result| paper::label(&result.name)).take(results.len() - 1);
    Table {
        title: format!("Differences on {test}"),
        note: "ExpRate of the row less that of the column, paired by image; * where the two-sided p is below 0.05 (not corrected for the number of comparisons).".into(),
        header: std::iter::once("model".to_string()).chain(names).collect(),
        rows: results.iter().enumerate().skip(1).map(row).collect(),
    }
}

fn by_errors(results: &[RowResult]) -> Table {
    let mut rows = Vec::new();
    for test in tests(results) {
        for result in results {
            let label = paper::label(&result.name);
            if let Some(found) = result.on(test) {
                let rates = |report: &Report| {
                    let rates = report.rates(protocol(report))?;
                    Some([rates.exp_rate, rates.le1, rates.le2, rates.le3])
                };
                let figures =
                    (0..4).map(|number| cell(found.mean(|report| rates(report).map(|rates| rates[number]))));
                rows.push([test.to_string(), label.clone()].into_iter().chain(figures).collect());
            }
            if let Some(rates) = paper::rates(&result.name, test) {
                let name = format!("{label}, the paper");
                rows.push([test.to_string(), name].into_iter().chain(rates.map(cell)).collect());
            }
        }
    }
    Table {
        title: "By errors allowed".into(),
        note: "Means over the seeds.".into(),
        header: ["set", "model", "ExpRate", "<= 1", "<= 2", "<= 3"].map(String::from).to_vec(),
        rows,
    }
}

fn cost(result: &RowResult) -> Vec<String> {
    let seeds: Vec<String> = result.seeds.iter().map(u64::to_string).collect();
    vec![
        paper::label(&result.name),
        format!("{:.2} million", result.parameters as f64 / 1e6),
        match result.scale {
            [1.0, 1.0] => "none".into(),
            [least, most] => format!("{least} to {most}"),
        },
        seeds.join(", "),
        cell(result.cpu_hours),
        format!("{:.2}", result.hours),
    ]
}

fn ink(results: &[RowResult]) -> Table {
    let figures: [fn(&Report) -> Option<f64>; 4] = [
        |report| report.ink.as_ref().map(|ink| ink.unread),
        |report| report.ink.as_ref().map(|ink| ink.reread),
        |report| report.symbols.as_ref().map(|symbols| symbols.fewer),
        |report| report.symbols.as_ref().map(|symbols| symbols.more),
    ];
    let mut rows = Vec::new();
    for test in tests(results) {
        for result in results {
            if let Some(found) = result.on(test) {
                let figures = figures.map(|figure| cell(found.mean(figure)));
                let names = [test.to_string(), paper::label(&result.name)];
                rows.push(names.into_iter().chain(figures).collect());
            }
        }
    }
    Table {
        title: "Left out and read twice".into(),
        note: "In percent of the ink and of the formulas; docs/explain.md defines unread and reread ink."
            .into(),
        header: ["set", "model", "ink unread", "ink reread", "fewer symbols than the caption", "more"]
            .map(String::from)
            .to_vec(),
        rows,
    }
}

/// What stands above the tables.
pub const INTRODUCTION: &str = "ExpRate by the official label graphs where the set has them, by token match elsewhere; joint search without a \
     language model. The paper's models were trained for up to 300 epochs.";

/// All tables as Markdown.
pub fn markdown(results: &[RowResult]) -> String {
    let mut text = format!("# Ablation of {} models\n\n{INTRODUCTION}\n", results.len());
    for table in tables(results) {
        text += &format!("\n## {}\n\n{}\n\n| {} |\n", table.title, table.note, table.header.join(" | "));
        text += &format!("|{}\n", "---|".repeat(table.header.len()));
        for row in table.rows {
            text += &format!("| {} |\n", row.join(" | "));
        }
    }
    text + "\n## By length\n\n![ExpRate by length](lengths.svg)\n"
}

/// All figures. Differences are those to the rows before.
pub fn json(results: &[RowResult]) -> Value {
    let row = |(index, result): (usize, &RowResult)| {
        let test = |found: &TestResult| {
            let (all, seeds) = repetitions(results, &found.test);
            let own = all[index].as_ref();
            let against = |(other, first): (&RowResult, &Option<Repetitions>)| {
                Some((other.name.clone(), json!(own?.difference(first.as_ref()?, seeds)?)))
            };
            let differences = results.iter().zip(&all).take(index).filter_map(against);
            let figures = json!({
                "exp_rate": own.map(Repetitions::rate),
                "exp_rates": own.map(|own| own.rates().collect::<Vec<_>>()),
                "interval": own.map(|own| own.interval(seeds)),
                "seed_deviation": seeds.map(|seeds| seeds.deviation()),
                "differences": differences.collect::<serde_json::Map<_, _>>(),
                "reports": found.reports.iter().map(report_json).collect::<Vec<_>>(),
            });
            (found.test.clone(), figures)
        };
        json!({
            "name": result.name,
            "parameters": result.parameters,
            "scale_augmentation": result.scale,
            "cpu_hours_per_run": result.cpu_hours,
            "hours_per_run": result.hours,
            "seeds": result.seeds,
            "sets": result.tests.iter().map(test).collect::<serde_json::Map<_, _>>(),
        })
    };
    json!({ "rows": results.iter().enumerate().map(row).collect::<Vec<_>>() })
}
