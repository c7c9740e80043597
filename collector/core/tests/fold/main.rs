//! Drives the fold in the same way as the collector.

#![expect(clippy::unwrap_used, reason = "support code of tests; a broken fixture is a bug")]

/// Reads streams, plays them into the fold and prints what a store would contain.
mod support;
/// The truth of a stream, and the difference between a store and that truth.
mod truth;
/// Every stream beside its truth.
mod scorecard;
/// Makes well-formed streams for the property tests.
mod story;
/// What single payloads mean.
mod payloads;
/// Bodies made to break something.
mod hostile;
/// What a span may contain of a shell command.
mod commands;
/// One readable stream per fact, with the expected tree.
mod streams;
/// Generates sessions together with the truth about them.
mod world;
/// Plays generated sessions in every way a stream can arrive.
mod campaign;
/// What disorder, repetition, restarts and loss must not change.
mod properties;
/// The wall clock beside the time since boot.
mod clocks;
/// Streams made to cost much.
mod shapes;
/// Where each hook of a generated session is visible.
mod accounting;
/// The cost of a hook in any stream, and the limits of the fold's memory.
mod bounds;
/// How pages name the file of a call.
mod paths;
/// Sessions whose settled turns are evicted.
mod long;
/// Rows, and what the configuration changes.
mod rows;
mod rules;
