//! One thread that owns the fold and the write connection.
//!
//! A batch of hooks becomes one transaction: raw rows, everything derived from them, and the position up to which the
//! journal is committed. No batch is given up: if the database is locked or the disk is full, the engine retries until
//! the database accepts the batch. Meanwhile hooks wait in the journal.

mod batch;
mod doubles;
mod feed;
mod restore;
mod steps;
mod thread;

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, TrySendError};
use hookspan_core::sessions::Question;
use hookspan_core::{Sessions, Timestamp};
use hookspan_view::changes::Notice;
use hookspan_view::source::Deleted;
use rusqlite::ErrorCode;
use tokio::sync::{broadcast, watch};

pub use batch::{Batch, Horizon};
pub(crate) use batch::{ImportStep, Outcome};
pub(crate) use doubles::COUNTER as DUPLICATE_CONTENT;
pub(crate) use steps::COUNTER as CLOCK_STEPS;

/// Counts hooks that were dropped because their session was full. They are in the raw log, and not in the session's
/// tree.
pub(crate) const SESSION_FULL: &str = "session_full";
/// Counts sessions that were evicted to free memory.
pub(crate) const SESSION_EVICTED: &str = "session_evicted";
/// Counts settled turns that were reloaded for a late hook.
pub(crate) const TURN_RELOADED: &str = "turn_reloaded";
pub(crate) use thread::{Input, spawn};

use crate::disk::spare;
use crate::store::damage::{self, Suspicion};
use crate::store::open;
use crate::store::prune::Selection;
use crate::store::received::{self, Incoming, Limits, Taken};
use crate::store::write::{Committed, Store};

/// A shim stamps its record before it reads standard input, so a hook may reach the journal shortly after a later one.
/// Therefore the fold's time stays this far behind the clock.
const STRAGGLER_NS: i64 = 250_000_000;

/// Maximum wait between two attempts at a refused batch. After disk space was freed, the batch is stored within a
/// second.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Receivers of news about commits.
#[derive(Clone, Debug)]
pub struct Signals {
    /// Tells pages what each transaction changed.
    pub notices: broadcast::Sender<Notice>,
    /// Changes whenever spans may have settled, for exporters.
    pub settled: watch::Sender<u64>,
    /// Rings at each commit, for the search index's thread.
    pub commits: Option<Sender<()>>,
    /// While the database refuses a batch: the reason.
    pub trouble: watch::Sender<Option<Arc<str>>>,
    /// Set when the threads must be started again; see [`Restart`].
    pub restart: watch::Sender<Option<Restart>>,
    /// Receives SQLite's reports of damage, which may be failed reads. The receiver examines the database.
    pub suspicion: Suspicion,
    /// Questions about child conversations. If the queue is full they are dropped, and the fold asks again.
    pub questions: Option<Sender<Question>>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            notices: broadcast::Sender::new(256),
            settled: watch::Sender::new(0),
            commits: None,
            trouble: watch::Sender::new(None),
            restart: watch::Sender::new(None),
            suspicion: Suspicion::default(),
            questions: None,
        }
    }
}

/// Why the threads that use a database must be started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The database is proven to be damaged, and must first be moved aside.
    Damaged,
    /// Committed rows are missing, for example because the write-ahead log was deleted. The fold and the journal's reader are
    /// ahead of the database.
    FellBack,
}

/// The batch was not committed, because the program ends. It is still in the journal.
#[derive(Debug, thiserror::Error)]
#[error("hooks were not stored yet and wait in the journal: {0}")]
pub struct Stopped(Arc<str>);

/// Why a deletion is incomplete. The text says what remains to be done.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The store refused the deletion.
    #[error("{}", explain(.0))]
    Store(rusqlite::Error),
    /// The fold was not filled again, because the program ends.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A reader prevents truncating the write-ahead log.
    #[error(
        "deleted, but hookspan.db-wal still contains the bytes, because another program has the database open; close it, and delete again"
    )]
    ReaderHolds,
    /// The engine has ended.
    #[error("the collector is stopping; delete again after its next start")]
    Ending,
}

/// The fold, the store, and what connects them.
#[derive(Debug)]
pub struct Engine {
    store: Store,
    sessions: Sessions,
    /// Number of evicted sessions that the store has counted.
    evicted: u64,
    signals: Signals,
    stop: Receiver<()>,
    patience: Option<Duration>,
    config: hookspan_core::Config,
    absent: feed::Absent,
    doubles: doubles::Doubles,
    steps: steps::Steps,
}

impl Engine {
    /// An engine for `store`. Once `stop` receives a message or is disconnected, a refused batch is returned and not
    /// retried.
    #[must_use]
    pub fn new(
        store: Store,
        config: hookspan_core::Config,
        signals: Signals,
        stop: Receiver<()>,
    ) -> Self {
        let sessions = Sessions::new(config.clone());
        Self {
            store,
            sessions,
            evicted: 0,
            signals,
            stop,
            patience: None,
            config,
            absent: feed::Absent::default(),
            doubles: doubles::Doubles::default(),
            steps: steps::Steps::default(),
        }
    }

    /// Limits the retries of a batch to this time. Without a limit, only `stop` ends them.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = Some(patience);
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &hookspan_core::Config {
        &self.config
    }

    /// The store.
    #[must_use]
    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Commits `batch` and everything derived from it.
    ///
    /// # Errors
    ///
    /// [`Stopped`] if the database refuses until the program ends.
    pub fn take(&mut self, batch: Batch) -> Result<Outcome, Stopped> {
        let _span = tracing::info_span!("commit", hooks = batch.arrivals.len()).entered();
        let mut work = batch::Work::new(batch);
        let haste = work.is_behind();
        let committed = self.persist(|engine| {
            engine.store.set_haste(haste)?;
            engine.try_take(&mut work)
        })?;
        self.evicted = self.sessions.evicted();
        self.publish(committed, work.take_questions());
        Ok(work.outcome())
    }

    /// Lets time pass up to `now` minus the time that a hook may be late, and commits the changes.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn pass(&mut self, now: Timestamp) -> Result<(), Stopped> {
        let horizon = now.plus(-STRAGGLER_NS);
        if self.sessions.poll_deadline().is_none_or(|deadline| deadline > horizon) {
            return Ok(());
        }
        self.take(Batch { horizon: Horizon::At(horizon), ..Batch::default() }).map(drop)
    }

    /// Stores a request of another program, and searches again for the sessions of traces without one. A write that
    /// fails is not repeated here: the sender gets a refusal and sends the request again.
    ///
    /// # Errors
    /// Returns SQLite's error. Then nothing is stored.
    pub(crate) fn receive(
        &mut self,
        incoming: &Incoming,
        limits: Limits,
        now: Timestamp,
    ) -> rusqlite::Result<Taken> {
        // What is accepted must be on the disk, because no journal has it.
        self.store.set_haste(false)?;
        self.store.run(|db| {
            received::join::again(db, now.0)?;
            received::age::sweep(db, now.0)?;
            received::take::take(db, incoming, limits, now.0)
        })
    }

    /// Deletes the selection, also from the fold. Returns when no file of the database contains any of it.
    ///
    /// # Errors
    ///
    /// [`DeleteError`]. The rows are gone only in the case of [`DeleteError::ReaderHolds`].
    pub fn delete(&mut self, what: &Selection, patience: Duration) -> Result<Deleted, DeleteError> {
        let (deleted, committed) = self.store.delete(what).map_err(DeleteError::Store)?;
        if !what.sessions.is_empty() || !what.conversations.is_empty() {
            // The fold's state is built again from the remaining hooks.
            self.sessions = Sessions::new(self.config.clone());
            self.absent.clear();
            self.restore()?;
        }
        self.publish(committed, Vec::new());
        let (step, mut waited) = (Duration::from_millis(20), Duration::ZERO);
        while !self.store.truncate_log().map_err(DeleteError::Store)? {
            if waited >= patience {
                return Err(DeleteError::ReaderHolds);
            }
            std::thread::sleep(step);
            waited += step;
        }
        Ok(deleted)
    }

    /// Time from `now` until [`Self::pass`] is due.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Option<Duration> {
        let deadline = self.sessions.poll_deadline()?.plus(STRAGGLER_NS);
        // Waits a little even if the deadline has passed, because the fold may move it.
        let wait = u64::try_from(deadline.since(now)).unwrap_or(0).max(20_000_000);
        Some(Duration::from_nanos(wait))
    }

    fn publish(&self, committed: Committed, questions: Vec<Question>) {
        let Committed { rev, sessions, settled } = committed;
        if !sessions.is_empty() {
            let sessions = sessions.into_iter().collect();
            // There may be no receiver.
            let _heard = self.signals.notices.send(Notice { rev, sessions });
        }
        if settled {
            self.signals.settled.send_replace(rev);
        }
        if let Some(bell) = &self.signals.commits {
            // If the bell is ringing already, or its receiver has ended, there is nothing to do.
            let _rung = bell.try_send(());
        }
        let Some(queue) = &self.signals.questions else { return };
        for question in questions {
            if let Err(TrySendError::Disconnected(_)) = queue.try_send(question) {
                return;
            }
        }
    }

    /// Whether the program continues. Long work asks this between its blocks.
    fn go_on(&self) -> Result<(), Stopped> {
        match self.stop.try_recv() {
            Err(TryRecvError::Empty) => Ok(()),
            Ok(()) | Err(TryRecvError::Disconnected) => Err(Stopped("the program ends".into())),
        }
    }

    /// Reacts to a refusal: frees space, reports, waits.
    fn recover(&mut self, error: &rusqlite::Error) {
        self.signals.suspicion.report(error);
        if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            self.store.make_room();
        } else if open::is_doubtful(error) {
            let known = self.store.last_seq();
            if let Err(error) = spare::lend(|| self.store.reopen()) {
                // This runs once a second, and the trouble is reported elsewhere.
                tracing::debug!(%error, "the database cannot be opened again yet");
            } else if self.store.last_seq() < known {
                self.signals.restart.send_replace(Some(Restart::FellBack));
            }
        }
    }

    /// Repeats `work` until the database accepts it.
    fn persist<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> rusqlite::Result<T>,
    ) -> Result<T, Stopped> {
        let (mut wait, mut waited) = (Duration::from_millis(20), Duration::ZERO);
        loop {
            let error = match work(self) {
                Ok(done) => {
                    self.signals.trouble.send_if_modified(|trouble| trouble.take().is_some());
                    return Ok(done);
                }
                Err(error) => error,
            };
            self.store.count("store_retries", 1);
            let text: Arc<str> = explain(&error).into();
            self.signals.trouble.send_if_modified(|trouble| {
                let changed = trouble.as_ref() != Some(&text);
                if changed {
                    tracing::warn!(%error, "the database does not accept hooks; they wait in the journal");
                    *trouble = Some(Arc::clone(&text));
                }
                changed
            });
            self.recover(&error);
            if self.signals.restart.borrow().is_some() && self.signals.restart.receiver_count() > 0
            {
                return Err(Stopped(text));
            }
            waited += wait;
            if self.patience.is_some_and(|patience| waited > patience) {
                return Err(Stopped(text));
            }
            match self.stop.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => wait = (wait * 2).min(LONGEST_WAIT),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return Err(Stopped(text)),
            }
        }
    }
}

/// A text for a person, with advice.
fn explain(error: &rusqlite::Error) -> String {
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds a lock on hookspan.db; close it"
        }
        Some(ErrorCode::DiskFull) => "the disk is full; free some space",
        Some(ErrorCode::ReadOnly) => "hookspan.db cannot be written; check the file system",
        _ if damage::is_suspected(error) => {
            "hookspan.db is damaged or cannot be read; it is being examined. Hooks wait in the journal"
        }
        _ => "hooks wait in the journal",
    };
    format!("{error} ({advice})")
}

#[cfg(test)]
mod tests;
