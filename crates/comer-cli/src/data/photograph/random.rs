//! Random numbers of synthetic photographs.

/// Draws from a seed: the same on every platform.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64, number: u64) -> Self {
        Self(hash(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash(number)))
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash(self.0)
    }

    /// From 0 to below 1.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.uniform()
    }

    /// From 0 to `count - 1`.
    pub fn below(&mut self, count: usize) -> usize {
        (self.uniform() * count as f64) as usize
    }
}

/// Spreads a number over all bits.
pub fn hash(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
