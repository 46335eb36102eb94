//! The REST edge over services that answer from a script.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may stop at the first surprise, and so may what it calls"
)]

mod bodies;
mod bulk;
mod conditional;
mod deadlines;
mod document;
mod events;
mod fakes;
mod http;
mod problems;
mod reads;
mod schema;
mod writes;
