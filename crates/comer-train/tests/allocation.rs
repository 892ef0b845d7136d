//! Hostile recipes, stroke sets and training checkpoints cost little memory: the readers' peak allocation is counted.

use comer_testing::allocation::{Counting, assert_bounded};
use comer_train::recipe::Recipe;
use comer_train::{checkpoint, stroke_set};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test, so that no other thread allocates in between.
#[test]
fn hostile_files_cost_no_more_than_their_size_class() {
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let entry = |i: usize| format!(r#""{i:x}":{{"dtype":"U8","shape":[],"data_offsets":[0,0]}}"#);
    for count in [80_000, 450_000] {
        let bytes = header(&format!("{{{}}}", (0..count).map(entry).collect::<Vec<_>>().join(",")));
        assert_bounded("a checkpoint", bytes.len(), || drop(checkpoint::read(&bytes).unwrap_err()));
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let numbers = |count: usize| format!("epochs = [{}1]", "1,".repeat(count));
    let tables = |count: usize| (0..count).map(|i| format!("[a{i}]\n")).collect::<String>();
    for text in [numbers(1 << 20), numbers(120_000), tables(25_000), "a={a={".repeat(40_000)] {
        std::fs::write(&path, &text).unwrap();
        assert_bounded("a recipe", text.len(), || drop(Recipe::open(&path).unwrap_err()));
        assert_bounded("a recipe", text.len(), || drop(Recipe::open_stored(&path).unwrap_err()));
    }

    let record = |strokes: &str| format!("{{\"id\":\"\",\"tokens\":\"\",\"strokes\":[{strokes}]}}\n");
    let strokes =
        |item: &str| record(&format!("{}{item}", format!("{item},").repeat((3 << 20) / (item.len() + 1))));
    for text in [
        record("").repeat(200_000),
        strokes("[]"),
        strokes("[0]"),
        strokes("[0,0]"),
        record("[0]").repeat(100_000),
    ] {
        std::fs::write(&path, &text).unwrap();
        assert_bounded(&format!("a set like {text:.50}"), text.len(), || {
            drop(stroke_set::read(&path).unwrap())
        });
    }
}
