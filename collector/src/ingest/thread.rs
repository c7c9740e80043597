//! The reader as a thread: the journal, and between its batches whatever waits to be imported.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use hookspan_core::Timestamp;

use super::Intake;
use crate::clock;
use crate::config::Retention;
use crate::dirs::StateDir;
use crate::engine::{Batch, Horizon, ImportStep, Input};
use crate::import::{self, Plan, Staged};
use crate::journal::{Position, Usage};
use crate::store::open::Readers;
use crate::store::salvage::{self, Salvage};
use crate::store::{ballast, imports, prune};

/// How often the reader looks around while it is busy.
const QUIET: Duration = Duration::from_millis(500);
/// How long a quiet journal is left alone. A hook and an import end it where the system tells of them; elsewhere the follower
/// looks up by itself.
const NAP: Duration = Duration::from_secs(5);
/// How often the ballast is looked after.
const BALLAST: Duration = Duration::from_secs(60);
/// How often retention is looked after, and how soon again while there is more to delete.
const PRUNE: Duration = Duration::from_secs(60);
const PRUNE_ON: Duration = Duration::from_secs(2);
/// How long hooks gather behind a batch that held all there were. A commit costs a sync, and a page for each thing that changes, however few hooks
/// it holds; one that comes after a silence is committed at once.
pub(super) const GATHER: Duration = Duration::from_millis(10);
/// How long a position without hooks waits for some to travel with: each commit of its own costs a sync.
const LONE_POSITION: Duration = Duration::from_secs(1);

/// How the reading goes, for the health page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What the journal takes on disk.
    pub usage: Usage,
    /// Batches that wait for the engine.
    pub queued: usize,
    /// How many may: then reading waits.
    pub queue_bound: usize,
    /// When the newest hook that was read had been received.
    pub read_up_to: Option<Timestamp>,
}

/// The reading side of a running collector.
#[derive(Debug)]
pub struct Ingest {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    waker: crate::journal::wait::Waker,
    reading: Arc<Mutex<Reading>>,
    behind: Arc<AtomicBool>,
}

impl Ingest {
    /// How the reading goes, kept up to date.
    #[must_use]
    pub fn reading(&self) -> Arc<Mutex<Reading>> {
        Arc::clone(&self.reading)
    }

    /// Whether hooks wait for the engine, in the journal or behind another batch: then whoever only follows should wait, too.
    #[must_use]
    pub fn behind(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.behind)
    }

    /// Stops reading, hands over what has been read, and ends.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if self.thread.join().is_err() {
            tracing::error!("the journal's reader had failed");
        }
    }
}

/// Starts reading. `inputs` must be bounded: a full channel is what slows the reader down to the engine's pace. `look_again` asks
/// to be told once more when all has been read.
///
/// # Errors
/// When the system gives no thread.
pub fn spawn(
    dir: &StateDir,
    mut intake: Intake,
    inputs: Sender<Input>,
    keep: Retention,
    look_again: Arc<AtomicBool>,
) -> io::Result<Ingest> {
    let stop = Arc::new(AtomicBool::new(false));
    let now = Reading { usage: intake.follower().usage(), ..Reading::default() };
    let reading = Arc::new(Mutex::new(now));
    let behind = Arc::new(AtomicBool::new(false));
    let waker = intake.follower().waker();
    // What is stored already may go once it is known to be in the database itself.
    let sent = Some(intake.position().clone());
    let mut reader = Reader {
        dir: dir.clone(),
        readers: Readers::new(dir.database()),
        intake,
        inputs,
        stop: Arc::clone(&stop),
        reading: Arc::clone(&reading),
        behind: Arc::clone(&behind),
        read_up_to: None,
        drained: false,
        look_again,
        gather_until: None,
        lone: None,
        sent,
        checkpoint: None,
        looked_at: clock::instant(),
        ballast_at: None,
        keep,
        prune_at: None,
    };
    let thread = std::thread::Builder::new().name("ingest".into()).spawn(move || reader.run())?;
    Ok(Ingest { thread, stop, waker, reading, behind })
}

struct Reader {
    dir: StateDir,
    readers: Readers,
    intake: Intake,
    inputs: Sender<Input>,
    stop: Arc<AtomicBool>,
    reading: Arc<Mutex<Reading>>,
    behind: Arc<AtomicBool>,
    /// When the newest hook that was read had been received.
    read_up_to: Option<Timestamp>,
    /// Whether the engine knows that the journal is read to its end.
    drained: bool,
    /// The engine wants to know anew.
    look_again: Arc<AtomicBool>,
    /// Until when hooks gather behind a batch that held all there were.
    gather_until: Option<Instant>,
    /// A position that came without hooks, and since when it waits.
    lone: Option<(Position, Instant)>,
    /// The last position handed over, not yet known to be in the database file.
    sent: Option<Position>,
    /// A checkpoint asked for, and the position it covers.
    checkpoint: Option<(Receiver<bool>, Position)>,
    looked_at: Instant,
    ballast_at: Option<Instant>,
    keep: Retention,
    prune_at: Option<Instant>,
}

/// The engine is gone, or the collector ends.
struct Ended;

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

enum Problem {
    Ended,
    File(io::Error),
}

impl Reader {
    fn run(&mut self) {
        if self.salvage().is_err() {
            return;
        }
        while !self.stop.load(Ordering::Relaxed) {
            if self.step().is_err() {
                return;
            }
        }
        if let Some((position, _)) = self.lone.take() {
            // A refusal means that the engine is gone, and then the next start reads a little twice.
            let _handed_over = self.send_position(position, Horizon::Still);
        }
    }

    /// Takes over what can be read of a damaged database, before anything newer: the order of hooks is their number's.
    fn salvage(&mut self) -> Result<(), Ended> {
        for aside in salvage::aside(&self.dir).into_iter().filter(|aside| aside.report.is_none()) {
            tracing::warn!(folder = %aside.folder.display(), "saving what can be read of a damaged database");
            let mut old = Salvage::open(&aside.folder);
            while let Some((arrivals, last)) = old.read_on() {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Ended);
                }
                let horizon = last.map_or(Horizon::Still, Horizon::At);
                self.send(Batch { arrivals, horizon, ..Batch::default() })?;
            }
            self.commit(Batch::default())?;
            match old.finish() {
                Ok(found) => {
                    tracing::warn!(
                        hooks = found.hooks,
                        lost = ?found.lost,
                        "a damaged database was saved"
                    );
                }
                Err(error) => tracing::warn!(%error, "it will be read again at the next start"),
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Ended> {
        self.imports()?;
        if let Some(until) = self.gather_until.take() {
            std::thread::sleep(until.saturating_duration_since(clock::instant()));
        }
        if self.look_again.swap(false, Ordering::Relaxed) {
            self.drained = false;
        }
        let (batch, position) = match self.intake.read() {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "the journal cannot be read; trying again");
                self.intake.follower().wait(QUIET);
                return Ok(());
            }
        };
        let behind = matches!(batch.horizon, Horizon::At(_)) || !self.inputs.is_empty();
        self.behind.store(behind, Ordering::Relaxed);
        self.let_go();
        self.look_around();
        if !batch.arrivals.is_empty() {
            self.read_up_to = batch.arrivals.last().map(|last| last.hook.observed_at);
            self.drained = batch.horizon.is_end();
            self.gather_until = self.drained.then(|| clock::instant() + GATHER);
            self.lone = None;
            self.sent = position.or(self.sent.take());
            return self.send(batch);
        }
        if let Some(position) = position {
            let since = self.lone.take().map_or_else(clock::instant, |(_, since)| since);
            self.lone = Some((position, since));
        }
        if !self.drained || !batch.counts.is_empty() || !batch.gauges.is_empty() {
            self.drained = true;
            return self.send(Batch { position: None, ..batch });
        }
        if let Some((position, _)) =
            self.lone.take_if(|(_, since)| clock::instant() - *since >= LONE_POSITION)
        {
            self.send_position(position, batch.horizon)?;
        }
        let nap = match (&self.lone, self.prune_at) {
            (Some(_), _) => LONE_POSITION / 4,
            (None, Some(at)) => at.saturating_duration_since(clock::instant()).clamp(QUIET, NAP),
            (None, None) => QUIET,
        };
        self.intake.follower().wait(nap);
        Ok(())
    }

    fn send(&self, batch: Batch) -> Result<(), Ended> {
        let full = match self.inputs.try_send(Input::Batch(batch, None)) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(Ended),
            Err(TrySendError::Full(input)) => input,
        };
        // It may take long: somebody may ask meanwhile.
        self.note();
        self.inputs.send(full).map_err(|_| Ended)
    }

    fn send_position(&mut self, position: Position, horizon: Horizon) -> Result<(), Ended> {
        let text = position.to_string();
        self.sent = Some(position);
        self.send(Batch { position: Some(text), horizon, ..Batch::default() })
    }

    /// Lets segments go whose hooks are in the database file: committed in the write-ahead log is not enough, since a log
    /// that is lost is refilled from the journal.
    fn let_go(&mut self) {
        if let Some((answer, position)) = self.checkpoint.take() {
            match answer.try_recv() {
                Ok(true) => self.intake.follower().may_forget(&position),
                // Asked again; also when the database has been opened anew meanwhile, and nobody knows of the question.
                Ok(false) | Err(crossbeam_channel::TryRecvError::Disconnected) => {
                    self.sent = self.sent.take().or(Some(position));
                }
                Err(crossbeam_channel::TryRecvError::Empty) => {
                    self.checkpoint = Some((answer, position));
                    return;
                }
            }
        }
        let follower = self.intake.follower();
        let stopped = follower.usage().stopped;
        let wanted = self.sent.take_if(|position| stopped || follower.would_forget(position));
        let Some(position) = wanted else { return };
        let (answer, receiver) = bounded(1);
        if self.inputs.try_send(Input::Checkpoint(answer)).is_ok() {
            self.checkpoint = Some((receiver, position));
        } else {
            self.sent = Some(position);
        }
    }

    fn look_around(&mut self) {
        let now = clock::instant();
        if now.duration_since(self.looked_at) < QUIET {
            return;
        }
        self.looked_at = now;
        if self.ballast_at.is_none_or(|at| now.duration_since(at) >= BALLAST) {
            self.ballast_at = Some(now);
            ballast::keep(&self.dir.database());
        }
        if self.prune_at.is_none_or(|at| now >= at) {
            let more = self.prune();
            self.prune_at = Some(now + if more { PRUNE_ON } else { PRUNE });
        }
        self.note();
    }

    /// Has sessions deleted that are due. True when there may be more.
    fn prune(&self) -> bool {
        if self.keep == Retention::default() {
            return false;
        }
        let now = clock::now().0;
        let Ok(roots) = self.readers.with(|db| prune::due(db, self.keep, now)) else {
            return false;
        };
        if roots.is_empty() {
            return false;
        }
        tracing::info!(sessions = roots.len(), "retention: deleting the oldest sessions");
        // Nobody waits for the answer, and with a full queue the next time will do.
        let (answer, _) = bounded(1);
        self.inputs.try_send(Input::Delete(roots, answer)).is_ok()
    }

    fn note(&self) {
        let reading = Reading {
            usage: self.intake.usage(),
            queued: self.inputs.len(),
            queue_bound: self.inputs.capacity().unwrap_or(0),
            read_up_to: self.read_up_to,
        };
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = reading;
    }

    /// Takes in whatever waits to be imported, one after another, while live hooks wait in the journal.
    fn imports(&mut self) -> Result<(), Ended> {
        let Ok(pending) = import::pending(&self.dir) else { return Ok(()) };
        for staged in pending {
            self.drained = false;
            let error = match self.import(&staged) {
                Ok(()) => None,
                Err(Problem::Ended) => return Err(Ended),
                Err(Problem::File(error)) => Some(error.to_string()),
            };
            if let Some(error) = error {
                tracing::warn!(%error, "an import cannot be read");
                let step = ImportStep {
                    run: staged.run.clone(),
                    lines: 0,
                    done: true,
                    error: Some(error),
                };
                self.commit(Batch { import: Some(step), ..Batch::default() })?;
            }
            if let Err(error) = std::fs::remove_file(&staged.path) {
                tracing::warn!(%error, "an import that is done cannot be removed");
            }
        }
        Ok(())
    }

    fn import(&self, staged: &Staged) -> Result<(), Problem> {
        let skip = self.readers.with(|db| imports::lines_done(db, &staged.run)).unwrap_or(0);
        let plan = Plan::of(staged)?;
        import::take_in(staged, &plan, skip, |batch| {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Problem::Ended);
            }
            let done = batch.import.as_ref().is_some_and(|step| step.done);
            let sent = if done { self.commit(batch) } else { self.send(batch) };
            sent.map_err(|Ended| Problem::Ended)
        })
    }

    /// Hands over a batch and waits until it is committed.
    fn commit(&self, batch: Batch) -> Result<(), Ended> {
        let (answer, done) = bounded(1);
        self.inputs.send(Input::Batch(batch, Some(answer))).map_err(|_| Ended)?;
        done.recv().map(drop).map_err(|_| Ended)
    }
}
