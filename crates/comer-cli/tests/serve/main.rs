//! `comer serve` as its users meet it: the page in a real browser, and programs over a real connection.

mod page;
mod program;
