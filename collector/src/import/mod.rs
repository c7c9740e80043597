//! Imports recorded hooks. They take the same path as live hooks.
//!
//! The beginning of a file tells what it is. The file is decompressed, divided into records and copied as JSON Lines
//! into `imports/` of the state directory ([`judge`], [`stage()`]). The collector imports it from there ([`take_in`]);
//! that is either a running `serve` or the command itself. So an import survives a crash of either. Meanwhile live
//! hooks wait in the journal, so that they do not overtake it.
//!
//! A record's id makes sure that a repeated import of a file adds nothing. A record with a time gets an id from that
//! time and a hash of the body. A record without one gets the time of its import, which would differ in the next
//! import, so its id is a hash of the body alone. Equal lines of one file are distinguished by number.

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
