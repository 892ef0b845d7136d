//! Reads predictions and truths from the files that systems and competitions leave: tables, zips, folders.
//!
//! A file that cannot be read costs that one file and is named among the problems; only a source that cannot be
//! opened at all, or that holds nothing of the kind, is an error.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use zip::ZipArchive;

use crate::error::{Error, Result};
use crate::label_graph::LabelGraph;
use crate::run_folder::PREDICTIONS;
use crate::score::Truth;

/// Predictions by name.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    /// What was recognised, by the name of the file without its ending.
    pub by_name: HashMap<String, String>,
    /// What could not be read, and why.
    pub problems: Vec<String>,
}

/// The truth of a set.
#[derive(Clone, Debug, Default)]
pub struct Truths {
    /// By name.
    pub truths: Vec<Truth>,
    /// What could not be read, and why.
    pub problems: Vec<String>,
}

/// The largest text file that is read: no formula comes near.
const LARGEST_TEXT: u64 = 64 << 20;

/// One file of a source: its name inside of it, and its text or why there is none.
struct Entry {
    name: String,
    text: Result<String, String>,
}

impl Entry {
    /// The name without folders and ending.
    fn stem(&self) -> &str {
        let file = self.name.rsplit(['/', '\\']).next().unwrap_or(&self.name);
        file.rsplit_once('.').map_or(file, |(stem, _)| stem)
    }

    fn has_ending(&self, ending: &str) -> bool {
        self.name.rsplit_once('.').is_some_and(|(_, own)| own.eq_ignore_ascii_case(ending))
    }
}

/// Reads predictions: a tsv (`name<TAB>LaTeX`), the `result.zip` of the reference or a folder, both with one
/// `<name>.txt` for each formula, the LaTeX between dollar signs after a line `%<name>`. The folder of a
/// [run](crate::run_folder) stands for the table in it.
pub fn read_predictions(path: &Path) -> Result<Predictions> {
    let table = path.join(PREDICTIONS);
    let path = if table.is_file() { &table } else { path };
    let is_text = |name: &str| name.ends_with(".txt");
    let entries = match source(path)? {
        Source::Text => return Ok(predictions_table(&read_text(path)?)),
        Source::Zip => zip_entries(path, is_text)?,
        Source::Folder => folder_entries(path, is_text)?,
    };
    let mut predictions = Predictions::default();
    for entry in &entries {
        match entry.text.as_deref().map_err(String::clone).and_then(formula_of_text) {
            Ok(formula) => {
                predictions.by_name.insert(entry.stem().into(), formula);
            }
            Err(reason) => predictions.problems.push(format!("{}: {reason}", entry.name)),
        }
    }
    if entries.is_empty() {
        return Err(nothing_in(path, "a prediction (a table of names and LaTeX, or .txt files)"));
    }
    Ok(predictions)
}

fn predictions_table(text: &str) -> Predictions {
    let mut predictions = Predictions::default();
    for (name, formula) in table(text, &mut predictions.problems) {
        if predictions.by_name.insert(name.clone(), formula).is_some() {
            predictions.problems.push(format!("{name}: predicted twice, the later one counts"));
        }
    }
    predictions
}

/// The lines of a table of names and formulas.
fn table(text: &str, problems: &mut Vec<String>) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match line.split_once('\t') {
            Some((name, formula)) => rows.push((name.trim().to_string(), formula.trim().to_string())),
            // A system that recognised nothing leaves only the name.
            None if !line.trim().contains(' ') => rows.push((line.trim().to_string(), String::new())),
            None => problems
                .push(format!("line {}: found {line:?}, expected a name, a tab and LaTeX", number + 1)),
        }
    }
    rows
}

/// The formula of a file of the reference: what stands between the first and the last dollar sign, or, without any, all
/// but comments.
fn formula_of_text(text: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('%')).collect();
    let text = lines.join("\n");
    match (text.find('$'), text.rfind('$')) {
        (Some(first), Some(last)) if first < last => {
            Ok(text[first..last].trim_matches('$').trim().to_string())
        }
        (Some(_), _) => Err("only one dollar sign, expected the formula between two".into()),
        _ => Ok(text.trim().to_string()),
    }
}

/// Reads the truth: captions (`name<TAB>LaTeX`), a folder of `.lg` files, a folder with `caption.txt` and `symLg`, or
/// a zip of either. A zip or folder with several sets (`data/2014`, `data/2016`) needs the name of one as `split`.
pub fn read_truths(path: &Path, split: Option<&str>) -> Result<Truths> {
    let is_truth = |name: &str| name.ends_with(".lg") || name.ends_with("caption.txt");
    let entries = match source(path)? {
        Source::Text => {
            let text = read_text(path)?;
            vec![Entry { name: "caption.txt".into(), text: Ok(text) }]
        }
        Source::Zip => zip_entries(path, is_truth)?,
        Source::Folder => folder_entries(path, is_truth)?,
    };
    let entries = entries_of_split(entries, path, split)?;
    let mut truths: BTreeMap<String, Truth> = BTreeMap::new();
    let mut problems = Vec::new();
    for entry in &entries {
        let text = match &entry.text {
            Ok(text) => text,
            Err(reason) => {
                problems.push(format!("{}: {reason}", entry.name));
                continue;
            }
        };
        if entry.has_ending("lg") {
            match LabelGraph::from_lg(text) {
                Ok(graph) => truths.entry(entry.stem().into()).or_default().graph = Some(graph),
                Err(error) => problems.push(format!("{}: {error}", entry.name)),
            }
        } else {
            for (name, caption) in table(text, &mut problems) {
                truths.entry(name).or_default().caption = Some(caption);
            }
        }
    }
    if truths.is_empty() {
        return Err(nothing_in(path, "a truth (captions, or .lg files)"));
    }
    let truths = truths.into_iter().map(|(name, truth)| Truth { name, ..truth }).collect();
    Ok(Truths { truths, problems })
}

impl Truths {
    /// Takes in what another source says of the same or other formulas: graphs beside captions, for instance.
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

/// The entries of one set, by the folder that holds `caption.txt` or `symLg`.
fn entries_of_split(entries: Vec<Entry>, path: &Path, split: Option<&str>) -> Result<Vec<Entry>> {
    let set = |entry: &Entry| {
        let mut folders: Vec<&str> = entry.name.split(['/', '\\']).collect();
        folders.pop();
        if entry.has_ending("lg") && folders.last().is_some_and(|folder| folder.eq_ignore_ascii_case("symlg"))
        {
            folders.pop();
        }
        folders.join("/")
    };
    let is_wanted = |set: &str| split.is_none_or(|split| set.rsplit('/').next() == Some(split));
    let mut sets: Vec<String> = entries.iter().map(set).filter(|set| is_wanted(set)).collect();
    sets.sort();
    sets.dedup();
    match &sets[..] {
        [one] => Ok(entries.into_iter().filter(|entry| set(entry) == *one).collect()),
        [] if split.is_none() => Ok(entries),
        // A path that is one set already needs no name for it.
        [] if entries.iter().all(|entry| set(entry).is_empty()) => Ok(entries),
        [] => Err(nothing_in(path, "the set that was asked for")),
        _ => Err(Error::Sets { path: path.into(), sets: sets.join(", ") }),
    }
}

enum Source {
    Text,
    Zip,
    Folder,
}

fn source(path: &Path) -> Result<Source> {
    if path.is_dir() {
        return Ok(Source::Folder);
    }
    let mut start = [0; 4];
    let mut file = File::open(path).map_err(|reason| file_error(path, reason))?;
    let is_zip = file.read_exact(&mut start).is_ok() && (start == *b"PK\x03\x04" || start == *b"PK\x05\x06");
    Ok(if is_zip { Source::Zip } else { Source::Text })
}

fn file_error(path: &Path, reason: std::io::Error) -> Error {
    Error::File { path: path.into(), reason }
}

fn nothing_in(path: &Path, expected: &'static str) -> Error {
    Error::Nothing { path: path.into(), expected }
}

fn read_text(path: &Path) -> Result<String> {
    let file = File::open(path).map_err(|reason| file_error(path, reason))?;
    bounded_text(file).map_err(|reason| file_error(path, reason))
}

fn bounded_text(reader: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    let read = reader.take(LARGEST_TEXT + 1).read_to_string(&mut text)?;
    if read as u64 > LARGEST_TEXT {
        let reason = format!("more than {LARGEST_TEXT} bytes, which no formulas need");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, reason));
    }
    Ok(text)
}

fn zip_entries(path: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Entry>> {
    let file = File::open(path).map_err(|reason| file_error(path, reason))?;
    let archive = ZipArchive::new(BufReader::new(file));
    let archive = archive.map_err(|error| file_error(path, std::io::Error::other(error)))?;
    Ok(archive_entries(archive, is_wanted))
}

fn archive_entries<R: Read + Seek>(
    mut archive: ZipArchive<R>,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for number in 0..archive.len() {
        let entry = match archive.by_index(number) {
            Err(error) => Entry { name: format!("file {number} of the zip"), text: Err(error.to_string()) },
            Ok(mut file) => {
                let name = String::from_utf8_lossy(file.name_raw()).into_owned();
                if name.ends_with('/') || !is_wanted(&name) {
                    continue;
                }
                Entry { name, text: bounded_text(&mut file).map_err(|error| error.to_string()) }
            }
        };
        entries.push(entry);
    }
    entries
}

/// The files of a folder and of the folders in it, by name.
fn folder_entries(path: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let listing = std::fs::read_dir(&folder).map_err(|reason| file_error(&folder, reason))?;
        for item in listing {
            let item = item.map_err(|reason| file_error(&folder, reason))?.path();
            let name = item.strip_prefix(path).unwrap_or(&item).to_string_lossy().into_owned();
            // Links to folders are not followed: they may lead back.
            if item.is_dir() && !item.is_symlink() {
                folders.push(item);
            } else if is_wanted(&name) {
                let text = read_text(&item).map_err(|error| error.to_string());
                entries.push(Entry { name, text });
            }
        }
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

#[cfg(test)]
mod tests {
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
        assert!(read_predictions(folder.path()).unwrap_err().to_string().contains("expected a prediction"));
        assert!(read_truths(folder.path(), None).unwrap_err().to_string().contains("expected a truth"));
        let broken = folder.path().join("broken.zip");
        std::fs::write(&broken, b"PK\x03\x04 and nothing more").unwrap();
        assert!(read_truths(&broken, None).unwrap_err().to_string().contains("broken.zip"));
    }
}
