//! Does the collector's work within a command that changes the store, while no collector runs.

use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use hookspan_core::sessions::Question;
use hookspan_view::source::{Deleted, LineFilter};
use rusqlite::Connection;

use super::Intake;
use crate::clock;
use crate::dirs::{Lock, StateDir};
use crate::engine::{Batch, DeleteError, Engine, Horizon, Signals, Stopped};
use crate::evidence;
use crate::import::{self, Plan, Staged};
use crate::journal::{JournalError, Limits, Position, scrub};
use crate::store::open::{OpenError, Readers};
use crate::store::search::Index;
use crate::store::write::{ImportCounts, Store};
use crate::store::{cli, imports, prune};

/// How long a command waits for a locked database.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a command retries reading the journal, and how often.
const UNREAD: Duration = Duration::from_secs(2);
const UNREAD_STEP: Duration = Duration::from_millis(5);

/// Why the work could not be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocalError {
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database refuses the batch.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A part of the journal cannot be read. What could be read is stored.
    #[error("a part of the journal cannot be read: {0}")]
    Unread(String),
    /// A file of an import or of the journal cannot be read or changed.
    #[error("a file in the state directory cannot be used: {0}")]
    File(#[from] std::io::Error),
    /// Sessions cannot be deleted.
    #[error("{0}")]
    Delete(#[source] DeleteError),
    /// SQLite refused.
    #[error("the database cannot be changed: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// The one writer, within a command. It holds the collector's lock.
#[derive(Debug)]
pub(crate) struct Local {
    dir: StateDir,
    readers: Readers,
    engine: Engine,
    questions: Receiver<Question>,
    _lock: Lock,
}

impl Local {
    /// Opens the store, finishes interrupted work, and stores the hooks that wait in the journal.
    ///
    /// # Errors
    /// See [`LocalError`].
    pub(crate) fn open(
        dir: &StateDir,
        lock: Lock,
        config: hookspan_core::Config,
        progress: impl FnMut(u64, u64),
    ) -> Result<Self, LocalError> {
        let mut store = Store::open(&dir.database())?;
        store.begin(&epoch())?;
        let (sender, questions) = bounded(1_024);
        let signals = Signals { questions: Some(sender), ..Signals::default() };
        let stop = crossbeam_channel::never();
        let mut engine = Engine::new(store, config, signals, stop);
        engine.set_patience(PATIENCE);
        engine.restore()?;
        engine.catch_up(progress)?;
        let readers = Readers::new(dir.database());
        let mut local = Self { dir: dir.clone(), readers, engine, questions, _lock: lock };
        local.journal()?;
        Ok(local)
    }

    fn journal(&mut self) -> Result<(), LocalError> {
        let position = self.engine.store().state("journal")?;
        let mut intake = Intake::open(&self.dir, position.as_deref(), Limits::default())?;
        let mut waited = Duration::ZERO;
        loop {
            let (batch, _) = intake.read();
            let (done, unread) = (batch.horizon.is_end(), batch.horizon == Horizon::Still);
            // Imports may follow, so time does not pass.
            let horizon = if done { Horizon::Still } else { batch.horizon };
            self.take(Batch { horizon, ..batch })?;
            if done {
                return Ok(());
            }
            if unread && waited >= UNREAD {
                return Err(LocalError::Unread(intake.problems()));
            }
            if unread {
                intake.follower().wait(UNREAD_STEP);
                waited += UNREAD_STEP;
            }
        }
    }

    /// Imports `staged`, and removes it. `progress` receives the number of lines done and of all lines.
    ///
    /// # Errors
    /// See [`LocalError`]. Imported lines stay, and the rest can be imported later.
    pub(crate) fn import(
        &mut self,
        staged: &Staged,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<ImportCounts, LocalError> {
        let skip = self.readers.with(|db| imports::lines_done(db, &staged.run)).unwrap_or(0);
        let plan = Plan::of(staged)?;
        import::take_in(staged, &plan, skip, |batch| {
            let lines = batch.import.as_ref().map_or(0, |step| step.lines);
            self.take(batch)?;
            progress(lines, plan.lines);
            Ok::<_, LocalError>(())
        })?;
        std::fs::remove_file(&staged.path)?;
        let run = self.readers.with(|db| imports::run(db, &staged.run))?;
        Ok(run.map(|run| run.counts).unwrap_or_default())
    }

    /// Folds the whole raw log again. Returns the number of its hooks.
    ///
    /// # Errors
    /// See [`LocalError`]. An interrupted rebuild continues when the store is opened again.
    pub(crate) fn rebuild(self, progress: impl FnMut(u64, u64)) -> Result<u64, LocalError> {
        let Self { dir, readers: _readers, mut engine, _lock: lock, .. } = self;
        engine.store().start_rebuild(&epoch())?;
        let config = engine.config().clone();
        drop(engine);
        let mut fresh = Self::open(&dir, lock, config, progress)?;
        fresh.settle()?;
        Ok(fresh.readers.with(cli::hooks)?)
    }

    /// Deletes everything older than a time (see [`prune::older_than`]) from the database, the search index and the journal.
    /// `progress` receives what was deleted so far.
    ///
    /// # Errors
    /// See [`LocalError`]. What was deleted before stays deleted.
    pub(crate) fn prune(
        &mut self,
        before_ns: i64,
        progress: impl FnMut(&Deleted),
    ) -> Result<Deleted, LocalError> {
        self.delete_all(|db| prune::older_than(db, before_ns), progress)
    }

    /// Deletes matching sessions whose last event was before a time. Hooks without a session stay.
    ///
    /// # Errors
    ///
    /// See [`LocalError`]. What was deleted before stays deleted.
    pub(crate) fn prune_matching(
        &mut self,
        filter: &LineFilter,
        before_ns: i64,
        progress: impl FnMut(&Deleted),
    ) -> Result<Deleted, LocalError> {
        let next = |db: &Connection| {
            let roots = prune::matching(db, filter, before_ns, prune::STEP as usize)?;
            Ok(prune::Selection::sessions(&roots))
        };
        self.delete_all(next, progress)
    }

    /// Deletes what `next` selects, until it selects nothing.
    fn delete_all(
        &mut self,
        next: impl Fn(&Connection) -> rusqlite::Result<prune::Selection>,
        mut progress: impl FnMut(&Deleted),
    ) -> Result<Deleted, LocalError> {
        let mut sum = Deleted::default();
        let search = self.dir.search();
        let mut index = search.exists().then(|| Index::open(&search)).transpose()?;
        loop {
            let what = self.readers.with(&next)?;
            if what.is_empty() {
                break;
            }
            let one = self.engine.delete(&what, PATIENCE).map_err(LocalError::Delete)?;
            if let Some(index) = &mut index {
                index.remove(&what.sessions)?;
            }
            sum.sessions += one.sessions;
            sum.turns += one.turns;
            sum.spans += one.spans;
            sum.hooks += one.hooks;
            sum.bytes += one.bytes;
            progress(&sum);
        }
        if let Some(index) = &mut index {
            index.clean()?;
        }
        self.engine.store().give_back(u32::MAX)?;
        self.scrub()?;
        Ok(sum)
    }

    /// Overwrites the journal, all of which is stored, and removes the files of interrupted imports.
    fn scrub(&mut self) -> Result<(), LocalError> {
        import::sweep(&self.dir)?;
        let position = self.engine.store().state("journal")?;
        let position: Position = position.and_then(|text| text.parse().ok()).unwrap_or_default();
        scrub::scrub(&self.dir, &position, &scrub::Lengths::default())?;
        Ok(())
    }

    /// Lets time pass up to now, because no more input will come.
    ///
    /// # Errors
    /// See [`LocalError`].
    pub(crate) fn settle(&mut self) -> Result<(), LocalError> {
        self.take(Batch { horizon: Horizon::End(clock::now()), ..Batch::default() })?;
        self.engine.store().checkpoint()?;
        Ok(())
    }

    /// Stores `batch`, and then answers the questions about evidence that it caused. Cursor's database is not read
    /// here: a command folds old hooks, and a later rebuild must give the same result.
    fn take(&mut self, batch: Batch) -> Result<(), LocalError> {
        self.engine.take(batch)?;
        while let Ok(question) = self.questions.try_recv() {
            let arrivals = evidence::answer(&self.readers, None, &question).arrivals;
            if !arrivals.is_empty() {
                self.engine.take(Batch { arrivals, ..Batch::default() })?;
            }
        }
        Ok(())
    }
}

/// A new name (epoch) for the state of the derived tables.
#[must_use]
pub(crate) fn epoch() -> String {
    format!("{:x}", clock::now().0)
}
