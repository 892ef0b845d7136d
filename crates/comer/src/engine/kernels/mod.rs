//! Products and convolutions at the speed of the machine, over slices: they know shapes and strides, not the model.
//!
//! Pictures are channels-last, and take [`Kernels::matmul`] (a 1 x 1 convolution) and [`Kernels::conv3x3`], each with a
//! bias and, if asked for, a ReLU: `conv` checks every length and then hands pointers to the loops in `pixels` and
//! `winograd`; `gradient` has the weight gradients for training. `sparse_matrix` does the same for `sparse`, the products that
//! skip zeros, which `nonzero` finds. The decoder's few rows at a time go through `panels` and `rows`. It is the only place of the crate with unsafe
//! code.
#![allow(unsafe_code)]

mod block;
mod buffer;
mod conv;
mod gradient;
mod nonzero;
mod pairs;
pub(crate) mod panels;
mod pixels;
pub(crate) mod rows;
mod sparse;
mod sparse_matrix;
#[cfg(test)]
mod tests;
mod transforms;
mod vector;
mod winograd;

use std::sync::OnceLock;

use rayon::prelude::*;

pub use block::BLOCK;
pub use buffer::Buffer;
pub use conv::{Algorithm, PackedConv, PackedConv5x5, PackedMatrix};
pub use nonzero::{NonzeroMask, SparseRows};
pub use sparse_matrix::SparseMatrix;

/// The instruction set that [`Kernels::detect`] is to find.
static CHOSEN: OnceLock<Isa> = OnceLock::new();

/// An instruction set that the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// No particular one.
    Scalar,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512F.
    Avx512,
    /// 64-bit ARM.
    Neon,
    /// WebAssembly with 128-bit vectors.
    Simd128,
}

impl Isa {
    const BEST_FIRST: [Isa; 5] = [Isa::Avx512, Isa::Avx2, Isa::Neon, Isa::Simd128, Isa::Scalar];

    /// Those that this machine has, the best first; [`Isa::Scalar`] is always the last.
    pub fn available() -> impl Iterator<Item = Isa> {
        Self::BEST_FIRST.into_iter().filter(|isa| isa.entries().is_some())
    }

    /// The one of this name (`scalar`, `avx2`, `avx512`, `neon`, `simd128`), if this machine has it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::available().find(|isa| isa.name() == name)
    }

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Neon => "neon",
            Isa::Simd128 => "simd128",
        }
    }

    /// Makes this the instruction set of all kernels detected from now on, for measurements. False if another one was
    /// chosen before.
    pub fn choose(self) -> bool {
        *CHOSEN.get_or_init(|| self) == self
    }

    fn entries(self) -> Option<&'static pixels::Entries> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512
                if has_avx2()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl") =>
            {
                Some(&pixels::AVX512)
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if has_avx2() => Some(&pixels::AVX2),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon if std::arch::is_aarch64_feature_detected!("neon") => Some(&pixels::NEON),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Isa::Simd128 => Some(&pixels::SIMD128),
            Isa::Scalar => Some(&pixels::PLAIN),
            _ => None,
        }
    }
}

/// AVX2 and what every processor with AVX2 has.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("bmi1")
}

/// The kernels of one instruction set.
#[derive(Clone, Copy)]
pub struct Kernels {
    isa: Isa,
    pixels: &'static pixels::Entries,
    threaded: bool,
}

/// Whether a kernel's results end in a ReLU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// As they are.
    None,
    /// What is below zero becomes zero.
    Relu,
}

impl Activation {
    fn floor(self) -> f32 {
        match self {
            Activation::None => f32::NEG_INFINITY,
            Activation::Relu => 0.0,
        }
    }
}

impl Kernels {
    /// The best kernels for this machine, or those of the instruction set that was chosen.
    pub fn detect() -> Self {
        CHOSEN
            .get()
            .copied()
            .into_iter()
            .chain(Isa::available())
            .find_map(Self::with)
            .expect("the plain kernels run everywhere")
    }

    /// The kernels of one instruction set, if this machine has it.
    pub fn with(isa: Isa) -> Option<Self> {
        isa.entries().map(|pixels| Self { isa, pixels, threaded: true })
    }

    /// The same kernels, but each call stays on the thread that made it.
    pub fn alone(self) -> Self {
        Self { threaded: false, ..self }
    }

    /// Whether the decoder's products can read 16-bit numbers.
    fn widens_halves(&self) -> bool {
        match self.isa {
            Isa::Avx512 => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("f16c"),
            _ => false,
        }
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Calls `part` with each chunk of `length` numbers and its index, on as many threads as the kernels use.
    pub fn for_each_chunk(&self, values: &mut [f32], length: usize, part: impl Fn(usize, &mut [f32]) + Sync) {
        if self.threads() == 1 {
            values.chunks_mut(length).enumerate().for_each(|(index, chunk)| part(index, chunk));
        } else {
            values.par_chunks_mut(length).enumerate().for_each(|(index, chunk)| part(index, chunk));
        }
    }

    fn threads(&self) -> usize {
        if self.threaded { rayon::current_num_threads() } else { 1 }
    }
}
