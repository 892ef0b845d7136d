//! A recognition as JSON: `Reading` in `js/index.d.ts`.

use comer::alignment::{Alignment, Region};
use comer::{Candidate, Input, Recognition, Token};
use serde_json::{Value, json};

pub(crate) fn json(recognition: &Recognition, input: &Input, mathml: bool) -> Value {
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
        "regions": alignment.map(|alignment| alignment.ink.regions.iter().map(region).collect::<Vec<_>>()),
    })
}

fn tokens(candidate: &Candidate, alignment: Option<&Alignment>) -> Vec<Value> {
    let plain = |token: &Token| json!({ "text": token.text, "confidence": token.confidence });
    let token = |(index, token): (usize, &Token)| {
        let others = alignment.and_then(|alignment| alignment.runners_up.get(index));
        let others: Vec<Value> = others.into_iter().flatten().map(plain).collect();
        json!({ "text": token.text, "confidence": token.confidence, "alternatives": others })
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
