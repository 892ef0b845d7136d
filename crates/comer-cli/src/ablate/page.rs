//! The tables and the figure as one HTML file that needs nothing else.

use comer_eval::mathml::escaped;

use super::RowResult;
use super::tables::{INTRODUCTION, tables};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
     table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
     td,th{padding:.25rem .7rem;border-bottom:1px solid #ddd;text-align:left}td{white-space:nowrap}\
     figure{margin:0}svg{max-width:100%;height:auto}.wide{overflow-x:auto}";

pub fn html(results: &[RowResult], lengths: &str) -> String {
    let title = format!("Ablation of {} models", results.len());
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n<p>{INTRODUCTION}</p>\n"
    );
    for table in tables(results) {
        let cells = |tag: &str, cells: &[String]| -> String {
            cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect()
        };
        text += &format!(
            "<h2>{}</h2>\n<p>{}</p>\n<div class=\"wide\"><table>\n",
            escaped(&table.title),
            escaped(&table.note)
        );
        text += &format!("<tr>{}</tr>\n", cells("th", &table.header));
        for row in &table.rows {
            text += &format!("<tr>{}</tr>\n", cells("td", row));
        }
        text += "</table></div>\n";
    }
    text + "<h2>By length</h2>\n<figure>\n" + lengths + "</figure>\n</html>\n"
}
