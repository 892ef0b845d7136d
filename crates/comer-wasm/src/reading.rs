//! A recognition as JSON: `Reading` in `js/index.d.ts`.

use comer::alignment::{Alignment, Region};
use comer::{Candidate, Formula, Token, Warning};
use serde_json::{Value, json};

pub(crate) fn json(formula: &Formula, mathml: bool) -> Value {
    let Formula { input, recognition, warnings, .. } = formula;
    let alignment = recognition.alignment.as_ref();
    let formula = |(number, candidate): (usize, &Candidate)| {
        let alignment = alignment.filter(|_| number == 0);
        json!({
            "latex": candidate.latex,
            "tokens": tokens(candidate, alignment),
            "confidence": candidate.confidence,
            "mathml": mathml.then(|| comer_eval::mathml::mathml(&candidate.latex).ok()).flatten(),
        })
    };
    let place = |alignment: &Alignment| -> Value {
        let tokens = recognition.best.tokens.iter().enumerate();
        let place = |(index, token): (usize, &Token)| {
            token.has_ink().then(|| alignment.token_box_in_source(index, input)).flatten()
        };
        json!(tokens.map(place).collect::<Vec<_>>())
    };
    json!({
        "formulas": recognition.candidates().enumerate().map(formula).collect::<Vec<_>>(),
        "strokes": alignment.and_then(|alignment| alignment.strokes.as_ref()),
        "boxes": alignment.filter(|_| input.ink().is_none()).map(place),
        "image": null,
        "found": null,
        "aligned": null,
        "warnings": warnings.iter().map(warning).collect::<Vec<_>>(),
        "regions": alignment.map(|alignment| alignment.ink.regions.iter().map(region).collect::<Vec<_>>()),
    })
}

/// One of several formulas, and where it is.
pub(crate) fn found(formula: &Formula) -> Value {
    let bounds = formula.input.bounds();
    json!({
        "latex": formula.recognition.latex(),
        "confidence": formula.recognition.best.confidence,
        "box": [bounds.left, bounds.top, bounds.right, bounds.bottom],
        "strokes": formula.input.stroke_numbers(),
    })
}

fn warning(warning: &Warning) -> Value {
    json!({ "code": warning.code, "message": warning.message })
}

fn tokens(candidate: &Candidate, alignment: Option<&Alignment>) -> Vec<Value> {
    let plain = |token: &Token| json!({ "text": token.text, "confidence": token.confidence });
    let symbols = candidate.symbol_confidences();
    let token = |(index, token): (usize, &Token)| {
        let others = alignment.and_then(|alignment| alignment.runners_up.get(index));
        let others: Vec<Value> = others.into_iter().flatten().map(plain).collect();
        json!({
            "text": token.text,
            "confidence": token.confidence,
            "symbolConfidence": symbols[index],
            "alternatives": others,
        })
    };
    candidate.tokens.iter().enumerate().map(token).collect()
}

fn region(region: &Region) -> Value {
    json!({
        "left": region.left,
        "top": region.top,
        "width": region.width,
        "height": region.height,
        "unread": region.is_unread(),
    })
}
