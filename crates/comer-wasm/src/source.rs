//! What is recognised: the bytes of a file, or pixels.

use comer::{Input, InputOptions, Result};

use crate::options::Formulas;

#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    File(&'a [u8]),
    Pixels { width: usize, height: usize, rgba: &'a [u8] },
}

impl Source<'_> {
    /// The formulas to read, at least one.
    pub(crate) fn inputs(self, formulas: Formulas) -> Result<Vec<Input>> {
        let options = InputOptions::new().dense(formulas == Formulas::All);
        match (self, formulas) {
            (Self::File(bytes), Formulas::One) => Ok(vec![Input::from_bytes(bytes)?]),
            (Self::File(bytes), _) => Input::all_from_bytes(bytes, &options),
            (Self::Pixels { width, height, rgba }, Formulas::One) => {
                Ok(vec![Input::from_rgba(width, height, rgba)?])
            }
            (Self::Pixels { width, height, rgba }, _) => Input::all_from_rgba(width, height, rgba, &options),
        }
    }
}
