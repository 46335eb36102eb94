//! What threads share by: locks, atomics and the concurrent map.
//!
//! In unit tests a model takes their place, which decides at each of them who goes on (`store/interleavings.rs`). Such
//! a test is one run of the store under one schedule, so what is not taken from here is out of the model's sight.

#[cfg(not(test))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(not(test))]
pub(crate) use dashmap::DashMap;
#[cfg(test)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};

#[cfg(test)]
pub(crate) use self::model::DashMap;

#[cfg(test)]
mod model;
