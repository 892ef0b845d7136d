//! The largest files that are read, in bytes.

/// A picture or ink.
pub const INPUT: u64 = 256 << 20;
/// A model, a language model or a checkpoint.
pub const MODEL: u64 = 2 << 30;
/// Text that is parsed as a whole: recipes, vocabularies, captions, tables.
pub const TEXT: u64 = 64 << 20;
/// Text that is read line by line: stroke sets, glyphs, lists of formulas.
pub const LINES: u64 = 8 << 30;
/// A line of such text.
pub const LINE: u64 = 16 << 20;
