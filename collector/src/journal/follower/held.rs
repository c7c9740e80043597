//! A segment that the follower has open.

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
    /// A file that used to be the journal.
    Sealed,
    /// A file in the run-time directory.
    Spill,
    /// A journal that somebody deleted or moved away. The follower reads it to its end.
    Nameless,
}

/// A file that is ready to be followed. Everything that can fail has already been done.
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

    /// Prepares an open file. `path` is used in error messages.
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
    /// Boundaries between frames. All bytes before a boundary were handed out. They may not be on the disk yet.
    marks: VecDeque<u64>,
    /// The offset in the position. All bytes before it are on the disk, and no open record starts before it.
    pub durable: u64,
    /// The offset up to which the store has confirmed durable storage since the follower was opened.
    pub forgettable: u64,
    /// The offset up to which the store has the records, in its write-ahead log or in the database file.
    pub stored: u64,
    /// No new reservation is needed until the file is this long.
    pub reserved: u64,
    /// State of failed reads, and when to try again.
    pub reading: Pause,
    /// State of failed syncs, and when to try again.
    pub syncing: Pause,
    /// Whether the last sync failed and the file has not been opened again yet.
    pub sync_lost: bool,
    /// Error number of the last sync that failed.
    pub sync_errno: Option<i32>,
    /// Time since which the file is known to have no writer.
    pub without_writers: Option<Instant>,
    /// Start of the last read that reached the end.
    pub at_end: Option<Instant>,
    /// Whether the file has no writer, was read to its end, and its unfinished records were handed out.
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

    /// Notes a boundary. If the list is full, the boundary is dropped. The position then advances a little later.
    pub(super) fn mark(&mut self, boundary: u64) {
        let last = self.marks.back().copied().unwrap_or(self.durable);
        if boundary > last && self.marks.len() < MARKS_MAX {
            self.marks.push_back(boundary);
        }
    }

    /// Moves the position to the last boundary before `synced`.
    pub(super) fn settle(&mut self, synced: u64) {
        while let Some(boundary) = self.marks.front().copied().filter(|at| *at <= synced) {
            self.marks.pop_front();
            self.durable = boundary;
        }
    }

    /// Notes that the file was renamed. It may have writers again.
    pub(super) fn rename(&mut self, path: PathBuf, role: Role, now: Instant) {
        self.path = path;
        self.role = role;
        self.since = now;
        self.segment.no_writers = false;
        self.without_writers = None;
        self.given_up = false;
    }

    /// Switches to another descriptor of the same file. Nothing is read again.
    pub(super) fn go_on_with(&mut self, file: Arc<File>) {
        self.segment.go_on_with(file);
        self.sync_lost = false;
    }
}
