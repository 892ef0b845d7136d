//! Any bytes as a table of predictions and as a label graph: rows and graphs, or an error, never a panic.
#![no_main]

use comer_eval::LabelGraph;
use comer_eval::compare::compare;
use comer_eval::files::read_predictions;
use comer_fuzz::file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = read_predictions(&file("tsv", bytes));
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(graph) = LabelGraph::from_lg(text)
    {
        assert_eq!(compare(&graph, &graph).total(), 0);
    }
});
