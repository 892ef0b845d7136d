//! Options of a recognition.

use std::time::Instant;

use crate::alignment::AlignmentDetail;
use crate::config::{SearchConfig, Strategy};
use crate::constraints::Constraints;
use crate::error::Result;
use crate::interrupt::{CancelToken, Interrupt};

/// How to recognise. The default is the paper's joint search with a beam of 10 that drops what cannot win any more,
/// restricted to well-formed LaTeX and helped by the language model, if there is one.
///
/// ```
/// use comer::{AlignmentDetail, RecognizeOptions};
///
/// let quick = RecognizeOptions::new().greedy();
/// let thorough = RecognizeOptions::new().beam(20).nbest(5).alignment(AlignmentDetail::Attention);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecognizeOptions {
    pub(crate) search: SearchConfig,
    pub(crate) alignment: AlignmentDetail,
    pub(crate) constraints: Constraints,
    pub(crate) threads: Option<usize>,
    interrupt: Interrupt,
}

impl RecognizeOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps this many prefixes in each direction (default 10). A larger beam is slower and slightly more accurate.
    pub fn beam(mut self, beam: usize) -> Self {
        self.search.beam = beam;
        self
    }

    /// Takes the most likely token at each step, left to right only: the fastest search.
    pub fn greedy(mut self) -> Self {
        self.search.strategy = Strategy::Greedy;
        self
    }

    /// Searches left to right only, which takes about half the time of the joint search.
    pub fn left_to_right(mut self) -> Self {
        self.search.strategy = Strategy::LeftToRight;
        self
    }

    /// Searches exactly as the authors' implementation does: it keeps the whole beam to the end, allows LaTeX that is not
    /// well-formed and uses no language model. Several times slower.
    pub fn exact(mut self) -> Self {
        self.search.margin = None;
        self.well_formed(false).language_model(false)
    }

    /// Returns up to this many candidates (default 1). The beam is widened if it is smaller.
    pub fn nbest(mut self, candidates: usize) -> Self {
        self.search.answers = candidates;
        self
    }

    /// Whether candidates must be well-formed LaTeX (default true). The authors' implementation has no such rule.
    pub fn well_formed(mut self, well_formed: bool) -> Self {
        self.search.grammar = well_formed;
        self
    }

    /// Whether the search uses the language model, if there is one (default true). The authors' implementation has none.
    pub fn language_model(mut self, language_model: bool) -> Self {
        self.search.language_model = language_model;
        self
    }

    /// The longest formula in tokens (default 199).
    pub fn max_tokens(mut self, tokens: usize) -> Self {
        self.search.max_length = tokens.saturating_add(1);
        self
    }

    /// Computes where the tokens of the best candidate were read (default [`AlignmentDetail::None`]).
    pub fn alignment(mut self, detail: AlignmentDetail) -> Self {
        self.alignment = detail;
        self
    }

    /// Finds only formulas with these tokens (default: all formulas). Candidates are then searched left to right only, but
    /// scored in both directions. The fixed tokens count as certain in the confidences.
    pub fn constraints(mut self, constraints: Constraints) -> Self {
        self.constraints = constraints;
        self
    }

    /// Uses this many threads. One thread means the calling thread, which is best when several inputs are recognised in
    /// parallel. By default the threads of the current rayon pool are used, which is one per core unless you set up
    /// another. The result does not depend on the number of threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Gives up with [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded) at the first step after `deadline`.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.interrupt.deadline = Some(deadline);
        self
    }

    /// Gives up with [`Error::Cancelled`](crate::Error::Cancelled) at the first step after `token` is cancelled.
    pub fn cancel_token(mut self, token: &CancelToken) -> Self {
        self.interrupt.cancel = Some(token.clone());
        self
    }

    /// Replaces all settings of the search.
    #[doc(hidden)]
    pub fn search(mut self, search: SearchConfig) -> Self {
        self.search = search;
        self
    }

    /// The error that ends a recognition now, if any does.
    pub(crate) fn interrupt(&self) -> Result<()> {
        self.interrupt.check()
    }
}
