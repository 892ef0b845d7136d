//! Writes the report of a run to a folder: `report.json`, `report.md`, `report.html` and `predictions.tsv`.

use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::files::PREDICTIONS;
use crate::html::html;
use crate::markdown::markdown;
use crate::report::Report;
use crate::score::{FileScore, Protocol};

/// A scored run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The heading of the reports.
    pub title: &'a str,
    /// The figures.
    pub report: &'a Report,
    /// Every file.
    pub scores: &'a [FileScore],
    /// What could not be read.
    pub problems: &'a [String],
}

#[derive(Serialize)]
struct RunRecord<'a> {
    title: &'a str,
    #[serde(flatten)]
    report: &'a Report,
    problems: &'a [String],
    scores: Vec<FileRecord<'a>>,
}

/// One file of `report.json`, with its errors by each protocol.
#[derive(Serialize)]
struct FileRecord<'a> {
    name: &'a str,
    truth: Option<&'a str>,
    prediction: Option<&'a str>,
    unreadable: Option<&'a str>,
    official: Option<usize>,
    caption: Option<usize>,
    token: Option<usize>,
}

impl<'a> From<&'a FileScore> for FileRecord<'a> {
    fn from(score: &'a FileScore) -> Self {
        let errors = |protocol| score.by(protocol).map(|mistakes| mistakes.errors);
        Self {
            name: &score.name,
            truth: score.caption.as_deref(),
            prediction: score.prediction.as_deref(),
            unreadable: score.unreadable.as_deref(),
            official: errors(Protocol::Official),
            caption: errors(Protocol::Caption),
            token: errors(Protocol::Token),
        }
    }
}

impl Run<'_> {
    /// Writes the four files to `folder`, which is created if needed. `picture` returns the image file of a formula by
    /// its name.
    pub fn write(&self, folder: &Path, picture: impl FnMut(&str) -> Option<Vec<u8>>) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(|reason| Error::File { path: folder.into(), reason })?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            comer_files::write_atomic(&path, text.as_bytes()).map_err(|reason| Error::File { path, reason })
        };
        write(PREDICTIONS, &self.predictions())?;
        write("report.json", &self.json())?;
        write("report.md", &markdown(self.title, self.report))?;
        write("report.html", &html(self.title, self.report, self.scores, self.problems, picture))
    }

    fn predictions(&self) -> String {
        let on_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = |score: &FileScore| {
            score.prediction.as_ref().map(|text| format!("{}\t{}\n", score.name, on_one_line(text)))
        };
        self.scores.iter().filter_map(line).collect()
    }

    fn json(&self) -> String {
        let Self { title, report, problems, scores } = *self;
        let record = RunRecord { title, report, problems, scores: scores.iter().map(Into::into).collect() };
        serde_json::to_string_pretty(&record).expect("a record of text and numbers can be written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::read_predictions;
    use crate::score::{Truth, score};
    use crate::{Dialect, LabelGraph};

    #[test]
    fn what_is_written_can_be_read() {
        let truth = |name: &str| Truth {
            name: name.into(),
            caption: Some("x + 1".into()),
            graph: LabelGraph::from_latex("x + 1", Dialect::Official).ok(),
        };
        let predictions = [("a".to_string(), "x + 1".to_string()), ("b".into(), "x\n+ l".into())].into();
        let scores = score(&["a", "b", "c"].map(truth), &predictions, Dialect::Official);
        let report = Report::new(&scores);
        let folder = tempfile::tempdir().unwrap();
        let run = Run { title: "run", report: &report, scores: &scores, problems: &["one".into()] };
        run.write(&folder.path().join("new"), |_| None).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join("new").join(name)).unwrap();
        let json: serde_json::Value = serde_json::from_str(&read("report.json")).unwrap();
        assert_eq!(json["files"], 3);
        assert!((json["official"]["exp_rate"].as_f64().unwrap() - 100.0 / 3.0).abs() < 1e-9);
        assert_eq!(json["scores"][1]["token"], 1);
        assert!(read("report.md").starts_with("# run"));
        assert!(read("report.html").contains("<article"));
        let back = read_predictions(&folder.path().join("new").join(PREDICTIONS)).unwrap().by_name;
        assert_eq!((back.len(), back["b"].as_str()), (2, "x + l"));
        // The folder of a run stands for its predictions.
        assert_eq!(read_predictions(&folder.path().join("new")).unwrap().by_name, back);
    }
}
