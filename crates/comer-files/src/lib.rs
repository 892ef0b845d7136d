//! Reads files up to a limit, and writes them so that a crash, a full disk or a second process loses nothing.
//!
//! [`read`] and [`open`] stop at a limit, so that neither a huge file nor an endless one (`/dev/zero`) fills the memory.
//! [`write_atomic`] and [`OutputFolder`] write under a temporary name beside the target, sync, and rename: the target has its
//! old content or its new one, never a part. Temporary files of a killed process are removed by the next one that writes the
//! same target. [`Journal`] is a file that grows, and [`Lock`] keeps two processes apart.

mod folder;
mod journal;
pub mod limit;
mod lock;
mod part;
mod read;
mod write;

pub use folder::OutputFolder;
pub use journal::Journal;
pub use lock::Lock;
pub use read::{Limited, is_inside, lines, open, read, read_from, read_text};
pub use write::write_atomic;
