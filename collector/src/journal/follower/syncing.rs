//! Moves positions as far as the disk has synced.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::Follower;
use super::held::{Held, Opened};
use crate::disk;
use crate::journal::assemble::SegmentId;
use crate::journal::sync::Synced;
use crate::journal::{JournalError, Position};

impl Follower {
    /// Moves positions to the last boundary between frames that was synced and handed out.
    ///
    /// After a failed sync, the file is opened again: a descriptor is never synced after a failure. The position waits
    /// for a successful sync. Nothing is read again, because what was read is on its way to the database, which does
    /// its own syncs.
    pub(super) fn take_syncs(&mut self, now: Instant) -> Result<(), JournalError> {
        let mut done = Ok(());
        for (id, held) in &mut self.held {
            held.mark(self.assembler.oldest_in(*id).unwrap_or(held.segment.offset()));
            match self.syncer.synced(*id) {
                Synced::UpTo(synced) => {
                    // A new descriptor may start at this position: a sync has succeeded since, or nothing needs one.
                    if synced > held.durable || synced >= held.segment.offset() {
                        held.syncing.worked();
                    }
                    held.settle(synced);
                }
                Synced::Failed(errno) if !held.sync_lost => {
                    held.sync_lost = true;
                    held.sync_errno = errno;
                    held.syncing.failed(now, self.limits.chores);
                    self.counters.sync_failed += 1;
                }
                Synced::Failed(_) => {}
            }
            if held.syncing.failing_for(now).is_some() {
                done = Err(sync_error(held));
            }
        }
        let lost = self.held.iter().filter(|(_, held)| held.sync_lost && held.syncing.is_due(now));
        for id in lost.map(|(id, _)| *id).collect::<Vec<SegmentId>>() {
            self.sync_anew(id, now)?;
        }
        done
    }

    fn sync_anew(&mut self, id: SegmentId, now: Instant) -> Result<(), JournalError> {
        let Some(held) = self.held.get_mut(&id) else { return Ok(()) };
        match opened_again(held) {
            Ok(file) => {
                self.syncer.add(id, &file, held.durable);
                held.go_on_with(file);
                Ok(())
            }
            Err(error) => {
                held.syncing.failed(now, self.limits.chores);
                Err(error)
            }
        }
    }

    /// A descriptor on a network file system can become stale. Only a new descriptor can read the file in that case.
    pub(super) fn reopen_stale(&mut self, id: SegmentId, error: &io::Error) {
        let Some(held) = self.held.get_mut(&id) else { return };
        if error.kind() == io::ErrorKind::StaleNetworkFileHandle
            && let Ok(file) = opened_again(held)
        {
            self.syncer.add(id, &file, held.durable);
            held.go_on_with(file);
        }
    }

    /// The position up to which all bytes were handed out and are on the disk. Makes no system call.
    pub(super) fn position(&self) -> Position {
        let synced = self.held.values().filter(|held| held.durable > 0);
        let offsets = synced.filter_map(|held| Some((held.segment.fingerprint()?, held.durable)));
        Position::new(&self.boot, offsets.collect::<BTreeMap<_, _>>())
    }
}

fn sync_error(held: &Held) -> JournalError {
    let errno = held.sync_errno;
    let error = errno.map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error);
    JournalError::of("sync", &held.path)(error)
}

/// Opens a segment again. Its name may lead elsewhere: a stopped journal has another name for a while, and a deleted
/// one has none. In these cases, its open descriptor is used. The result must be the same file, because the offset
/// would be wrong in any other file.
fn opened_again(held: &Held) -> Result<Arc<File>, JournalError> {
    let same = |opened: &Opened| opened.identity == held.identity;
    if let Some(opened) = Opened::at(&held.path).ok().filter(same) {
        return Ok(opened.file);
    }
    let fail = |action| JournalError::of(action, &held.path);
    let file = disk::open_again(held.segment.file()).map_err(fail("open again"))?;
    let opened = Opened::new(file, &held.path)?;
    let other = || io::Error::new(io::ErrorKind::NotFound, "its name leads to another file");
    Some(opened)
        .filter(same)
        .map(|opened| opened.file)
        .ok_or_else(other)
        .map_err(fail("open again"))
}
