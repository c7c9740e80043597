//! Syncs segments in a separate thread. A slow disk then does not delay reading. And a busy database does not delay
//! syncing, which would increase what a power cut can lose.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::assemble::SegmentId;
use super::wait::Waker;
use crate::disk;

/// Time between the end of one sync and the start of the next while hooks arrive.
const EVERY: Duration = Duration::from_millis(50);

/// How far a segment is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Synced {
    /// The file's length at the last successful sync.
    UpTo(u64),
    /// The last sync failed with this error number. The descriptor is never synced again, because the kernel reports a
    /// lost page only once.
    Failed(Option<i32>),
}

/// The syncing thread and its files. The thread rests while the reader waits to be woken by the kernel.
#[derive(Debug)]
pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    files: Mutex<BTreeMap<SegmentId, (Arc<File>, Synced)>>,
    awake: AtomicBool,
    ended: AtomicBool,
    waker: Waker,
}

impl Syncer {
    /// Starts the thread. It ends with the [`Syncer`]. `waker` rings after every sync.
    pub(super) fn start(waker: Waker) -> io::Result<Self> {
        let mut syncer = Self::without_thread(waker);
        let own = Arc::clone(&syncer.shared);
        let thread = thread::Builder::new().name("sync".into()).spawn(move || own.run())?;
        syncer.thread = Some(thread);
        Ok(syncer)
    }

    /// A syncer that syncs only when `sync_all` is called.
    pub(super) fn without_thread(waker: Waker) -> Self {
        let (awake, ended) = (AtomicBool::new(true), AtomicBool::new(false));
        let shared = Arc::new(Shared { files: Mutex::default(), awake, ended, waker });
        Self { shared, thread: None }
    }

    /// Syncs everything once, in the caller's thread.
    #[cfg(test)]
    pub(super) fn sync_all(&self) {
        self.shared.sync_all();
    }

    /// Starts to sync `file`, of which `synced` bytes are known to be on the disk. Replaces an earlier file with this
    /// id.
    pub(super) fn add(&self, id: SegmentId, file: &Arc<File>, synced: u64) {
        self.shared.files().insert(id, (Arc::clone(file), Synced::UpTo(synced)));
    }

    /// Stops syncing a segment. The file stays open as long as the returned value lives.
    pub(super) fn remove(&self, id: SegmentId) -> Option<Arc<File>> {
        self.shared.files().remove(&id).map(|(file, _)| file)
    }

    /// How far a segment is on the disk.
    pub(super) fn synced(&self, id: SegmentId) -> Synced {
        self.shared.files().get(&id).map_or(Synced::UpTo(0), |(_, synced)| *synced)
    }

    /// Wakes the thread. Call this after reading something, because there may be more to sync.
    pub(super) fn rouse(&self) {
        if !self.shared.awake.swap(true, Ordering::Relaxed) {
            self.unpark();
        }
    }

    /// Lets the thread rest after one more sync. Call this when no hooks arrive.
    pub(super) fn rest(&self) {
        self.shared.awake.store(false, Ordering::Relaxed);
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        self.unpark();
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
                // Whoever adds something after this sync also calls `rouse`.
                thread::park();
            }
        }
    }

    /// Syncs all files. Returns whether a sync was made or failed.
    fn sync_all(&self) -> bool {
        let files: Vec<(SegmentId, Arc<File>, u64)> = self
            .files()
            .iter()
            .filter_map(|(id, (file, synced))| match synced {
                Synced::UpTo(len) => Some((*id, Arc::clone(file), *len)),
                Synced::Failed(_) => None,
            })
            .collect();
        let mut any = false;
        for (id, file, before) in files {
            let now = match sync_up_to(&file, before) {
                Ok(len) if len <= before => continue,
                Ok(len) => Synced::UpTo(len),
                Err(error) => Synced::Failed(error.raw_os_error()),
            };
            any = true;
            // The file may have been replaced in the meantime. In that case, this result does not count.
            if let Some((known, synced)) = self.files().get_mut(&id)
                && Arc::ptr_eq(known, &file)
            {
                *synced = now;
            }
        }
        any
    }
}

/// Syncs `file` if it is longer than `before`. Returns its length before the sync.
fn sync_up_to(file: &File, before: u64) -> io::Result<u64> {
    let len = disk::look(file)?.len();
    if len > before {
        disk::sync(file)?;
    }
    Ok(len)
}
