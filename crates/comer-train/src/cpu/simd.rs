//! Loops compiled for the best instruction set of the machine.

use pulp::{Arch, Simd, WithSimd};

/// Runs `body` compiled for the instruction set of the machine. This affects only code that is inlined into `body`, so
/// `body` and all larger functions that it calls should be `#[inline(always)]`.
///
/// `FnMut` instead of `FnOnce`: the body of an `FnOnce` closure may end up in a separate function that is compiled for the
/// baseline instruction set.
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
