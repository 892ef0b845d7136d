//! CoMER on [Burn](https://burn.dev): training on GPUs, and the oracle of the CPU network's tests.
//!
//! [`model`] reads like the paper; [`BurnBackend`] plugs it into `comer_train`'s trainer; [`device()`] finds a device by
//! name.

pub mod backend;
pub mod device;
pub mod model;
pub mod padded_batch;

pub use backend::BurnBackend;
pub use device::device;
