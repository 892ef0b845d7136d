//! Memory that starts where a cache line starts, to be used again and again.

use std::ops::{Deref, DerefMut};

use super::BLOCK;

/// Numbers of which the first is the first of a cache line: blocks that straddle two lines cost a third of the speed.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    values: Vec<f32>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// The first `length` numbers, more memory being taken if need be; what is in them means nothing.
    pub fn at_least(&mut self, length: usize) -> &mut [f32] {
        if self.length < length {
            self.values = vec![0.0; length + BLOCK - 1];
            // A pointer that cannot be aligned leaves the numbers where they are: slower, not wrong.
            self.start = self.values.as_ptr().align_offset(BLOCK * size_of::<f32>()).min(BLOCK - 1);
            self.length = length;
        }
        &mut self[..length]
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[self.start..self.start + self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_start_with_a_cache_line_and_never_shrink() {
        let mut buffer = Buffer::default();
        assert!(buffer.is_empty());
        for (asked, held) in [(1, 1), (1000, 1000), (10, 1000), (100_000, 100_000)] {
            assert_eq!(buffer.at_least(asked).len(), asked);
            assert_eq!(buffer.len(), held);
            assert_eq!(buffer.as_ptr() as usize % 64, 0);
        }
    }
}
