//! Loops in the machine's best instruction set.

use pulp::{Arch, Simd, WithSimd};

/// Runs loops compiled for the instruction set that the machine has. Only what is inlined into `body` is: it should be
/// `#[inline(always)]` itself, and so should all larger functions that it calls.
///
/// A closure that may be called twice has a body of its own; as one that is called once it would be a function around
/// that body, which the compiler may leave as it is for any machine.
#[inline(always)]
pub(super) fn vectorised<R>(body: impl FnMut() -> R) -> R {
    struct Body<F>(F);
    impl<R, F: FnMut() -> R> WithSimd for Body<F> {
        type Output = R;

        #[inline(always)]
        fn with_simd<S: Simd>(mut self, _simd: S) -> R {
            (self.0)()
        }
    }
    Arch::new().dispatch(Body(body))
}
