//! The trainable CoMER model on Burn.
//!
//! [`model`] reads like the paper; [`initial`] makes the weights that training starts from.

pub mod device;
pub mod initial;
pub mod model;
