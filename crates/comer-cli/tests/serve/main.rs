//! `comer serve` as its users meet it: the page in a real browser, and programs over a real connection.

mod browser;
#[path = "../../../comer/tests/common/mod.rs"]
mod common;
mod http;
mod load;
mod page;
mod program;
mod server;
