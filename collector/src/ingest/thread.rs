//! The reader's thread. It reads the journal, and imports waiting files between two batches of the journal.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use hookspan_core::Timestamp;

use super::Intake;
use crate::clock;
use crate::dirs::StateDir;
use crate::disk;
use crate::engine::{Batch, Horizon, ImportStep, Input};
use crate::git::Watch;
use crate::import::{self, Plan, Staged};
use crate::journal::{Position, Problem, Usage};
use crate::store::open::Readers;
use crate::store::salvage::{self, Salvage};
use crate::store::{ballast, imports};

/// How often a busy reader makes its other checks.
const QUIET: Duration = Duration::from_millis(500);
/// How long the reader sleeps while no hooks arrive. If the system gives notifications, a hook or an import ends the
/// sleep; otherwise the follower polls.
const NAP: Duration = Duration::from_secs(5);
/// How often the ballast is checked.
const BALLAST: Duration = Duration::from_secs(60);
/// After a batch that emptied the journal, wait this long before reading again, so that hooks arriving meanwhile share one commit.
/// A commit costs one sync plus one page per changed row, no matter how few hooks it contains. The first hook after a quiet period
/// is committed immediately.
pub(super) const GATHER: Duration = Duration::from_millis(10);
/// How long a new position without hooks waits for hooks with which it can be committed. A commit of its own would cost
/// a sync.
const LONE_POSITION: Duration = Duration::from_secs(1);
/// How long positions without hooks are committed at once after a probe of `doctor`. The probe waits for such a commit;
/// its bytes are synced within 100 ms.
const AWAITED: Duration = Duration::from_secs(1);
/// Time before an import that could not be read is tried again. Hooks come first.
const IMPORT_AGAIN: Duration = Duration::from_secs(1);
/// How long such an import is tried before it ends with its error.
const IMPORT_PATIENCE: Duration = Duration::from_secs(60);

/// First wait before a damaged database that could not be read is tried again. Each attempt reads the whole file.
const FIRST_SALVAGE_WAIT: Duration = Duration::from_secs(1);
const LONGEST_SALVAGE_WAIT: Duration = Duration::from_secs(600);

/// The reader's state, for the health page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// What the journal takes on disk.
    pub usage: Usage,
    /// Batches that wait for the engine.
    pub queued: usize,
    /// Maximum number of queued batches. The reader blocks when the queue is full.
    pub queue_bound: usize,
    /// The reader's current problems. It tries again.
    pub problems: Arc<[Problem]>,
    /// When the newest hook that was read had been received.
    pub read_up_to: Option<Timestamp>,
}

/// The reading side of a running collector.
#[derive(Debug)]
pub(crate) struct Ingest {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    waker: crate::journal::wait::Waker,
    reading: Arc<Mutex<Reading>>,
    behind: Arc<AtomicBool>,
}

impl Ingest {
    /// State of the reader, updated as it works.
    #[must_use]
    pub(crate) fn reading(&self) -> Arc<Mutex<Reading>> {
        Arc::clone(&self.reading)
    }

    /// Whether hooks wait for the engine, in the journal or in a queued batch. Threads that only follow the store wait
    /// as well while this is true.
    #[must_use]
    pub(crate) fn behind(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.behind)
    }

    /// Stops reading, hands over what was read, and ends the thread.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if self.thread.join().is_err() {
            tracing::error!("the journal's reader had failed");
        }
    }
}

/// Starts reading. `inputs` must be bounded: a full channel slows the reader down to the engine's speed. With
/// `look_again` the engine asks for another [`Horizon::End`] once everything is read. `watch` decides which hooks cause
/// a look at a repository.
///
/// # Errors
/// The system's error if no thread can be started.
pub(crate) fn spawn(
    dir: &StateDir,
    mut intake: Intake,
    inputs: Sender<Input>,
    look_again: Arc<AtomicBool>,
    watch: Option<Watch>,
) -> io::Result<Ingest> {
    let stop = Arc::new(AtomicBool::new(false));
    let now = Reading { usage: intake.follower().usage(), ..Reading::default() };
    let reading = Arc::new(Mutex::new(now));
    let behind = Arc::new(AtomicBool::new(false));
    let waker = intake.follower().waker();
    // Stored records may be deleted once they are known to be in the database file.
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
        watch,
        gather_until: None,
        lone: None,
        awaited_until: None,
        sent,
        checkpoint: None,
        looked_at: clock::instant(),
        ballast_at: None,
        failing_imports: BTreeMap::new(),
        salvage_at: None,
        salvage_wait: FIRST_SALVAGE_WAIT,
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
    /// The engine has asked for another confirmation.
    look_again: Arc<AtomicBool>,
    watch: Option<Watch>,
    /// After a batch that emptied the journal, wait until this time, so that later hooks share one commit.
    gather_until: Option<Instant>,
    /// A new position without hooks, and since when it waits.
    lone: Option<(Position, Instant)>,
    /// Until this time a position does not wait for hooks, because `doctor` waits for it.
    awaited_until: Option<Instant>,
    /// The last position handed over. It may not be in the database file yet.
    sent: Option<Position>,
    /// A requested checkpoint, and the position that it covers.
    checkpoint: Option<(Receiver<bool>, Position)>,
    looked_at: Instant,
    ballast_at: Option<Instant>,
    /// Imports that could not be read or removed: first failure, and next attempt.
    failing_imports: BTreeMap<String, (Instant, Instant)>,
    /// When to try again to read a damaged database, and how long the wait after that will be.
    salvage_at: Option<Instant>,
    salvage_wait: Duration,
}

/// The engine has ended, or the collector is ending.
struct Ended;

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

enum Refusal {
    Ended,
    File(io::Error),
}

impl Reader {
    fn run(&mut self) {
        if let Err(error) = import::sweep(&self.dir) {
            tracing::warn!(%error, "copies of interrupted imports stay");
        }
        if self.salvage().is_err() {
            return;
        }
        while !self.stop.load(Ordering::Relaxed) {
            if self.step().is_err() {
                return;
            }
        }
        if let Some((position, _)) = self.lone.take() {
            // A refusal means that the engine has ended. The next start then reads a few hooks twice.
            let _handed_over = self.send_position(position, Horizon::Still);
        }
    }

    /// Copies what can be read of a damaged database. This comes before anything newer, because hooks are ordered by
    /// their numbers. A database that cannot be read now is tried again later, while new hooks are stored.
    fn salvage(&mut self) -> Result<(), Ended> {
        self.salvage_at = None;
        for aside in salvage::aside(&self.dir).into_iter().filter(|aside| aside.report.is_none()) {
            tracing::warn!(folder = %aside.folder.display(), "copying all readable hooks of a damaged database");
            let mut old = Salvage::open(&aside.folder);
            while let Some((arrivals, last)) = old.read_on() {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Ended);
                }
                let horizon = last.map_or(Horizon::Still, Horizon::At);
                self.drained = false;
                self.send(Batch { arrivals, horizon, ..Batch::default() })?;
            }
            self.commit(Batch::default())?;
            match old.finish(&|| self.stop.load(Ordering::Relaxed)) {
                Ok(found) => {
                    tracing::warn!(
                        hooks = found.hooks,
                        lost = ?found.lost,
                        "the readable hooks of a damaged database were copied"
                    );
                }
                Err(error) => {
                    tracing::warn!(%error);
                    self.salvage_at = Some(clock::instant() + self.salvage_wait);
                }
            }
        }
        self.salvage_wait = (self.salvage_wait * 2).min(LONGEST_SALVAGE_WAIT);
        Ok(())
    }

    fn step(&mut self) -> Result<(), Ended> {
        self.imports()?;
        if self.salvage_at.is_some_and(|at| clock::instant() >= at) {
            self.salvage()?;
        }
        if let Some(until) = self.gather_until.take() {
            std::thread::sleep(until.saturating_duration_since(clock::instant()));
        }
        if self.look_again.swap(false, Ordering::Relaxed) {
            self.drained = false;
        }
        let (batch, position) = self.intake.read();
        if self.intake.take_probed() {
            self.awaited_until = Some(clock::instant() + AWAITED);
        }
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
            return self.send_watched(batch);
        }
        if let Some(position) = position {
            let since = self.lone.take().map_or_else(clock::instant, |(_, since)| since);
            self.lone = Some((position, since));
        }
        // While a segment cannot be read, the engine must not assume that the journal was read to its end.
        let drained = batch.horizon.is_end();
        if (drained && !self.drained) || !batch.counts.is_empty() || !batch.gauges.is_empty() {
            self.drained = drained;
            return self.send(Batch { position: None, ..batch });
        }
        let now = clock::instant();
        let awaited = self.awaited_until.is_some_and(|until| now < until);
        if let Some((position, _)) =
            self.lone.take_if(|(_, since)| awaited || now - *since >= LONE_POSITION)
        {
            self.send_position(position, batch.horizon)?;
        }
        let nap = match (&self.lone, self.ballast_at) {
            (Some(_), _) => LONE_POSITION / 4,
            (None, Some(_)) => NAP,
            (None, None) => QUIET,
        };
        self.intake.follower().wait(nap);
        Ok(())
    }

    fn send(&mut self, batch: Batch) -> Result<(), Ended> {
        let full = match self.inputs.try_send(Input::Batch(batch, None)) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(Ended),
            Err(TrySendError::Full(input)) => input,
        };
        // Sending may take long. The engine may ask in the meantime.
        self.note();
        self.inputs.send(full).map_err(|_| Ended)
    }

    /// Sends hooks. After them, asks for a look at the repositories of turns that begin or end with these hooks.
    fn send_watched(&mut self, batch: Batch) -> Result<(), Ended> {
        let Some(watch) = &mut self.watch else { return self.send(batch) };
        let looks = watch.reasons(&batch.arrivals, clock::now());
        self.send(batch)?;
        let skipped = self.watch.as_ref().and_then(|watch| watch.ask(looks));
        match skipped {
            Some(count) => self.send(Batch { counts: vec![count], ..Batch::default() }),
            None => Ok(()),
        }
    }

    fn send_position(&mut self, position: Position, horizon: Horizon) -> Result<(), Ended> {
        let text = position.to_string();
        self.sent = Some(position);
        self.send(Batch { position: Some(text), horizon, ..Batch::default() })
    }

    /// Releases segments whose hooks are in the database file. A commit in the write-ahead log is not enough: if that log is
    /// lost, the journal must replace it.
    fn let_go(&mut self) {
        if let Some((answer, position)) = self.checkpoint.take() {
            match answer.try_recv() {
                Ok(true) => self.intake.follower().may_forget(&position),
                // Request another checkpoint. If the database was opened again in the meantime, the earlier request is
                // lost.
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
        self.note();
    }

    fn note(&mut self) {
        let reading = Reading {
            usage: self.intake.usage(),
            queued: self.inputs.len(),
            queue_bound: self.inputs.capacity().unwrap_or(0),
            read_up_to: self.read_up_to,
            problems: self.intake.follower().problems(),
        };
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = reading;
    }

    /// Stores waiting imports, one file after another, while live hooks wait in the journal.
    fn imports(&mut self) -> Result<(), Ended> {
        let Ok(pending) = import::pending(&self.dir) else { return Ok(()) };
        self.failing_imports.retain(|run, _| pending.iter().any(|staged| staged.run == *run));
        for staged in pending {
            let now = clock::instant();
            let failing = self.failing_imports.get(&staged.run).copied();
            if failing.is_some_and(|(_, again_at)| now < again_at) {
                continue;
            }
            self.drained = false;
            let done = match self.import(&staged) {
                Err(Refusal::File(error)) => self.import_failed(&staged, error, now)?,
                Err(Refusal::Ended) => return Err(Ended),
                Ok(()) => true,
            };
            // If the file cannot be removed, it is found again later. Its lines are then already stored.
            if done && disk::remove(&staged.path).is_ok() {
                self.failing_imports.remove(&staged.run);
            } else {
                let since = failing.map_or(now, |(since, _)| since);
                self.failing_imports.insert(staged.run, (since, now + IMPORT_AGAIN));
            }
        }
        Ok(())
    }

    /// Handles an unreadable import, for example if no file descriptor is free. It is retried for a while, then given up with
    /// its error. Returns whether it is given up.
    fn import_failed(
        &mut self,
        staged: &Staged,
        error: io::Error,
        now: Instant,
    ) -> Result<bool, Ended> {
        let failing = self.failing_imports.get(&staged.run);
        if failing.is_none() {
            tracing::warn!(%error, "an import cannot be read; trying again");
        }
        if failing.is_none_or(|(since, _)| now.duration_since(*since) < IMPORT_PATIENCE) {
            return Ok(false);
        }
        let error = Some(error.to_string());
        let step = ImportStep { run: staged.run.clone(), lines: 0, done: true, error };
        self.commit(Batch { import: Some(step), ..Batch::default() })?;
        Ok(true)
    }

    fn import(&mut self, staged: &Staged) -> Result<(), Refusal> {
        let known = self.readers.with(|db| imports::lines_done(db, &staged.run));
        // Without this number, lines would be counted twice.
        let skip = known.map_err(|error| Refusal::File(io::Error::other(error)))?;
        let plan = Plan::of(staged)?;
        import::take_in(staged, &plan, skip, |batch| {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Refusal::Ended);
            }
            let done = batch.import.as_ref().is_some_and(|step| step.done);
            let sent = if done { self.commit(batch) } else { self.send(batch) };
            sent.map_err(|Ended| Refusal::Ended)
        })
    }

    /// Hands over a batch and waits until it is committed.
    fn commit(&self, batch: Batch) -> Result<(), Ended> {
        let (answer, done) = bounded(1);
        self.inputs.send(Input::Batch(batch, Some(answer))).map_err(|_| Ended)?;
        done.recv().map(drop).map_err(|_| Ended)
    }
}
