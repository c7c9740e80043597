//! Imports recorded hooks from JSON Lines, on the same path as live hooks.
//!
//! A file is recognised by its beginning, decompressed, divided into records and copied as JSON Lines into `imports/` of the
//! state directory ([`judge`], [`stage()`]). The collector imports it from there ([`take_in`]): a running `serve`, or the command
//! itself. So an import survives a crash of either. Live hooks wait in the journal meanwhile, so that they do not overtake it.
//!
//! A record's id lets a repeated import of a file add nothing. A record with a time gets an id from that time and a hash of the
//! body. A record without one gets the time of its import, which differs on the next import, so its id is a hash of the body
//! alone. Equal lines of one file are distinguished by number.

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
