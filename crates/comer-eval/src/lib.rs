//! Scores recognised formulas the way the CROHME competition does, without its tools.
//!
//! The way of the data, and the room of each step:
//!
//! 1. [`latex`]: a formula becomes an expression tree.
//! 2. [`label_graph`]: the tree becomes a symbol label graph; the official `.lg` files are read into the same.
//! 3. [`compare`]: the differences between two graphs; [`tokens`]: those between two lists of tokens.
//! 4. [`score`]: every file of a set by each protocol.
//! 5. [`report`]: the figures of a run; [`bootstrap`]: two runs side by side.
//! 6. [`markdown`], [`html`]: the report to read, with formulas drawn as [`mathml`]; [`run_folder`]: all of them written.
//!    [`display`]: MathML as LaTeX would set it, for pages.
//!
//! Around it: [`files`] (predictions and truths from tables, zips and folders), [`caption`] (raw LaTeX to tokens).
//!
//! Text only: no tensors, no pictures.

pub mod bootstrap;
pub mod caption;
pub mod compare;
pub mod display;
pub mod error;
pub mod files;
mod grammar;
pub mod html;
pub mod label_graph;
pub mod latex;
mod layout;
pub mod markdown;
pub mod mathml;
pub mod report;
pub mod run_folder;
pub mod score;
mod symbols;
mod token;
pub mod tokens;
mod tree;

pub use error::{Error, Result};
pub use label_graph::LabelGraph;
pub use report::Report;
pub use symbols::Dialect;
