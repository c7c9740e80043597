//! Follows the journal and hands batches to the engine over a bounded channel.
//!
//! Reading, packing and normalising happen here and not in the engine's thread, so that the one writer only folds and
//! writes. The position is committed together with its hooks. A segment is released only when that commit is in the
//! database file itself.

mod intake;
mod local;
mod thread;

pub(crate) use intake::Intake;
pub(crate) use local::{Local, epoch};
pub(crate) use thread::{Ingest, Reading, spawn};

#[cfg(test)]
mod tests;
