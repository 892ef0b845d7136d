//! How inputs are prepared.

use std::time::Instant;

use crate::interrupt::{CancelToken, Interrupt};
use crate::photo::layout::Gaps;

/// How inputs are prepared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputOptions {
    pub(super) raw: bool,
    pub(super) remove_lines: bool,
    pub(super) lenient: bool,
    pub(super) dense: bool,
    pub(super) interrupt: Interrupt,
}

impl Default for InputOptions {
    fn default() -> Self {
        Self { raw: false, remove_lines: true, lenient: false, dense: false, interrupt: Interrupt::default() }
    }
}

impl InputOptions {
    /// The default options: images are cleaned and brought to the size of the training images.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes images as they are (default false): white ink on black, about 28 pixels high, in strokes of 3 pixels.
    pub fn raw(mut self, raw: bool) -> Self {
        self.raw = raw;
        self
    }

    /// Whether ruled and squared lines of the paper are removed (default true).
    pub fn remove_lines(mut self, remove_lines: bool) -> Self {
        self.remove_lines = remove_lines;
        self
    }

    /// Whether an image file that ends early is read as far as it goes (default false); not for WebP and TIFF.
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// For [`Input::all_from_bytes`](crate::Input::all_from_bytes): whether formulas are separated by the space that they usually have between them
    /// (default false: only where there is clearly more than one).
    pub fn dense(mut self, dense: bool) -> Self {
        self.dense = dense;
        self
    }

    /// Gives up with [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded) if an image is not prepared by then.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.interrupt.deadline = Some(deadline);
        self
    }

    /// Gives up with [`Error::Cancelled`](crate::Error::Cancelled) soon after `token` is cancelled.
    pub fn cancel_token(mut self, token: &CancelToken) -> Self {
        self.interrupt.cancel = Some(token.clone());
        self
    }

    pub(super) fn gaps(&self) -> Gaps {
        if self.dense { Gaps::USUAL } else { Gaps::CLEAR }
    }
}
