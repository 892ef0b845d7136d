//! Random numbers that depend only on the seed and the position in the run.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A generator for one purpose, independent of what was drawn before, so that a run can resume anywhere.
pub(crate) fn generator(purpose: [u64; 4]) -> ChaCha8Rng {
    let mut bytes = [0; 32];
    for (part, value) in bytes.chunks_exact_mut(8).zip(purpose) {
        part.copy_from_slice(&value.to_le_bytes());
    }
    ChaCha8Rng::from_seed(bytes)
}
