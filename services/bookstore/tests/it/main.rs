//! The binary as its users meet it: processes, ports, signals, three API styles.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise; clippy knows that of test functions, not of what they share"
)]

mod audit;
mod bodies;
mod commands;
mod compare;
mod dice;
mod grpc;
mod harness;
mod history;
mod http;
mod killed;
mod kills;
mod memory;
mod metrics;
mod outage;
mod parity;
mod shopper;
mod shutdown;
mod simulation;
mod streams;
mod tidy;
mod web;
