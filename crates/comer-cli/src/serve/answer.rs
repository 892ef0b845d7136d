//! A recognition as JSON.

use comer::Ink;
use comer::internal::recognizer::Recognition;
use serde_json::{Value, json};

use crate::recognize::{add_alignment, recognition_json};

/// What was read, with MathML and the strokes of each token if wanted.
pub fn answer(recognition: &Recognition, ink: Option<&Ink>, mathml: bool) -> comer::Result<Value> {
    let mut answer = recognition_json(recognition);
    answer["kind"] = if ink.is_some() { "ink" } else { "picture" }.into();
    add_alignment(&mut answer, recognition);
    if let (Some(alignment), Some(ink)) = (&recognition.alignment, ink) {
        answer["alignment"]["strokes"] = json!(alignment.strokes(ink)?);
    }
    if mathml {
        add_mathml(&mut answer);
        if let Some(alternatives) = answer["alternatives"].as_array_mut() {
            alternatives.iter_mut().for_each(add_mathml);
        }
    }
    Ok(answer)
}

/// A formula that cannot be shown, which the search allows only without its grammar, is null.
fn add_mathml(formula: &mut Value) {
    let latex = formula["latex"].as_str().unwrap_or_default();
    formula["mathml"] = comer_eval::display::display(latex).ok().into();
}
