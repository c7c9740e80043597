//! Deletes segments that are completely stored and to which no process can write any more.

use std::thread;
use std::time::{Duration, Instant};
#[cfg(target_os = "linux")]
use std::{fs, path::Path};

use super::Follower;
use super::held::{Held, Role};
use crate::disk;
use crate::journal::JournalError;
use crate::journal::assemble::SegmentId;

/// How long a segment is kept if the system cannot tell whether some process still writes to it.
const WITHOUT_LEASES: Duration = Duration::from_secs(24 * 3_600);
/// A shorter file contains no complete header, so it counts as empty.
const HEADER_BYTES: u64 = hookspan_shim::frame::HEADER_BYTES as u64;

impl Follower {
    /// Deletes every segment that may be deleted. A segment that cannot be deleted does not block the others.
    pub(super) fn let_go(&mut self, now: Instant) -> Result<(), JournalError> {
        let sealed = self.held.iter().filter(|(_, held)| held.role != Role::Journal);
        let sealed: Vec<SegmentId> = sealed.map(|(id, _)| *id).collect();
        let mut done = Ok(());
        for id in sealed {
            if let Err(error) = self.let_go_of(id, now) {
                done = Err(error);
            }
        }
        done
    }

    fn let_go_of(&mut self, id: SegmentId, now: Instant) -> Result<(), JournalError> {
        let Some(held) = self.held.get_mut(&id) else { return Ok(()) };
        if now.duration_since(held.since) < self.limits.name_age {
            return Ok(());
        }
        let Some(without_writers) = held.without_writers else {
            if !has_writers(held, now) {
                held.segment.no_writers = true;
                held.without_writers = Some(now);
            }
            return Ok(());
        };
        let len = held.segment.len().map_err(JournalError::of("look at", &held.path))?;
        let read = held.segment.offset() >= len;
        let stored = held.forgettable >= len || (len < HEADER_BYTES && read);
        if !held.given_up {
            if read && self.has_read_all_since(without_writers) {
                self.give_up(id);
            }
            return Ok(());
        }
        if stored && self.assembler.oldest_in(id).is_none() {
            self.delete(id)?;
        }
        Ok(())
    }

    /// Whether every file was read to its end after `ended`, when this segment's last writer ended. A record may begin
    /// in the journal and end in the run-time directory, so any file may contain its other frames.
    fn has_read_all_since(&self, ended: Instant) -> bool {
        let looked = self.spills.is_empty() || self.spills_seen.is_some_and(|at| at > ended);
        looked && self.held.values().all(|held| held.at_end.is_some_and(|at| at > ended))
    }

    /// Hands out the unfinished records of a segment as truncated.
    fn give_up(&mut self, id: SegmentId) {
        self.assembler.give_up_on(id, &mut self.counters, &mut self.ready);
        if let Some(held) = self.held.get_mut(&id) {
            held.given_up = true;
        }
    }

    fn delete(&mut self, id: SegmentId) -> Result<(), JournalError> {
        let Some(held) = self.held.get(&id) else { return Ok(()) };
        let named = held.role != Role::Nameless;
        // A deletion may have succeeded although it reported an error. In that case, another file may have the name by
        // now.
        let found = disk::regular(&held.path).map_err(JournalError::of("look at", &held.path))?;
        if named && found == Some(held.identity) {
            disk::remove(&held.path).map_err(JournalError::of("delete", &held.path))?;
        }
        close_beside((self.held.remove(&id), self.syncer.remove(id)));
        Ok(())
    }
}

/// Closes deleted files in another thread. Closing frees the disk blocks, which takes a tenth of a second per segment
/// on some disks. If no thread can be started, the file is closed in this one.
fn close_beside(deleted: impl Send + 'static) {
    let _refused = thread::Builder::new().name("close".into()).spawn(move || drop(deleted));
}

/// Whether any process, even a stopped one, has the segment open for writing.
#[cfg(target_os = "linux")]
fn has_writers(held: &Held, now: Instant) -> bool {
    use std::os::fd::AsFd as _;

    let file = held.segment.file().as_fd();
    match hookspan_shim::linux::set_read_lease(file, true) {
        Ok(()) => {
            if let Err(error) = hookspan_shim::linux::set_read_lease(file, false) {
                tracing::warn!(%error, "journal.lease_kept");
            }
            false
        }
        Err(rustix::io::Errno::AGAIN) => true,
        // Most network file systems have no leases. Keep the segment longer than any hook runs.
        Err(_) => now.duration_since(held.since) < WITHOUT_LEASES || is_open_somewhere(&held.path),
    }
}

#[cfg(not(target_os = "linux"))]
fn has_writers(held: &Held, now: Instant) -> bool {
    now.duration_since(held.since) < WITHOUT_LEASES
}

/// Whether another process has the file open. Only processes that we may inspect are known.
#[cfg(target_os = "linux")]
fn is_open_somewhere(path: &Path) -> bool {
    let ours = std::process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|process| process.file_name() != *ours)
        .flat_map(|process| fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten())
        .any(|open| fs::read_link(open.path()).is_ok_and(|target| target == path))
}
