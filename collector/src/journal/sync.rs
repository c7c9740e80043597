//! Syncs segments beside the reading: neither a slow disk nor a database that keeps the reader waiting makes the window of a
//! power cut wider, and neither keeps hooks from being read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::assemble::SegmentId;
use super::wait::Waker;

/// From the end of one sync to the start of the next while hooks arrive.
const EVERY: Duration = Duration::from_millis(50);

/// What is known of a segment on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Synced {
    /// Its length at the last sync that worked.
    UpTo(u64),
    /// The last sync failed. This descriptor is never synced again: the kernel reports a lost page once.
    Failed,
}

/// The thread that syncs, and what it syncs. It rests while the reader waits for the kernel to tell of something new.
#[derive(Debug)]
pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    files: Mutex<BTreeMap<SegmentId, (Arc<File>, Synced)>>,
    awake: AtomicBool,
    ended: AtomicBool,
    waker: Waker,
}

impl Syncer {
    /// Starts it; it ends with the [`Syncer`]. `waker` is rung after every sync.
    pub(super) fn start(waker: Waker) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            files: Mutex::default(),
            awake: AtomicBool::new(true),
            ended: AtomicBool::new(false),
            waker,
        });
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("sync".into()).spawn(move || own.run())?;
        Ok(Self { shared, thread })
    }

    /// Syncs `file` from now on, of which so much is known to be on the disk. Replaces what was known under the id.
    pub(super) fn add(&self, id: SegmentId, file: &File, synced: u64) -> io::Result<()> {
        let file = Arc::new(file.try_clone()?);
        self.shared.files().insert(id, (file, Synced::UpTo(synced)));
        Ok(())
    }

    /// Forgets a segment. What is given back keeps its file open.
    pub(super) fn remove(&self, id: SegmentId) -> Option<Arc<File>> {
        self.shared.files().remove(&id).map(|(file, _)| file)
    }

    /// How far a segment is on the disk.
    pub(super) fn synced(&self, id: SegmentId) -> Synced {
        self.shared.files().get(&id).map_or(Synced::UpTo(0), |(_, synced)| *synced)
    }

    /// Something has been read: there may be more to sync.
    pub(super) fn rouse(&self) {
        if !self.shared.awake.swap(true, Ordering::Relaxed) {
            self.thread.thread().unpark();
        }
    }

    /// Nothing comes: after a last sync it rests.
    pub(super) fn rest(&self) {
        self.shared.awake.store(false, Ordering::Relaxed);
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
    }
}

impl Shared {
    fn files(&self) -> MutexGuard<'_, BTreeMap<SegmentId, (Arc<File>, Synced)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while !self.ended.load(Ordering::Relaxed) {
            let awake = self.awake.load(Ordering::Relaxed);
            if self.sync_all() {
                self.waker.wake();
            }
            if awake {
                thread::park_timeout(EVERY);
            } else {
                // What is added after this sync comes with a call that wakes.
                thread::park();
            }
        }
    }

    /// Whether anything was synced, or could not be.
    fn sync_all(&self) -> bool {
        let files: Vec<(SegmentId, Arc<File>, u64)> = self
            .files()
            .iter()
            .filter_map(|(id, (file, synced))| match synced {
                Synced::UpTo(len) => Some((*id, Arc::clone(file), *len)),
                Synced::Failed => None,
            })
            .collect();
        let mut any = false;
        for (id, file, before) in files {
            let Ok(len) = file.metadata().map(|found| found.len()) else { continue };
            if len <= before {
                continue;
            }
            any = true;
            let now = match file.sync_data() {
                Ok(()) => Synced::UpTo(len),
                Err(error) => {
                    tracing::error!(%error, "journal.sync_failed");
                    Synced::Failed
                }
            };
            // Unless it has been replaced meanwhile.
            if let Some((known, synced)) = self.files().get_mut(&id)
                && Arc::ptr_eq(known, &file)
            {
                *synced = now;
            }
        }
        any
    }
}
