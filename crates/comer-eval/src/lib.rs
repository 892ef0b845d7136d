//! Scores recognised formulas as the CROHME competition does, without its tools.
//!
//! | step | module |
//! |---|---|
//! | parse LaTeX into an expression tree | [`latex`], [`expression`] |
//! | convert the tree to a symbol label graph, or read an official `.lg` file | [`label_graph`], [`relation`] |
//! | count the differences of two graphs, or of two token sequences | [`compare`], [`metrics`] |
//! | score every file of a set by each protocol | [`score`] |
//! | summarise a run, compare two runs, or experiments with several runs each | [`report`], [`bootstrap`], [`repetitions`] |
//! | write reports as Markdown, HTML and JSON | [`markdown`], [`html`], [`run_folder`] |
//! | read predictions, ground truth and data sets | [`files`], [`dataset`], [`stored_file`] |
//! | convert raw LaTeX to training captions | [`caption`] |
//! | convert LaTeX to MathML | [`mathml`] |
//!
//! Text only: no tensors, no image decoding.

mod archive;
pub mod bootstrap;
pub mod caption;
pub mod compare;
pub mod dataset;
pub mod error;
pub mod expression;
pub mod files;
mod grammar;
pub mod html;
pub mod label_graph;
pub mod latex;
mod layout;
mod lexer;
pub mod markdown;
pub mod mathml;
pub mod metrics;
pub mod relation;
pub mod reliability;
pub mod repetitions;
pub mod report;
pub mod run_folder;
pub mod score;
pub mod stored_file;
mod symbols;
mod tree;

pub use archive::{find_files, visible_files};
pub use dataset::DataSource;
pub use error::{Error, Result};
pub use label_graph::LabelGraph;
pub use report::Report;
pub use symbols::Dialect;
