//! Memory that is used again from step to step: fresh pages from the system cost more than some of the layers.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Numbers that are kept for later at most.
const MOST_KEPT: usize = 1 << 28;

/// Buffers that nobody uses, by their capacity.
static KEPT: Mutex<Kept> = Mutex::new(Kept { buffers: BTreeMap::new(), total: 0 });

struct Kept {
    buffers: BTreeMap<usize, Vec<Vec<f32>>>,
    total: usize,
}

impl Kept {
    /// A buffer of at least this capacity and at most half more.
    fn take(&mut self, capacity: usize) -> Option<Vec<f32>> {
        let (&found, list) = self.buffers.range_mut(capacity..=capacity + capacity / 2).next()?;
        let buffer = list.pop();
        if list.is_empty() {
            self.buffers.remove(&found);
        }
        self.total -= found;
        buffer
    }

    fn give(&mut self, buffer: Vec<f32>) {
        if self.total + buffer.capacity() <= MOST_KEPT {
            self.total += buffer.capacity();
            self.buffers.entry(buffer.capacity()).or_default().push(buffer);
        }
    }
}

/// Numbers on loan; the memory is kept for the next buffer.
pub(super) struct Buffer(Vec<f32>);

impl Buffer {
    /// `length` numbers that mean nothing yet.
    pub fn new(length: usize) -> Self {
        // Few different capacities, so that batches of different sizes find each other's buffers.
        let step = (length.next_power_of_two() / 8).max(16);
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take(length.next_multiple_of(step));
        let mut buffer = kept.unwrap_or_else(|| Vec::with_capacity(length.next_multiple_of(step)));
        buffer.resize(length, 0.0);
        Self(buffer)
    }

    pub fn zeros(length: usize) -> Self {
        let mut buffer = Self::new(length);
        buffer.fill(0.0);
        buffer
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).give(buffer);
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_for_buffers_of_about_the_same_size() {
        let mut kept = Kept { buffers: BTreeMap::new(), total: 0 };
        kept.give(Vec::with_capacity(1000));
        assert!(kept.take(1001).is_none(), "too small");
        assert!(kept.take(600).is_none(), "much too large");
        assert_eq!(kept.take(700).map(|buffer| buffer.capacity()), Some(1000));
        assert!(kept.take(700).is_none() && kept.total == 0);
        assert_eq!(Buffer::zeros(70).iter().filter(|&&x| x == 0.0).count(), 70);
    }
}
