//! Turns frames into records.

use std::time::{Duration, Instant};

use super::Follower;
use crate::journal::assemble::SegmentId;
use crate::journal::trouble::Task;
use crate::journal::{Counters, JournalError, torn};

/// Records are handed out in the order of their segments. A segment that cannot be read delays later segments for at
/// most this long. After that, delivering their hooks matters more than the order.
const IN_ORDER: Duration = Duration::from_secs(1);

impl Follower {
    /// Reads every segment in turn. Returns whether a segment could not be read.
    pub(super) fn read_all(&mut self, now: Instant, records_max: usize) -> bool {
        let ids: Vec<SegmentId> = self.held.keys().copied().collect();
        let (mut unread, mut failed) = (false, None);
        for id in ids {
            let tried = self.held.get(&id).is_some_and(|held| held.reading.is_due(now));
            if tried && let Err(error) = self.read(id, now, records_max) {
                failed = Some(error);
            }
            let failing = self.held.get(&id).and_then(|held| held.reading.failing_for(now));
            unread |= failing.is_some();
            if failing.is_some_and(|since| since < IN_ORDER) {
                break;
            }
        }
        if let Some(error) = failed {
            self.troubles.note(Task::Read, Err(error), now);
        } else if !unread {
            self.troubles.note(Task::Read, Ok(()), now);
        }
        if !self.ready.is_empty() {
            self.active_at = now;
        }
        unread
    }

    fn read(
        &mut self,
        id: SegmentId,
        now: Instant,
        records_max: usize,
    ) -> Result<(), JournalError> {
        if self.ready.len() >= records_max {
            return Ok(());
        }
        let mut more = true;
        while more && self.ready.len() < records_max {
            match self.read_once(id, now, records_max) {
                Ok(may_be_more) => more = may_be_more,
                Err(error) => {
                    self.reopen_stale(id, &error);
                    let Some(held) = self.held.get_mut(&id) else { return Ok(()) };
                    held.reading.failed(now, self.limits.chores);
                    return Err(JournalError::of("read", &held.path)(error));
                }
            }
        }
        if let Some(held) = self.held.get_mut(&id) {
            held.reading.worked();
            held.at_end = if more { held.at_end } else { Some(now) };
        }
        Ok(())
    }

    /// Reads once. Frames go to the assembler, complete records go to `ready`, and the offset moves. A later error
    /// undoes none of this.
    fn read_once(
        &mut self,
        id: SegmentId,
        now: Instant,
        records_max: usize,
    ) -> std::io::Result<bool> {
        let Some(held) = self.held.get_mut(&id) else { return Ok(false) };
        let (assembler, ready) = (&mut self.assembler, &mut self.ready);
        let (mut torn, mut found) = (Counters::default(), Counters::default());
        let before = held.segment.offset();
        let read = held.segment.read(now, &mut torn, |frame| {
            assembler.take(id, frame, now, &mut found, ready);
            ready.len() < records_max
        });
        self.counters.add(&torn);
        self.counters.add(&found);
        if held.segment.offset() != before {
            self.active_at = now;
        }
        let pieces = held.segment.take_torn();
        if let Err(error) = torn::keep(&self.dir, &held.path, &pieces) {
            tracing::warn!(%error, "journal.torn_not_kept");
        }
        read
    }
}
