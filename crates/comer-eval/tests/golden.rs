//! Our graphs and error counts against those of the official tools, on all of CROHME 2014.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use comer_eval::compare::{Errors, compare};
use comer_eval::{Dialect, LabelGraph};
use comer_testing::shared;
use zip::ZipArchive;

const SETS: [&str; 3] = ["captions", "released", "other"];

/// The text files of a zip whose names start with `prefix`, by what follows it.
fn zip_texts(path: &Path, prefix: &str) -> BTreeMap<String, String> {
    let mut archive = ZipArchive::new(File::open(path).unwrap()).unwrap();
    let names: Vec<String> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
    let read = |name: String| {
        let mut text = String::new();
        archive.by_name(&name).unwrap().read_to_string(&mut text).unwrap();
        (name[prefix.len()..].to_string(), text)
    };
    names.into_iter().filter(|name| name.starts_with(prefix) && !name.ends_with('/')).map(read).collect()
}

/// The rows of a table of tab-separated values, by their first column.
fn tsv(text: &str) -> BTreeMap<String, String> {
    let rows = text.lines().filter_map(|line| line.split_once('\t'));
    rows.map(|(name, rest)| (name.into(), rest.into())).collect()
}

fn graph(formula: &str) -> LabelGraph {
    LabelGraph::from_latex(formula, Dialect::Official).unwrap_or_default()
}

#[test]
fn graphs_equal_those_of_the_official_tools() {
    let Some(golden) = shared("golden/symlg-2014.zip") else { return };
    for (set, formulas, graphs) in [("captions", 986, 986), ("released", 985, 948), ("other", 986, 986)] {
        let latex = tsv(&zip_texts(&golden, &format!("{set}.tsv"))[""]);
        let official = zip_texts(&golden, &format!("{set}/"));
        assert_eq!((latex.len(), official.len()), (formulas, graphs), "{set}");
        let mut wrong = Vec::new();
        for (name, formula) in &latex {
            let ours = graph(formula);
            let theirs = official.get(&format!("{name}.lg")).map_or("", String::as_str);
            let theirs = LabelGraph::from_lg(theirs).unwrap();
            if ours.nodes() != theirs.nodes() || ours.edges() != theirs.edges() {
                wrong.push(format!(
                    "{name}: {formula}\n ours {:?}\n official {:?}",
                    ours.nodes(),
                    theirs.nodes()
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{set}: {} differ\n{}",
            wrong.len(),
            wrong[..wrong.len().min(5)].join("\n")
        );
    }
}

/// What is measured against: the official graphs, and those of the captions.
fn truths() -> Option<[BTreeMap<String, LabelGraph>; 2]> {
    let golden = shared("golden/symlg-2014.zip")?;
    let data = shared("data/crohme.zip")?;
    let official = zip_texts(&data, "data/2014/symLg/");
    let official = official
        .iter()
        .map(|(name, text)| (name.trim_end_matches(".lg").to_string(), LabelGraph::from_lg(text).unwrap()));
    let captions = tsv(&zip_texts(&golden, "captions.tsv")[""]);
    let captions = captions.iter().map(|(name, formula)| (name.clone(), graph(formula)));
    Some([official.collect(), captions.collect()])
}

fn errors(set: &str, truths: &BTreeMap<String, LabelGraph>) -> BTreeMap<String, Errors> {
    let golden = shared("golden/symlg-2014.zip").unwrap();
    let latex = tsv(&zip_texts(&golden, &format!("{set}.tsv"))[""]);
    truths
        .iter()
        .map(|(name, truth)| {
            let prediction = latex.get(name).map(|formula| graph(formula)).unwrap_or_default();
            (name.clone(), compare(truth, &prediction))
        })
        .collect()
}

#[test]
fn error_counts_equal_those_of_the_official_tools() {
    let Some(truths) = truths() else { return };
    let Some(distances) = shared("golden/distances-2014.tsv") else { return };
    let counted = SETS.map(|set| (set, truths.each_ref().map(|truth| errors(set, truth))));
    let text = std::fs::read_to_string(distances).unwrap();
    let mut lines = 0;
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (name, set) = (fields[0], fields[1]);
        let expected: Vec<usize> = fields[2..].iter().map(|field| field.parse().unwrap()).collect();
        let (_, [official, caption]) = counted.iter().find(|(other, _)| *other == set).unwrap();
        let found = [official[name].nodes, official[name].edges, caption[name].nodes, caption[name].edges];
        assert_eq!(found[..], expected[..], "{name} of {set}");
        lines += 1;
    }
    assert_eq!(lines, 3 * 986);
}

#[test]
fn totals_equal_those_of_the_official_tools() {
    let Some(truths) = truths() else { return };
    let Some(totals) = shared("golden/totals-2014.json") else { return };
    let totals: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(totals).unwrap()).unwrap();
    for set in SETS {
        for (protocol, truth) in ["official", "caption"].into_iter().zip(&truths) {
            let errors = errors(set, truth);
            for at_most in 0..4 {
                let files = errors.values().filter(|errors| errors.total() <= at_most).count();
                let percent = 100.0 * files as f64 / errors.len() as f64;
                let expected = totals[set][protocol][at_most].as_f64().unwrap();
                assert!(
                    (percent - expected).abs() < 0.00501,
                    "{set} {protocol} {at_most}: {percent} {expected}"
                );
            }
        }
    }
    let structure = errors("released", &truths[0]).values().filter(|errors| errors.same_structure).count();
    assert_eq!(structure, 753);
}
