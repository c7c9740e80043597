//! Follows the journal and hands batches to the engine over a bounded channel.
//!
//! Reading, packing and normalising happen here, beside the engine, so that the one writer only folds and writes. The
//! position travels with its hooks and is committed with them; a segment is let go only when that commit is in the
//! database file itself.

mod intake;
mod local;
mod thread;

pub(crate) use intake::Intake;
pub(crate) use local::{Local, epoch};
pub(crate) use thread::{Ingest, Reading, spawn};

#[cfg(test)]
mod tests;
