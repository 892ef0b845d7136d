//! The trainable CoMER model on Burn.
//!
//! [`model`] reads like the paper; [`cpu`] computes its encoder faster where there is no GPU;
//! [`initial`] makes the weights that training starts from.

pub mod cpu;
pub mod device;
pub mod initial;
pub mod model;
