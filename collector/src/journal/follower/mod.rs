//! Follows the journal through its segments.
//!
//! Reading and housekeeping are separate. Reading appends records to [`Follower::ready`] and moves the offsets.
//! Housekeeping changes neither: a step that fails becomes a [`Problem`] and is tried again later, and the records that
//! were read stay in the batch.
//!
//! | module | does |
//! |---|---|
//! | `held` | one open segment |
//! | `reading` | frames to records |
//! | `syncing` | moves positions as far as the disk has synced; handles failed syncs |
//! | `names` | rolls the journal, and creates a new one if it is gone |
//! | `spill` | takes over what shims wrote to the run-time directory |
//! | `deleting` | deletes segments that are stored and have no writer |
//! | `bound` | stops the journal at its bound, and opens it again |

mod bound;
mod deleting;
mod held;
mod names;
mod reading;
mod spill;
mod syncing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::assemble::{Assembler, SegmentId};
use super::sync::Syncer;
use super::trouble::{Problem, Task, Troubles};
use super::wait::{Sleeper, Waker};
use super::{
    Batch, Counters, JournalError, Position, Record, files, losses, reserve, run_time, torn,
};
use crate::clock;
use crate::dirs::StateDir;
use crate::disk::{self, Identity};
use held::{Held, Opened, Role};

/// After this long without hooks, the follower asks the kernel to wake it.
const SILENCE: Duration = Duration::from_secs(1);
/// While no hooks arrive, an unfinished frame is checked again after this time. A frame that stays unfinished counts as
/// torn.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// When the journal is rolled, and how large all segments may become together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Size at which the journal becomes a segment, in bytes.
    pub segment_bytes: u64,
    /// Age at which the journal becomes a segment.
    pub segment_age: Duration,
    /// Maximum bytes of all segments; further hooks are not kept. This is slightly more than the shim's own limit, so
    /// that a collector can accept new hooks at once when it starts with a journal at that limit.
    pub bound_bytes: u64,
    /// A segment is deleted only after its name is this old. A shim may have looked up the old name and not opened the
    /// file yet.
    pub name_age: Duration,
    /// Time between two rounds of housekeeping. Also the first wait after a round that failed.
    pub chores: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            segment_age: Duration::from_secs(3_600),
            bound_bytes: hookspan_shim::program::JOURNAL_MAX_BYTES + (64 << 20),
            name_age: Duration::from_secs(10),
            chores: Duration::from_millis(50),
        }
    }
}

/// What the journal takes on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of all segments.
    pub bytes: u64,
    /// Bytes that no checkpoint is known to cover. They must be read again if the write-ahead log is lost.
    pub pending_bytes: u64,
    /// Bytes that have not been read.
    pub unread_bytes: u64,
    /// Segments, the journal included.
    pub segments: u64,
    /// The bound is reached: hooks are counted and not kept.
    pub stopped: bool,
}

/// Reads the journal of a state directory. There must be only one; see [`crate::dirs::Lock`].
///
/// Call [`Follower::poll`] until it returns nothing, then [`Follower::wait`], and repeat. Call [`Follower::may_forget`]
/// whenever a position was stored durably.
#[derive(Debug)]
pub(crate) struct Follower {
    dir: StateDir,
    boot: String,
    limits: Limits,
    held: BTreeMap<SegmentId, Held>,
    next_id: SegmentId,
    assembler: Assembler,
    /// Records that were read and not handed out yet. Only [`Follower::poll`] empties the list.
    ready: Vec<Record>,
    counters: Counters,
    stored: Position,
    reported: Position,
    sleeper: Sleeper,
    syncer: Syncer,
    troubles: Troubles,
    chores_at: Option<Instant>,
    active_at: Instant,
    stopped: bool,
    /// Names have changed, and the change may not be durable yet.
    names_unsynced: bool,
    /// Paths of spill files: see [`run_time`].
    spills: Vec<PathBuf>,
    /// The run-time directory may contain spilled files that are not followed yet.
    spills_unheld: bool,
    /// When the follower last searched for spilled files and could follow all of them.
    spills_seen: Option<Instant>,
}

impl Follower {
    /// Opens the journal: creates missing files, completes interrupted changes, and starts at `position`, the last
    /// stored one.
    ///
    /// # Errors
    /// The state directory cannot be read or written. A damaged segment is no error.
    pub(crate) fn open(
        dir: &StateDir,
        position: &Position,
        limits: Limits,
    ) -> Result<Self, JournalError> {
        let watch = JournalError::of("watch", dir.root());
        let sleeper = Sleeper::new().map_err(watch)?;
        let syncer = Syncer::start(sleeper.waker());
        let syncer = syncer.map_err(JournalError::of("start a thread for", dir.root()))?;
        Self::open_with(dir, position, limits, sleeper, syncer)
    }

    /// A follower that syncs only on request.
    #[cfg(test)]
    pub(super) fn by_hand(
        dir: &StateDir,
        position: &Position,
        limits: Limits,
    ) -> Result<Self, JournalError> {
        let sleeper = Sleeper::new().map_err(JournalError::of("watch", dir.root()))?;
        let syncer = Syncer::without_thread(sleeper.waker());
        Self::open_with(dir, position, limits, sleeper, syncer)
    }

    /// Syncs once.
    #[cfg(test)]
    pub(super) fn sync_by_hand(&self) {
        self.syncer.sync_all();
    }

    /// Files that are followed.
    #[cfg(test)]
    pub(super) fn held_count(&self) -> usize {
        self.held.len()
    }

    fn open_with(
        dir: &StateDir,
        position: &Position,
        limits: Limits,
        sleeper: Sleeper,
        syncer: Syncer,
    ) -> Result<Self, JournalError> {
        let fail = |action| JournalError::of(action, dir.root());
        #[cfg(target_os = "linux")]
        hookspan_shim::linux::ignore_lease_signal();
        files::settle(dir).map_err(fail("prepare the journal in"))?;
        reserve::prepare_losses(&dir.losses()).map_err(fail("create losses in"))?;
        losses::gather(dir).map_err(fail("gather losses in"))?;
        if let Err(error) = torn::forget_old(dir) {
            tracing::warn!(%error, "journal.torn_kept");
        }
        let now = clock::instant();
        let mut follower = Self {
            dir: dir.clone(),
            boot: boot_id(),
            limits,
            held: BTreeMap::new(),
            next_id: 0,
            assembler: Assembler::default(),
            ready: Vec::new(),
            counters: Counters::default(),
            stored: position.clone(),
            reported: position.clone(),
            sleeper,
            syncer,
            troubles: Troubles::new(limits.chores),
            chores_at: None,
            active_at: now,
            stopped: false,
            names_unsynced: false,
            spills: run_time::spill_files(dir).map_err(fail("look at"))?,
            spills_unheld: true,
            spills_seen: None,
        };
        for (_, path) in files::segments(dir).map_err(fail("list"))? {
            follower.hold(path, Role::Sealed, now)?;
        }
        follower.hold(dir.journal(), Role::Journal, now)?;
        follower.housekeep(Task::Spill, now, Self::take_spill);
        Ok(follower)
    }

    /// Reads until `records_max` records are complete or the end of the journal is reached. Never waits.
    ///
    /// It returns no error: the batch contains everything that was read, even if something failed. See
    /// [`Batch::unread`] and [`Self::problems`].
    pub(crate) fn poll(&mut self, records_max: usize) -> Batch {
        let now = clock::instant();
        let unread = self.read_all(now, records_max);
        if self.active_at == now {
            self.syncer.rouse();
        }
        let synced = self.take_syncs(now);
        self.troubles.note(Task::Sync, synced, now);
        if self.chores_at.is_none_or(|at| now.duration_since(at) >= self.limits.chores) {
            self.chores_at = Some(now);
            self.housekeep(Task::Roll, now, Self::keep_names);
            self.housekeep(Task::Spill, now, Self::take_spill);
            self.housekeep(Task::Delete, now, Self::let_go);
            self.housekeep(Task::Bound, now, Self::keep_bound);
            disk::spare::refill();
        }
        self.hand_out(unread)
    }

    /// Hands out records together with the position after them. Only this function hands out records.
    fn hand_out(&mut self, unread: bool) -> Batch {
        let position = self.position();
        let changed = position != self.reported;
        if changed {
            self.reported = position.clone();
        }
        let records = std::mem::take(&mut self.ready);
        Batch { records, position: changed.then_some(position), unread }
    }

    /// Runs a housekeeping task and notes the result. A task that failed a moment ago is skipped.
    fn housekeep(
        &mut self,
        task: Task,
        now: Instant,
        work: fn(&mut Self, Instant) -> Result<(), JournalError>,
    ) {
        if self.troubles.is_due(task, now) {
            let done = work(self, now);
            self.troubles.note(task, done, now);
        }
    }

    /// Sleeps until there may be more to read, but at most this long. A [`Waker::wake`] ends the sleep.
    pub(crate) fn wait(&mut self, at_most: Duration) {
        let now = clock::instant();
        let silent = now.duration_since(self.active_at);
        if silent < SILENCE {
            let look_again = if silent < Duration::from_millis(50) { 2 } else { 5 };
            return self.sleeper.sleep(at_most.min(Duration::from_millis(look_again)));
        }
        // A new file name means that a shim has created a journal, or that there is an import.
        let folders = [self.dir.root(), &self.dir.imports()];
        if !self.sleeper.watch(&files::current(&self.dir), &folders) {
            return self.sleeper.sleep(at_most.min(Duration::from_millis(20)));
        }
        // A change before the watch was set causes no notification.
        let readable = |held: &&Held| held.reading.is_due(now);
        if self.held.values().filter(readable).any(|held| held.segment.is_behind().unwrap_or(false))
        {
            return;
        }
        // When the last sync is done, it wakes the follower.
        self.syncer.rest();
        let longest = self.held.values().fold(at_most, |longest, held| {
            let unfinished = held.segment.offset() < held.segment.len().unwrap_or(u64::MAX);
            let longest = if unfinished { longest.min(LOOK_AGAIN) } else { longest };
            longest.min(held.reading.left(now).unwrap_or(longest))
        });
        self.sleeper.sleep_watching(longest);
    }

    /// A handle that ends [`Follower::wait`] from another thread.
    #[must_use]
    pub(crate) fn waker(&self) -> Waker {
        self.sleeper.waker()
    }

    /// Tells the follower that everything up to `position` is stored durably and survives a power cut. Segments that
    /// lie completely before `position` may then be deleted.
    pub(crate) fn may_forget(&mut self, position: &Position) {
        for held in self.held.values_mut() {
            if let Some(fingerprint) = held.segment.fingerprint() {
                held.forgettable = held.forgettable.max(position.offset_in(fingerprint));
                held.stored = held.stored.max(held.forgettable);
            }
        }
    }

    /// Whether [`Self::may_forget`] would allow a segment to be deleted. Ask this first, because making the store
    /// durable costs two waits for the disk.
    #[must_use]
    pub(crate) fn would_forget(&self, position: &Position) -> bool {
        self.held.values().filter(|held| held.role != Role::Journal).any(|held| {
            let Some(fingerprint) = held.segment.fingerprint() else { return false };
            let len = held.segment.len().unwrap_or(u64::MAX);
            held.forgettable < len && position.offset_in(fingerprint) >= len
        })
    }

    /// Counts of damage found.
    #[must_use]
    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// Tasks that currently fail. They are tried again.
    #[must_use]
    pub(crate) fn problems(&self) -> Arc<[Problem]> {
        self.troubles.shown()
    }

    /// What the journal takes on disk.
    #[must_use]
    pub(crate) fn usage(&self) -> Usage {
        let mut usage =
            Usage { segments: self.held.len() as u64, stopped: self.stopped, ..Usage::default() };
        for held in self.held.values() {
            let len = held.segment.len().unwrap_or(held.segment.offset());
            usage.bytes += len;
            usage.pending_bytes += len.saturating_sub(held.stored);
            usage.unread_bytes += len.saturating_sub(held.segment.offset());
        }
        usage
    }

    /// Opens a file and follows it from the stored position.
    fn hold(&mut self, path: PathBuf, role: Role, now: Instant) -> Result<(), JournalError> {
        let opened = Opened::at(&path)?;
        self.follow(opened, path, role, now);
        Ok(())
    }

    /// Follows an open file. If the file is already followed (a journal that was moved away and back), only its name
    /// changes. This function cannot fail.
    fn follow(&mut self, opened: Opened, path: PathBuf, role: Role, now: Instant) {
        let known = self.held.values_mut().find(|held| held.identity == opened.identity);
        if let Some(held) = known {
            return held.rename(path, role, now);
        }
        let from =
            opened.fingerprint.map_or(0, |key| self.stored.start_in(key, opened.len, &self.boot));
        self.syncer.add(self.next_id, &opened.file, from);
        self.held.insert(self.next_id, Held::new(opened, path, role, from, now));
        self.next_id += 1;
    }

    fn is_held(&self, identity: Identity) -> bool {
        self.held.values().any(|held| held.identity == identity)
    }

    fn journal_id(&self) -> Option<SegmentId> {
        self.held.iter().find(|(_, held)| held.role == Role::Journal).map(|(id, _)| *id)
    }
}

/// Identifies this boot of the system. Empty if the system has no such id, or if the id cannot be read. Without the id,
/// more bytes are read twice.
fn boot_id() -> String {
    let id = disk::read(Path::new("/proc/sys/kernel/random/boot_id")).ok().flatten();
    String::from_utf8_lossy(&id.unwrap_or_default()).trim().to_owned()
}
