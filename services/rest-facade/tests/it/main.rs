//! The REST edge over services that answer from a script.

mod bodies;
mod conditional;
mod deadlines;
mod document;
mod events;
mod fakes;
mod http;
mod problems;
mod reads;
mod schema;
mod writes;
