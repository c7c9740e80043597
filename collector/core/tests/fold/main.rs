//! The fold, driven as the collector drives it.

#![expect(clippy::unwrap_used, reason = "support code of tests; a broken fixture is a bug")]

/// Reads streams, plays them into the fold, prints what a store would hold.
mod support;
/// The truth of a stream, and the difference between a store and that truth.
mod truth;
/// Every stream beside its truth.
mod scorecard;
/// Makes well-formed streams for the properties.
mod story;
/// What single payloads mean.
mod payloads;
/// Bodies made to break something.
mod hostile;
/// What a span says about a shell command.
mod commands;
/// One readable stream per fact, with the tree it gives.
mod streams;
/// Makes up sessions and knows what really happened in them.
mod world;
/// Plays generated sessions in every way a stream can arrive.
mod campaign;
/// What disorder, repetition, restarts and loss may not change.
mod properties;
/// The wall clock beside the time since boot.
mod clocks;
/// Streams made to cost much.
mod shapes;
/// What a hook costs in any stream, and what the fold may hold.
mod accounting;
mod bounds;
/// How pages name the file of a call.
mod paths;
/// Sessions whose settled turns leave memory.
mod long;
/// Rows, and what the configuration changes.
mod rows;
mod rules;
