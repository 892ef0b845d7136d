//! Maps coordinates of an input onto pixels of the image that the model reads, and back.

/// Scales and moves each axis: `target = source * scale + offset`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapping {
    scale: [f64; 2],
    offset: [f64; 2],
}

impl Mapping {
    /// Scales x and y, then moves them.
    pub fn new(scale: [f64; 2], offset: [f64; 2]) -> Self {
        Self { scale, offset }
    }

    /// Scales x and y.
    pub fn scale(x: f64, y: f64) -> Self {
        Self::new([x, y], [0.0; 2])
    }

    /// This mapping, then another one.
    pub fn then(self, next: Self) -> Self {
        let axis = |axis: usize| self.offset[axis] * next.scale[axis] + next.offset[axis];
        Self::new([self.scale[0] * next.scale[0], self.scale[1] * next.scale[1]], [axis(0), axis(1)])
    }

    /// Where a place of the source is in the target.
    pub fn apply(self, place: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|axis| place[axis] * self.scale[axis] + self.offset[axis])
    }

    /// Where a place of the target is in the source.
    pub fn invert(self, place: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|axis| (place[axis] - self.offset[axis]) / self.scale[axis])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_joined_and_inverted() {
        let both = Mapping::new([2.0, 3.0], [1.0, -1.0]).then(Mapping::new([0.5, 10.0], [4.0, 0.0]));
        assert_eq!(both.apply([1.0, 1.0]), [5.5, 20.0]);
        assert_eq!(both.invert([5.5, 20.0]), [1.0, 1.0]);
        assert_eq!(Mapping::scale(2.0, 4.0).invert([1.0, 1.0]), [0.5, 0.25]);
    }
}
