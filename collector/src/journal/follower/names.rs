//! Rolls the journal, and creates a new one if it is gone.

use std::time::{Duration, Instant};

use super::Follower;
use super::held::{Opened, Role};
use crate::disk;
use crate::journal::assemble::SegmentId;
use crate::journal::{JournalError, files, reserve};

/// If a record's end is missing for this long, the journal is rolled. The system can tell only for a segment whether it
/// still has a writer.
const UNFINISHED: Duration = Duration::from_secs(30);

impl Follower {
    /// Rolls the journal if it is large, old, or contains a record whose end does not arrive. Also notices if a shim
    /// has stopped the journal or a person has moved it.
    pub(super) fn keep_names(&mut self, now: Instant) -> Result<(), JournalError> {
        let fail = |action| JournalError::of(action, self.dir.root());
        if let Some(id) = self.journal_id()
            && let Some(held) = self.held.get_mut(&id)
        {
            let len = held.segment.len().map_err(fail("look at the journal in"))?;
            let (identity, since) = (held.identity, held.since);
            let named = disk::regular(&self.dir.journal()).map_err(fail("look at"))?;
            if named == Some(identity) {
                if len >= held.reserved
                    && let Ok(reserved) = reserve::extend_at(&held.path, len)
                {
                    held.reserved = reserved;
                }
                if self.is_full(id, len, since, now) {
                    self.roll(id, now)?;
                }
            } else if !self.stopped {
                self.start_anew(Some(id), now)?;
            }
        } else {
            self.start_anew(None, now)?;
        }
        if self.names_unsynced {
            let fail = JournalError::of("sync the names in", self.dir.root());
            disk::sync_names(self.dir.root()).map_err(fail)?;
            self.names_unsynced = false;
        }
        Ok(())
    }

    fn is_full(&self, id: SegmentId, len: u64, since: Instant, now: Instant) -> bool {
        let unfinished = self.assembler.oldest_in(id).is_some()
            && self.assembler.oldest_since().is_some_and(|at| now.duration_since(at) >= UNFINISHED);
        let old = now.duration_since(since) >= self.limits.segment_age;
        len >= self.limits.segment_bytes || (len > 0 && (unfinished || old))
    }

    fn roll(&mut self, id: SegmentId, now: Instant) -> Result<(), JournalError> {
        let fail = JournalError::of("roll the journal in", self.dir.root());
        let Some(identity) = self.held.get(&id).map(|held| held.identity) else { return Ok(()) };
        let Some(rolled) = files::roll(&self.dir, identity).map_err(fail)? else {
            return self.start_anew(Some(id), now);
        };
        // The names have changed. If the next step fails, `start_anew` finds the new journal by its name.
        self.names_unsynced = true;
        let journal = self.dir.journal();
        let opened = Opened::new(rolled.fresh, &journal)?;
        self.seal(id, Some(rolled.segment), now);
        self.follow(opened, journal, Role::Journal, now);
        Ok(())
    }

    /// Completes interrupted changes of names and continues with the current journal. The old journal is still followed
    /// as a segment, wherever its file is now.
    pub(super) fn start_anew(
        &mut self,
        old: Option<SegmentId>,
        now: Instant,
    ) -> Result<(), JournalError> {
        let fail = |action| JournalError::of(action, self.dir.root());
        files::settle(&self.dir).map_err(fail("put in order the journal of"))?;
        let identity = old.and_then(|id| self.held.get(&id)).map(|held| held.identity);
        let place = match identity {
            Some(identity) => files::segment_of(&self.dir, identity).map_err(fail("list"))?,
            None => None,
        };
        let journal = self.dir.journal();
        let opened = Opened::at(&journal)?;
        // From here on nothing can fail.
        self.stopped = false;
        if Some(opened.identity) == identity {
            return Ok(());
        }
        if let Some(id) = old {
            self.seal(id, place, now);
        }
        self.follow(opened, journal, Role::Journal, now);
        Ok(())
    }

    /// Notes that the journal has become a segment at `place`, or has lost its name.
    fn seal(&mut self, id: SegmentId, place: Option<std::path::PathBuf>, now: Instant) {
        let Some(held) = self.held.get_mut(&id) else { return };
        match place {
            Some(place) => held.rename(place, Role::Sealed, now),
            None => held.rename(held.path.clone(), Role::Nameless, now),
        }
    }
}
