//! How much is seen of the left ends of all lines of one slope, counted for many lines at once.

use std::ops::Range;

/// Beyond this distance from the middle between two rows, rounding does not decide which of them a place is in: rows are less than 2^14.
const SURE: f64 = 0.004;

/// The left ends of lines in every other column.
pub(super) struct Ends {
    /// Whether nothing is seen, column by column.
    empty: Vec<u8>,
    height: usize,
    /// How many columns may be empty.
    allowed: u16,
    /// For each line, its empty columns.
    misses: Vec<u16>,
    /// For each line, the columns up to that where more are empty than allowed.
    visits: Vec<u16>,
}

impl Ends {
    /// The first columns, up to `end`, of an image as wide as `width`.
    pub fn new(near: &[bool], width: usize, end: usize, allowed: usize) -> Self {
        let height = near.len() / width;
        let column = |column: usize| (0..height).map(move |row| u8::from(!near[row * width + column]));
        let empty = (0..end).step_by(2).flat_map(column).collect();
        Self { empty, height, allowed: allowed as u16, misses: Vec::new(), visits: Vec::new() }
    }

    /// For the lines that begin in each of some rows, and whose ends are inside the image: whether they are seen, and in how
    /// many columns that was asked.
    pub fn seen(&mut self, slope: f32, starts: Range<usize>) -> impl Iterator<Item = (bool, usize)> {
        let Self { height, allowed, .. } = *self;
        for counts in [&mut self.misses, &mut self.visits] {
            counts.clear();
            counts.resize(starts.len(), 0);
        }
        // Without lines there are no rows to begin with.
        let columns = if starts.is_empty() { &[][..] } else { &self.empty[..] };
        for (index, empty) in columns.chunks(height).enumerate() {
            let fall = slope * (2 * index) as f32;
            let lines = self.misses.iter_mut().zip(&mut self.visits);
            let count = |(misses, visits): (&mut u16, &mut u16), empty: u8| {
                *visits += u16::from(*misses <= allowed);
                *misses += u16::from(empty);
            };
            let place = f64::from(fall) + 0.5;
            if (SURE..1.0 - SURE).contains(&(place - place.floor())) {
                let first = (starts.start as isize + place.floor() as isize) as usize;
                lines.zip(&empty[first..]).for_each(|(line, &empty)| count(line, empty));
            } else {
                for (start, line) in starts.clone().zip(lines) {
                    let row = (start as f32 + fall + 0.5) as usize;
                    count(line, empty[row.min(height - 1)]);
                }
            }
        }
        let lines = self.misses.iter().zip(&self.visits);
        lines.map(move |(&misses, &visits)| (misses <= allowed, usize::from(visits)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_lines_at_once_are_seen_as_one_by_one() {
        let (width, height, end) = (300, 90, 40);
        let near: Vec<bool> = (0..width * height).map(|at| at * 7919 % 101 < 60).collect();
        let mut ends = Ends::new(&near, width, end, 6);
        for step in -9..=9 {
            let (slope, starts) = (step as f32 * 2.0 / width as f32, 20..70);
            let found: Vec<(bool, usize)> = ends.seen(slope, starts.clone()).collect();
            let one = |start: usize| {
                let (mut misses, mut visits) = (0, 0);
                for column in (0..end).step_by(2) {
                    let row = (start as f32 + slope * column as f32 + 0.5) as usize;
                    visits += 1;
                    misses += u32::from(!near[row * width + column]);
                    if misses > 6 {
                        return (false, visits);
                    }
                }
                (true, visits)
            };
            assert_eq!(found, starts.map(one).collect::<Vec<_>>(), "{slope}");
        }
        assert_eq!(ends.seen(-0.9, 0..0).count(), 0);
    }
}
