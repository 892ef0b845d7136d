//! The highest levels around each pixel, and the closing that fills up what is dark and narrow.

use super::Work;
use crate::error::Result;

/// The levels with what is darker and narrower than `2 * reach + 1` pixels filled up (a morphological closing).
pub(super) fn closing(
    levels: &[u8],
    width: usize,
    height: usize,
    reach: usize,
    work: &Work,
) -> Result<Vec<u8>> {
    let invert = |levels: Vec<u8>| -> Vec<u8> { levels.into_iter().map(|level| 255 - level).collect() };
    let highest_around = invert(highest(levels, width, height, reach, work)?);
    Ok(invert(highest(&highest_around, width, height, reach, work)?))
}

/// The highest level within a square around each pixel that reaches `reach` pixels to each side.
pub(super) fn highest(
    levels: &[u8],
    width: usize,
    height: usize,
    reach: usize,
    work: &Work,
) -> Result<Vec<u8>> {
    let window = 2 * reach + 1;
    // Windows of 1, 2, 4, ... pixels are joined; at last two of them that overlap.
    let span = 1usize << window.ilog2();
    let lengths = || (0..span.ilog2()).map(|power| 1 << power);
    let raise = |into: &mut [u8], from: &[u8]| {
        into.iter_mut().zip(from).for_each(|(into, &from)| *into = (*into).max(from));
    };
    let stride = width + 2 * reach;
    let (mut line, mut longer) = (vec![0u8; stride], vec![0u8; stride]);
    let mut rows = vec![0u8; width * (height + 2 * reach)];
    for row in 0..height {
        line.fill(0);
        line[reach..][..width].copy_from_slice(&levels[row * width..][..width]);
        for length in lengths() {
            // Windows that begin in the last pixels are not used.
            let pairs = line.iter().zip(&line[length..]);
            longer.iter_mut().zip(pairs).for_each(|(longer, (&one, &other))| *longer = one.max(other));
            std::mem::swap(&mut line, &mut longer);
        }
        let target = &mut rows[(row + reach) * width..][..width];
        target.copy_from_slice(&line[..width]);
        raise(target, &line[window - span..][..width]);
        work.spend(width)?;
    }
    let joined = lengths().map(|length| (length, height + 2 * reach - length));
    for (length, count) in joined.chain((window > span).then_some((window - span, height))) {
        for row in 0..count {
            let (into, from) = rows.split_at_mut((row + length) * width);
            raise(&mut into[row * width..][..width], &from[..width]);
        }
        work.spend(levels.len())?;
    }
    rows.truncate(width * height);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_level_is_that_of_the_square_around() {
        let (width, height) = (23, 17);
        let level = |at: usize| ((at as u32 + 7).wrapping_mul(2_654_435_761) >> 24) as u8;
        let levels: Vec<u8> = (0..width * height).map(level).collect();
        for reach in [0, 1, 2, 3, 7, 30] {
            let found = highest(&levels, width, height, reach, &Work::new(&|| Ok(()))).unwrap();
            for (at, &found) in found.iter().enumerate() {
                let rows = (at / width).saturating_sub(reach)..(at / width + reach + 1).min(height);
                let columns = (at % width).saturating_sub(reach)..(at % width + reach + 1).min(width);
                let all = rows.flat_map(|row| &levels[row * width..][columns.clone()]);
                assert_eq!(found, *all.max().unwrap(), "{reach} {at}");
            }
        }
    }
}
