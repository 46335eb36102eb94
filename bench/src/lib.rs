//! What `bookstore compare` runs: starts the suite, loads it in every API style, and reports what each one costs.

pub mod case;
pub mod connection;
pub mod floor;
pub mod hpack;
pub mod http1;
pub mod http2;
pub mod load;
pub mod lookup;
pub mod operation;
pub mod process;
pub mod request;
pub mod suite;
