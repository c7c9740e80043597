//! Sends a person notices about agents that wait, end, fail or hang: on the desktop, to a webhook, or to a command.
//!
//! Nothing is sent unless `[notify]` configures it. Inside its sandbox the collector may not start programs. So a
//! separate process, [`Notifier`], decides and sends. The process starts before the collector enters the sandbox, reads
//! the store, and ends with the collector.

mod child;
mod decide;
mod deliver;
mod ledger;
mod notice;
mod watch;

pub(crate) use child::Notifier;
pub(crate) use deliver::Deliver;
pub(crate) use ledger::{Ledger, Way, WayState};
pub(crate) use notice::Notice;
pub(crate) use watch::run;
