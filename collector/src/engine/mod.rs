//! One thread that owns the fold and the write connection.
//!
//! A batch of hooks becomes one transaction: raw rows, everything derived from them, and how far the journal is committed.
//! Nothing is given up: a database that is locked, or on a full disk, is tried again until it takes the batch, while the
//! journal goes on collecting.

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

/// Counts hooks that found their session full: the log has them, the tree of the session does not.
pub(crate) const SESSION_FULL: &str = "session_full";
/// Counts sessions that left memory to make room.
pub(crate) const SESSION_EVICTED: &str = "session_evicted";
/// Counts settled turns that were read again for a late hook.
pub(crate) const TURN_RELOADED: &str = "turn_reloaded";
pub(crate) use thread::{Input, spawn};

use crate::disk::spare;
use crate::store::damage::{self, Suspicion};
use crate::store::open;
use crate::store::prune::Selection;
use crate::store::write::{Committed, Store};

/// A shim stamps its record before it reads standard input, so a hook may reach the journal a little after a later one.
/// Time is let pass only up to this long ago.
const STRAGGLER_NS: i64 = 250_000_000;

/// Between two attempts at a batch that the database refuses: a disk that has room again is used within a second.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Whoever wants to know what was committed.
#[derive(Clone, Debug)]
pub struct Signals {
    /// What each transaction changed; for pages.
    pub notices: broadcast::Sender<Notice>,
    /// Changes whenever spans may have settled; for exporters.
    pub settled: watch::Sender<u64>,
    /// Rung at each commit; for the search index, which is no task and has its own thread.
    pub commits: Option<Sender<()>>,
    /// Why the database does not take a batch, while it does not.
    pub trouble: watch::Sender<Option<Arc<str>>>,
    /// Set once when only a new start helps; see [`Restart`].
    pub restart: watch::Sender<Option<Restart>>,
    /// Told when SQLite reports damage, which may be a failed read: whoever hears it examines the database.
    pub suspicion: Suspicion,
    /// Questions about child conversations; a full queue loses them, and the fold asks again.
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

/// Why the threads over a database must be started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The database was proven to be damaged: it has to be moved aside first.
    Damaged,
    /// Committed rows are gone, as when the write-ahead log was deleted: the fold and the journal's reader are ahead of it.
    FellBack,
}

/// The batch was not committed because the program ends; whoever holds it still has it in the journal.
#[derive(Debug, thiserror::Error)]
#[error("hooks wait where they are, to be taken in later: {0}")]
pub struct Stopped(Arc<str>);

/// Why a deletion did not come to its end. The text says what is left to do.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The store refused it.
    #[error("{}", explain(.0))]
    Store(rusqlite::Error),
    /// The fold could not be filled again because the program ends.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A reader keeps the write-ahead log as it was.
    #[error(
        "deleted, but a reader keeps the old bytes in hookspan.db-wal; close other programs that have it open, and delete again"
    )]
    ReaderHolds,
    /// There is no engine any more.
    #[error("the collector is about to end; delete again after its next start")]
    Ending,
}

/// The fold, the store, and how they go together.
#[derive(Debug)]
pub struct Engine {
    store: Store,
    sessions: Sessions,
    /// Sessions that had to leave early, as far as that is counted in the store.
    evicted: u64,
    signals: Signals,
    stop: Receiver<()>,
    patience: Option<Duration>,
    config: hookspan_core::Config,
    stateless: feed::Stateless,
    doubles: doubles::Doubles,
    steps: steps::Steps,
}

impl Engine {
    /// An engine over `store`. When `stop` is disconnected or receives, a batch that the database refuses is given back
    /// instead of being tried again.
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
            stateless: feed::Stateless::default(),
            doubles: doubles::Doubles::default(),
            steps: steps::Steps::default(),
        }
    }

    /// Gives a batch back once the database has refused it for so long. Without this, only `stop` ends the attempts.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = Some(patience);
    }

    /// What it was made with.
    #[must_use]
    pub fn config(&self) -> &hookspan_core::Config {
        &self.config
    }

    /// The store.
    #[must_use]
    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Commits `batch` and what follows from it.
    ///
    /// # Errors
    /// [`Stopped`] when the database refuses until the program ends.
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

    /// Lets time pass up to `now`, less the time a hook may be late, and commits what that ends.
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

    /// Deletes what is selected, and lets the fold forget it. Returns when no file of the database holds anything of it.
    ///
    /// # Errors
    /// [`DeleteError`]; only with [`DeleteError::ReaderHolds`] are the rows gone.
    pub fn delete(&mut self, what: &Selection, patience: Duration) -> Result<Deleted, DeleteError> {
        let (deleted, committed) = self.store.delete(what).map_err(DeleteError::Store)?;
        if !what.sessions.is_empty() || !what.conversations.is_empty() {
            // The fold holds conversations by their hooks: it is filled again with those that are left.
            self.sessions = Sessions::new(self.config.clone());
            self.stateless.clear();
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

    /// How long from `now` until [`Self::pass`] has something to do.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Option<Duration> {
        let deadline = self.sessions.poll_deadline()?.plus(STRAGGLER_NS);
        // A fold that asks for a moment that has passed is given time to change its mind.
        let wait = u64::try_from(deadline.since(now)).unwrap_or(0).max(20_000_000);
        Some(Duration::from_nanos(wait))
    }

    fn publish(&self, committed: Committed, questions: Vec<Question>) {
        let Committed { rev, sessions, settled } = committed;
        if !sessions.is_empty() {
            let sessions = sessions.into_iter().collect();
            // Nobody listening is fine.
            let _heard = self.signals.notices.send(Notice { rev, sessions });
        }
        if settled {
            self.signals.settled.send_replace(rev);
        }
        if let Some(bell) = &self.signals.commits {
            // It has been rung already, or nobody is left to hear it.
            let _rung = bell.try_send(());
        }
        let Some(queue) = &self.signals.questions else { return };
        for question in questions {
            if let Err(TrySendError::Disconnected(_)) = queue.try_send(question) {
                return;
            }
        }
    }

    /// Whether the program goes on: long work asks between its blocks.
    fn go_on(&self) -> Result<(), Stopped> {
        match self.stop.try_recv() {
            Err(TryRecvError::Empty) => Ok(()),
            Ok(()) | Err(TryRecvError::Disconnected) => Err(Stopped("the program ends".into())),
        }
    }

    /// Does about a refusal what can be done about it.
    fn recover(&mut self, error: &rusqlite::Error) {
        self.signals.suspicion.report(error);
        if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            self.store.make_room();
        } else if open::is_doubtful(error) {
            let known = self.store.last_seq();
            if let Err(error) = spare::lend(|| self.store.reopen()) {
                // Once a second, and the trouble is told.
                tracing::debug!(%error, "the database cannot be opened again yet");
            } else if self.store.last_seq() < known {
                self.signals.restart.send_replace(Some(Restart::FellBack));
            }
        }
    }

    /// Tries `work` until the database takes it.
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
                    tracing::warn!(%error, "the database does not take hooks; the journal keeps them");
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

/// Words for a person, with what to do.
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
