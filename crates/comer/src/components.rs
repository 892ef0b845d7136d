//! Connected components of a binary image.

/// Pixels that touch, diagonals included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// The pixels, as indices into the rows of the image.
    pub pixels: Vec<usize>,
    /// First and last column.
    pub columns: (usize, usize),
    /// First and last row.
    pub rows: (usize, usize),
}

/// The components of `mask`, an image with rows of `width` pixels, by their first pixel in reading order.
pub fn components(mask: &[bool], width: usize) -> Vec<Component> {
    let height = mask.len() / width.max(1);
    let mut seen = vec![false; mask.len()];
    let mut components = Vec::new();
    for start in 0..mask.len() {
        if !mask[start] || seen[start] {
            continue;
        }
        seen[start] = true;
        let mut pixels = vec![start];
        let mut next = 0;
        let (mut columns, mut rows) = ((usize::MAX, 0), (usize::MAX, 0));
        while let Some(&at) = pixels.get(next) {
            next += 1;
            let (x, y) = (at % width, at / width);
            columns = (columns.0.min(x), columns.1.max(x));
            rows = (rows.0.min(y), rows.1.max(y));
            for row in y.saturating_sub(1)..(y + 2).min(height) {
                for column in x.saturating_sub(1)..(x + 2).min(width) {
                    let neighbour = row * width + column;
                    if mask[neighbour] && !seen[neighbour] {
                        seen[neighbour] = true;
                        pixels.push(neighbour);
                    }
                }
            }
        }
        components.push(Component { pixels, columns, rows });
    }
    components
}

/// The mean height of objects given by `(width, height)`: of those higher than a tenth of the highest. If all are flat (a
/// lone minus sign), the mean width of those wider than a tenth of the widest. 0 without any extent.
///
/// Training images are drawn so that this is a fixed number of pixels, over strokes; photographs are scaled by the same
/// rule, over connected components.
pub fn mean_height(sizes: &[(f64, f64)]) -> f64 {
    let flat = sizes.iter().all(|&(width, height)| 4.0 * height <= width);
    let counted = || sizes.iter().map(|&(width, height)| if flat { width } else { height });
    let most = counted().fold(0.0, f64::max);
    let (sum, count) = counted()
        .filter(|&size| size > 0.1 * most)
        .fold((0.0, 0), |(sum, count), size| (sum + size, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_pixels_that_touch() {
        let text = "
            ##....#.
            .#...#..
            ..#.....
            #......#";
        let mask: Vec<bool> =
            text.bytes().filter(|byte| b"#.".contains(byte)).map(|byte| byte == b'#').collect();
        let found: Vec<_> = components(&mask, 8)
            .into_iter()
            .map(|part| (part.columns, part.rows, part.pixels.len()))
            .collect();
        assert_eq!(
            found,
            [((0, 2), (0, 2), 4), ((5, 6), (0, 1), 2), ((0, 0), (3, 3), 1), ((7, 7), (3, 3), 1)]
        );
        assert_eq!(components(&[], 0), []);
    }

    #[test]
    fn small_objects_do_not_count_and_flat_ones_are_measured_across() {
        for (sizes, expected) in [
            (&[(1.0, 60.0), (1.0, 6.0)][..], 60.0),
            (&[(0.0, 60.0), (0.0, 50.0)], 55.0),
            (&[(100.0, 2.0), (9.0, 1.0)], 100.0),
            (&[(0.0, 0.0)], 0.0),
            (&[], 0.0),
        ] {
            assert_eq!(mean_height(sizes), expected, "{sizes:?}");
        }
    }
}
