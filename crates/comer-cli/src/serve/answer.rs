//! The JSON response of a recognition.

use comer::Formula;
use serde_json::{Value, json};

use crate::output::add_alignment;
use crate::reading::formula_json;

/// A formula as JSON, with MathML and the alignment if requested.
pub fn answer(formula: &Formula, alignment: bool, mathml: bool) -> Value {
    let mut answer = formula_json(formula);
    let Formula { input, recognition, .. } = formula;
    answer["kind"] = if input.ink().is_some() { "ink" } else { "picture" }.into();
    if alignment {
        add_alignment(&mut answer, recognition);
        let strokes = recognition.alignment.as_ref().and_then(|alignment| alignment.strokes.as_ref());
        if let Some(strokes) = strokes {
            answer["alignment"]["strokes"] = json!(strokes);
        }
        if let Some(alignment) = recognition.alignment.as_ref().filter(|_| input.ink().is_none()) {
            let boxes = recognition.best.tokens.iter().enumerate().map(|(index, token)| {
                token.has_ink().then(|| alignment.token_box_in_source(index, input)).flatten()
            });
            answer["alignment"]["boxes"] = json!(boxes.collect::<Vec<_>>());
        }
    }
    if mathml {
        add_mathml(&mut answer);
        if let Some(alternatives) = answer["alternatives"].as_array_mut() {
            alternatives.iter_mut().for_each(add_mathml);
        }
    }
    answer
}

/// Adds MathML; null for ill-formed LaTeX, which is possible only without the grammar.
fn add_mathml(formula: &mut Value) {
    let latex = formula["latex"].as_str().unwrap_or_default();
    formula["mathml"] = comer_eval::mathml::mathml(latex).ok().into();
}
