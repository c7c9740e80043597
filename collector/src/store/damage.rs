//! SQLite's reports of damage. Each is only a suspicion, which [`super::examine`] confirms or refutes.

use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::ErrorCode;

/// Whether SQLite reports damage. It may do so after a failed read as well, see [`super::examine`].
#[must_use]
pub(crate) fn is_suspected(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Forwards SQLite's reports of damage. Sending is cheap and never waits. By default (in commands and tests) there is
/// no receiver.
#[derive(Clone, Debug, Default)]
pub struct Suspicion(Option<Sender<()>>);

impl Suspicion {
    /// A sender and its receiver. Reports that were not received yet are merged into one.
    #[must_use]
    pub fn heard() -> (Self, Receiver<()>) {
        let (bell, heard) = bounded(1);
        (Self(Some(bell)), heard)
    }

    /// Reports `error` if it means damage.
    pub fn report(&self, error: &rusqlite::Error) {
        if is_suspected(error)
            && let Some(bell) = &self.0
        {
            // A report is pending already, or the examiner has ended.
            let _reported = bell.try_send(());
        }
    }
}

#[cfg(test)]
impl Suspicion {
    /// Whether the report was received.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.as_ref().is_some_and(Sender::is_empty)
    }
}
