//! Scores predictions file by file, by each protocol for which there is ground truth.

use std::collections::HashMap;

use crate::compare::{Errors, compare};
use crate::label_graph::LabelGraph;
use crate::metrics::{levenshtein, same_structure, tokens};
use crate::symbols::Dialect;

/// What predictions are compared with. The figures of different protocols are not comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Label graphs against those of the competition: the figures of the paper.
    Official,
    /// Label graphs against those of the captions, which match the images.
    Caption,
    /// Tokens against those of the captions.
    Token,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Official, Self::Caption, Self::Token];

    /// Its full name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Official => "official symLG",
            Self::Caption => "caption symLG",
            Self::Token => "token match",
        }
    }
}

/// The ground truth of one formula.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Its name.
    pub name: String,
    /// Its LaTeX, if there are captions.
    pub caption: Option<String>,
    /// The competition's label graph, if there is one.
    pub graph: Option<LabelGraph>,
}

/// The errors of one prediction by one protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// Node and edge errors, or token edits.
    pub errors: usize,
    /// Right except for the symbols.
    pub same_structure: bool,
}

impl From<Errors> for Mistakes {
    fn from(errors: Errors) -> Self {
        Self { errors: errors.total(), same_structure: errors.same_structure }
    }
}

/// The score of one file.
#[derive(Clone, Debug)]
pub struct FileScore {
    /// The name of the file.
    pub name: String,
    /// Its LaTeX, if there are captions.
    pub caption: Option<String>,
    /// The prediction, if there is one.
    pub prediction: Option<String>,
    /// Why the prediction has no label graph, if it has none.
    pub unreadable: Option<String>,
    /// By each protocol of [`Protocol::ALL`] for which there is ground truth.
    pub mistakes: [Option<Mistakes>; 3],
}

impl FileScore {
    /// The score by one protocol.
    pub fn by(&self, protocol: Protocol) -> Option<Mistakes> {
        self.mistakes[protocol as usize]
    }
}

/// Scores every file of the ground truth. A prediction that is missing or is not LaTeX counts as empty; predictions for
/// other files are ignored.
///
/// `dialect` is that of the caption protocol; the official protocol always uses [`Dialect::Official`].
pub fn score(truths: &[Truth], predictions: &HashMap<String, String>, dialect: Dialect) -> Vec<FileScore> {
    truths.iter().map(|truth| score_one(truth, predictions.get(&truth.name), dialect)).collect()
}

fn score_one(truth: &Truth, prediction: Option<&String>, dialect: Dialect) -> FileScore {
    let formula = prediction.map_or("", String::as_str);
    let official = LabelGraph::from_latex(formula, Dialect::Official);
    let unreadable = official.as_ref().err().map(ToString::to_string);
    let official = official.unwrap_or_default();
    let by_graph = truth.graph.as_ref().map(|graph| compare(graph, &official).into());
    let by_caption = truth.caption.as_ref().map(|caption| {
        let graph = |formula: &str| LabelGraph::from_latex(formula, dialect).unwrap_or_default();
        let prediction = if dialect == Dialect::Official { official } else { graph(formula) };
        let errors = compare(&graph(caption), &prediction);
        // A caption that is not LaTeX has an empty graph: only the same tokens are right.
        let both_empty = errors.total() == 0 && errors.same_structure && prediction.is_empty();
        if both_empty && tokens(caption) != tokens(formula) {
            return Mistakes { errors: tokens(caption).len().max(1), same_structure: false };
        }
        errors.into()
    });
    let by_token = truth.caption.as_ref().map(|caption| {
        let (caption, formula) = (tokens(caption), tokens(formula));
        Mistakes {
            errors: levenshtein(&caption, &formula),
            same_structure: same_structure(&caption, &formula),
        }
    });
    FileScore {
        name: truth.name.clone(),
        caption: truth.caption.clone(),
        prediction: prediction.cloned(),
        unreadable,
        mistakes: [by_graph, by_caption, by_token],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(name: &str, caption: &str) -> Truth {
        let graph = LabelGraph::from_latex(caption, Dialect::Official).ok();
        Truth { name: name.into(), caption: Some(caption.into()), graph }
    }

    #[test]
    fn missing_and_broken_predictions_cost_one_file_each() {
        let truths = [truth("good", "x + 1"), truth("missing", "x + 1"), truth("broken", "x + 1")];
        let predictions = [("good", "x+1"), ("broken", "x + {"), ("unasked", "y")]
            .map(|(name, text)| (name.into(), text.into()));
        let scores = score(&truths, &predictions.into(), Dialect::Official);
        let errors: Vec<_> =
            scores.iter().map(|score| score.mistakes.map(|found| found.unwrap().errors)).collect();
        assert_eq!(errors, [[0, 0, 0], [5, 5, 3], [5, 5, 1]]);
        assert!(scores[2].unreadable.as_ref().unwrap().contains('{'));
        assert!(scores[1].prediction.is_none() && scores[1].unreadable.is_none());
    }

    #[test]
    fn a_caption_that_is_not_latex_is_not_right_for_nothing() {
        let broken = Truth { caption: Some("x + {".into()), ..truth("a", "x") };
        let by_caption = |prediction: Option<&str>| {
            let predictions =
                prediction.map(|text| ("a".to_string(), text.to_string())).into_iter().collect();
            score(std::slice::from_ref(&broken), &predictions, Dialect::Official)[0]
                .by(Protocol::Caption)
                .unwrap()
                .errors
        };
        assert_eq!(by_caption(Some("x + {")), 0);
        assert!(by_caption(None) > 0 && by_caption(Some("y")) > 0);
    }

    #[test]
    fn only_the_protocols_of_the_truth() {
        let only_graph = Truth { caption: None, ..truth("a", "x") };
        let scores = score(&[only_graph], &[("a".into(), "x".into())].into(), Dialect::Official);
        assert_eq!(scores[0].mistakes.map(|found| found.is_some()), [true, false, false]);
    }
}
