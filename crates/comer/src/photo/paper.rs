//! Takes the lines of ruled and squared paper out, and leaves fraction bars and minus signs.
//!
//! What tells them apart: a line of the paper runs from one edge of the image to the other, straight and nearly
//! level, and is fainter than ink or not alone. Such lines belong to the ground. What they look like across is measured
//! along all of them, and ink is what goes beyond it; where they are as dark as ink, what is above and below tells.

mod ends;
mod find;

use super::Work;
use super::redraw;
use super::strength::{Strength, threshold};
use crate::error::Result;
use find::find;

/// How many times as long as wide an image may be that lines are looked for in.
const LONGEST: usize = 64;
/// Share of the ink's threshold from which a pixel may belong to a line.
const VISIBLE: f32 = 0.6;
/// Lines at least this much fainter than the ink are the paper's even when there is only one.
const FAINTER: f32 = 0.7;
/// Steps of a pixel in which the look of the lines is measured.
const STEPS: f32 = 4.0;
/// A line ends where its strength falls below this share of that in its middle.
const EDGE: f32 = 0.2;
/// How many times the spread of the lines' strength must fit between line and ink for both sources to count the same.
const SPREADS: f32 = 2.0;
/// Spread that the strength of lines has at least.
const LEAST_SPREAD: f32 = 0.03;
/// Share of the ink's full strength up to which what remains of a line is none.
const REMAINS: f32 = 0.25;
/// Columns from one in which the strength of a single line is measured to the next.
const SPARSE: usize = 4;
/// Directions in which ink may cross a line, as columns for each row.
const CROSSINGS: [f32; 7] = [0.0, -0.5, 0.5, -1.0, 1.0, -1.5, 1.5];

/// The strengths without the lines of the paper; `None` without such lines, or where no ink would be left. Ink has at least `level`, and
/// strokes are about `pen` pixels wide. A strip of paper keeps its lines: they are not worth the search along it.
pub fn without_lines(strength: &Strength, level: f32, pen: f32, work: &Work) -> Result<Option<Strength>> {
    let (width, height) = (strength.width, strength.height);
    if width.max(height) > LONGEST * width.min(height) {
        return Ok(None);
    }
    let turned = turned(strength);
    let visible = VISIBLE * level;
    let across = find(strength, visible, pen, work)?;
    let down = find(&turned, visible, pen, work)?;
    if across.is_empty() && down.is_empty() {
        return Ok(None);
    }
    let across = Ruling::new(strength, across, pen, work)?;
    let down = Ruling::new(&turned, down, pen, work)?;
    // The ink's full strength shows beside the lines.
    let beside = down.erased(&self::turned(&across.erased(strength)));
    let Some(full) = threshold(&beside).map(|level| 2.0 * level) else { return Ok(None) };
    let cleared =
        if across.is_paper(full) { across.cleared(strength, full, work)? } else { strength.clone() };
    if !down.is_paper(full) {
        return Ok(across.is_paper(full).then_some(cleared));
    }
    Ok(Some(self::turned(&down.cleared(&self::turned(&cleared), full, work)?)))
}

/// The lines in one direction, and what they look like.
struct Ruling {
    /// The row of the middle of each line in every column.
    lines: Vec<Vec<f32>>,
    /// Strength of the lines and its spread, by the distance from their middle in steps.
    look: Vec<(f32, f32)>,
    /// How far from the middle the look reaches, in pixels.
    reach: f32,
    /// How far from the middle the lines reach, in pixels.
    edge: f32,
}

impl Ruling {
    fn new(strength: &Strength, lines: Vec<Vec<f32>>, pen: f32, work: &Work) -> Result<Self> {
        let reach = (pen + 2.0).ceil();
        let mut ruling = Self { lines, look: Vec::new(), reach, edge: 0.0 };
        let mut seen = vec![Vec::new(); (reach * STEPS) as usize + 2];
        for line in &ruling.lines {
            work.spend(line.len() * (2 * reach as usize + 1))?;
            for (at, distance) in ruling.around(strength, line) {
                seen[(distance.abs() * STEPS).round() as usize].push(strength.values[at]);
            }
        }
        let middle = |mut values: Vec<f32>| {
            values.sort_by(f32::total_cmp);
            values[values.len() / 2]
        };
        let measure = |values: Vec<f32>| {
            let typical = middle(values.clone());
            (typical, middle(values.into_iter().map(|value| (value - typical).abs()).collect()))
        };
        ruling.look =
            filled(seen.into_iter().map(|values| (!values.is_empty()).then(|| measure(values))).collect());
        let least = EDGE * ruling.darkest();
        let dark = ruling.look.iter().take_while(|look| look.0 > least).count();
        ruling.edge = dark.saturating_sub(1) as f32 / STEPS;
        Ok(ruling)
    }

    /// The pixels around a line, and how far below its middle they are.
    fn around<'a>(&self, strength: &Strength, line: &'a [f32]) -> impl Iterator<Item = (usize, f32)> + 'a {
        let Strength { width, height, .. } = *strength;
        let reach = self.reach;
        line.iter().enumerate().flat_map(move |(column, &middle)| {
            let first = (middle - reach).ceil().max(0.0) as usize;
            let last = ((middle + reach).floor() + 1.0).clamp(0.0, height as f32) as usize;
            (first..last).map(move |row| (row * width + column, row as f32 - middle))
        })
    }

    /// Strength and spread at a distance from the middle.
    fn at(&self, distance: f32) -> (f32, f32) {
        let place = distance.abs() * STEPS;
        let step = (place as usize).min(self.look.len() - 2);
        mix(self.look[step], self.look[step + 1], place - step as f32)
    }

    fn darkest(&self) -> f32 {
        self.look.iter().map(|look| look.0).fold(0.0, f32::max)
    }

    fn is_paper(&self, full: f32) -> bool {
        self.lines.len() > 1 || self.darkest() < FAINTER * full
    }

    /// The strengths with nothing where the lines are.
    fn erased(&self, strength: &Strength) -> Strength {
        let mut erased = strength.clone();
        for line in &self.lines {
            for (at, distance) in self.around(strength, line) {
                if distance.abs() <= self.edge {
                    erased.values[at] = 0.0;
                }
            }
        }
        erased
    }

    /// The strengths with the lines as a part of the ground; ink is `full` strong.
    fn cleared(&self, strength: &Strength, full: f32, work: &Work) -> Result<Strength> {
        let mut cleared = strength.clone();
        let usual = self.at(0.0).0;
        for line in &self.lines {
            // A margin line is darker than the others, all along.
            let darker = (half(strength, line) / usual.max(0.01)).max(1.0);
            // Each pixel is looked at in all directions in which ink may cross.
            work.spend(2 * CROSSINGS.len() * line.len() * (2 * self.reach as usize + 1))?;
            for (at, distance) in self.around(strength, line) {
                let found = strength.values[at];
                // The result is at most what is there.
                if found == 0.0 || cleared.values[at] == 0.0 {
                    cleared.values[at] = 0.0;
                    continue;
                }
                let (paper, spread) = self.at(distance);
                let paper = darker * paper;
                let contrast = (full - paper).max(0.01);
                let beyond = (full * (found - paper) / contrast).clamp(0.0, found);
                let trust =
                    contrast.powi(2) / (contrast.powi(2) + (SPREADS * spread.max(LEAST_SPREAD)).powi(2));
                let with = |bridged: f32| trust * beyond + (1.0 - trust) * bridged;
                // What little remains of a line would pass for ink where there is little of that.
                let remains = |value: f32| if value < REMAINS * full { 0.0 } else { value };
                let value = match remains(with(found)) {
                    0.0 => 0.0,
                    _ => remains(with(self.bridged(strength, at, distance, found))),
                };
                cleared.values[at] = value.min(cleared.values[at]);
            }
        }
        Ok(cleared)
    }

    /// What a pixel would be if the ink on both sides of its line went on straight, up to `most`.
    fn bridged(&self, strength: &Strength, at: usize, distance: f32, most: f32) -> f32 {
        let (column, row) = ((at % strength.width) as f32, (at / strength.width) as f32);
        let (up, down) = (self.edge + 1.0 + distance, self.edge + 1.0 - distance);
        if up <= 0.0 || down <= 0.0 {
            return strength.values[at].min(most);
        }
        let crossing = |across: f32| {
            let above = strength.between(column + across * up, row - up);
            if above == 0.0 { 0.0 } else { above.min(strength.between(column - across * down, row + down)) }
        };
        let mut best = 0.0;
        for across in CROSSINGS {
            best = crossing(across).max(best);
            if best >= most {
                return most;
            }
        }
        best
    }
}

/// The strength that a line has in more than half of its columns: ink hides less of it.
fn half(strength: &Strength, line: &[f32]) -> f32 {
    let inside = -0.5..strength.height as f32 - 0.5;
    let columns = line.iter().enumerate().step_by(SPARSE).filter(|(_, row)| inside.contains(row));
    find::middle(columns.map(|(column, &row)| strength.between(column as f32, row)).collect())
}

/// What was measured, with what was not between its neighbours.
fn filled(measured: Vec<Option<(f32, f32)>>) -> Vec<(f32, f32)> {
    let before = |at: usize| (0..=at).rev().find_map(|step| Some((step, measured[step]?)));
    let after = |at: usize| (at..measured.len()).find_map(|step| Some((step, measured[step]?)));
    let fill = |at: usize| match (before(at), after(at)) {
        (Some((first, low)), Some((last, high))) if last > first => {
            mix(low, high, (at - first) as f32 / (last - first) as f32)
        }
        (Some((_, value)), _) | (_, Some((_, value))) => value,
        (None, None) => (0.0, 0.0),
    };
    (0..measured.len()).map(fill).collect()
}

fn mix(low: (f32, f32), high: (f32, f32), share: f32) -> (f32, f32) {
    (low.0 + (high.0 - low.0) * share, low.1 + (high.1 - low.1) * share)
}

/// Rows become columns.
fn turned(strength: &Strength) -> Strength {
    let Strength { width, height, ref values } = *strength;
    Strength { width: height, height: width, values: redraw::turned(values, width, height) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of two rows every 24, falling by `slope`, as strong as `paper`; on one of them a bar, and a stem across.
    fn sheet(
        paper: f32,
        slope: f32,
    ) -> (Strength, impl Fn(usize, usize) -> bool, impl Fn(usize, usize) -> bool) {
        let (width, height) = (200, 120);
        let stem = |x: usize, y: usize| (98..102).contains(&x) && (20..90).contains(&y);
        let bar = move |x: usize, y: usize| {
            (60..140).contains(&x) && (53.0..57.0).contains(&(y as f32 - slope * x as f32))
        };
        let value = |at: usize| {
            let (x, y) = (at % width, at / width);
            let sample = |sample: usize| y as f32 + (sample as f32 + 0.5) / 8.0 - slope * x as f32 - 6.0;
            let line = (0..8).filter(|&part| sample(part).rem_euclid(24.0) < 2.0).count() as f32 / 8.0;
            if stem(x, y) || bar(x, y) { 0.8 } else { paper * line }
        };
        (Strength { width, height, values: (0..width * height).map(value).collect() }, stem, bar)
    }

    #[test]
    fn lines_go_and_the_ink_on_them_stays() {
        for (paper, slope) in [(0.3, 0.01), (0.6, 0.0), (0.6, 0.03), (0.6, -0.02), (0.8, 0.0), (0.8, 0.03)] {
            let (sheet, stem, bar) = sheet(paper, slope);
            let cleared = without_lines(&sheet, 0.4, 3.0, &Work::new(&|| Ok(()))).unwrap().unwrap();
            for (at, &value) in cleared.values.iter().enumerate() {
                let (x, y) = (at % sheet.width, at / sheet.width);
                // Where lines are as dark as ink, a bar on one of them cannot be told from it.
                if stem(x, y) || (bar(x, y) && paper < 0.7) {
                    assert!(value >= 0.4, "{paper} {slope}: ink at {x}, {y} is {value}");
                } else if !bar(x, y) {
                    assert!(value < 0.4, "{paper} {slope}: paper at {x}, {y} is {value}");
                }
            }
        }
    }

    #[test]
    fn of_a_margin_line_and_of_uneven_lines_nothing_remains() {
        // Lines every 24 rows, stronger to one side; one of them is darker all along. And some ink.
        let (width, height) = (400, 240);
        let ink = |x: usize, y: usize| (180..184).contains(&x) && (40..200).contains(&y);
        let value = |at: usize| {
            let (x, y) = (at % width, at / width);
            let strength = if y / 24 == 3 { 0.5 } else { 0.25 + 0.1 * x as f32 / width as f32 };
            if ink(x, y) {
                0.8
            } else if y % 24 < 2 {
                strength
            } else {
                0.0
            }
        };
        let sheet = Strength { width, height, values: (0..width * height).map(value).collect() };
        let cleared = without_lines(&sheet, 0.4, 4.0, &Work::new(&|| Ok(()))).unwrap().unwrap();
        for (at, &value) in cleared.values.iter().enumerate() {
            let (x, y) = (at % width, at / width);
            if ink(x, y) {
                assert!(value >= 0.4, "ink at {x}, {y} is {value}");
            } else if x.abs_diff(182) > 8 {
                assert_eq!(value, 0.0, "paper at {x}, {y}");
            }
        }
    }

    #[test]
    fn a_lone_line_as_dark_as_ink_stays() {
        let values = (0..60 * 200).map(|at| if (30..33).contains(&(at / 200)) { 0.8 } else { 0.0 }).collect();
        let bar = Strength { width: 200, height: 60, values };
        assert_eq!(without_lines(&bar, 0.4, 3.0, &Work::new(&|| Ok(()))).unwrap(), None);
    }
}
