//! Tests the dashboard with a list of invented sessions, without a browser and without a store.

#![expect(clippy::unwrap_used, reason = "support code of tests may stop at what is broken")]

mod api; // answers, cursors, problems, payloads
mod attacks; // what an attacker stores or asks for
mod assets; // vendored files, embedded files, banned sinks
mod door;
mod foreign; // attacks that broke other local dashboards
mod guard; // every request that must be refused, and headers on every answer
mod marks; // stars, tags, notes, kept filters
mod openapi; // the description, complete and true
mod steps;
mod stream; // notices, resuming, bounds
pub mod support; // the list source, invented sessions
mod wire; // what only a raw connection can express
