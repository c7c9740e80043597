//! Tells a person about agents that wait, end, fail or hang: by a notice of the desktop, a webhook, or a command.
//!
//! All of it is off unless `[notify]` asks for it. The collector may not start programs once it is confined, so a
//! process of its own, [`Notifier`], decides and delivers. It starts before the collector is confined, reads the
//! store, and ends with the collector.

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
