//! Ordering between a catalog and an inventory that do as they are told.

// Helpers of tests stop at the first surprise, as the tests themselves may.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod abandoned;
mod cancel;
mod failures;
mod fakes;
mod model;
mod place;
mod races;
mod read;
mod reconcile;
mod shop;
mod watch;
