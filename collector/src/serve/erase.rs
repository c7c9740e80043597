//! Deletes sessions while the collector runs: from the database, the search index and the journal, in this order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hookspan_view::source::Deleted;

use super::threads::WeakInputs;
use crate::audit::{AuditFile, What};
use crate::dirs::StateDir;
use crate::engine::DeleteError;
use crate::import;
use crate::journal::{Position, scrub};
use crate::search::{Handle, RemoveError};
use crate::store::open::{OpenError, Readers};
use crate::store::prune::Selection;
use crate::store::{cli, salvage};
use crate::text::counted;

/// How long a deletion waits until the journal is committed.
const SCRUB_PATIENCE: Duration = Duration::from_secs(10);
const SCRUB_STEP: Duration = Duration::from_millis(50);

/// Why a file still contains deleted text. The message says what remains to be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum EraseError {
    #[error(transparent)]
    Database(#[from] DeleteError),
    #[error(transparent)]
    Index(#[from] RemoveError),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(
        "deleted from the database and the search index, but {left} bytes of the journal are not committed yet; \
         delete again in a moment"
    )]
    Uncommitted { left: u64 },
}

/// Deletes from every place of storage.
pub(super) struct Eraser {
    pub(super) dir: StateDir,
    pub(super) readers: Readers,
    pub(super) engine: WeakInputs,
    pub(super) search: Handle,
    pub(super) audit: Arc<AuditFile>,
}

impl Eraser {
    /// Deletes the selection from the database and the search index. [`Self::scrub`] cleans the index's file.
    ///
    /// # Errors
    /// [`EraseError`].
    pub(super) fn delete_stored(&self, what: &Selection) -> Result<Deleted, EraseError> {
        let deleted = self.engine.delete(what)?;
        if !what.sessions.is_empty() {
            self.search.remove(&what.sessions)?;
        }
        Ok(deleted)
    }

    /// Deletes the selection from every file, except from damaged databases that were moved aside. The answer contains
    /// the number of these databases.
    ///
    /// # Errors
    /// [`EraseError`].
    pub(super) fn delete(&self, what: &Selection) -> Result<Deleted, EraseError> {
        let journal = self.lengths()?;
        let deleted = self.delete_stored(what)?;
        self.scrub(&journal)?;
        Ok(Deleted { damaged: salvage::aside(&self.dir).len() as u64, ..deleted })
    }

    /// Records a deletion in the audit log. The entry contains only sums, so that it tells nothing about what was
    /// deleted.
    pub(super) fn note(&self, deleted: &Deleted, by: &str) {
        let Deleted { sessions, hooks, .. } = *deleted;
        self.audit.note(
            What::Deleted,
            &format!("{}, {}, {by}", counted(sessions, "session"), counted(hooks, "hook")),
        );
    }

    /// The length of each segment of the journal. [`Self::scrub`] overwrites up to these lengths.
    pub(super) fn lengths(&self) -> Result<scrub::Lengths, EraseError> {
        Ok(scrub::lengths(&self.dir)?)
    }

    /// Cleans the search index, removes copies of interrupted imports, and overwrites the journal up to its current
    /// length once all of that is committed. The position is committed after its hooks.
    pub(super) fn scrub(&self, before: &scrub::Lengths) -> Result<(), EraseError> {
        self.search.clean()?;
        import::sweep(&self.dir)?;
        let mut waited = Duration::ZERO;
        loop {
            let position = self.readers.with(cli::journal_position)?;
            let position: Position =
                position.and_then(|text| text.parse().ok()).unwrap_or_default();
            let left = scrub::scrub(&self.dir, &position, before)?;
            if left == 0 {
                return Ok(());
            }
            if waited >= SCRUB_PATIENCE {
                return Err(EraseError::Uncommitted { left });
            }
            std::thread::sleep(SCRUB_STEP);
            waited += SCRUB_STEP;
        }
    }
}
