//! The GraphQL edge over services that are told what to answer, and that count what they are asked.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise; clippy knows that of test functions, not of what they share"
)]

mod batching;
mod errors;
mod fake;
mod graphiql;
mod guard;
mod http;
mod metrics;
mod operations;
mod persisted;
mod schema;
mod socket;
