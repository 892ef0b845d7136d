//! Finds the formulas of a page: groups of ink with clear space around them.
//!
//! Space is measured in the mean height of symbols. A group is cut where a stretch without ink runs through it, from left
//! to right between two lines or from top to bottom between two columns, and the pieces are cut again. A fraction bar
//! keeps what is above and below it together.

use super::Work;
use crate::components::mean_height;
use crate::error::Result;

/// A rectangle that something fills: first and last, in any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Left and right.
    pub columns: (f64, f64),
    /// Top and bottom.
    pub rows: (f64, f64),
}

impl Extent {
    /// From left to right.
    pub fn width(&self) -> f64 {
        self.columns.1 - self.columns.0
    }

    /// From top to bottom.
    pub fn height(&self) -> f64 {
        self.rows.1 - self.rows.0
    }

    /// How far from another it is, zero where they overlap.
    fn distance(&self, other: &Self) -> f64 {
        let apart = |a: (f64, f64), b: (f64, f64)| (a.0 - b.1).max(b.0 - a.1).max(0.0);
        apart(self.columns, other.columns).hypot(apart(self.rows, other.rows))
    }

    /// What holds both.
    pub fn join(self, other: Self) -> Self {
        let join = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
        Self { columns: join(self.columns, other.columns), rows: join(self.rows, other.rows) }
    }
}

/// Where a group is cut, in heights of symbols.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaps {
    /// Least space between two lines.
    pub lines: f64,
    /// Least space between two columns.
    pub columns: f64,
}

impl Gaps {
    /// Space that hardly any single formula has inside.
    pub const CLEAR: Self = Self { lines: 0.8, columns: 6.0 };
    /// Space that formulas on a page usually have between them.
    pub const USUAL: Self = Self { lines: 0.55, columns: 4.0 };
}

/// From this many parts on, an image shows something else than formulas.
const MOST_PARTS: usize = 20_000;
/// Cuts within cuts.
const DEEPEST: usize = 12;
/// More groups than a page has formulas.
const MOST_GROUPS: usize = 64;
/// A bar is at least this many times as wide as high.
const BAR: f64 = 4.0;
/// Least width of a fraction bar, in heights of symbols.
const LEAST_BAR: f64 = 0.8;
/// Space between a fraction bar and what is above or below, in heights of symbols.
const BAR_GAP: f64 = 1.5;
/// A group smaller than this in both directions, in heights of symbols, is a dot or a speck.
const LEAST_GROUP: f64 = 0.45;
/// A speck is smaller than this, and farther from everything else than this, in heights of symbols.
const ISOLATED: (f64, f64) = (0.35, 1.5);
/// From this many parts on, specks are not looked for.
const MOST_ISOLATED: usize = 4000;
/// A line with fewer parts than this, and narrower than this many heights of symbols, may be a limit or a script of the
/// line beside it: it needs twice the space around it.
const SLIGHT: (usize, f64) = (3, 2.0);

/// Which extents are no specks far from everything else.
pub fn without_isolated(extents: &[Extent], work: &Work) -> Result<Vec<bool>> {
    // Weighted by height, so that specks do not count.
    let (squares, sum) = extents
        .iter()
        .map(Extent::height)
        .fold((0.0, 0.0), |(squares, sum), height| (squares + height * height, sum + height));
    let height = if sum > 0.0 { squares / sum } else { 0.0 };
    let is_small = |extent: &Extent| extent.width().max(extent.height()) < ISOLATED.0 * height;
    let large: Vec<&Extent> = extents.iter().filter(|extent| !is_small(extent)).collect();
    if extents.len() > MOST_ISOLATED {
        return Ok(vec![true; extents.len()]);
    }
    let mut kept = Vec::with_capacity(extents.len());
    for extent in extents {
        work.spend(large.len())?;
        let near = |other: &&Extent| extent.distance(other) < ISOLATED.1 * height;
        kept.push(!is_small(extent) || large.iter().any(near));
    }
    Ok(kept)
}

/// The groups of extents, in reading order, as indices; all extents are in one group if there are too many.
pub fn groups(extents: &[Extent], gaps: Gaps, work: &Work) -> Result<Vec<Vec<usize>>> {
    let all: Vec<usize> = (0..extents.len()).collect();
    let sizes: Vec<(f64, f64)> = extents.iter().map(|extent| (extent.width(), extent.height())).collect();
    let height = mean_height(&sizes);
    if extents.is_empty() || extents.len() > MOST_PARTS || height <= 0.0 {
        return Ok(if all.is_empty() { Vec::new() } else { vec![all] });
    }
    let mut found = Vec::new();
    cut(extents, all.clone(), height, gaps, DEEPEST, &mut found, work)?;
    let bounds = |group: &Vec<usize>| group.iter().map(|&at| extents[at]).reduce(Extent::join);
    let mut groups: Vec<(Extent, Vec<usize>)> =
        found.into_iter().filter_map(|group| Some((bounds(&group)?, group))).collect();
    // Dots and specks belong to what is nearest, if it is near.
    let is_small = |extent: &Extent| extent.width().max(extent.height()) < LEAST_GROUP * height;
    let (small, mut large): (Vec<_>, Vec<_>) = groups.drain(..).partition(|(extent, _)| is_small(extent));
    if large.is_empty() || large.len() > MOST_GROUPS {
        return Ok(vec![all]);
    }
    for (extent, group) in small {
        let distance = |other: &Extent| extent.distance(other);
        let nearest = large.iter_mut().min_by(|a, b| distance(&a.0).total_cmp(&distance(&b.0)));
        if let Some((bounds, members)) = nearest
            && distance(bounds) < BAR_GAP * height
        {
            *bounds = bounds.join(extent);
            members.extend(group);
        }
    }
    Ok(in_reading_order(large).into_iter().map(|(_, group)| group).collect())
}

/// Cuts a group at every clear stretch in one direction, and the pieces in the other.
fn cut(
    extents: &[Extent],
    group: Vec<usize>,
    height: f64,
    gaps: Gaps,
    depth: usize,
    found: &mut Vec<Vec<usize>>,
    work: &Work,
) -> Result<()> {
    work.spend(16 * group.len())?;
    if depth > 0 && group.len() > 1 {
        for lines in [true, false] {
            let pieces = pieces(extents, &group, height, gaps, lines);
            if pieces.len() > 1 {
                for piece in pieces {
                    cut(extents, piece, height, gaps, depth - 1, found, work)?;
                }
                return Ok(());
            }
        }
    }
    found.push(group);
    Ok(())
}

/// The pieces of a group between stretches without ink.
fn pieces(extents: &[Extent], group: &[usize], height: f64, gaps: Gaps, lines: bool) -> Vec<Vec<usize>> {
    let range = |at: usize| if lines { extents[at].rows } else { extents[at].columns };
    let mut order = group.to_vec();
    order.sort_by(|&a, &b| range(a).0.total_cmp(&range(b).0));
    let least = height * if lines { gaps.lines } else { gaps.columns };
    // Each piece with the space before it.
    let mut pieces: Vec<(f64, Vec<usize>)> = Vec::new();
    let mut end = f64::NEG_INFINITY;
    for (place, &at) in order.iter().enumerate() {
        let gap = range(at).0 - end;
        let cut = pieces.is_empty()
            || (gap >= least
                && !(lines && gap < BAR_GAP * height && joined_by_bar(extents, &order, place, end, height)));
        match pieces.last_mut() {
            Some((_, piece)) if !cut => piece.push(at),
            _ => pieces.push((gap, vec![at])),
        }
        end = end.max(range(at).1);
    }
    while lines && pieces.len() > 1 {
        let space = |at: usize| {
            let before = if at == 0 { f64::INFINITY } else { pieces[at].0 };
            (before, pieces.get(at + 1).map_or(f64::INFINITY, |next| next.0))
        };
        let slight = |piece: &[usize]| {
            let bounds = piece.iter().map(|&at| extents[at]).reduce(Extent::join);
            piece.len() < SLIGHT.0 && bounds.is_some_and(|bounds| bounds.width() < SLIGHT.1 * height)
        };
        let nearest = |at: usize| space(at).0.min(space(at).1);
        let Some(at) = (0..pieces.len()).find(|&at| slight(&pieces[at].1) && nearest(at) < 2.0 * least)
        else {
            break;
        };
        // It joins the piece that is nearer.
        let into = if space(at).0 <= space(at).1 { at - 1 } else { at };
        let (_, joined) = pieces.remove(into + 1);
        pieces[into].1.extend(joined);
    }
    pieces.into_iter().map(|(_, piece)| piece).collect()
}

/// Whether a fraction bar is next to the space above `order[place]`, which begins at `end`, with ink on its other side.
fn joined_by_bar(extents: &[Extent], order: &[usize], place: usize, end: f64, height: f64) -> bool {
    let (above, below) = order.split_at(place);
    let top = extents[order[place]].rows.0;
    let is_bar = |extent: &Extent| {
        extent.width() >= BAR * extent.height().max(1e-9) && extent.width() >= LEAST_BAR * height
    };
    let near_above = above.iter().map(|&at| extents[at]).filter(|extent| end - extent.rows.1 < 0.5 * height);
    let near_below = below.iter().map(|&at| extents[at]).filter(|extent| extent.rows.0 - top < 0.5 * height);
    let covers = |bar: &Extent, other: &Extent| {
        let middle = f64::midpoint(other.columns.0, other.columns.1);
        (bar.columns.0 - 0.3 * height..bar.columns.1 + 0.3 * height).contains(&middle)
    };
    let (upper, lower): (Vec<Extent>, Vec<Extent>) = (near_above.collect(), near_below.collect());
    let bridges = |bars: &[Extent], others: &[Extent]| {
        bars.iter().filter(|bar| is_bar(bar)).any(|bar| others.iter().any(|other| covers(bar, other)))
    };
    bridges(&upper, &lower) || bridges(&lower, &upper)
}

/// Groups in lines from the top, and from the left in each line.
fn in_reading_order(mut groups: Vec<(Extent, Vec<usize>)>) -> Vec<(Extent, Vec<usize>)> {
    groups.sort_by(|a, b| a.0.rows.0.total_cmp(&b.0.rows.0));
    let mut ordered: Vec<(Extent, Vec<usize>)> = Vec::new();
    let mut line: Vec<(Extent, Vec<usize>)> = Vec::new();
    let mut bounds: Option<Extent> = None;
    for group in groups {
        let beside = bounds.is_some_and(|line| {
            let shared = line.rows.1.min(group.0.rows.1) - line.rows.0.max(group.0.rows.0);
            2.0 * shared > line.height().min(group.0.height())
        });
        if !beside {
            line.sort_by(|a, b| a.0.columns.0.total_cmp(&b.0.columns.0));
            ordered.append(&mut line);
            bounds = None;
        }
        bounds = Some(bounds.map_or(group.0, |line| line.join(group.0)));
        line.push(group);
    }
    line.sort_by(|a, b| a.0.columns.0.total_cmp(&b.0.columns.0));
    ordered.append(&mut line);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(left: f64, top: f64, width: f64, height: f64) -> Extent {
        Extent { columns: (left, left + width), rows: (top, top + height) }
    }

    fn found(extents: &[Extent], gaps: Gaps) -> Vec<Vec<usize>> {
        groups(extents, gaps, &Work::new(&|| Ok(()))).unwrap()
    }

    #[test]
    fn lines_and_columns_are_formulas() {
        let symbol = |column: usize, row: usize| extent(column as f64 * 25.0, row as f64 * 60.0, 20.0, 30.0);
        // Two lines of three symbols, and one far to the right of the first.
        let mut page: Vec<Extent> = (0..6).map(|at| symbol(at % 3, at / 3)).collect();
        page.push(symbol(12, 0));
        assert_eq!(found(&page, Gaps::CLEAR), [vec![0, 1, 2], vec![6], vec![3, 4, 5]]);
        assert_eq!(found(&page[..3], Gaps::USUAL), [vec![0, 1, 2]]);
        assert!(found(&[], Gaps::USUAL).is_empty());
    }

    #[test]
    fn bars_and_dots_keep_formulas_together() {
        // x over a bar over y, each 30 away from the bar, where a line would begin at 27; and a dot beside them.
        let fraction =
            [extent(10.0, 0.0, 20.0, 30.0), extent(0.0, 60.0, 60.0, 3.0), extent(10.0, 93.0, 20.0, 30.0)];
        assert_eq!(found(&fraction, Gaps::CLEAR), [vec![0, 1, 2]]);
        let without_bar = [fraction[0], extent(10.0, 60.0, 20.0, 30.0), extent(10.0, 120.0, 20.0, 30.0)];
        assert_eq!(found(&without_bar, Gaps::CLEAR).len(), 1, "each may be a script of another");
        let apart = [fraction[0], extent(10.0, 90.0, 20.0, 30.0), extent(10.0, 180.0, 20.0, 30.0)];
        assert_eq!(found(&apart, Gaps::CLEAR).len(), 3);
        let dotted = [extent(0.0, 40.0, 10.0, 30.0), extent(2.0, 18.0, 4.0, 4.0)];
        assert_eq!(found(&dotted, Gaps::CLEAR), [vec![0, 1]]);
    }
}
