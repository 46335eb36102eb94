//! What `bookstore compare` runs: starts the suite, loads it in every API style, and reports what each one costs.

pub mod hpack;
pub mod http1;
pub mod http2;
