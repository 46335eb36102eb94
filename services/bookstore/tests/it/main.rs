//! The binary as its users meet it: processes, ports, signals, three API styles.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise; clippy knows that of test functions, not of what they share"
)]

mod bodies;
mod commands;
mod compare;
mod grpc;
mod harness;
mod http;
mod killed;
#[cfg(target_os = "linux")]
mod memory;
mod metrics;
mod outage;
mod parity;
mod shutdown;
mod streams;
mod tidy;
mod web;
