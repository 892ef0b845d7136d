//! The explanation as a self-contained page: every map of both directions, step by step.

use anyhow::Result;
use comer::alignment::Direction;
use comer::alignment::{Pass, Region};
use comer_eval::html::base64;
use comer_eval::mathml::{escaped, mathml_in_html};
use serde_json::{Value, json};

use super::png;
use super::svg::hex;
use super::view::{CELL, Choice, INK, Map, REREAD, UNREAD, View, range};

/// The page. It shows `choice` first.
pub fn html(title: &str, view: &View, choice: &Choice) -> Result<String> {
    let words: Vec<&str> = view.tokens.iter().map(|token| token.text.as_str()).collect();
    let formula = words.join(" ");
    // A formula that is not LaTeX still has its tokens below.
    let drawn = mathml_in_html(&formula).unwrap_or_default();
    // The data must not contain the end of the script element.
    let data = data(view, choice)?.to_string().replace('<', "\\u003c");
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n<div id=\"formula\">{drawn}</div>\n</header>\n{body}\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{script}</script>\n</body>\n</html>\n",
        title = escaped(title),
        style = include_str!("html/explain.css"),
        body = include_str!("html/explain.html"),
        script = include_str!("html/explain.js"),
    ))
}

/// The data of the page. Maps are quantised to bytes: the root of the attention, and the refinement between its minimum
/// and maximum. The page computes the coverage as the sum of the attention.
fn data(view: &View, choice: &Choice) -> Result<Value> {
    let ink: Vec<f32> = view.picture.pixels().iter().map(|&pixel| f32::from(pixel) / 255.0).collect();
    let ink = png::tinted(&ink, view.picture.width(), view.picture.height(), INK)?;
    let region = |region: &Region| {
        let place = [region.left, region.top, region.width, region.height];
        json!({ "box": place, "unread": region.is_unread(), "reread": region.is_reread(), "coverage": region.coverage })
    };
    let tints: serde_json::Map<String, Value> =
        Map::ALL.iter().map(|map| (map.name().to_string(), map.tint().to_vec().into())).collect();
    Ok(json!({
        "ink": format!("data:image/png;base64,{}", base64(&ink)),
        "width": view.picture.width(),
        "height": view.picture.height(),
        "cell": CELL,
        "rows": view.alignment.height,
        "columns": view.alignment.width,
        "tokens": view.tokens.iter().map(|token| &token.text).collect::<Vec<_>>(),
        "passes": view.alignment.passes.iter().map(pass).collect::<Vec<_>>(),
        "total": view.total(),
        "regions": view.alignment.ink.regions.iter().map(region).collect::<Vec<_>>(),
        "verdict": view.verdict(),
        "tints": tints,
        "unread": hex(UNREAD),
        "reread": hex(REREAD),
        "choice": {
            "map": choice.map.name(),
            "layer": choice.layer,
            "head": choice.head,
            "pass": usize::from(choice.direction == Direction::RightToLeft),
        },
    }))
}

fn pass(pass: &Pass) -> Value {
    let all = |map: Map| pass.steps.iter().flat_map(move |step| map.of(step).iter().copied());
    let (least, most) = range(all(Map::Refinement));
    let refined = most > least;
    let byte = |share: f32| (share.clamp(0.0, 1.0) * 255.0).round() as u8;
    let attention: Vec<u8> = all(Map::Attention).map(|value| byte(value.sqrt())).collect();
    let refinement: Vec<u8> = match refined {
        true => all(Map::Refinement).map(|value| byte((value - least) / (most - least))).collect(),
        false => Vec::new(),
    };
    let steps = pass.steps.iter().map(|step| {
        let others: Vec<Value> =
            step.runners_up.iter().map(|token| json!([token.text, token.confidence])).collect();
        json!({
            "token": step.token.text,
            "index": step.index,
            "probability": step.token.confidence,
            "others": others,
        })
    });
    json!({
        "direction": match pass.direction {
            Direction::LeftToRight => "from the left",
            Direction::RightToLeft => "from the right",
        },
        "layers": pass.layers,
        "heads": pass.heads,
        "steps": steps.collect::<Vec<_>>(),
        "attention": base64(&attention),
        "refinement": base64(&refinement),
        "least": if refined { least } else { 0.0 },
        "most": if refined { most } else { 0.0 },
    })
}
