//! Maps coordinates of an input onto pixels of the image that the model reads, and back.

/// A projective mapping of the plane: scales, moves, turns and perspective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapping {
    /// `[x y 1]` as a column times this, rows first, is the target in homogeneous coordinates.
    matrix: [f64; 9],
}

impl Mapping {
    /// Scales x and y, then moves them.
    pub fn new(scale: [f64; 2], offset: [f64; 2]) -> Self {
        Self { matrix: [scale[0], 0.0, offset[0], 0.0, scale[1], offset[1], 0.0, 0.0, 1.0] }
    }

    /// Scales x and y.
    pub fn scale(x: f64, y: f64) -> Self {
        Self::new([x, y], [0.0; 2])
    }

    /// Takes the corners (0, 0), (1, 0), (1, 1), (0, 1) of the unit square to four places.
    pub fn from_unit_square(corners: [[f64; 2]; 4]) -> Self {
        let [a, b, c, d] = corners;
        let sum = [0, 1].map(|axis| a[axis] - b[axis] + c[axis] - d[axis]);
        let (first, second) = ([0, 1].map(|axis| b[axis] - c[axis]), [0, 1].map(|axis| d[axis] - c[axis]));
        let area = first[0] * second[1] - second[0] * first[1];
        let g = (sum[0] * second[1] - second[0] * sum[1]) / area;
        let h = (first[0] * sum[1] - sum[0] * first[1]) / area;
        let [x, y] =
            [0, 1].map(|axis| [b[axis] - a[axis] + g * b[axis], d[axis] - a[axis] + h * d[axis], a[axis]]);
        Self { matrix: [x[0], x[1], x[2], y[0], y[1], y[2], g, h, 1.0] }
    }

    /// Turns an image of `width` by `height` pixels clockwise by quarters.
    pub fn quarter_turns(quarters: usize, width: usize, height: usize) -> Self {
        let (w, h) = (width as f64, height as f64);
        let matrix = match quarters % 4 {
            0 => [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            1 => [0.0, -1.0, h, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
            2 => [-1.0, 0.0, w, 0.0, -1.0, h, 0.0, 0.0, 1.0],
            _ => [0.0, 1.0, 0.0, -1.0, 0.0, w, 0.0, 0.0, 1.0],
        };
        Self { matrix }
    }

    /// This mapping, then another one.
    pub fn then(self, next: Self) -> Self {
        let (a, b) = (next.matrix, self.matrix);
        let cell = |at: usize| (0..3).map(|k| a[at / 3 * 3 + k] * b[k * 3 + at % 3]).sum();
        Self { matrix: std::array::from_fn(cell) }
    }

    /// The mapping from the target to the source.
    pub fn inverse(self) -> Self {
        let [a, b, c, d, e, f, g, h, i] = self.matrix;
        let adjugate = [
            e * i - f * h,
            c * h - b * i,
            b * f - c * e,
            f * g - d * i,
            a * i - c * g,
            c * d - a * f,
            d * h - e * g,
            b * g - a * h,
            a * e - b * d,
        ];
        Self { matrix: adjugate.map(|value| value / (a * adjugate[0] + b * adjugate[3] + c * adjugate[6])) }
    }

    /// Where a place of the source is in the target.
    pub fn apply(self, [x, y]: [f64; 2]) -> [f64; 2] {
        let m = self.matrix;
        let weight = m[6] * x + m[7] * y + m[8];
        [(m[0] * x + m[1] * y + m[2]) / weight, (m[3] * x + m[4] * y + m[5]) / weight]
    }

    /// Where a place of the target is in the source.
    pub fn invert(self, place: [f64; 2]) -> [f64; 2] {
        self.inverse().apply(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: [f64; 2], expected: [f64; 2]) {
        let off = (found[0] - expected[0]).abs().max((found[1] - expected[1]).abs());
        assert!(off < 1e-9, "{found:?}, expected {expected:?}");
    }

    #[test]
    fn mappings_are_joined_and_inverted() {
        let both = Mapping::new([2.0, 3.0], [1.0, -1.0]).then(Mapping::new([0.5, 10.0], [4.0, 0.0]));
        assert_near(both.apply([1.0, 1.0]), [5.5, 20.0]);
        assert_near(both.invert([5.5, 20.0]), [1.0, 1.0]);
        assert_near(Mapping::scale(2.0, 4.0).invert([1.0, 1.0]), [0.5, 0.25]);
    }

    #[test]
    fn a_square_goes_to_any_corners_and_back() {
        let corners = [[10.0, 20.0], [110.0, 5.0], [130.0, 90.0], [-5.0, 70.0]];
        let mapping = Mapping::from_unit_square(corners);
        for (corner, place) in [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]].into_iter().zip(corners) {
            assert_near(mapping.apply(corner), place);
            assert_near(mapping.invert(place), corner);
        }
        assert_near(mapping.invert(mapping.apply([0.3, 0.8])), [0.3, 0.8]);
    }

    #[test]
    fn quarter_turns_move_the_corners() {
        // The upper left pixel of an image of 4 by 2 pixels.
        for (quarters, expected) in [(0, [0.5, 0.5]), (1, [1.5, 0.5]), (2, [3.5, 1.5]), (3, [0.5, 3.5])] {
            assert_near(Mapping::quarter_turns(quarters, 4, 2).apply([0.5, 0.5]), expected);
        }
    }
}
