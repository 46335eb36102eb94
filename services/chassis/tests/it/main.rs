//! The chassis over real sockets: what listens is [`chassis::Server`], what it serves is made for these tests.
//!
//! Where a test waits, it waits for something to happen; a cure that is missing shows as a test that never ends or as a
//! wrong answer.

// A test may stop at the first surprise; clippy knows only functions with `#[test]` as such.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod balance;
mod connections;
mod deadlines;
mod drain;
mod errors;
mod health;
mod metrics;
mod replicas;
mod retry;
mod service;
mod stalls;
mod streams;
mod upstream;
mod web;
mod wire;
