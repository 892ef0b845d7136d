//! One SIMD register of f32 on every instruction set: what the picture kernels' inner loops are written in.
//!
//! `f32` itself is a register of one lane, the last for the channels that are left over. [`Plain`] runs where nothing better is
//! found and is the oracle of the others in tests.

/// A register of [`Self::LANES`] numbers.
///
/// Every method is `unsafe`: the instruction set has to be there, and a pointer has to be valid for `LANES` numbers.
/// All are inlined into entry points that enable the instruction set.
pub(super) trait Vector: Copy {
    const LANES: usize;
    /// A narrower register, for the numbers that do not fill this one.
    type Rest: Vector;
    /// Numbers of a row where two rows can share a register, the first row in the lower lanes: half of the lanes. As many as
    /// there are lanes where they cannot; `splat_two`, `load_twice`, `load_two` and `store_two` are for registers that can.
    const HALF: usize = Self::LANES;
    /// Whether there are 32 registers, not 16.
    const MANY: bool = false;

    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// `self + a * b`
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// The greater of each lane and that of `floor`.
    unsafe fn at_least(self, floor: Self) -> Self;
    /// A bit for each lane, the lowest for the first, set where the number is not zero.
    #[inline(always)]
    unsafe fn nonzero(self) -> u32 {
        let mut lanes = [0.0; 16];
        // SAFETY: no register has more lanes.
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes.iter().enumerate().map(|(lane, &value)| u32::from(value != 0.0) << lane).sum()
    }
    /// The sum of the lanes of each register.
    #[inline(always)]
    unsafe fn sums(registers: [Self; 4]) -> [f32; 4] {
        registers.map(|register| {
            let mut lanes = [0.0; 16];
            // SAFETY: no register has more lanes.
            unsafe { register.store(lanes.as_mut_ptr()) };
            lanes.iter().take(Self::LANES).sum()
        })
    }
    /// Hints that the numbers there are wanted soon; never reads them.
    #[inline(always)]
    fn prefetch(_from: *const f32) {}

    /// One number in the lower half, another in the upper half.
    unsafe fn splat_two(_first: f32, _second: f32) -> Self {
        unreachable!("two rows do not share this register")
    }
    /// The same `HALF` numbers in both halves.
    unsafe fn load_twice(_from: *const f32) -> Self {
        unreachable!("two rows do not share this register")
    }
    /// `HALF` numbers of each of two rows.
    unsafe fn load_two(_first: *const f32, _second: *const f32) -> Self {
        unreachable!("two rows do not share this register")
    }
    /// The opposite of [`Self::load_two`].
    unsafe fn store_two(self, _first: *mut f32, _second: *mut f32) {
        unreachable!("two rows do not share this register")
    }
}

impl Vector for f32 {
    const LANES: usize = 1;
    type Rest = f32;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        value
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for a readable number.
        unsafe { *from }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for a writable number.
        unsafe { *to = self }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self - other
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self * other
    }

    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        self + a * b
    }

    #[inline(always)]
    unsafe fn at_least(self, floor: Self) -> Self {
        if self < floor { floor } else { self }
    }
}

/// Four numbers and no instruction of any set in particular.
#[derive(Clone, Copy)]
pub(super) struct Plain(pub [f32; 4]);

impl Plain {
    #[inline(always)]
    fn zip(self, other: Self, each: impl Fn(f32, f32) -> f32) -> Self {
        Self(std::array::from_fn(|lane| each(self.0[lane], other.0[lane])))
    }
}

impl Vector for Plain {
    const LANES: usize = 4;
    type Rest = f32;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; 4])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for four readable numbers; an array of f32 is aligned as f32.
        Self(unsafe { *from.cast::<[f32; 4]>() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for four writable numbers.
        unsafe { *to.cast::<[f32; 4]>() = self.0 }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, |x, y| x - y)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |x, y| x * y)
    }

    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        self.zip(a.zip(b, |x, y| x * y), |x, y| x + y)
    }

    #[inline(always)]
    unsafe fn at_least(self, floor: Self) -> Self {
        self.zip(floor, |x, floor| if x < floor { floor } else { x })
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
/// Defines a register from the set's own functions; `$mul_add(sum, a, b)`, `$max(floor, x)`.
macro_rules! register {
    ($(#[$doc:meta])* $name:ident: $register:ty, $lanes:literal then $rest:ty,
     $load:expr, $store:expr, $splat:expr, $add:expr, $sub:expr, $mul:expr, $mul_add:expr, $max:expr
     $(, $more:item)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(in super::super) struct $name($register);

        // SAFETY of all blocks below: the caller vouches for the instruction set and for the numbers behind a pointer.
        #[allow(unused_unsafe, reason = "some of WebAssembly's functions are safe, the others' are not")]
        impl Vector for $name {
            const LANES: usize = $lanes;
            type Rest = $rest;

            #[inline(always)]
            unsafe fn splat(value: f32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $splat(value) })
            }

            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $load(from) })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: see above.
                unsafe { $store(to, self.0) }
            }

            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $add(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $sub(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mul(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn mul_add(self, a: Self, b: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mul_add(self.0, a.0, b.0) })
            }

            #[inline(always)]
            unsafe fn at_least(self, floor: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $max(floor.0, self.0) })
            }

            $($more)*
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Vector;

    register!(
        /// A register of AVX2, with FMA.
        Avx2: __m256, 8 then f32,
        _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps,
        fmadd_256, _mm256_max_ps,
        #[inline(always)]
        fn prefetch(from: *const f32) {
            prefetch(from);
        },
        #[inline(always)]
        unsafe fn nonzero(self) -> u32 {
            // SAFETY: see above.
            unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NEQ_UQ>(self.0, _mm256_setzero_ps())) as u32 }
        },
        #[inline(always)]
        unsafe fn sums(registers: [Self; 4]) -> [f32; 4] {
            let [a, b, c, d] = registers;
            // SAFETY: see above.
            unsafe { sums([a.0, b.0, c.0, d.0]) }
        }
    );

    register!(
        /// A register of AVX-512.
        Avx512: __m512, 16 then Avx2,
        _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps,
        fmadd_512, _mm512_max_ps,
        #[inline(always)]
        fn prefetch(from: *const f32) {
            prefetch(from);
        },
        const HALF: usize = 8;,
        const MANY: bool = true;,
        #[inline(always)]
        unsafe fn nonzero(self) -> u32 {
            // SAFETY: see above.
            unsafe { u32::from(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(self.0, _mm512_setzero_ps())) }
        },
        #[inline(always)]
        unsafe fn sums(registers: [Self; 4]) -> [f32; 4] {
            // SAFETY: see above.
            unsafe {
                let [a, b, c, d] = registers;
                sums([halved(a.0), halved(b.0), halved(c.0), halved(d.0)])
            }
        },
        #[inline(always)]
        unsafe fn splat_two(first: f32, second: f32) -> Self {
            // SAFETY: see above.
            unsafe {
                Self(_mm512_mask_broadcastss_ps(_mm512_set1_ps(first), 0xff00, _mm_set_ss(second)))
            }
        },
        #[inline(always)]
        unsafe fn load_twice(from: *const f32) -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm512_castpd_ps(_mm512_broadcast_f64x4(_mm256_loadu_pd(from.cast())))) }
        },
        #[inline(always)]
        unsafe fn load_two(first: *const f32, second: *const f32) -> Self {
            // SAFETY: see above.
            unsafe {
                let first = _mm512_castpd256_pd512(_mm256_loadu_pd(first.cast()));
                Self(_mm512_castpd_ps(_mm512_insertf64x4::<1>(first, _mm256_loadu_pd(second.cast()))))
            }
        },
        #[inline(always)]
        unsafe fn store_two(self, first: *mut f32, second: *mut f32) {
            // SAFETY: see above.
            unsafe {
                let numbers = _mm512_castps_pd(self.0);
                _mm256_storeu_pd(first.cast(), _mm512_castpd512_pd256(numbers));
                _mm256_storeu_pd(second.cast(), _mm512_extractf64x4_pd::<1>(numbers));
            }
        }
    );

    /// The sums of the halves.
    #[inline(always)]
    unsafe fn halved(register: __m512) -> __m256 {
        // SAFETY: the caller vouches for AVX-512.
        unsafe {
            let upper = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(register));
            _mm256_add_ps(_mm512_castps512_ps256(register), _mm256_castpd_ps(upper))
        }
    }

    /// The sum of the lanes of each register.
    #[inline(always)]
    unsafe fn sums([a, b, c, d]: [__m256; 4]) -> [f32; 4] {
        // SAFETY: the caller vouches for AVX2.
        unsafe {
            let first = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let second = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
            let even = _mm256_shuffle_ps::<0x44>(first, second);
            let odd = _mm256_shuffle_ps::<0xee>(first, second);
            let quarters = _mm256_add_ps(even, odd);
            let sums = _mm_add_ps(_mm256_castps256_ps128(quarters), _mm256_extractf128_ps::<1>(quarters));
            let mut lanes = [0.0; 4];
            _mm_storeu_ps(lanes.as_mut_ptr(), sums);
            lanes
        }
    }

    #[inline(always)]
    fn prefetch(from: *const f32) {
        // SAFETY: every x86-64 has this hint, and it may be given for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }

    #[inline(always)]
    unsafe fn fmadd_256(sum: __m256, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller vouches for FMA.
        unsafe { _mm256_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    unsafe fn fmadd_512(sum: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512F.
        unsafe { _mm512_fmadd_ps(a, b, sum) }
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    use super::Vector;

    register!(
        /// A register of NEON.
        Neon: float32x4_t, 4 then f32,
        vld1q_f32, vst1q_f32, vdupq_n_f32, vaddq_f32, vsubq_f32, vmulq_f32, vfmaq_f32, vmaxq_f32,
        const MANY: bool = true;,
        #[inline(always)]
        unsafe fn nonzero(self) -> u32 {
            // SAFETY: see above.
            unsafe {
                let zero = vceqzq_f32(self.0);
                vaddvq_u32(vbicq_u32(vld1q_u32([1, 2, 4, 8].as_ptr()), zero))
            }
        }
    );
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) use wasm::Simd128;

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm {
    use std::arch::wasm32::*;

    use super::Vector;

    register!(
        /// A register of WebAssembly.
        Simd128: v128, 4 then f32,
        load, store, f32x4_splat, f32x4_add, f32x4_sub, f32x4_mul,
        mul_add, f32x4_pmax,
        #[inline(always)]
        unsafe fn nonzero(self) -> u32 {
            u32::from(i32x4_bitmask(f32x4_ne(self.0, f32x4_splat(0.0))))
        }
    );

    #[inline(always)]
    fn mul_add(sum: v128, a: v128, b: v128) -> v128 {
        f32x4_add(sum, f32x4_mul(a, b))
    }

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
}
