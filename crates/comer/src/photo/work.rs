//! Counts the work of cleaning an image, and ends it when it is interrupted.

use std::cell::Cell;

use crate::error::Result;

/// Work between two questions whether to go on, in pixels: about a millisecond.
const STRIDE: u64 = 1 << 19;

/// A count of pixels visited, with the question whether to go on.
pub struct Work<'a> {
    interrupt: &'a dyn Fn() -> Result<()>,
    spent: Cell<u64>,
    next: Cell<u64>,
}

impl<'a> Work<'a> {
    /// Work that `interrupt` may end.
    pub fn new(interrupt: &'a dyn Fn() -> Result<()>) -> Self {
        Self { interrupt, spent: Cell::new(0), next: Cell::new(0) }
    }

    /// Counts visits of pixels, before or after they are made: at most a few rows of the image at once.
    pub fn spend(&self, pixels: usize) -> Result<()> {
        let spent = self.spent.get() + pixels as u64;
        self.spent.set(spent);
        if spent >= self.next.get() {
            self.next.set(spent + STRIDE);
            (self.interrupt)()?;
        }
        Ok(())
    }

    /// The pixels visited so far.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn work_is_counted_and_interrupted() {
        let asked = Cell::new(0);
        let interrupt = || {
            asked.set(asked.get() + 1);
            if asked.get() > 2 { Err(Error::Cancelled) } else { Ok(()) }
        };
        let work = Work::new(&interrupt);
        work.spend(1).unwrap();
        assert_eq!(asked.get(), 1);
        for _ in 0..11 {
            work.spend(STRIDE as usize / 10).unwrap();
        }
        assert_eq!(asked.get(), 2);
        assert!(matches!(work.spend(2 * STRIDE as usize), Err(Error::Cancelled)));
        assert_eq!(work.spent(), 1 + STRIDE / 10 * 11 + 2 * STRIDE);
    }
}
