//! The journal as its reader sees it: segments, frames, records, rotation.
//!
//! Shims append frames to `journal` in the state directory and notify nobody. [`Follower`] reads the frames, assembles
//! records, syncs the file every 50 ms while it grows, and continues with new segments. `journal` becomes `seg-N` after
//! 64 MiB or one hour. `seg-N` is deleted once everything in it is committed and no process, not even a stopped one,
//! can still write to it. The caller commits [`Batch::records`] and [`Batch::position`] in one transaction.
//!
//! A position covers only synced bytes. A record may be committed before its bytes are synced. After a power cut such a
//! record is read again, and dropped by its id.
//!
//! No failure drops a record that was read. [`Follower::poll`] returns no error: a failure becomes a [`Problem`] beside
//! the batch.
//!
//! `segment` reads one file, `sync` makes it durable, `assemble` assembles records, `files` knows the names and how
//! they change, `reserve` reserves space for the case of a full disk, `trouble` keeps track of failures, `run_time`
//! finds what shims left in the run-time directory, [`wait`] sleeps, [`losses`] counts hooks that shims could not
//! store, [`reader`] reads a single file, [`probe`] marks the hooks that `doctor` sends, `write` appends records in
//! tests. The follower and its parts use the file system only through [`crate::disk`].

mod assemble;
mod files;
mod follower;
mod position;
mod reserve;
mod run_time;
mod segment;
mod sync;
mod torn;
mod trouble;
#[cfg(test)]
mod tests;

pub(crate) mod losses;
pub(crate) mod probe;
pub(crate) mod reader;
pub(crate) mod scrub;
pub(crate) mod survey;
pub(crate) mod wait;
#[cfg(test)]
pub(crate) mod write;

use hookspan_core::hook::HookContext;
use hookspan_shim::record::{self, Metadata};

use crate::dirs::StateDir;

pub(crate) use follower::{Follower, Limits, Usage};
pub(crate) use position::Position;
pub(crate) use run_time::{spare_losses, spilled};
pub(crate) use trouble::Problem;

/// Flag of a [`Record`]: its last frame is missing, and its writer has ended. The shim sets the other flags, see
/// [`hookspan_shim::frame`].
pub const FLAG_TRUNCATED: u8 = 8;

/// One run of the shim, as recorded in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Wall clock in nanoseconds, big-endian, then 64 random bits of the record. Unique, and ordered by time.
    pub id: [u8; 16],
    /// When the shim started, in nanoseconds since the Unix epoch.
    pub wall_ns: u64,
    /// `CLOCK_BOOTTIME` at the same moment, if the writer's system has it.
    pub boottime_ns: Option<u64>,
    /// Process id, if the writer knew it.
    pub pid: Option<u32>,
    /// [`FLAG_TRUNCATED`], and [`NO_EOF`](hookspan_shim::frame::NO_EOF) and [`CUT`](hookspan_shim::frame::CUT) of the shim.
    pub flags: u8,
    /// The event's name on the command line.
    pub argument: Option<String>,
    /// What the shim saw in its environment.
    pub context: HookContext,
    /// The bytes of standard input.
    pub body: Vec<u8>,
}

impl Record {
    /// A record made from the payloads of its frames; `None` if it does not begin with metadata.
    fn new(id: u64, flags: u8, metadata: &[u8], body: Vec<u8>) -> Option<Self> {
        let metadata = Metadata::decode(metadata)?;
        let stamp = metadata.stamp;
        let text = |tag| metadata.text(tag).map(|text| String::from_utf8_lossy(text).into_owned());
        Some(Self {
            id: record_id(stamp.wall_ns, id),
            wall_ns: stamp.wall_ns,
            boottime_ns: (stamp.boottime_ns != 0).then_some(stamp.boottime_ns),
            pid: (stamp.pid != 0).then_some(stamp.pid),
            flags: flags & !hookspan_shim::frame::LAST,
            argument: text(record::ARGUMENT),
            context: HookContext {
                cursor_version: text(record::CURSOR_VERSION),
                project_dir: text(record::PROJECT_DIR),
                transcript_path: text(record::TRANSCRIPT_PATH),
                cwd: text(record::PWD),
            },
            body,
        })
    }
}

/// Creates the state directory and the file in it that counts losses. Hooks need both, even before a collector has run.
///
/// # Errors
/// The directory cannot be made or used; see [`StateDir::prepare`].
pub(crate) fn prepare(dir: &StateDir) -> anyhow::Result<()> {
    dir.prepare()?;
    Ok(reserve::prepare_losses(&dir.losses()).map_err(JournalError::of("create", &dir.losses()))?)
}

/// The unique id of a record. The wall clock comes first, so that an index over ids grows at its end.
#[must_use]
pub fn record_id(wall_ns: u64, id: u64) -> [u8; 16] {
    ((u128::from(wall_ns) << 64) | u128::from(id)).to_be_bytes()
}

/// The result of one [`Follower::poll`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// Complete records, in the order in which they became complete. After a restart a record may appear again: drop it
    /// by its id.
    pub records: Vec<Record>,
    /// The new position, if it has moved. Store it in the same transaction as the records. It may come without records.
    pub position: Option<Position>,
    /// Whether a segment could not be read and may hold more records. The follower tries again; see [`Follower::problems`].
    pub unread: bool,
}

/// Counts of damage found since the follower was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Complete records.
    pub records: u64,
    /// Stretches of bytes that are not a complete frame. A writer was killed, or the disk became full, in the middle of
    /// writing.
    pub torn: u64,
    /// Frames of a later version. They are skipped.
    pub newer: u64,
    /// Frames that were read before. They are ignored.
    pub duplicate: u64,
    /// Frames with the same number as an earlier frame and different content. The earlier frame is kept.
    pub conflicting: u64,
    /// Records evicted before their last frame arrived, because too many were open. They are kept as truncated.
    pub evicted: u64,
    /// Records whose writer ended before the last frame. They are kept as truncated.
    pub truncated: u64,
    /// Records without their first frame. They cannot be stored.
    pub headless: u64,
    /// Failed syncs. Each was repeated with a new descriptor.
    pub sync_failed: u64,
}

/// A file operation of the journal that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {source}", path = .path.display())]
pub(crate) struct JournalError {
    /// The operation.
    pub action: &'static str,
    /// The file.
    pub path: std::path::PathBuf,
    /// The error.
    pub source: std::io::Error,
}

impl JournalError {
    fn of(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self { action, path, source }
    }
}

impl Counters {
    fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.torn += other.torn;
        self.newer += other.newer;
        self.duplicate += other.duplicate;
        self.conflicting += other.conflicting;
        self.evicted += other.evicted;
        self.truncated += other.truncated;
        self.headless += other.headless;
        self.sync_failed += other.sync_failed;
    }
}
