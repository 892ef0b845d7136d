//! Sixteen numbers at once on every instruction set: the only thing that the kernels' inner loops are written in.
//!
//! The plain one, [`Plain`], is what runs where nothing better is found, and the oracle of the others in tests.
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops are unrolled for certain, iterators only mostly"
)]

/// Numbers in a block.
pub const BLOCK: usize = 16;

/// Sixteen f32 in the registers of one instruction set.
///
/// Every method is `unsafe`: the instruction set has to be there, and a pointer has to be good for the sixteen
/// numbers that it names. All are inlined into entry points which enable the instruction set.
pub(super) trait Block: Copy {
    /// One number in every lane of one register.
    type Splat: Copy;

    /// Every lane the same.
    unsafe fn filled(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    /// Sixteen numbers that are stored as halves; only for instruction sets that [widen them](super::Kernels::widens_halves).
    unsafe fn load_halves(_from: *const u16) -> Self {
        unreachable!("this instruction set does not widen halves")
    }
    unsafe fn store(self, to: *mut f32);
    unsafe fn splat(value: f32) -> Self::Splat;
    /// `self + weight * other`.
    unsafe fn add_product(self, weight: Self::Splat, other: Self) -> Self;
    /// The greater of each lane and the floor.
    unsafe fn at_least(self, floor: Self::Splat) -> Self;
    /// Hints that the number there is wanted soon, near (first level of the cache) or not so near; never reads it.
    #[inline(always)]
    fn prefetch<const NEAR: bool>(_from: *const f32) {}
}

/// Sixteen numbers and no instruction of any set in particular.
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; BLOCK]);

impl Block for Plain {
    type Splat = f32;

    #[inline(always)]
    unsafe fn filled(value: f32) -> Self {
        Self([value; BLOCK])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for sixteen readable numbers; an array of f32 needs no more alignment than f32.
        Self(unsafe { *from.cast::<[f32; BLOCK]>() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for sixteen writable numbers.
        unsafe { *to.cast::<[f32; BLOCK]>() = self.0 }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> f32 {
        value
    }

    #[inline(always)]
    unsafe fn add_product(self, weight: f32, other: Self) -> Self {
        let Self(mut sum) = self;
        for i in 0..BLOCK {
            sum[i] += weight * other.0[i];
        }
        Self(sum)
    }

    #[inline(always)]
    unsafe fn at_least(self, floor: f32) -> Self {
        let Self(mut values) = self;
        for i in 0..BLOCK {
            values[i] = if values[i] < floor { floor } else { values[i] };
        }
        Self(values)
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
/// Defines a block that is an array of `$count` registers of `$lanes` lanes each, from the set's own functions.
macro_rules! block_of_registers {
    ($(#[$doc:meta])* $name:ident: [$register:ty; $count:literal] of $lanes:literal,
     $load:expr, $store:expr, $splat:expr, $add_product:expr, $max:expr
     $(, $prefetch:item)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(in super::super) struct $name([$register; $count]);

        // SAFETY of all blocks below: the caller vouches for the instruction set and for the sixteen numbers behind a
        // pointer, of which register `i` takes the `$lanes` from `i * $lanes` on.
        #[allow(unused_unsafe, reason = "WebAssembly's functions are safe, the others' are not")]
        impl Block for $name {
            type Splat = $register;

            #[inline(always)]
            unsafe fn filled(value: f32) -> Self {
                // SAFETY: see above.
                Self([unsafe { $splat(value) }; $count])
            }

            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: see above.
                let mut block = Self([unsafe { $load(from) }; $count]);
                for i in 1..$count {
                    // SAFETY: see above.
                    block.0[i] = unsafe { $load(from.add(i * $lanes)) };
                }
                block
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                for i in 0..$count {
                    // SAFETY: see above.
                    unsafe { $store(to.add(i * $lanes), self.0[i]) }
                }
            }

            #[inline(always)]
            unsafe fn splat(value: f32) -> $register {
                // SAFETY: see above.
                unsafe { $splat(value) }
            }

            #[inline(always)]
            unsafe fn add_product(self, weight: $register, other: Self) -> Self {
                let mut block = self;
                for i in 0..$count {
                    // SAFETY: see above.
                    block.0[i] = unsafe { $add_product(self.0[i], weight, other.0[i]) };
                }
                block
            }

            #[inline(always)]
            unsafe fn at_least(self, floor: $register) -> Self {
                let mut block = self;
                for i in 0..$count {
                    // SAFETY: see above.
                    block.0[i] = unsafe { $max(floor, self.0[i]) };
                }
                block
            }

            $($prefetch)*
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Block;

    block_of_registers!(
        /// Two registers of AVX2, with FMA.
        Avx2: [__m256; 2] of 8,
        _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps,
        add_product, _mm256_max_ps,
        #[inline(always)]
        unsafe fn load_halves(from: *const u16) -> Self {
            // SAFETY: see above, and the caller vouches for F16C.
            unsafe { Self([0, 8].map(|i| _mm256_cvtph_ps(_mm_loadu_si128(from.add(i).cast())))) }
        },
        #[inline(always)]
        fn prefetch<const NEAR: bool>(from: *const f32) {
            prefetch::<NEAR>(from);
        }
    );

    #[inline(always)]
    fn prefetch<const NEAR: bool>(from: *const f32) {
        // SAFETY: every x86-64 has this hint, and it may be given for any address.
        unsafe {
            if NEAR {
                _mm_prefetch::<_MM_HINT_T0>(from.cast());
            } else {
                _mm_prefetch::<_MM_HINT_T1>(from.cast());
            }
        }
    }

    #[inline(always)]
    unsafe fn add_product(sum: __m256, weight: __m256, other: __m256) -> __m256 {
        // SAFETY: the caller vouches for AVX2 and FMA.
        unsafe { _mm256_fmadd_ps(weight, other, sum) }
    }

    /// One register of AVX-512.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512(__m512);

    // SAFETY of all blocks below: the caller vouches for AVX-512F and for the sixteen numbers behind a pointer.
    impl Block for Avx512 {
        type Splat = __m512;

        #[inline(always)]
        unsafe fn filled(value: f32) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_set1_ps(value) })
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_loadu_ps(from) })
        }

        #[inline(always)]
        unsafe fn load_halves(from: *const u16) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) })
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: see above.
            unsafe { _mm512_storeu_ps(to, self.0) }
        }

        #[inline(always)]
        unsafe fn splat(value: f32) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_set1_ps(value) }
        }

        #[inline(always)]
        unsafe fn add_product(self, weight: __m512, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_fmadd_ps(weight, other.0, self.0) })
        }

        #[inline(always)]
        unsafe fn at_least(self, floor: __m512) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_max_ps(floor, self.0) })
        }

        #[inline(always)]
        fn prefetch<const NEAR: bool>(from: *const f32) {
            prefetch::<NEAR>(from);
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    use super::Block;

    block_of_registers!(
        /// Four registers of NEON.
        Neon: [float32x4_t; 4] of 4,
        vld1q_f32, vst1q_f32, vdupq_n_f32,
        vfmaq_f32, vmaxq_f32
    );
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) use wasm::Simd128;

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm {
    use std::arch::wasm32::*;

    use super::Block;

    block_of_registers!(
        /// Four registers of WebAssembly's SIMD.
        Simd128: [v128; 4] of 4,
        load, store, f32x4_splat, add_product, f32x4_pmax
    );

    #[inline(always)]
    unsafe fn load(from: *const f32) -> v128 {
        // SAFETY: the caller vouches for four readable numbers.
        unsafe { v128_load(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, values: v128) {
        // SAFETY: the caller vouches for four writable numbers.
        unsafe { v128_store(to.cast(), values) }
    }

    #[inline(always)]
    fn add_product(sum: v128, weight: v128, other: v128) -> v128 {
        f32x4_add(sum, f32x4_mul(weight, other))
    }
}
