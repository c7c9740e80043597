//! Recorded hooks from JSON Lines, by the same path as live ones.
//!
//! A file is judged by its beginning, decompressed, cut into records and copied as JSON Lines into `imports/` of the state
//! directory ([`judge`], [`stage`]); whoever is the collector takes it from there ([`take_in`]): a running `serve`, or the command
//! itself. So an import survives a crash of either, and live hooks wait in the journal meanwhile instead of overtaking it.
//!
//! A record's id makes the same file again give nothing new. With a time it is the time and a hash of the body; a line
//! without one takes the time of its import, which differs the next time, so there it is a hash of the body alone. Equal
//! lines of one file are told apart by their number among their equals.

mod copy;
#[cfg(unix)]
#[cfg(test)]
mod faults;
mod line;
mod records;
mod sniff;
mod source;
mod stage;
mod take;
mod times;

pub(crate) use copy::{Remark, Remarks};
pub(crate) use source::Source;
pub(crate) use stage::{Judged, Report, Staged, judge, pending, stage, sweep};
pub(crate) use take::{Plan, take_in};
pub(crate) use times::Zone;
