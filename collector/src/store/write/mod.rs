//! The write side: one connection, and one transaction per batch. A batch is stored completely or not at all.

mod changes;
mod checkpoints;
mod delete;
mod derived;
mod files;
mod names;
mod novel;
mod prepare;
mod raw;
mod reach;
mod replay;
mod room;
mod sketches;
mod spans;
mod subjects;
mod times;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crossbeam_channel::Sender;
use hookspan_core::{HookSource, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

pub(crate) use changes::Changes;
use changes::Told;
pub(crate) use prepare::Reading;
pub use prepare::{Arrival, Preparer};
pub(crate) use raw::{HOOK_COLUMNS, HOOK_COLUMNS_ALONE, HOOK_TABLES, HOOK_TABLES_ALONE, hook};
pub(super) use sketches::{BLOCK_DAYS, DAY_HOURS, DIGITS, HEAT_BUCKETS, LONGEST_US, heat_read};
pub(super) use times::{DAY_QUARTERS, QUARTER_NS, Sums, TURN_SUMS, plus, turn_sums};

use super::codec::Unpacker;
use super::open::{self, OpenError};
use checkpoints::Checkpoints;
use files::Files;
use names::Names;
use raw::{Log, Packs};
use reach::Reach;
use sketches::Sketches;
use spans::{Ending, Spans};
use subjects::Subjects;
use times::Times;

/// Key of the state table: the last hook number that was used when something was deleted.
const GIVEN: &str = "given_seq";

/// A hook that is read more than 10 s after its timestamp counts as having waited for a collector to start.
const ARRIVAL_MAX_NS: i64 = 10_000_000_000;

/// The database, used by its one writer.
pub struct Store {
    path: PathBuf,
    db: Connection,
    checkpoints: Option<Checkpoints>,
    names: Names,
    files: Files,
    sketches: Sketches,
    times: Times,
    reach: Reach,
    subjects: Subjects,
    ending: Ending,
    marks: Marks,
    /// Increments of counters that are not written yet.
    counted: BTreeMap<Cow<'static, str>, u64>,
    /// Unknown names that already have a counter.
    novel: BTreeSet<String>,
    unpacker: Unpacker,
    /// Hooks committed since the checkpoint thread was last notified.
    written: u64,
    /// Whether commits return before the write-ahead log is synced; see [`Self::set_haste`].
    haste: bool,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.path)
            .field("marks", &self.marks)
            .finish_non_exhaustive()
    }
}

/// Counters of progress. They are reset if a transaction is rolled back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks {
    /// Last transaction.
    rev: u64,
    /// Highest hook number that was ever used in the raw log.
    seq: u64,
    /// Number of the last hook whose effects are in the derived tables. It is lower than `seq` only during a rebuild.
    folded: u64,
    /// Last number used in the export queue.
    settled: i64,
    /// Whether a rebuild is running. During a rebuild, spans keep their old numbers in the export queue; see
    /// `settled_before`.
    rebuilding: bool,
}

/// What a committed transaction changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Its revision.
    pub rev: u64,
    /// Number of written spans by root conversation; 0 for a session of which no span was written.
    pub sessions: BTreeMap<String, u64>,
    /// Whether a span settled, so that exporters have work.
    pub settled: bool,
}

impl Committed {
    fn add(&mut self, root: &str, spans: u64) {
        match self.sessions.get_mut(root) {
            Some(sum) => *sum += spans,
            None => drop(self.sessions.insert(root.to_owned(), spans)),
        }
    }
}

impl Store {
    /// Opens the database at `path`. Creates it if it does not exist.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let db = open::writer(path)?;
        let marks = Marks::read(&db)
            .map_err(|source| OpenError::Sqlite { path: path.to_path_buf(), source })?;
        let novel = novel::named(&db)
            .map_err(|source| OpenError::Sqlite { path: path.to_path_buf(), source })?;
        Ok(Self {
            path: path.to_path_buf(),
            db,
            checkpoints: None,
            names: Names::default(),
            files: Files::default(),
            sketches: Sketches::default(),
            times: Times::default(),
            reach: Reach::default(),
            subjects: Subjects::default(),
            ending: Ending::default(),
            marks,
            counted: BTreeMap::new(),
            novel,
            unpacker: Unpacker::default(),
            written: 0,
            haste: false,
        })
    }

    /// Opens the database again. After an I/O error, the connection's cached state cannot be trusted.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn reopen(&mut self) -> Result<(), OpenError> {
        let counted = std::mem::take(&mut self.counted);
        let beside = self.checkpoints.take().is_some();
        let fresh = Self::open(&self.path);
        self.counted = counted;
        let fresh = fresh?;
        self.db = fresh.db;
        self.haste = false;
        if beside {
            self.checkpoint_beside()?;
        }
        self.marks = fresh.marks;
        self.names.clear();
        self.files.clear();
        self.sketches.clear();
        self.times.clear();
        self.reach.clear();
        self.subjects.clear();
        self.ending.clear();
        Ok(())
    }

    /// Runs `work` in one transaction. An error undoes everything, in memory and on disk, so `work` may be repeated.
    ///
    /// # Errors
    /// Returns the error of `work` or SQLite.
    pub fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<(T, Committed)> {
        // This comes before the work. If it failed after the commit, the caller would repeat work that is already
        // stored.
        self.checkpoint_some()?;
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        let before = (self.marks, self.counted.clone());
        self.marks.rev += 1;
        let mut open =
            Transaction { store: self, packs: Packs::default(), committed: Committed::default() };
        let done =
            work(&mut open).and_then(|value| open.close().map(|committed| (value, committed)));
        match done {
            Ok(done) => {
                self.counted.clear();
                Ok(done)
            }
            Err(error) => {
                // A failed commit may have ended the transaction already. In that case, there is nothing to roll back.
                let _ended = self.db.execute_batch("ROLLBACK");
                (self.marks, self.counted) = before;
                self.names.clear();
                self.files.clear();
                self.sketches.clear();
                self.times.clear();
                self.reach.clear();
                self.subjects.clear();
                self.ending.clear();
                Err(error)
            }
        }
    }

    /// Runs a statement of another part (export positions) in a separate transaction.
    ///
    /// # Errors
    /// Returns the error of `work` or SQLite. Then nothing is stored.
    pub fn run<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let own = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = work(&own)?;
        own.commit()?;
        Ok(value)
    }

    /// Adds to a counter. The change is written with the next transaction.
    pub fn count(&mut self, key: impl Into<Cow<'static, str>>, by: u64) {
        *self.counted.entry(key.into()).or_default() += by;
    }

    /// Highest hook number that was ever used; 0 if there was no hook yet.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.marks.seq
    }

    /// Whether the raw log has hooks whose effects are not in the derived tables.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.marks.folded < self.marks.seq
    }

    /// A value of the state table.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub fn state(&self, key: &str) -> rusqlite::Result<Option<String>> {
        read_state(&self.db, key)
    }

    /// Moves the write-ahead log into the database file, as far as readers allow. Returns true if all of it was moved.
    /// Only then may a journal segment be deleted: until then, the segment can replace a log that is lost.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn checkpoint(&self) -> rusqlite::Result<bool> {
        let _alone = self.checkpoints.as_ref().map(Checkpoints::pause);
        checkpoints::passive(&self.db)
    }

    /// Like [`Self::checkpoint`], but in the thread if there is one. The answer is true if everything committed so far
    /// is in the database file, and false if it is not or if the checkpoint failed.
    pub fn ask_checkpoint(&self, answer: Sender<bool>) {
        let answer = match &self.checkpoints {
            Some(checkpoints) => checkpoints.ask(answer),
            None => Some(answer),
        };
        if let Some(answer) = answer {
            // The receiver may have gone.
            let _sent = answer.send(self.checkpoint().unwrap_or(false));
        }
    }

    /// Sets whether a commit returns before it is on the disk. Hooks that are still in the journal need no wait: after
    /// a power cut, the journal gives back what the log lost. A journal segment is deleted only when its hooks are in
    /// the database file, and a checkpoint syncs the log first. Data that leaves this machine still waits: an exporter
    /// stores its request before it sends it, and that commit syncs everything before it.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn set_haste(&mut self, haste: bool) -> rusqlite::Result<()> {
        if self.haste != haste {
            let level = if haste { open::NORMAL } else { open::FULL };
            self.db.pragma_update(None, "synchronous", level)?;
            self.haste = haste;
        }
        Ok(())
    }

    /// Notifies the checkpoint thread after a number of hooks. Errors of the thread are handled here, by the writer.
    fn checkpoint_some(&mut self) -> rusqlite::Result<()> {
        let written = std::mem::take(&mut self.written);
        let Some(checkpoints) = &mut self.checkpoints else { return Ok(()) };
        let alone =
            if checkpoints.note(written) { checkpoints.join() } else { Some(checkpoints.pause()) };
        match alone {
            Some(_alone) => checkpoints::passive(&self.db).map(drop),
            None => Ok(()),
        }
    }

    /// Starts the thread that makes checkpoints while batches are written.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn checkpoint_beside(&mut self) -> Result<(), OpenError> {
        self.checkpoints = Some(Checkpoints::start(&self.path, &mut self.db)?);
        Ok(())
    }
}

/// A batch being written.
pub struct Transaction<'a> {
    store: &'a mut Store,
    packs: Packs,
    committed: Committed,
}

impl std::fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Transaction<'_> {
    /// Writes one hook, see [`Self::hooks`].
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn hook(&mut self, arrival: &Arrival) -> rusqlite::Result<Option<u64>> {
        Ok(self.hooks(std::slice::from_ref(arrival))?.pop().flatten())
    }

    /// Writes hooks and counts them. Returns each hook's number in the raw log. `None` means that the hook was already
    /// stored. It was not written again, and must not be folded again.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn hooks(&mut self, arrivals: &[Arrival]) -> rusqlite::Result<Vec<Option<u64>>> {
        if arrivals.is_empty() {
            return Ok(Vec::new());
        }
        let Store { db, names, subjects, marks, written, .. } = &mut *self.store;
        let mut log = Log::open(db)?;
        let mut places = Vec::with_capacity(arrivals.len());
        for arrival in arrivals {
            let seq = marks.seq + 1;
            let new = log.insert(names, &mut self.packs, seq, arrival)?;
            if new {
                marks.seq = seq;
                marks.folded = seq;
                *written += 1;
                subjects.note(seq, &arrival.reading);
            }
            places.push(new.then_some(seq));
        }
        drop(log);
        let new = places.iter().flatten().count();
        self.count("received", places.len() as u64);
        if new < places.len() {
            self.count("duplicate", (places.len() - new) as u64);
        }
        for (arrival, _) in arrivals.iter().zip(&places).filter(|(_, place)| place.is_some()) {
            self.reading(&arrival.reading);
        }
        Ok(places)
    }

    /// Notes that a live hook arrived at `now`. Hooks that waited for a collector to start do not count.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn arrived(&mut self, arrival: &Arrival, now: Timestamp) -> rusqlite::Result<()> {
        let ns = now.since(arrival.hook.observed_at);
        if arrival.hook.source != HookSource::Shim || !(0..ARRIVAL_MAX_NS).contains(&ns) {
            return Ok(());
        }
        let Store { db, sketches, .. } = &mut *self.store;
        sketches.arrived(db, now, (ns / 1_000).cast_unsigned())
    }

    /// Writes all changes of the fold.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn changes(&mut self, changes: &Changes) -> rusqlite::Result<()> {
        let Store { db, names, times, marks, .. } = &mut *self.store;
        for (conversation, root) in &changes.bound {
            derived::bind(db, (names, times), marks.rev, conversation, root)?;
        }
        let mut spans = Spans::open(self.store, &mut self.committed)?;
        for key in &changes.withdrawn {
            spans.withdraw(key)?;
        }
        for told in changes.spans.iter().flatten() {
            match told {
                Told::Whole(span) => spans.write(span)?,
                Told::Final(key) => spans.settle(key)?,
            }
        }
        drop(spans);
        let Store { db, names, times, marks, .. } = &mut *self.store;
        for session in changes.sessions.values() {
            derived::session(db, names, marks.rev, session)?;
            self.committed.add(&session.root, 0);
        }
        for turn in changes.turns.values() {
            let root = names.id(db, &turn.root)?;
            times.touch(db, root, turn.span)?;
            derived::turn(db, names, marks.rev, turn)?;
        }
        for root in &changes.forgotten {
            derived::forget(db, names, root)?;
        }
        Ok(())
    }

    /// Stores a value in the state table.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn set_state(&mut self, key: &str, value: &str) -> rusqlite::Result<()> {
        write_state(&self.store.db, key, value)
    }

    /// Sets a counter whose value is counted elsewhere (losses are counted in their own file).
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn set_counter(&mut self, key: &str, value: u64) -> rusqlite::Result<()> {
        self.store
            .db
            .prepare_cached(
                "INSERT INTO counter (key, value) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            )?
            .execute((key, value.cast_signed()))?;
        Ok(())
    }

    /// Adds to a counter.
    pub fn count(&mut self, key: impl Into<Cow<'static, str>>, by: u64) {
        self.store.count(key, by);
    }

    /// Adds to the result of an import.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn import_run(
        &mut self,
        run: &str,
        add: &ImportCounts,
        done: bool,
        error: Option<&str>,
    ) -> rusqlite::Result<()> {
        self.store
            .db
            .prepare_cached(
                "INSERT INTO import_run (id, new, duplicate, malformed, done, error)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (id) DO UPDATE SET new = new + excluded.new,
                     duplicate = duplicate + excluded.duplicate,
                     malformed = malformed + excluded.malformed, done = max(done, excluded.done),
                     error = coalesce(excluded.error, error)",
            )?
            .execute((
                run,
                add.new.cast_signed(),
                add.duplicate.cast_signed(),
                add.malformed.cast_signed(),
                done,
                error,
            ))?;
        Ok(())
    }

    fn close(self) -> rusqlite::Result<Committed> {
        let Self { store, mut committed, .. } = self;
        store.sketches.write(&store.db)?;
        store.times.write(&store.db)?;
        store.reach.write(&store.db, &mut store.names)?;
        let mut add = store.db.prepare_cached(
            "INSERT INTO counter (key, value) VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE SET value = value + excluded.value",
        )?;
        for (key, by) in &store.counted {
            add.execute((key, by.cast_signed()))?;
        }
        drop(add);
        store.marks.write(&store.db)?;
        store.db.execute_batch("COMMIT")?;
        committed.rev = store.marks.rev;
        Ok(committed)
    }
}

/// The result of an import so far. Each line counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// New hooks.
    pub new: u64,
    /// Hooks that were stored already.
    pub duplicate: u64,
    /// New hooks that could not be parsed. They are stored, too.
    pub malformed: u64,
}

impl Marks {
    fn read(db: &Connection) -> rusqlite::Result<Self> {
        let number = |key| {
            let text = read_state(db, key)?;
            Ok::<u64, rusqlite::Error>(text.and_then(|text| text.parse().ok()).unwrap_or(0))
        };
        let max = "SELECT coalesce(max(seq), 0) FROM raw_hook";
        let stored = db.query_row(max, [], |row| row.get::<_, i64>(0))?.cast_unsigned();
        let folded = number("folded_seq")?;
        Ok(Self {
            rev: number("rev")?,
            // The number of a deleted hook is never used again. A reader that follows the raw log by number would skip
            // the new hook, or take it for the old one.
            seq: stored.max(folded).max(number(GIVEN)?),
            folded,
            settled: number("settled_seq")?.cast_signed(),
            rebuilding: number("rebuilding")? != 0,
        })
    }

    fn write(&self, db: &Connection) -> rusqlite::Result<()> {
        write_state(db, "rev", &self.rev.to_string())?;
        write_state(db, "folded_seq", &self.folded.to_string())?;
        write_state(db, "settled_seq", &self.settled.to_string())?;
        write_state(db, "rebuilding", if self.rebuilding { "1" } else { "0" })
    }
}

fn read_state(db: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    db.prepare_cached("SELECT value FROM state WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()
}

fn write_state(db: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO state (key, value) VALUES (?1, ?2)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )?
    .execute((key, value))?;
    Ok(())
}

#[cfg(test)]
mod tests;
