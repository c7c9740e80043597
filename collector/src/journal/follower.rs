//! Follows the journal through its segments.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::assemble::{Assembler, SegmentId};
use super::segment::Segment;
use super::sync::{Synced, Syncer};
use super::wait::{Sleeper, Waker};
use super::{
    Batch, Counters, JournalError, Position, Record, files, losses, reserve, run_time, torn,
};
use crate::clock;
use crate::dirs::StateDir;

/// How often everything that is not reading is looked after.
const CHORES: Duration = Duration::from_millis(50);
/// Boundaries noted between two syncs.
const MARKS_MAX: usize = 256;
/// Silence after which the kernel is asked to tell.
const SILENCE: Duration = Duration::from_secs(1);
/// How often something unfinished is looked at in silence: it may have waited long enough.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How long a record may lack its end before its segment is put aside to find out whether anybody still writes to it.
const UNFINISHED: Duration = Duration::from_secs(30);
/// How long committed bytes do not count against the bound: their segment is about to go.
const LINGER: Duration = Duration::from_secs(60);
/// How long a segment is kept where the system cannot tell whether anybody still writes to it.
const WITHOUT_LEASES: Duration = Duration::from_secs(24 * 3_600);

/// When segments change, and how large they may become together.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size at which the journal becomes a segment, in bytes.
    pub segment_bytes: u64,
    /// Age at which it does.
    pub segment_age: Duration,
    /// Bytes of all segments at which hooks are no longer kept. A little more than the shim's own bound, so that a
    /// collector started at that bound can take new hooks at once.
    pub bound_bytes: u64,
    /// Least age of a segment's name before it may go: somebody may have looked up the old name and not opened it yet.
    pub name_age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            segment_age: Duration::from_secs(3_600),
            bound_bytes: hookspan_shim::program::JOURNAL_MAX_BYTES + (64 << 20),
            name_age: Duration::from_secs(10),
        }
    }
}

/// What the journal takes on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of all segments.
    pub bytes: u64,
    /// Bytes that a lost write-ahead log would need again: no checkpoint is known to cover them.
    pub pending_bytes: u64,
    /// Bytes that have not been read.
    pub unread_bytes: u64,
    /// Segments, the journal included.
    pub segments: u64,
    /// The bound is reached: hooks are counted instead of kept.
    pub stopped: bool,
}

/// Reads the journal of a state directory. There must be one only; see [`crate::dirs::Lock`].
///
/// Order of calls: [`Follower::poll`] until it returns nothing, [`Follower::wait`], and so on;
/// [`Follower::may_forget`] whenever a position has been stored for good.
#[derive(Debug)]
pub struct Follower {
    dir: StateDir,
    boot: String,
    limits: Limits,
    held: BTreeMap<SegmentId, Held>,
    next_id: SegmentId,
    assembler: Assembler,
    counters: Counters,
    stored: Position,
    reported: Position,
    sleeper: Sleeper,
    syncer: Syncer,
    chores_at: Option<Instant>,
    active_at: Instant,
    stopped: bool,
    /// Where shims spill: see [`run_time`].
    spills: Vec<PathBuf>,
}

#[derive(Debug)]
struct Held {
    segment: Segment,
    path: PathBuf,
    role: Role,
    since: Instant,
    /// Boundaries between frames up to which everything had been dealt with, not yet known to be synced.
    marks: VecDeque<u64>,
    /// What the position says: synced, and no open record starts before it.
    durable: u64,
    /// What the store has said it has for good, since the follower was opened: until then its log may still be lost.
    forgettable: u64,
    /// What it is known to have, in its log or not.
    stored: u64,
    reserved: u64,
    /// Read to its end, nobody is left who could write to it, and what it leaves unfinished has been handed out.
    given_up: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Journal,
    Sealed,
    /// A sealed segment outside the state directory.
    Spill,
}

impl Follower {
    /// Opens the journal, creating what is missing and finishing what was interrupted, and starts at `position`, the last
    /// one that was stored.
    ///
    /// # Errors
    /// The state directory cannot be read or written. A damaged segment is no error.
    pub fn open(dir: &StateDir, position: &Position, limits: Limits) -> Result<Self, JournalError> {
        let fail = |action| JournalError::of(action, dir.root());
        #[cfg(target_os = "linux")]
        hookspan_shim::linux::ignore_lease_signal();
        files::settle(dir).map_err(fail("prepare the journal in"))?;
        reserve::prepare_losses(&dir.losses()).map_err(fail("create losses in"))?;
        losses::gather(dir).map_err(fail("gather losses in"))?;
        torn::forget_old(dir).map_err(fail("tidy"))?;
        let now = clock::instant();
        let sleeper = Sleeper::new().map_err(fail("watch"))?;
        let mut follower = Self {
            syncer: Syncer::start(sleeper.waker()).map_err(fail("start a thread for"))?,
            dir: dir.clone(),
            boot: boot_id(),
            limits,
            held: BTreeMap::new(),
            next_id: 0,
            assembler: Assembler::default(),
            counters: Counters::default(),
            stored: position.clone(),
            reported: position.clone(),
            sleeper,
            chores_at: None,
            active_at: now,
            stopped: false,
            spills: run_time::spill_files(dir),
        };
        for (_, path) in files::segments(dir).map_err(fail("list"))? {
            follower.hold(path, Role::Sealed, now)?;
        }
        follower.hold(dir.journal(), Role::Journal, now)?;
        follower.hold_old_spills(now);
        Ok(follower)
    }

    /// Reads on until `records_max` records are complete or nothing more is there, without waiting.
    ///
    /// # Errors
    /// The file system fails. Try again later: nothing is lost by it.
    pub fn poll(&mut self, records_max: usize) -> Result<Batch, JournalError> {
        let now = clock::instant();
        let mut records = Vec::new();
        let ids: Vec<SegmentId> = self.held.keys().copied().collect();
        for id in ids {
            self.read(id, now, records_max, &mut records)?;
        }
        if !records.is_empty() {
            self.active_at = now;
        }
        if self.active_at == now {
            self.syncer.rouse();
        }
        self.take_syncs();
        if self.chores_at.is_none_or(|at| now.duration_since(at) >= CHORES) {
            self.chores_at = Some(now);
            self.chores(now, &mut records)?;
        }
        let position = self.position()?;
        let changed = position != self.reported;
        if changed {
            self.reported = position.clone();
        }
        Ok(Batch { records, position: changed.then_some(position) })
    }

    /// Sleeps until there may be more to read, at most so long. Returns early at a [`Waker::wake`].
    pub fn wait(&mut self, at_most: Duration) {
        let silent = clock::instant().duration_since(self.active_at);
        if silent < SILENCE {
            let look_again = if silent < CHORES { 2 } else { 5 };
            return self.sleeper.sleep(at_most.min(Duration::from_millis(look_again)));
        }
        // A new name is a journal that a shim has begun, or an import.
        let folders = [self.dir.root(), &self.dir.imports()];
        if !self.sleeper.watch(&files::current(&self.dir), &folders) {
            return self.sleeper.sleep(at_most.min(Duration::from_millis(20)));
        }
        // What came before the watch was set would wake nobody.
        if self.held.values().any(|held| held.segment.is_behind()) {
            return;
        }
        // A last sync, which rings when it is done.
        self.syncer.rest();
        let mut longest = at_most;
        for held in self.held.values() {
            let unfinished = held.segment.offset() < held.segment.len().unwrap_or(0);
            if unfinished {
                longest = longest.min(LOOK_AGAIN);
            }
        }
        self.sleeper.sleep_watching(longest);
    }

    /// Something that ends [`Follower::wait`] from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.sleeper.waker()
    }

    /// Says that `position` has been stored so that not even a power cut takes it back, together with every record that
    /// came with it or before it. Segments that lie wholly before it may go.
    pub fn may_forget(&mut self, position: &Position) {
        for held in self.held.values_mut() {
            if let Ok(Some(fingerprint)) = held.segment.fingerprint() {
                held.forgettable = held.forgettable.max(position.offset_in(fingerprint));
                held.stored = held.stored.max(held.forgettable);
            }
        }
    }

    /// Whether [`Self::may_forget`] would let a segment go: making sure that the store has something for good costs the disk
    /// two waits.
    pub fn would_forget(&mut self, position: &Position) -> bool {
        self.held.values_mut().filter(|held| held.role != Role::Journal).any(|held| {
            let Ok(Some(fingerprint)) = held.segment.fingerprint() else { return false };
            let len = held.segment.len().unwrap_or(u64::MAX);
            held.forgettable < len && position.offset_in(fingerprint) >= len
        })
    }

    /// What was wrong with what was read.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What the journal takes on disk.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut usage =
            Usage { segments: self.held.len() as u64, stopped: self.stopped, ..Usage::default() };
        for held in self.held.values() {
            let len = held.segment.len().unwrap_or(0);
            usage.bytes += len;
            usage.pending_bytes += len.saturating_sub(held.stored);
            usage.unread_bytes += len.saturating_sub(held.segment.offset());
        }
        usage
    }

    fn hold(&mut self, path: PathBuf, role: Role, now: Instant) -> Result<(), JournalError> {
        let fail = |action| JournalError::of(action, &path);
        let file = files::open(&path).map_err(fail("open"))?;
        let len = file.metadata().map_err(fail("look at"))?.len();
        let fingerprint = super::segment::fingerprint(&file).map_err(fail("read"))?;
        let from = fingerprint.map_or(0, |key| self.stored.start_in(key, len, &self.boot));
        self.syncer.add(self.next_id, &file, from).map_err(fail("sync"))?;
        let mut segment = Segment::new(file, from);
        segment.keeps_torn = true;
        let held = Held {
            segment,
            path,
            role,
            since: now,
            marks: VecDeque::new(),
            durable: from,
            forgettable: 0,
            stored: from,
            reserved: 0,
            given_up: false,
        };
        self.held.insert(self.next_id, held);
        self.next_id += 1;
        Ok(())
    }

    fn read(
        &mut self,
        id: SegmentId,
        now: Instant,
        records_max: usize,
        records: &mut Vec<Record>,
    ) -> Result<(), JournalError> {
        let Some(held) = self.held.get_mut(&id) else { return Ok(()) };
        let (assembler, mut counters) = (&mut self.assembler, self.counters);
        let mut more = true;
        while more && records.len() < records_max {
            let mut found = Counters::default();
            let before = held.segment.offset();
            more = held
                .segment
                .read(now, &mut counters, |frame| {
                    assembler.take(id, frame, now, &mut found, records);
                    records.len() < records_max
                })
                .map_err(JournalError::of("read", &held.path))?;
            counters.add(&found);
            if held.segment.offset() != before {
                self.active_at = now;
            }
            if let Err(error) = torn::keep(&self.dir, &held.path, &held.segment.take_torn()) {
                tracing::warn!(%error, "journal.torn_not_kept");
            }
        }
        self.counters = counters;
        Ok(())
    }

    /// Everything but reading.
    fn chores(&mut self, now: Instant, records: &mut Vec<Record>) -> Result<(), JournalError> {
        self.keep_names(now)?;
        self.take_spill(now);
        self.let_go(now, records)?;
        self.keep_bound(now)
    }

    /// Moves the positions up to what has been synced and dealt with, always to a boundary between frames.
    fn take_syncs(&mut self) {
        for (id, held) in &mut self.held {
            let offset = held.segment.offset();
            held.mark(self.assembler.oldest_in(*id).unwrap_or(offset));
            match self.syncer.synced(*id) {
                Synced::UpTo(synced) => held.settle(synced),
                Synced::Failed => {
                    self.counters.sync_failed += 1;
                    // Never sync the same descriptor again: the file is opened and read anew.
                    let anew = files::open(&held.path)
                        .and_then(|file| self.syncer.add(*id, &file, held.durable).map(|()| file));
                    match anew {
                        Ok(file) => {
                            self.assembler.forget(*id);
                            held.marks.clear();
                            held.segment.rewind(file, held.durable);
                        }
                        Err(error) => tracing::warn!(%error, "journal.not_opened_again"),
                    }
                }
            }
        }
    }

    /// Puts the journal aside when it is large, old, or holds a record whose end does not come; takes notice when a shim
    /// has stopped it.
    fn keep_names(&mut self, now: Instant) -> Result<(), JournalError> {
        let dir = self.dir.clone();
        let fail = |action| JournalError::of(action, dir.root());
        let Some((id, held)) = self.held.iter_mut().find(|(_, held)| held.role == Role::Journal)
        else {
            return self.hold(self.dir.journal(), Role::Journal, now);
        };
        let id = *id;
        let found = held.segment.file().metadata().map_err(fail("look at the journal in"))?;
        let ours = files::identity(&found);
        if files::regular(&self.dir.journal()).map_err(fail("look at"))? != Some(ours) {
            if self.stopped {
                return Ok(());
            }
            // A shim has reached the bound while nobody was reading, or somebody has moved the file.
            return self.start_anew(id, now);
        }
        let len = found.len();
        if len >= held.reserved {
            held.reserved = reserve::extend_at(&held.path, len);
        }
        let unfinished = self.assembler.oldest_in(id).is_some()
            && self.assembler.oldest_since().is_some_and(|at| now.duration_since(at) >= UNFINISHED);
        let age = now.duration_since(held.since);
        if len >= self.limits.segment_bytes
            || (len > 0 && (unfinished || age >= self.limits.segment_age))
        {
            match files::rotate(&self.dir, ours).map_err(fail("rotate the journal in"))? {
                Some(path) => self.put_aside(id, path, now)?,
                None => self.start_anew(id, now)?,
            }
        }
        Ok(())
    }

    fn put_aside(
        &mut self,
        id: SegmentId,
        path: PathBuf,
        now: Instant,
    ) -> Result<(), JournalError> {
        if let Some(held) = self.held.get_mut(&id) {
            held.role = Role::Sealed;
            held.path = path;
            held.since = now;
        }
        self.hold(self.dir.journal(), Role::Journal, now)
    }

    /// Puts the names in order and goes on with the fresh journal, the old one as a segment wherever it is now.
    fn start_anew(&mut self, id: SegmentId, now: Instant) -> Result<(), JournalError> {
        let fail = |action| JournalError::of(action, self.dir.root());
        files::settle(&self.dir).map_err(fail("put in order the journal of"))?;
        self.stopped = false;
        let ours = self.held.get(&id).and_then(|held| held.segment.file().metadata().ok());
        let ours = ours.map(|found| files::identity(&found));
        let names = files::segments(&self.dir).map_err(fail("list"))?;
        let mut paths = names.into_iter().map(|(_, path)| path);
        match paths.find(|path| ours.is_some() && files::regular(path).is_ok_and(|at| at == ours)) {
            Some(path) => self.put_aside(id, path, now),
            None => {
                // Deleted or moved away from outside: what has been read of it stays read.
                self.held.remove(&id);
                self.syncer.remove(id);
                self.hold(self.dir.journal(), Role::Journal, now)
            }
        }
    }

    /// Lets segments go that are committed and that nobody can write to any more.
    fn let_go(&mut self, now: Instant, records: &mut Vec<Record>) -> Result<(), JournalError> {
        let sealed: Vec<SegmentId> = self
            .held
            .iter()
            .filter(|(_, held)| held.role != Role::Journal)
            .map(|(id, _)| *id)
            .collect();
        for id in sealed {
            let Some(held) = self.held.get_mut(&id) else { continue };
            if now.duration_since(held.since) < self.limits.name_age {
                continue;
            }
            if !held.segment.no_writers {
                held.segment.no_writers = !has_writers(held, now);
                continue;
            }
            let len = held.segment.len().unwrap_or(u64::MAX);
            if !held.given_up {
                // It is read on in its turn, a little at a time like any other: behind a backlog it may be whole.
                held.given_up = held.segment.offset() >= len;
                if held.given_up {
                    self.assembler.give_up_on(id, &mut self.counters, records);
                }
                continue;
            }
            let committed = held.forgettable >= len || (len < 40 && held.segment.offset() >= len);
            if committed && self.assembler.oldest_in(id).is_none() {
                files::remove(&held.path).map_err(JournalError::of("delete", &held.path))?;
                close_beside((self.held.remove(&id), self.syncer.remove(id)));
            }
        }
        Ok(())
    }

    /// Stops the journal when too much is kept, and lets it go on when there is room again.
    fn keep_bound(&mut self, now: Instant) -> Result<(), JournalError> {
        let mut bytes = 0;
        for held in self.held.values() {
            let len = held.segment.len().unwrap_or(0);
            // What is stored of the journal itself goes as soon as it is put aside.
            let lingers = now.duration_since(held.since) < LINGER;
            let open = held.role == Role::Journal;
            bytes += if lingers || open { len.saturating_sub(held.forgettable) } else { len };
        }
        let journal = self.held.iter().find(|(_, held)| held.role == Role::Journal);
        let Some((id, held)) = journal else { return Ok(()) };
        if !self.stopped && bytes > self.limits.bound_bytes {
            tracing::warn!(bytes, "journal.stopped");
            self.stopped = true;
            return files::stop(&self.dir, held.segment.file())
                .map_err(JournalError::of("stop the journal in", self.dir.root()));
        }
        if self.stopped && bytes <= self.limits.bound_bytes / 4 * 3 {
            tracing::info!(bytes, "journal.resumed");
            let id = *id;
            return self.start_anew(id, now);
        }
        Ok(())
    }

    /// Takes over what shims wrote to the run-time directory because the state directory took no more.
    fn take_spill(&mut self, now: Instant) {
        for spill in self.spills.clone() {
            if !spill.is_file() || !run_time::is_ours(&spill) {
                continue;
            }
            let taken = (1_u32..)
                .map(|number| spill.with_extension(number.to_string()))
                .find(|path| !path.exists());
            let Some(taken) = taken else { continue };
            let renamed = fs::rename(&spill, &taken);
            if let Err(error) = renamed {
                tracing::warn!(%error, "journal.spill_kept");
            } else if let Err(error) = self.hold(taken, Role::Spill, now) {
                tracing::warn!(%error, "journal.spill_unreadable");
            }
        }
    }

    fn hold_old_spills(&mut self, now: Instant) {
        let mut old: Vec<PathBuf> =
            self.spills.iter().flat_map(|spill| run_time::beside(spill)).collect();
        old.retain(|path| path.extension().is_some());
        for path in old {
            if let Err(error) = self.hold(path, Role::Spill, now) {
                tracing::warn!(%error, "journal.spill_unreadable");
            }
        }
    }

    fn position(&mut self) -> Result<Position, JournalError> {
        let mut offsets = BTreeMap::new();
        for held in self.held.values_mut().filter(|held| held.durable > 0) {
            let key = held.segment.fingerprint().map_err(JournalError::of("read", &held.path))?;
            offsets.extend(key.map(|key| (key, held.durable)));
        }
        Ok(Position::new(&self.boot, offsets))
    }
}

/// Closes what is deleted without waiting: only then does the file system give its room back, and a disk that is told of each
/// block takes a tenth of a second for a segment. Without a thread it is closed here.
fn close_beside(deleted: impl Send + 'static) {
    let _refused = thread::Builder::new().name("close".into()).spawn(move || drop(deleted));
}

impl Held {
    /// Notes a boundary. When there are too many the latest ones are left out: it only makes a position older.
    fn mark(&mut self, boundary: u64) {
        let last = self.marks.back().copied().unwrap_or(self.durable);
        if boundary > last && self.marks.len() < MARKS_MAX {
            self.marks.push_back(boundary);
        }
    }

    /// Moves up to the last boundary that is on the disk.
    fn settle(&mut self, synced: u64) {
        while let Some(boundary) = self.marks.front().copied().filter(|at| *at <= synced) {
            self.marks.pop_front();
            self.durable = boundary;
        }
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

/// Whether anybody, even a stopped process, still has the segment open for writing.
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
        // No leases here, as on most network file systems: keep it beyond any hook's lifetime.
        Err(_) => now.duration_since(held.since) < WITHOUT_LEASES || is_open_somewhere(&held.path),
    }
}

#[cfg(not(target_os = "linux"))]
fn has_writers(held: &Held, now: Instant) -> bool {
    now.duration_since(held.since) < WITHOUT_LEASES
}

/// Whether a process that we may look at, other than ourselves, has the file open.
#[cfg(target_os = "linux")]
fn is_open_somewhere(path: &Path) -> bool {
    let ours = std::process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|process| process.file_name() != *ours)
        .flat_map(|process| fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten())
        .any(|open| fs::read_link(open.path()).is_ok_and(|target| target == path))
}

/// Names this start of the system, or nothing where there is no such name.
fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}
