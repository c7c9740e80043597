//! One segment that the follower has open.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::disk::{self, Identity};
use crate::journal::JournalError;
use crate::journal::segment::{self, Segment};
use crate::journal::trouble::Pause;

/// Maximum number of boundaries noted between two syncs.
const MARKS_MAX: usize = 256;

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The file that shims append to.
    Journal,
    /// A file that was the journal before.
    Sealed,
    /// A file in the run-time directory.
    Spill,
    /// A journal that somebody deleted or moved away. It is read to its end.
    Nameless,
}

/// A file that is about to be followed. Everything that can fail has been done.
#[derive(Debug)]
pub(super) struct Opened {
    pub file: Arc<File>,
    pub identity: Identity,
    pub len: u64,
    pub fingerprint: Option<u64>,
}

impl Opened {
    pub(super) fn at(path: &Path) -> Result<Self, JournalError> {
        let file = disk::open(path).map_err(JournalError::of("open", path))?;
        Self::new(file, path)
    }

    /// Prepares an open file. `path` is for the error's text.
    pub(super) fn new(file: File, path: &Path) -> Result<Self, JournalError> {
        let found = disk::look(&file).map_err(JournalError::of("look at", path))?;
        let fingerprint = segment::fingerprint(&file).map_err(JournalError::of("read", path))?;
        let (identity, len) = (disk::identity(&found), found.len());
        Ok(Self { file: Arc::new(file), identity, len, fingerprint })
    }
}

#[derive(Debug)]
pub(super) struct Held {
    pub segment: Segment,
    pub identity: Identity,
    pub path: PathBuf,
    pub role: Role,
    pub since: Instant,
    /// Boundaries between frames. Everything before a boundary was handed out, but may not be on the disk yet.
    marks: VecDeque<u64>,
    /// The offset in the position: everything before it is on the disk, and no open record starts before it.
    pub durable: u64,
    /// The offset that the store has confirmed as durable since the follower was opened.
    pub forgettable: u64,
    /// The offset that the store has, in its write-ahead log or in the database file.
    pub stored: u64,
    /// Length up to which no new reservation is needed.
    pub reserved: u64,
    /// How reading goes.
    pub reading: Pause,
    /// How syncing goes.
    pub syncing: Pause,
    /// The last sync failed, and the file has not been opened again since.
    pub sync_lost: bool,
    /// Error number of the last sync that failed.
    pub sync_errno: Option<i32>,
    /// Time since which the file is known to have no writer.
    pub without_writers: Option<Instant>,
    /// Start of the last read that reached the end.
    pub at_end: Option<Instant>,
    /// The file has no writer and was read to its end, and its unfinished records were handed out.
    pub given_up: bool,
}

impl Held {
    pub(super) fn new(opened: Opened, path: PathBuf, role: Role, from: u64, now: Instant) -> Self {
        let mut segment = Segment::known(opened.file, from, opened.fingerprint);
        segment.keeps_torn = true;
        Self {
            segment,
            identity: opened.identity,
            path,
            role,
            since: now,
            marks: VecDeque::new(),
            durable: from,
            forgettable: 0,
            stored: from,
            reserved: 0,
            reading: Pause::default(),
            syncing: Pause::default(),
            sync_lost: false,
            sync_errno: None,
            without_writers: None,
            at_end: None,
            given_up: false,
        }
    }

    /// Notes a boundary. If the list is full, the boundary is dropped, and the position merely advances later.
    pub(super) fn mark(&mut self, boundary: u64) {
        let last = self.marks.back().copied().unwrap_or(self.durable);
        if boundary > last && self.marks.len() < MARKS_MAX {
            self.marks.push_back(boundary);
        }
    }

    /// Moves the position up to the last boundary that is on the disk.
    pub(super) fn settle(&mut self, synced: u64) {
        while let Some(boundary) = self.marks.front().copied().filter(|at| *at <= synced) {
            self.marks.pop_front();
            self.durable = boundary;
        }
    }

    /// Call this when the file got another name. It may have writers again.
    pub(super) fn rename(&mut self, path: PathBuf, role: Role, now: Instant) {
        self.path = path;
        self.role = role;
        self.since = now;
        self.segment.no_writers = false;
        self.without_writers = None;
        self.given_up = false;
    }

    /// Continues with another descriptor of the same file. Nothing is read again.
    pub(super) fn go_on_with(&mut self, file: Arc<File>) {
        self.segment.go_on_with(file);
        self.sync_lost = false;
    }
}
