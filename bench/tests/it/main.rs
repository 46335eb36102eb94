//! Tests of the load client's parts against odd peers, and of the reports.

// A test may stop at the first surprise; clippy knows only functions with `#[test]` as such.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod bulk;
mod client;
mod floor;
mod hpack;
mod http1;
mod http2;
mod operation;
mod report;
