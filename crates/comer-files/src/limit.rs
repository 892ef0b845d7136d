//! The largest files that are read, in bytes.

/// A picture or ink.
pub const INPUT: u64 = 256 << 20;
/// A model, a language model or a checkpoint.
pub const MODEL: u64 = 2 << 30;
/// A device or a pipe, which says nothing about its length, and which memory is taken for as it comes.
pub const STREAM: u64 = 256 << 20;
/// A recipe, which takes eighty times its text in memory.
pub const RECIPE: u64 = 256 << 10;
/// Text that is parsed as a whole: vocabularies, captions, tables.
pub const TEXT: u64 = 64 << 20;
/// Text that is read line by line: stroke sets, glyphs, lists of formulas.
pub const LINES: u64 = 8 << 30;
/// A line of such text. A stroke set with the most points that ink may have takes half of it.
pub const LINE: u64 = 4 << 20;
