//! What `bookstore compare` runs: starts the suite, loads it in every API style, and reports what each one costs.
//!
//! An operation counts only if its reply was right. Server and client are different processes on different cores where
//! there are two; CPU is the kernel's own accounting, bytes are counted at the socket, styles alternate in short rounds,
//! and figures are medians over rounds. The floor rows say what the machine and the kernel cost without any of our code.
//!
//! The client is one thread that sends prepared bytes, so that it costs little and the same for every style. It sees
//! the contracts and nothing of the services' insides.

mod args;
pub mod baseline;
pub mod case;
mod collect;
pub mod compare;
pub mod connection;
mod files;
pub mod floor;
pub mod hpack;
pub mod http1;
pub mod http2;
pub mod load;
mod lookup;
mod notes;
pub mod operation;
pub mod process;
mod progress;
mod relay;
pub mod report;
pub mod request;
mod run;
pub mod stats;
pub mod suite;
mod target;

pub use args::Args;
