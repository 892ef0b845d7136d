//! Random numbers that depend on the seed and the place in the run alone.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A generator for one purpose. Nothing that was drawn before affects it, so that a run can resume anywhere.
pub(crate) fn generator(purpose: [u64; 4]) -> ChaCha8Rng {
    let mut bytes = [0; 32];
    for (part, value) in bytes.chunks_exact_mut(8).zip(purpose) {
        part.copy_from_slice(&value.to_le_bytes());
    }
    ChaCha8Rng::from_seed(bytes)
}
