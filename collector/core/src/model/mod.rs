//! The types that other crates use: events, spans, summaries, and the values that they contain. Imports no other room.

pub(crate) mod bounded;
pub(crate) mod change;
pub(crate) mod config;
pub(crate) mod content;
pub mod event;
pub(crate) mod fingerprint;
pub mod hook;
pub mod id;
pub(crate) mod parent_evidence;
pub(crate) mod model_name;
pub mod outcome;
pub mod path;
pub mod price;
pub mod repository;
pub mod span;
pub mod summary;
pub mod time;
pub(crate) mod tolerance;
pub mod tool;
