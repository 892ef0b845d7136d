//! CoMER on [Burn](https://burn.dev): training on GPUs, and the reference model for tests of the CPU network.
//!
//! [`model`] follows the paper. [`BurnBackend`] is its backend for `comer_train`. [`device()`] opens a device by name.
//! [`AttentionRefinement`] can be used in other models.

pub mod backend;
pub mod device;
pub mod model;
pub mod padded_batch;

pub use backend::BurnBackend;
pub use comer::internal::config::Coverage;
pub use device::device;
pub use model::position::Padding;
pub use model::refinement::AttentionRefinement;
