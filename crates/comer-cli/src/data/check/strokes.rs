//! `comer data check` for stroke sets: statistics, and captions or ink shared with test sets.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use comer::internal::Vocab;
use comer::{Ink, Point, Stroke};
use comer_eval::find_files;
use comer_train::stroke_set;
use rayon::prelude::*;
use serde_json::json;

use super::Arguments;
use crate::data::import::test_captions;
use crate::output::print;

pub fn run(arguments: &Arguments, vocab: &Vocab) -> Result<ExitCode> {
    let path = &arguments.data;
    let records = stroke_set::read(path)?;
    let (mut broken, mut inks, mut counts) = (Vec::new(), Vec::new(), BTreeMap::<&str, usize>::new());
    for record in &records {
        match record.read(vocab) {
            Ok((_, ink, _)) => inks.push((&record.id, ink)),
            Err(reason) => broken.push(format!("{}: {reason}", record.id)),
        }
        record.tokens.split(' ').for_each(|token| *counts.entry(token).or_default() += 1);
    }
    let tests = test_captions(arguments.tests.as_deref())?;
    let captions: Vec<String> = records
        .iter()
        .filter(|record| tests.contains(&record.tokens))
        .map(|record| format!("{}: {}", record.id, record.tokens))
        .collect();
    let test_inks = read_inks(&arguments.ink)?;
    let index = Index::new(&test_inks);
    let shared: Vec<String> = inks
        .par_iter()
        .filter_map(|(id, ink)| Some(format!("{id} = {}", test_inks[index.find(ink)?].0)))
        .collect();
    let writers: BTreeSet<_> = records.iter().filter_map(|record| record.writer.as_ref()).collect();
    let unused: Vec<&str> =
        vocab.tokens().iter().map(String::as_str).filter(|token| !counts.contains_key(token)).collect();
    let record = json!({
        "expressions": records.len(),
        "writers": writers.len(),
        "tokens": counts.values().sum::<usize>(),
        "tokens_not_used": unused,
        "broken": broken,
        "test_captions": tests.len(),
        "shared_captions": captions,
        "test_inks": test_inks.len(),
        "shared_inks": shared,
    });
    let text = if arguments.json {
        format!("{record:#}\n")
    } else {
        let mut text = format!(
            "{}: {} expressions, {} named writers, {} tokens, {} of the vocabulary not used\n",
            path.display(),
            records.len(),
            writers.len(),
            record["tokens"],
            unused.len()
        );
        let against = |count: usize, what: &str| {
            if count == 0 { "not checked".into() } else { format!("of {count} {what}") }
        };
        for (name, cases, against) in [
            ("broken records", &broken, String::new()),
            ("captions of the tests", &captions, against(tests.len(), "captions")),
            ("ink of the tests", &shared, against(test_inks.len(), "expressions")),
        ] {
            text += &format!("{name:<24}{:>8}  {against}\n", cases.len());
            cases.iter().take(5).for_each(|case| text += &format!("  {case}\n"));
        }
        text
    };
    print(text)?;
    let good = broken.is_empty() && captions.is_empty() && shared.is_empty();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The ink of all InkML files below the folders, with their names.
fn read_inks(folders: &[PathBuf]) -> Result<Vec<(String, Ink)>> {
    let mut paths = Vec::new();
    for folder in folders {
        paths.extend(find_files(folder, &["inkml"])?);
    }
    if !folders.is_empty() && paths.is_empty() {
        bail!("no ink in the folders of --ink, expected files ending in inkml");
    }
    paths.sort();
    let read = |path: &PathBuf| {
        let ink = comer_files::read(path, comer_files::limit::INPUT)
            .ok()
            .and_then(|bytes| Ink::from_inkml(&bytes).ok());
        let name = Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        ink.map(|ink| (name, ink))
    };
    Ok(paths.par_iter().filter_map(read).collect())
}

/// A stroke, normalised by position and size.
struct Shape {
    /// Points at equal distances along the stroke, in a box whose longer side is 1.
    points: [[f64; 2]; POINTS],
    /// The length relative to the longer side of the bounding box.
    length: f64,
    middle: Point,
    size: f64,
}

const POINTS: usize = 16;
/// Maximum distance of equal points, relative to the size of the stroke: files are rounded to a quarter pixel.
const NEAR: f64 = 0.05;
/// Minimum length of compared strokes, relative to their bounding box: straight strokes have no distinctive shape.
const MIN_LENGTH: f64 = 1.2;
/// Minimum number of strokes that must match one test: fewer can match by chance.
const MIN_STROKES: usize = 3;

impl Shape {
    /// `None` for a dot or a straight line.
    fn of(stroke: &Stroke, least: f64) -> Option<Self> {
        let points = &stroke.points;
        let bounds = |axis: fn(&Point) -> f64| {
            points.iter().map(axis).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)))
        };
        let ((left, right), (top, bottom)) = (bounds(|point| point.x), bounds(|point| point.y));
        let size = (right - left).max(bottom - top);
        if size <= least {
            return None;
        }
        let distance = |pair: &[Point]| (pair[1].x - pair[0].x).hypot(pair[1].y - pair[0].y);
        let total: f64 = points.windows(2).map(distance).sum();
        let mut shape = [[0.0; 2]; POINTS];
        let (mut segment, mut before) = (0, 0.0);
        for (number, sample) in shape.iter_mut().enumerate() {
            let at = total * number as f64 / (POINTS - 1) as f64;
            while segment + 2 < points.len() && before + distance(&points[segment..segment + 2]) < at {
                before += distance(&points[segment..segment + 2]);
                segment += 1;
            }
            let pair = &points[segment..segment + 2];
            let share = ((at - before) / distance(pair).max(1e-12)).clamp(0.0, 1.0);
            let mix = |a: f64, b: f64| a + (b - a) * share;
            *sample = [(mix(pair[0].x, pair[1].x) - left) / size, (mix(pair[0].y, pair[1].y) - top) / size];
        }
        if total < MIN_LENGTH * size {
            return None;
        }
        let middle = Point { x: (left + right) / 2.0, y: (top + bottom) / 2.0 };
        Some(Self { points: shape, length: total / size, middle, size })
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.length / other.length - 1.0).abs() < NEAR * 2.0
            && self.points.iter().zip(&other.points).all(|(a, b)| (a[0] - b[0]).hypot(a[1] - b[1]) < NEAR)
    }

    /// A coarse key of start and length, which similar strokes share up to neighbouring cells.
    fn cell(&self) -> [i32; 3] {
        let [[x, y], ..] = self.points;
        [(x * 6.0) as i32, (y * 6.0) as i32, (self.length.ln() * 6.0) as i32]
    }
}

/// The shapes of the strokes of an ink, without small ones.
fn shapes(ink: &Ink) -> Vec<Shape> {
    let least = 3.0 / ink.pixels_per_unit();
    ink.strokes().iter().filter_map(|stroke| Shape::of(stroke, least)).collect()
}

/// The strokes of the tests by cell.
struct Index {
    shapes: Vec<Vec<Shape>>,
    cells: HashMap<[i32; 3], Vec<(usize, usize)>>,
}

impl Index {
    fn new(inks: &[(String, Ink)]) -> Self {
        let shapes: Vec<Vec<Shape>> = inks.par_iter().map(|(_, ink)| shapes(ink)).collect();
        let mut cells: HashMap<[i32; 3], Vec<(usize, usize)>> = HashMap::new();
        for (test, strokes) in shapes.iter().enumerate() {
            for (number, shape) in strokes.iter().enumerate() {
                cells.entry(shape.cell()).or_default().push((test, number));
            }
        }
        Self { shapes, cells }
    }

    /// The test that has at least half of the strokes of an ink, at the same positions.
    fn find(&self, ink: &Ink) -> Option<usize> {
        let own = shapes(ink);
        let needed = MIN_STROKES.max(own.len().div_ceil(2));
        if own.len() < MIN_STROKES {
            return None;
        }
        let mut found: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
        for (number, shape) in own.iter().enumerate() {
            let [x, y, length] = shape.cell();
            for near in NEIGHBOURS {
                let cell = [x + near[0], y + near[1], length + near[2]];
                for &(test, stroke) in self.cells.get(&cell).into_iter().flatten() {
                    if shape.is_like(&self.shapes[test][stroke]) {
                        found.entry(test).or_default().push((number, stroke));
                    }
                }
            }
        }
        let mut found: Vec<_> = found.into_iter().filter(|(_, pairs)| pairs.len() >= needed).collect();
        found.sort_by_key(|(test, _)| *test);
        found
            .into_iter()
            .map(|(test, pairs)| (test, self.matching(test, &own, &pairs)))
            .find(|(_, count)| *count >= needed)
            .map(|(test, _)| test)
    }

    /// The number of strokes that match a test, with scale and position determined by the best pair of strokes.
    fn matching(&self, test: usize, own: &[Shape], pairs: &[(usize, usize)]) -> usize {
        let test = &self.shapes[test];
        let count = |&(a, b): &(usize, usize)| {
            let scale = test[b].size / own[a].size;
            let fits = |&&(c, d): &&(usize, usize)| {
                let x = test[b].middle.x + (own[c].middle.x - own[a].middle.x) * scale;
                let y = test[b].middle.y + (own[c].middle.y - own[a].middle.y) * scale;
                let distance = (x - test[d].middle.x).hypot(y - test[d].middle.y);
                distance < 0.2 * test[d].size && (own[c].size * scale / test[d].size - 1.0).abs() < 0.1
            };
            pairs.iter().filter(fits).map(|(c, _)| c).collect::<HashSet<_>>().len()
        };
        pairs.iter().map(count).max().unwrap_or(0)
    }
}

/// Offsets of a cell and its neighbours.
const NEIGHBOURS: [[i32; 3]; 27] = {
    let mut list = [[0; 3]; 27];
    let mut index = 0;
    while index < 27 {
        let at = index as i32;
        list[index] = [at % 3 - 1, at / 3 % 3 - 1, at / 9 - 1];
        index += 1;
    }
    list
};

#[cfg(test)]
mod tests {
    use comer_train::stroke_set::Record;

    use super::*;

    fn ink(strokes: &[&[(f64, f64)]]) -> Ink {
        let stroke =
            |points: &&[(f64, f64)]| Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() };
        Ink::new(strokes.iter().map(stroke).collect()).unwrap()
    }

    #[test]
    fn equal_ink_is_found_in_other_units_and_with_extra_strokes_and_other_ink_is_not() {
        let zigzag: &[(f64, f64)] = &[(0.0, 0.0), (500.0, 900.0), (900.0, 100.0), (1400.0, 800.0)];
        let hook: &[(f64, f64)] = &[(2000.0, 0.0), (2000.0, 700.0), (2500.0, 900.0), (2400.0, 300.0)];
        let bar: &[(f64, f64)] = &[(0.0, 1500.0), (2500.0, 1480.0), (2000.0, 2000.0)];
        let test = ink(&[zigzag, hook, bar]);
        let index = Index::new(&[("a".into(), ink(&[hook, bar, hook])), ("b".into(), test.clone())]);
        assert_eq!(index.find(&Record::of("1", "x", &test).ink().unwrap()), Some(1));
        let extra: &[(f64, f64)] = &[(100.0, 1700.0), (300.0, 2500.0), (500.0, 1700.0)];
        assert_eq!(index.find(&ink(&[extra, hook, zigzag, bar])), Some(1));
        // The same strokes at other positions, and other strokes at the same positions.
        let moved: Vec<(f64, f64)> = hook.iter().map(|(x, y)| (x - 4000.0, *y)).collect();
        assert_eq!(index.find(&ink(&[zigzag, &moved, bar])), None);
        let turned: Vec<(f64, f64)> = hook.iter().map(|(x, y)| (4500.0 - x, *y)).collect();
        assert_eq!(index.find(&ink(&[zigzag, &turned, bar])), None);
    }
}
