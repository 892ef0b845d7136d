//! `comer serve` as its users meet it: the page in a real browser, and programs over a real connection.

mod page;
mod page_editing;
mod page_pictures;
mod page_surface;
mod program;
