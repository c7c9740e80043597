//! Stops the journal when it reaches its bound, and opens it again.

use std::time::{Duration, Instant};

use super::Follower;
use super::held::Role;
use crate::journal::{JournalError, files};

/// For this long, the stored bytes of a segment do not count towards the bound, because the segment is about to be
/// deleted.
const LINGER: Duration = Duration::from_secs(60);

impl Follower {
    /// Stops the journal when its segments reach the bound, and opens it again when there is room.
    pub(super) fn keep_bound(&mut self, now: Instant) -> Result<(), JournalError> {
        let Some(id) = self.journal_id() else { return Ok(()) };
        let bytes = self.kept_bytes(now)?;
        if !self.stopped && bytes > self.limits.bound_bytes {
            return self.stop(bytes);
        }
        if self.stopped && bytes <= self.limits.bound_bytes / 4 * 3 {
            self.start_anew(Some(id), now)?;
            tracing::info!(bytes, "journal.resumed");
        }
        Ok(())
    }

    fn kept_bytes(&self, now: Instant) -> Result<u64, JournalError> {
        let mut bytes = 0;
        for held in self.held.values() {
            let len = held.segment.len().map_err(JournalError::of("look at", &held.path))?;
            let lingers = now.duration_since(held.since) < LINGER;
            // The stored part of the journal can be freed by rolling it.
            let open = held.role == Role::Journal;
            bytes += if lingers || open { len.saturating_sub(held.forgettable) } else { len };
        }
        Ok(bytes)
    }

    fn stop(&mut self, bytes: u64) -> Result<(), JournalError> {
        let fail = JournalError::of("stop the journal in", self.dir.root());
        let held = self.held.values().find(|held| held.role == Role::Journal);
        let Some(held) = held else { return Ok(()) };
        self.stopped = files::stop(&self.dir, held.segment.file()).map_err(fail)?;
        self.names_unsynced = true;
        if self.stopped {
            tracing::warn!(bytes, "journal.stopped");
        }
        Ok(())
    }
}
