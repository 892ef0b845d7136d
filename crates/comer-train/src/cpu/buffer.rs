//! Buffers that are reused from step to step: new pages from the system cost more than some of the layers.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Maximum number of values in the pool.
const MAX_POOLED: usize = 1 << 28;

/// Unused buffers by capacity.
static POOL: Mutex<BufferPool> = Mutex::new(BufferPool { buffers: BTreeMap::new(), total: 0 });

struct BufferPool {
    buffers: BTreeMap<usize, Vec<Vec<f32>>>,
    total: usize,
}

impl BufferPool {
    /// A buffer of at least this capacity and at most 1.5 times as much.
    fn acquire(&mut self, capacity: usize) -> Option<Vec<f32>> {
        let (&found, list) = self.buffers.range_mut(capacity..=capacity + capacity / 2).next()?;
        let buffer = list.pop();
        if list.is_empty() {
            self.buffers.remove(&found);
        }
        self.total -= found;
        buffer
    }

    fn release(&mut self, buffer: Vec<f32>) {
        if self.total + buffer.capacity() <= MAX_POOLED {
            self.total += buffer.capacity();
            self.buffers.entry(buffer.capacity()).or_default().push(buffer);
        }
    }
}

/// Values of a cache line.
const LINE: usize = 16;

/// Values of which the first starts a cache line, and whose memory returns to the pool when they are dropped.
pub(super) struct Buffer {
    values: Vec<f32>,
    start: usize,
}

impl Buffer {
    /// `length` values with undefined contents.
    pub fn new(length: usize) -> Self {
        // Few different capacities, so that batches of different sizes can share buffers.
        let step = (length.next_power_of_two() / 8).max(LINE);
        let capacity = length.next_multiple_of(step) + LINE - 1;
        let pooled = POOL.lock().unwrap_or_else(PoisonError::into_inner).acquire(capacity);
        let mut values = pooled.unwrap_or_else(|| Vec::with_capacity(capacity));
        let start = values.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE - 1);
        values.resize(start + length, 0.0);
        Self { values, start }
    }

    pub fn zeros(length: usize) -> Self {
        let mut buffer = Self::new(length);
        buffer.fill(0.0);
        buffer
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.values);
        POOL.lock().unwrap_or_else(PoisonError::into_inner).release(buffer);
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[self.start..]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_for_buffers_of_similar_size() {
        let mut pool = BufferPool { buffers: BTreeMap::new(), total: 0 };
        pool.release(Vec::with_capacity(1000));
        assert!(pool.acquire(1001).is_none(), "too small");
        assert!(pool.acquire(600).is_none(), "much too large");
        assert_eq!(pool.acquire(700).map(|buffer| buffer.capacity()), Some(1000));
        assert!(pool.acquire(700).is_none() && pool.total == 0);
        let zeros = Buffer::zeros(70);
        assert_eq!(zeros.iter().filter(|&&x| x == 0.0).count(), 70);
        assert_eq!(zeros.as_ptr() as usize % 64, 0);
    }
}
