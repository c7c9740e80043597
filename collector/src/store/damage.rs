//! What SQLite reports as damage: a suspicion, which [`super::examine`] proves or refutes.

use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::ErrorCode;

/// Whether SQLite reports damage, which it also does for a failed read. See [`super::examine`].
#[must_use]
pub(crate) fn is_suspected(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// How others report that SQLite spoke of damage. Cheap, and never waits. By default nobody hears it: commands and tests.
#[derive(Clone, Debug, Default)]
pub struct Suspicion(Option<Sender<()>>);

impl Suspicion {
    /// A suspicion, and where it is heard. Several reports before one is heard are one.
    #[must_use]
    pub fn heard() -> (Self, Receiver<()>) {
        let (bell, heard) = bounded(1);
        (Self(Some(bell)), heard)
    }

    /// Reports `error` when it speaks of damage.
    pub fn report(&self, error: &rusqlite::Error) {
        if is_suspected(error)
            && let Some(bell) = &self.0
        {
            // It has been reported already, or nobody examines any more.
            let _reported = bell.try_send(());
        }
    }
}

#[cfg(test)]
impl Suspicion {
    /// Whether what was reported has been heard.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.as_ref().is_some_and(Sender::is_empty)
    }
}
