//! What the ink is like: its connected parts, its centre lines, how wide its strokes are.

use super::Mask;
use crate::components::Component;

/// A connected part is a speck when it has less ink than this share of a square as wide as a stroke.
const SPECK: f32 = 0.4;

/// The centre lines of the ink, one pixel wide: Zhang and Suen's thinning.
pub fn centre_lines(mask: &Mask) -> Mask {
    let Mask { width, height, ref ink } = *mask;
    // A border of one pixel makes bounds checks on neighbours unnecessary.
    let stride = width + 2;
    let mut thin = vec![false; stride * (height + 2)];
    for (at, &ink) in ink.iter().enumerate() {
        thin[(at / width + 1) * stride + at % width + 1] = ink;
    }
    let around = [
        -(stride as isize),
        1 - stride as isize,
        1,
        1 + stride as isize,
        stride as isize,
        stride as isize - 1,
        -1,
        -1 - stride as isize,
    ];
    let mut left: Vec<usize> = (0..thin.len()).filter(|&at| thin[at]).collect();
    loop {
        let before = left.len();
        for second in [false, true] {
            let removable = |thin: &[bool], at: usize| {
                let neighbours = around.map(|offset| thin[at.wrapping_add_signed(offset)]);
                let count = neighbours.iter().filter(|&&ink| ink).count();
                let steps = (0..8).filter(|&side| !neighbours[side] && neighbours[(side + 1) % 8]).count();
                let [north, _, east, _, south, _, west, _] = neighbours;
                let open = if second {
                    !(north && west && (east || south))
                } else {
                    !(east && south && (north || west))
                };
                (2..=6).contains(&count) && steps == 1 && open
            };
            let candidates: Vec<usize> = left.iter().copied().filter(|&at| removable(&thin, at)).collect();
            // Asked again after those before it went: all at once, the last four pixels of a dot would go too.
            for at in candidates {
                thin[at] = !removable(&thin, at);
            }
            left.retain(|&at| thin[at]);
        }
        if left.len() == before {
            break;
        }
    }
    let ink = (0..ink.len()).map(|at| thin[(at / width + 1) * stride + at % width + 1]).collect();
    Mask { width, height, ink }
}

/// Width of the pen in pixels; `None` without ink. Strokes that run across or down show it: there the shorter of the
/// runs of ink through a pixel, across and down, is the pen's width, and elsewhere it is longer. So the low end of the
/// shorter runs is taken, without the lowest tenth, which is noise.
pub fn stroke_width(mask: &Mask) -> Option<f32> {
    let mut shorter: Vec<u32> = vec![u32::MAX; mask.ink.len()];
    let mut measure = |lines: usize, length: usize, at: &dyn Fn(usize, usize) -> usize| {
        for line in 0..lines {
            let mut start = 0;
            for place in 0..=length {
                if place == length || !mask.ink[at(line, place)] {
                    for inside in start..place {
                        let run = &mut shorter[at(line, inside)];
                        *run = (*run).min((place - start) as u32);
                    }
                    start = place + 1;
                }
            }
        }
    };
    measure(mask.height, mask.width, &|row, column| row * mask.width + column);
    measure(mask.width, mask.height, &|column, row| row * mask.width + column);
    let mut runs: Vec<u32> = shorter.into_iter().filter(|&run| run != u32::MAX).collect();
    runs.sort_unstable();
    let low = &runs[runs.len() / 10..runs.len() * 3 / 10];
    let low = if low.is_empty() { &runs[..] } else { low };
    (!low.is_empty()).then(|| low.iter().sum::<u32>() as f32 / low.len() as f32)
}

/// The ink without specks, whose size is judged by the width of the strokes.
pub fn without_specks(mask: &Mask) -> Mask {
    let mut parts = mask.components();
    // The parts that hold most of the ink say how wide its strokes are, whatever the number of specks.
    parts.sort_by_key(|part| std::cmp::Reverse(part.pixels.len()));
    let total: usize = parts.iter().map(|part| part.pixels.len()).sum();
    let mut held = 0;
    let large = parts.iter().take_while(|part| {
        let wanted = held < total / 2;
        held += part.pixels.len();
        wanted
    });
    let Some(width) = stroke_width(&of_parts(mask, large)) else { return mask.clone() };
    of_parts(mask, parts.iter().filter(|part| part.pixels.len() as f32 >= SPECK * width * width))
}

/// The ink without the edges of tables, shadows and other large dark things that reach into the image.
pub fn without_borders(mask: &Mask, stroke_width: f32) -> Mask {
    let foreign = |part: &Component| {
        let touches = part.columns.0 == 0
            || part.rows.0 == 0
            || part.columns.1 + 1 == mask.width
            || part.rows.1 + 1 == mask.height;
        // A part with little ink cannot be thick; the many ends of paper lines need no measuring.
        let large = part.pixels.len() as f32 > 20.0 * stroke_width * stroke_width;
        let thick = |part| {
            self::stroke_width(&of_parts(mask, [part])).is_some_and(|width| width > 2.5 * stroke_width)
        };
        touches && large && thick(part)
    };
    of_parts(mask, mask.components().iter().filter(|part| !foreign(part)))
}

/// A mask of the same size with the ink of some parts only.
fn of_parts<'a>(mask: &Mask, parts: impl IntoIterator<Item = &'a Component>) -> Mask {
    let mut ink = vec![false; mask.ink.len()];
    parts.into_iter().flat_map(|part| &part.pixels).for_each(|&at| ink[at] = true);
    Mask { width: mask.width, height: mask.height, ink }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_every_part() {
        for side in 1..9 {
            let inside = |at: usize| (2..2 + side).contains(&(at % 12)) && (2..2 + side).contains(&(at / 12));
            let square = Mask { width: 12, height: 12, ink: (0..144).map(inside).collect() };
            let lines = centre_lines(&square);
            assert_eq!(lines.components().len(), 1, "a square of {side}");
            assert!(lines.ink.iter().filter(|&&ink| ink).count() <= side, "a square of {side}");
        }
    }
}
