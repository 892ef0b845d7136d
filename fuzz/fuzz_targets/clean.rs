//! Any tile, repeated over a picture: its cleaning ends within a number of visits for each pixel.
#![no_main]

use comer::internal::photo::{self, Cleaning, Grey, Work};
use libfuzzer_sys::fuzz_target;

/// Visits for each pixel, counted and not timed. Pictures of this size are enlarged first; random tiles take up to 1300.
const MOST_WORK: u64 = 4_000;
const SIDES: (usize, usize) = (400, 300);

// The first byte is the width of the tile, the others its pixels.
fuzz_target!(|bytes: &[u8]| {
    let Some((&columns, tile)) = bytes.split_first() else { return };
    let columns = usize::from(columns).max(1);
    let rows = tile.len() / columns;
    if rows == 0 {
        return;
    }
    let (width, height) = SIDES;
    let level = |at: usize| tile[at / width % rows * columns + at % width % columns];
    let grey = Grey { width, height, levels: (0..width * height).map(level).collect() };
    let unlimited = || Ok(());
    let work = Work::new(&unlimited);
    let _ = photo::clean_all(&grey, &Cleaning { remove_lines: true, gaps: None }, &work);
    let most = MOST_WORK * (width * height) as u64;
    assert!(work.spent() <= most, "{} visits, expected at most {most}", work.spent());
});
