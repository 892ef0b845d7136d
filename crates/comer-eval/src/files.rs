//! Reads predictions and ground truth from tables, zips and folders.
//!
//! A file that cannot be read is listed among the problems. A source that cannot be opened, or has no such data,
//! is an error.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::archive::Archive;
use crate::dataset::DataSource;
use crate::error::{Error, Result, shortened};
use crate::label_graph::LabelGraph;
use crate::latex::check_length;
use crate::score::Truth;

/// Predictions by name.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    /// LaTeX by the name of the file without its extension.
    pub by_name: HashMap<String, String>,
    /// What could not be read, and why.
    pub problems: Vec<String>,
}

/// The ground truth of a split.
#[derive(Clone, Debug, Default)]
pub struct Truths {
    /// Sorted by name.
    pub truths: Vec<Truth>,
    /// What could not be read, and why.
    pub problems: Vec<String>,
}

/// The memory of all label graphs: [`GRAPHS`] bytes and [`GRAPHS_RATIO`] times the size of their zip or of their files.
const GRAPHS: u64 = 48 << 20;
const GRAPHS_RATIO: u64 = 8;

/// Name of the predictions in a run folder.
pub const PREDICTIONS: &str = "predictions.tsv";

/// Reads predictions: a table (`name<TAB>LaTeX`), the `result.zip` of the reference implementation or a folder, both
/// with one `<name>.txt` per formula (a line `%<name>`, then the LaTeX between dollar signs), or a
/// [run folder](crate::run_folder).
pub fn read_predictions(path: &Path) -> Result<Predictions> {
    let table = path.join(PREDICTIONS);
    let path = if table.is_file() { &table } else { path };
    let archive = Archive::open(path)?;
    let mut names = archive.names(|_| true)?;
    if archive.is_file() {
        let text = archive.read_table("").map_err(|reason| Error::File { path: path.into(), reason })?;
        return Ok(predictions_table(&text));
    }
    names.retain(|name| name.ends_with(".txt"));
    let mut predictions = Predictions::default();
    for name in &names {
        let text = archive.read_text(name).map_err(|error| error.to_string());
        match text.and_then(|text| formula_of_text(&text)) {
            Ok(formula) => {
                let file = name.rsplit('/').next().unwrap_or(name);
                predictions.by_name.insert(file.trim_end_matches(".txt").into(), formula);
            }
            Err(reason) => predictions.problems.push(format!("{name}: {reason}")),
        }
    }
    if names.is_empty() {
        let expected = "predictions (a table of names and LaTeX, or .txt files)";
        return Err(Error::Nothing { path: path.into(), expected });
    }
    Ok(predictions)
}

fn predictions_table(text: &str) -> Predictions {
    let mut predictions = Predictions::default();
    for (name, formula) in table(text, &mut predictions.problems) {
        if predictions.by_name.insert(name.clone(), formula).is_some() {
            predictions.problems.push(format!("{name}: predicted twice, the later one is used"));
        }
    }
    predictions
}

/// The lines of a table of names and formulas.
fn table(text: &str, problems: &mut Vec<String>) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if let Err(error) = check_length(line) {
            problems.push(format!("line {}: {error}", number + 1));
            continue;
        }
        match line.split_once('\t') {
            Some((name, formula)) => rows.push((name.trim().to_string(), formula.trim().to_string())),
            // A system that recognised nothing may write only the name.
            None if !line.trim().contains(' ') => rows.push((line.trim().to_string(), String::new())),
            None => problems.push(format!(
                "line {}: found {:?}, expected a name, a tab and LaTeX",
                number + 1,
                shortened(line)
            )),
        }
    }
    rows
}

/// The formula of a .txt file: the text between the first and the last dollar sign, or without dollar signs all but
/// comments.
fn formula_of_text(text: &str) -> Result<String, String> {
    let mut lines = String::new();
    for line in text.lines().filter(|line| !line.starts_with('%')) {
        lines.extend([line, "\n"]);
    }
    let formula = match (lines.find('$'), lines.rfind('$')) {
        (Some(first), Some(last)) if first < last => lines[first..last].trim_matches('$').trim(),
        (Some(_), _) => return Err("only one dollar sign, expected the formula between two".into()),
        _ => lines.trim(),
    };
    check_length(formula).map_err(|error| error.to_string())?;
    Ok(formula.to_string())
}

/// Reads the ground truth: a caption file (`name<TAB>LaTeX`), a folder of `.lg` files, or a folder or zip in
/// [CROHME's layout](crate::dataset). A source with several splits needs the name of one.
pub fn read_truths(path: &Path, split: Option<&str>) -> Result<Truths> {
    let source = DataSource::open(path)?;
    let split = source.split(split)?;
    let captions = split.captions()?;
    let mut truths: BTreeMap<String, Truth> = BTreeMap::new();
    let mut problems = captions.problems;
    let mut allowance = GRAPHS + GRAPHS_RATIO * source.zip_size().unwrap_or_default();
    for (name, file, text) in split.graphs() {
        if source.zip_size().is_none() {
            allowance += text.as_ref().map_or(0, |text| GRAPHS_RATIO * text.len() as u64);
        }
        let graph = text.and_then(|text| LabelGraph::from_lg(&text).map_err(|error| error.to_string()));
        let graph = graph.and_then(|graph| {
            let size = graph.size() as u64;
            let left = allowance
                .checked_sub(size)
                .ok_or("the label graphs before it fill the memory for their size");
            allowance = left?;
            Ok(graph)
        });
        match graph {
            Ok(graph) => truths.entry(name.into()).or_default().graph = Some(graph),
            Err(reason) => problems.push(format!("{file}: {reason}")),
        }
    }
    for (name, caption) in captions.rows {
        truths.entry(name).or_default().caption = Some(caption);
    }
    if truths.is_empty() {
        return Err(Error::Nothing { path: path.into(), expected: "captions or .lg files" });
    }
    let truths = truths.into_iter().map(|(name, truth)| Truth { name, ..truth }).collect();
    Ok(Truths { truths, problems })
}

impl Truths {
    /// Adds the ground truth of another source: graphs to captions, for instance.
    pub fn merge(&mut self, other: Self) {
        let mut known: BTreeMap<String, Truth> =
            self.truths.drain(..).map(|truth| (truth.name.clone(), truth)).collect();
        for truth in other.truths {
            let entry = known
                .entry(truth.name.clone())
                .or_insert_with(|| Truth { name: truth.name, ..Truth::default() });
            entry.caption = truth.caption.or(entry.caption.take());
            entry.graph = truth.graph.or(entry.graph.take());
        }
        self.truths = known.into_values().collect();
        self.problems.extend(other.problems);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn zip(path: &Path, files: &[(&str, &[u8])]) {
        let mut writer = ZipWriter::new(File::create(path).unwrap());
        for (name, content) in files {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn predictions_from_table_zip_and_folder() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("predictions.tsv");
        std::fs::write(&table, "a\tx ^ { 2 }\r\nb\t\n\nc\nno tab here\na\ty\n").unwrap();
        let read = read_predictions(&table).unwrap();
        assert_eq!(
            (read.by_name.len(), read.by_name["a"].as_str(), read.by_name["b"].as_str()),
            (3, "y", "")
        );
        assert_eq!(read.problems.len(), 2, "{:?}", read.problems);

        let files: [(&str, &[u8]); 4] = [
            ("a.txt", b"%a\n$x ^ { 2 }$"),
            ("sub/b.txt", b"x + 1\n"),
            ("c.txt", b"%c\n$x"),
            ("d.txt", b"\xff\xfe"),
        ];
        let archive = folder.path().join("result.zip");
        zip(&archive, &files);
        let texts = folder.path().join("texts");
        std::fs::create_dir_all(texts.join("sub")).unwrap();
        for (name, content) in files {
            std::fs::write(texts.join(name), content).unwrap();
        }
        for path in [archive, texts] {
            let read = read_predictions(&path).unwrap();
            assert_eq!((read.by_name["a"].as_str(), read.by_name["b"].as_str()), ("x ^ { 2 }", "x + 1"));
            assert_eq!((read.by_name.len(), read.problems.len()), (2, 2), "{:?}", read.problems);
        }
    }

    #[test]
    fn tables_of_too_many_rows_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let long =
            |rows: usize| (0..rows).map(|row| format!("{row}\t{}\n", "x ".repeat(12))).collect::<String>();
        // As many rows as real tables have, and more of them that are short.
        for (text, expected) in [
            (long(300_000), None),
            ("a\n".repeat(150_000), Some("has 150000 lines, expected at most 109375")),
        ] {
            let table = folder.path().join("table.tsv");
            std::fs::write(&table, text).unwrap();
            let predictions = read_predictions(&table).map(|read| read.by_name.len());
            let truths = read_truths(&table, None).map(|read| read.truths.len());
            for read in [predictions, truths] {
                match expected {
                    None => assert_eq!(read.unwrap(), 300_000),
                    Some(reason) => {
                        let message = read.unwrap_err().to_string();
                        assert!(message.contains(reason) && message.contains("table.tsv"), "{message}");
                    }
                }
            }
        }
    }

    #[test]
    fn formulas_that_are_too_long_are_problems() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x ".repeat(40_000);
        let table = folder.path().join("table.tsv");
        std::fs::write(&table, format!("a\t{long}\nb\tx\n{long}\n")).unwrap();
        let read = read_predictions(&table).unwrap();
        assert_eq!((read.by_name.len(), read.problems.len()), (1, 2), "{:?}", read.by_name.keys());
        let truths = read_truths(&table, None).unwrap();
        assert_eq!(truths.truths.iter().map(|truth| truth.name.as_str()).collect::<Vec<_>>(), ["b"]);
        let texts = folder.path().join("texts");
        std::fs::create_dir(&texts).unwrap();
        for (name, text) in [("a", &long), ("b", &"x\n".into()), ("c", &"\n".repeat(2 << 20))] {
            std::fs::write(texts.join(format!("{name}.txt")), text).unwrap();
        }
        let read = read_predictions(&texts).unwrap();
        assert_eq!((read.by_name.len(), read.problems.len()), (1, 2), "{:?}", read.problems);
        let problems = [read.problems, truths.problems].concat();
        assert!(problems.iter().all(|problem| problem.len() < 500), "{problems:?}");
        assert!(problems.iter().any(|problem| problem.contains("expected at most 65536")), "{problems:?}");
    }

    #[test]
    fn label_graphs_that_do_not_fit_are_problems() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graphs.zip");
        // Each of a path of 9 999 steps, which is 1.6 MB in memory.
        let graph = format!("O,a,x,1,O{}\n", "R".repeat(9_999));
        let files: Vec<(String, &[u8])> =
            (0..40).map(|number| (format!("symLg/{number:02}.lg"), graph.as_bytes())).collect();
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        zip(&path, &files);
        let read = read_truths(&path, None).unwrap();
        assert!((28..36).contains(&read.truths.len()), "{} graphs fit", read.truths.len());
        assert_eq!(read.truths.len() + read.problems.len(), 40);
        assert!(read.problems[0].contains("fill the memory"), "{:?}", read.problems[0]);
    }

    #[test]
    fn truths_from_captions_graphs_and_sets() {
        let folder = tempfile::tempdir().unwrap();
        let files: [(&str, &[u8]); 5] = [
            ("data/2014/caption.txt", b"a\tx\nb\ty\n"),
            ("data/2014/symLg/a.lg", b"O, x_1, x, 1.0, O\n"),
            ("data/2014/symLg/b.lg", b"nonsense\n"),
            ("data/2016/caption.txt", b"c\tz\n"),
            ("data/2014/img/a.bmp", b"not looked at"),
        ];
        let archive = folder.path().join("crohme.zip");
        zip(&archive, &files);
        let read = read_truths(&archive, Some("2014")).unwrap();
        let found: Vec<_> =
            read.truths.iter().map(|truth| (truth.name.as_str(), truth.graph.is_some())).collect();
        assert_eq!(found, [("a", true), ("b", false)]);
        assert!(
            read.problems[0].contains("symLg/b.lg") && read.problems[0].contains("nonsense"),
            "{:?}",
            read.problems
        );
        assert_eq!(read_truths(&archive, Some("2016")).unwrap().truths[0].caption.as_deref(), Some("z"));
        let message = read_truths(&archive, None).unwrap_err().to_string();
        assert!(message.contains("data/2014, data/2016"), "{message}");
        assert!(read_truths(&archive, Some("2019")).is_err());

        let graphs = folder.path().join("symLg");
        std::fs::create_dir(&graphs).unwrap();
        std::fs::write(graphs.join("a.lg"), "O, x_1, x, 1.0, O\n").unwrap();
        assert!(read_truths(&graphs, None).unwrap().truths[0].caption.is_none());
        let captions = folder.path().join("caption.txt");
        std::fs::write(&captions, "a\tx\n").unwrap();
        assert_eq!(read_truths(&captions, Some("2014")).unwrap().truths.len(), 1);
        let mut both = read_truths(&graphs, None).unwrap();
        both.merge(read_truths(&captions, None).unwrap());
        assert!(both.truths.len() == 1 && both.truths[0].caption.is_some() && both.truths[0].graph.is_some());
        assert_eq!(read_truths(folder.path(), None).unwrap().truths.len(), 1);
    }

    #[test]
    fn what_holds_nothing_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent.tsv");
        assert!(read_predictions(&absent).unwrap_err().to_string().contains("absent.tsv"));
        assert!(read_predictions(folder.path()).unwrap_err().to_string().contains("expected predictions"));
        assert!(read_truths(folder.path(), None).unwrap_err().to_string().contains("expected caption.txt"));
        let broken = folder.path().join("broken.zip");
        std::fs::write(&broken, b"PK\x03\x04 and nothing more").unwrap();
        assert!(read_truths(&broken, None).unwrap_err().to_string().contains("broken.zip"));
    }
}
