//! The threads between the journal and the database.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use hookspan_view::source::Deleted;
use tokio::sync::watch;

use super::examiner::Examiner;
use crate::clock;
use crate::config::{Config, Journal, Receive};
use crate::dirs::StateDir;
use crate::disk;
use crate::engine::{self, DeleteError, Engine, Input, Signals};
use crate::evidence;
use crate::git;
use crate::ingest::{self, Ingest, Intake, Reading, epoch};
use crate::journal::Limits;
use crate::receive::{Keep, NotKept};
use crate::store::damage::Suspicion;
use crate::store::examine::{self, Ending, Verdict};
use crate::store::open::{self, OpenError, Readers};
use crate::store::prune::Selection;
use crate::store::received;
use crate::store::salvage;
use crate::store::write::Store;

/// Batches between reader and engine: one is being written, one is ready.
const BATCHES: usize = 2;
/// Maximum number of questions that wait for evidence. The fold repeats questions that did not fit.
const QUESTIONS: usize = 64;
/// How long a locked database may delay the start.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);
/// How long an unreadable database may delay the start. A person who starts a collector wants to see the reason soon.
const READ_PATIENCE: Duration = Duration::from_secs(10);
/// Wait between two attempts: the first, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The running threads.
pub(super) struct Threads {
    pub(super) signals: Signals,
    /// Rings at each commit.
    pub(super) commits: Receiver<()>,
    ingest: Ingest,
    evidence: JoinHandle<()>,
    engine: JoinHandle<()>,
    inputs: Arc<Mutex<Option<Sender<Input>>>>,
    stop: Sender<()>,
    examiner: Examiner,
}

/// Sends requests to the engine without keeping it alive: the engine ends when its readers have ended.
#[derive(Clone, Debug)]
pub(super) struct WeakInputs(Arc<Mutex<Option<Sender<Input>>>>);

impl WeakInputs {
    /// Deletes the selection; see [`Input::Delete`].
    ///
    /// # Errors
    /// [`DeleteError::Ending`] if the engine has ended, otherwise the engine's error.
    pub(super) fn delete(&self, what: &Selection) -> Result<Deleted, DeleteError> {
        let inputs = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (answer, deleted) = bounded(1);
        inputs
            .and_then(|inputs| inputs.send(Input::Delete(what.clone(), answer)).ok())
            .ok_or(DeleteError::Ending)?;
        deleted.recv().map_err(|_| DeleteError::Ending)?
    }
}

/// Stores received OTLP through the engine's thread.
pub(super) struct Kept {
    inputs: WeakInputs,
    limits: received::Limits,
}

/// How long a received request may wait for the engine. Senders wait 10 s for an answer.
const RECEIVE_PATIENCE: Duration = Duration::from_secs(5);

impl Keep for Kept {
    fn keep(&self, incoming: received::Incoming) -> Result<received::Taken, NotKept> {
        let inputs = self.inputs.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (answer, taken) = bounded(1);
        let input = Input::Receive(incoming, self.limits, answer);
        let sent = inputs.and_then(|inputs| inputs.send_timeout(input, RECEIVE_PATIENCE).ok());
        sent.ok_or(NotKept)?;
        // Once it is with the engine, only the engine's answer says whether it is stored.
        match taken.recv() {
            Ok(Ok(taken)) => Ok(taken),
            Ok(Err(error)) => {
                tracing::warn!(%error, "receive.not_stored");
                Err(NotKept)
            }
            Err(_) => Err(NotKept),
        }
    }
}

impl Threads {
    /// Opens the store and the journal, and starts reading. The engine's thread replays the history, so pages need not
    /// wait for it.
    pub(super) fn start(dir: &StateDir, config: &Config) -> anyhow::Result<Self> {
        disk::spare::keep();
        let (store, position) = open(dir)?;
        let limits = limits(config.journal);
        let mut intake = Intake::open(dir, position.as_deref(), limits)?;

        let (ask, questions) = bounded(QUESTIONS);
        let (bell, commits) = bounded(1);
        let (suspicion, heard) = Suspicion::heard();
        let signals = Signals {
            questions: Some(ask),
            commits: Some(bell),
            suspicion: suspicion.clone(),
            ..Signals::default()
        };
        let examiner = Examiner::start(dir.database(), heard, signals.restart.clone())?;
        let (stop, stopped) = bounded(0);
        let (inputs, batches) = bounded(BATCHES);
        let engine = Engine::new(store, config.core.clone(), signals.clone(), stopped.clone());
        let look_again = Arc::new(AtomicBool::new(false));
        let (again, waker) = (Arc::clone(&look_again), intake.follower().waker());
        let engine = engine::spawn(engine, batches, move || {
            again.store(true, Ordering::Relaxed);
            waker.wake();
        })?;
        let readers = Readers::new(dir.database()).reporting(&suspicion);
        let cursor = config.evidence.file().map(evidence::CursorStore::new);
        let evidence = evidence::spawn(readers, cursor, questions, inputs.clone(), stopped)?;
        let asked = Arc::new(Mutex::new(Some(inputs.clone())));
        let (look, looks) = bounded(git::LOOKS);
        let watch = config.evidence.repository.then(|| git::Watch::new(look));
        if watch.is_some() {
            git::spawn(looks, Arc::clone(&asked))?;
        }
        let ingest = ingest::spawn(dir, intake, inputs, look_again, watch)?;
        Ok(Self { signals, commits, ingest, evidence, engine, inputs: asked, stop, examiner })
    }

    /// State of the reader, updated as it works.
    pub(super) fn reading(&self) -> Arc<Mutex<Reading>> {
        self.ingest.reading()
    }

    /// While the database cannot be read: the reason.
    pub(super) fn unreadable(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.examiner.problem()
    }

    /// See [`Ingest::behind`].
    pub(super) fn behind(&self) -> Arc<AtomicBool> {
        self.ingest.behind()
    }

    /// Sends requests to the engine.
    pub(super) fn inputs(&self) -> WeakInputs {
        WeakInputs(Arc::clone(&self.inputs))
    }

    /// Stores received OTLP.
    pub(super) fn keep(&self, receive: &Receive) -> Kept {
        let limits = received::Limits {
            session_spans: receive.max_spans_per_session,
            day_spans: receive.max_spans_per_day,
            day_bytes: receive.max_bytes_per_day,
        };
        Kept { inputs: self.inputs(), limits }
    }

    /// Ends the threads in the order in which data passes through them. Each one finishes its current work first.
    pub(super) fn stop(self) {
        let Self { signals, commits: _, ingest, evidence, engine, inputs, stop, examiner } = self;
        examiner.stop();
        drop(inputs.lock().unwrap_or_else(PoisonError::into_inner).take());
        // From now on, a refused batch is not tried again.
        drop(stop);
        ingest.stop();
        drop(signals);
        if evidence.join().is_err() || engine.join().is_err() {
            tracing::error!("a thread of the collector had failed");
        }
    }
}

fn limits(journal: Journal) -> Limits {
    // A single segment must not fill the bound of all segments.
    let segment_bytes = journal.segment_bytes.min(journal.max_bytes / 4);
    Limits {
        segment_bytes,
        // Shims stop at `max_bytes` while no collector reads. With one more segment, a collector that starts then can
        // accept new hooks at once.
        bound_bytes: journal.max_bytes.saturating_add(segment_bytes),
        ..Limits::default()
    }
}

/// Moves a damaged database aside.
pub(super) fn set_aside(dir: &StateDir) -> std::io::Result<()> {
    let folder = salvage::set_aside(dir, clock::now())?;
    // The search index refers to the old hook numbers, so it is built again.
    for suffix in ["", "-wal", "-shm"] {
        let mut name = dir.search().into_os_string();
        name.push(suffix);
        if let Err(error) = std::fs::remove_file(&name)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "an old search index stays");
        }
    }
    tracing::error!(folder = %folder.display(), "hookspan.db is damaged and was moved aside");
    Ok(())
}

/// Opens the store and returns the stored position in the journal. Waits for a locked or unreadable database. A database that
/// is proven to be damaged is moved aside.
fn open(dir: &StateDir) -> Result<(Store, Option<String>), OpenError> {
    let (mut wait, mut waited) = (FIRST_WAIT, Duration::ZERO);
    loop {
        let error = match try_open(dir) {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        if error.is_suspected() && is_proven(&dir.database()) {
            set_aside(dir).map_err(|source| OpenError::Io { path: dir.database(), source })?;
            continue;
        }
        let is_locked =
            matches!(&error, OpenError::Sqlite { source, .. } if open::is_locked(source));
        let patience = if is_locked { LOCK_PATIENCE } else { READ_PATIENCE };
        if !error.is_passing() || waited >= patience {
            return Err(error);
        }
        tracing::warn!(%error, "hookspan.db cannot be opened; trying again");
        std::thread::sleep(wait);
        waited += wait;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Whether the database is proven to be damaged, and does not merely fail to be read.
fn is_proven(path: &Path) -> bool {
    match examine::examine(path, &Ending::default(), || std::thread::sleep(examine::WAIT)) {
        Verdict::Damaged(fault) => {
            tracing::error!(fault, "hookspan.db is damaged");
            true
        }
        Verdict::Unreadable(problem) => {
            tracing::warn!(problem, "hookspan.db cannot be read; it is not moved");
            false
        }
        Verdict::Sound => {
            tracing::warn!("hookspan.db is not damaged");
            false
        }
    }
}

fn try_open(dir: &StateDir) -> Result<(Store, Option<String>), OpenError> {
    let path = dir.database();
    let mut store = Store::open(&path)?;
    let prepared = store.begin(&epoch()).and_then(|()| store.state("journal"));
    let position = prepared.map_err(|source| OpenError::Sqlite { path, source })?;
    Ok((store, position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_that_finds_the_journal_at_the_shims_bound_has_room_for_new_hooks() {
        let limits = limits(Config::default().journal);
        let shims = hookspan_shim::program::JOURNAL_MAX_BYTES;
        assert_eq!(limits.bound_bytes, shims + limits.segment_bytes);
    }
}
