//! Any picture: see the functions.
