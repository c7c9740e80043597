//! The loop of one destination: decide, send, record.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tracing::{Instrument as _, debug, info, warn};

use super::cause::Cause;
use super::client::Client;
use super::metrics::Metrics;
use super::outcome::{Outcome, Refusal, Trouble};
use super::plan::{Plan, Step, loss};
use super::sniff;
use super::split;
use super::timing::Timing;
use crate::clock;
use crate::config::destination::Destination;
use crate::store::damage::Suspicion;
use crate::store::export::{
    Batch, DestinationState, ExportStore, Held, Loss, LossReason, Position, Setback,
};

/// Time for a request in flight when the collector stops. An unfinished request is sent again later.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);

/// Maximum number of refused batches that are set aside. One refused batch may be a problem of the batch; after three
/// in a row, the destination is the problem.
const HELD_MAX: u64 = 3;

/// Number of attempts before a batch counts as refused, because a server may fail by chance.
const FAULTY_ATTEMPTS: u32 = 3;

/// After this many failures in a row, a protocol mismatch counts as certain, and the advice names further causes.
const CERTAIN_FROM: u32 = 3;

/// Minimum size of a request. A span has at most 48 KiB.
const REQUEST_MIN_BYTES: u64 = 64 * 1_024;

pub(super) struct Worker {
    pub(super) name: String,
    pub(super) client: Arc<Client>,
    pub(super) destination: Arc<Destination>,
    pub(super) store: Arc<Mutex<ExportStore>>,
    pub(super) plan: Arc<Plan>,
    pub(super) timing: Timing,
    pub(super) suspicion: Suspicion,
    pub(super) wake: watch::Receiver<u64>,
    pub(super) retry: Arc<Notify>,
    pub(super) shutdown: watch::Receiver<bool>,
    pub(super) metrics: Metrics,
    pub(super) gathering: Option<Instant>,
    pub(super) isolation: Isolation,
}

/// State of the batch that is being split.
#[derive(Debug, Default)]
pub(super) struct Isolation {
    /// Last `settled.seq` of that batch.
    until: i64,
    /// Whether some part of that batch was accepted.
    accepted: bool,
}

impl Isolation {
    fn split(&mut self, batch: &Batch) {
        if batch.first_seq > self.until {
            *self = Self { until: batch.last_seq, accepted: false };
        }
    }

    /// Notes that requests from `seq` on were accepted.
    pub(super) const fn accept(&mut self, seq: i64) {
        self.accepted |= seq <= self.until;
    }

    /// Whether another part of the same batch was accepted.
    const fn proves(&self, batch: &Batch) -> bool {
        self.accepted && batch.last_seq <= self.until
    }
}

/// Why a wait ended.
pub(super) enum Woken {
    Time,
    Asked,
    Shutdown,
}

impl Worker {
    pub(super) async fn run(mut self) {
        let mut at_once = false;
        loop {
            let step = self.next(at_once).await;
            at_once = false;
            let woken = match step {
                Ok(Step::Send { batch, position, alone }) => {
                    self.send(batch, position, alone).await
                }
                Ok(Step::Idle) => self.wait(self.timing.poll, true).await,
                Ok(Step::Gather(left)) => self.wait(left, true).await,
                Ok(Step::Wait(left)) => self.wait(left, false).await,
                Ok(Step::Stopped) => self.wait(self.timing.poll, false).await,
                Err(error) => self.trouble(&error).await,
            };
            match woken {
                Woken::Time => {}
                Woken::Asked => at_once = true,
                Woken::Shutdown => return,
            }
        }
    }

    async fn next(&mut self, at_once: bool) -> rusqlite::Result<Step> {
        let mut gathering = self.gathering.take();
        let plan = Arc::clone(&self.plan);
        let (step, gathering) = self
            .in_store(move |store| {
                let step = plan.next(store, &mut gathering, at_once, clock::now());
                (step, gathering)
            })
            .await;
        self.gathering = gathering;
        step
    }

    /// Waits until the time is over, the user asks for a delivery, the collector ends or, with `for_spans`, spans
    /// settle.
    async fn wait(&mut self, longest: Duration, for_spans: bool) -> Woken {
        tokio::select! {
            () = tokio::time::sleep(longest) => Woken::Time,
            () = self.retry.notified() => Woken::Asked,
            changed = self.wake.changed(), if for_spans => match changed {
                Ok(()) => Woken::Time,
                // No more spans will settle. Stored ones are still sent when they are due.
                Err(_) => tokio::select! {
                    () = tokio::time::sleep(longest) => Woken::Time,
                    () = stopped(&mut self.shutdown) => Woken::Shutdown,
                },
            },
            () = stopped(&mut self.shutdown) => Woken::Shutdown,
        }
    }

    async fn trouble(&mut self, error: &rusqlite::Error) -> Woken {
        self.suspicion.report(error);
        warn!(destination = %self.name, %error, "the export tables cannot be used; trying again");
        self.wait(Duration::from_secs(1), false).await
    }

    async fn send(&mut self, batch: Batch, position: Position, alone: bool) -> Woken {
        // Building ahead would be wasted work while sending does not work.
        let sent = if alone && position.attempts == 0 {
            self.flow(batch, position).await
        } else {
            let Some(outcome) = self.attempt(&batch).await else { return Woken::Shutdown };
            self.settle(&batch, &position, outcome).await.map(|()| Woken::Time)
        };
        match sent {
            Ok(woken) => woken,
            Err(error) => self.trouble(&error).await,
        }
    }

    /// Sends a request once. `None` if the collector stops meanwhile.
    pub(super) fn attempt(
        &self,
        batch: &Batch,
    ) -> impl Future<Output = Option<Outcome>> + Send + 'static {
        let span = tracing::info_span!(
            "export.request",
            destination = %self.name,
            spans = batch.spans,
            bytes = batch.body.len(),
            attempt = batch.attempts + 1,
        );
        let (client, metrics) = (Arc::clone(&self.client), self.metrics.clone());
        let (destination, mut shutdown) = (Arc::clone(&self.destination), self.shutdown.clone());
        let (body, spans) = (batch.body.clone(), batch.spans);
        async move {
            let started = clock::instant();
            let outcome = tokio::select! {
                outcome = client.send(body) => outcome,
                () = async {
                    stopped(&mut shutdown).await;
                    tokio::time::sleep(SHUTDOWN_GRACE).await;
                } => return None,
            };
            metrics.export_request(&destination.name, &outcome, spans, started.elapsed());
            Some(outcome)
        }
        .instrument(span)
    }

    pub(super) async fn settle(
        &mut self,
        batch: &Batch,
        position: &Position,
        outcome: Outcome,
    ) -> rusqlite::Result<()> {
        match outcome {
            Outcome::Ok => {
                debug!(destination = %self.name, spans = batch.spans, "delivered");
                self.delivered(batch, position, Vec::new()).await
            }
            Outcome::Partial { rejected, message } if rejected < batch.spans => {
                warn!(destination = %self.name, rejected, message, "delivered in part");
                let lost = loss(range(batch), rejected, LossReason::Partial, &message);
                let losses = if rejected > 0 { vec![lost] } else { Vec::new() };
                self.delivered(batch, position, losses).await
            }
            // The receiver stored nothing, so sending the request again makes no duplicates.
            Outcome::Partial { rejected, message } => {
                let detail = format!("all {rejected} spans were refused: {message}");
                self.refused(batch, position, Trouble::new(Cause::Content, detail), false).await
            }
            Outcome::Retry { after, trouble } => {
                self.retry_later(batch, position, after, trouble).await
            }
            Outcome::Permanent { class: Refusal::Auth | Refusal::Config, trouble } => {
                self.pause(batch, position, trouble).await
            }
            Outcome::Permanent { class: Refusal::TooLarge, trouble } => {
                self.shrink(batch, position, trouble).await
            }
            Outcome::Permanent { class: Refusal::Faulty, trouble }
                if batch.attempts + 1 < FAULTY_ATTEMPTS =>
            {
                self.retry_later(batch, position, None, trouble).await
            }
            Outcome::Permanent { class: Refusal::Faulty | Refusal::Rejected, trouble } => {
                self.refused(batch, position, trouble, true).await
            }
        }
    }

    async fn delivered(
        &mut self,
        batch: &Batch,
        position: &Position,
        losses: Vec<Loss>,
    ) -> rusqlite::Result<()> {
        let lost: u64 = losses.iter().map(|loss| loss.count).sum();
        self.finish(batch, Some(batch.spans - lost), losses).await?;
        if position.state != DestinationState::Ok {
            info!(destination = %self.name, "delivers again");
        }
        self.isolation.accept(batch.last_seq);
        Ok(())
    }

    async fn retry_later(
        &mut self,
        batch: &Batch,
        position: &Position,
        after: Option<Duration>,
        trouble: Trouble,
    ) -> rusqlite::Result<()> {
        let attempts = position.attempts.saturating_add(1);
        let is_paused = position.state == DestinationState::Paused;
        let trouble =
            if attempts >= CERTAIN_FROM { self.look_closer(trouble).await } else { trouble };
        if is_paused || (trouble.cause.is_mix_up() && attempts >= CERTAIN_FROM) {
            return self.pause(batch, position, trouble).await;
        }
        let wait = self.timing.wait(attempts, after, fastrand::f64());
        let setback = self.setback(DestinationState::Retry, attempts, wait, trouble);
        self.set_back(batch, setback).await
    }

    /// A connection that breaks repeatedly may speak another protocol.
    async fn look_closer(&self, trouble: Trouble) -> Trouble {
        if trouble.cause != Cause::Broken {
            return trouble;
        }
        let destination = Arc::clone(&self.destination);
        let found = tokio::task::spawn_blocking(move || sniff::sniff(&destination)).await;
        match found {
            Ok(Some(cause)) => Trouble { cause, ..trouble },
            _ => trouble,
        }
    }

    async fn shrink(
        &mut self,
        batch: &Batch,
        position: &Position,
        trouble: Trouble,
    ) -> rusqlite::Result<()> {
        let halves = split::halve(batch, self.destination.signal);
        let max_bytes =
            halves.is_some().then(|| (batch.body.len() as u64 / 2).max(REQUEST_MIN_BYTES));
        let parts = match (halves, split::shed_content(batch, self.destination.signal)) {
            (Some(halves), _) => halves.to_vec(),
            (None, Some(part)) => vec![part],
            (None, None) => {
                return self.give_up(batch, position, LossReason::TooLarge, trouble).await;
            }
        };
        self.isolation.split(batch);
        let whole = batch.clone();
        self.in_store(move |store| store.replace(&whole, &parts, max_bytes, clock::now())).await
    }

    /// Handles a batch whose content seems to be refused. The batch is split to find the refused trace. Nothing is
    /// dropped until the receiver accepts another part, because the receiver may refuse everything.
    async fn refused(
        &mut self,
        batch: &Batch,
        position: &Position,
        trouble: Trouble,
        can_be_cut: bool,
    ) -> rusqlite::Result<()> {
        let reason = if can_be_cut { LossReason::Rejected } else { LossReason::Partial };
        let parts = if can_be_cut {
            split::halve_between_traces(batch, self.destination.signal)
        } else {
            None
        };
        match parts {
            Some(parts) if position.state != DestinationState::Paused => {
                self.isolation.split(batch);
                let whole = batch.clone();
                self.in_store(move |store| store.replace(&whole, &parts, None, clock::now())).await
            }
            Some(_) => self.hold(batch, position, Held::Whole, trouble).await,
            None => self.give_up(batch, position, reason, trouble).await,
        }
    }

    /// Drops a batch that cannot be split further, if another part of the same batch was accepted. Otherwise sets it aside.
    async fn give_up(
        &mut self,
        batch: &Batch,
        position: &Position,
        reason: LossReason,
        trouble: Trouble,
    ) -> rusqlite::Result<()> {
        if !self.isolation.proves(batch) {
            let held = match reason {
                LossReason::TooLarge => Held::TooLarge,
                _ => Held::Alone,
            };
            return self.hold(batch, position, held, trouble).await;
        }
        let (reason_word, detail) = (reason.as_str(), trouble.detail.as_str());
        warn!(destination = %self.name, spans = batch.spans, reason = reason_word, detail, "lost");
        let lost = loss(range(batch), batch.spans, reason, &trouble.detail);
        self.finish(batch, None, vec![lost]).await
    }

    /// Sets a refused batch aside, so that the next one is tried. Pauses the destination if too many batches are set
    /// aside, or if it has never accepted anything and no other batch is waiting.
    async fn hold(
        &mut self,
        batch: &Batch,
        position: &Position,
        held: Held,
        trouble: Trouble,
    ) -> rusqlite::Result<()> {
        let (waiting, others, _) = self.in_store(|store| store.batches()).await?;
        let is_full = others + 1 >= HELD_MAX;
        let is_paused = position.state == DestinationState::Paused;
        let setback = if is_full || is_paused || (!position.has_accepted && waiting <= 1) {
            self.paused(position, trouble)
        } else {
            warn!(destination = %self.name, detail = trouble.detail, "refused; trying the next");
            let attempts = position.attempts.saturating_add(1);
            self.setback(DestinationState::Retry, attempts, Duration::ZERO, trouble)
        };
        let first_seq = batch.first_seq;
        self.in_store(move |store| {
            store.hold(first_seq, held, &setback, clock::now())?;
            if is_full { store.release() } else { Ok(()) }
        })
        .await
    }

    async fn pause(
        &mut self,
        batch: &Batch,
        position: &Position,
        trouble: Trouble,
    ) -> rusqlite::Result<()> {
        let setback = self.paused(position, trouble);
        self.set_back(batch, setback).await
    }

    fn paused(&self, position: &Position, trouble: Trouble) -> Setback {
        if position.state != DestinationState::Paused {
            warn!(destination = %self.name, detail = trouble.detail, "paused; the queue is kept");
        }
        let attempts = position.attempts.saturating_add(1);
        let wait = self.timing.probe_after(attempts);
        self.setback(DestinationState::Paused, attempts, wait, trouble)
    }

    fn setback(
        &self,
        state: DestinationState,
        attempts: u32,
        wait: Duration,
        trouble: Trouble,
    ) -> Setback {
        let Trouble { cause, detail } = trouble;
        let wait_ns = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        Setback {
            state,
            not_before: clock::now().plus(wait_ns),
            attempts,
            advice: self.advice(&cause, attempts),
            error: detail,
        }
    }

    async fn set_back(&mut self, batch: &Batch, setback: Setback) -> rusqlite::Result<()> {
        if setback.attempts == 1 {
            warn!(destination = %self.name, error = setback.error, "not delivered");
        }
        let first_seq = batch.first_seq;
        self.in_store(move |store| store.set_back(first_seq, &setback)).await
    }

    async fn finish(
        &self,
        batch: &Batch,
        delivered: Option<u64>,
        losses: Vec<Loss>,
    ) -> rusqlite::Result<()> {
        let batch = batch.clone();
        let done = move |store: &mut ExportStore| {
            store.finish(&[batch], delivered, &losses, &[], clock::now()).map(drop)
        };
        self.in_store(done).await
    }

    /// A server that requires a client certificate just closes the connection. The advice mentions this once it cannot
    /// be chance.
    fn advice(&self, cause: &Cause, attempts: u32) -> String {
        let connection = &self.destination.connection;
        let may_want_certificate = *cause == Cause::Broken
            && connection.endpoint.starts_with("https://")
            && connection.client.is_none()
            && attempts >= CERTAIN_FROM;
        let advice = cause.advice(&self.destination);
        if may_want_certificate {
            format!("{advice} {}", Cause::ClientCertificate.advice(&self.destination))
        } else {
            advice
        }
    }

    pub(super) async fn in_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ExportStore) -> T + Send + 'static,
    ) -> T {
        in_store(&self.store, work).await
    }
}

/// Runs `work` on a thread for blocking work. SQLite never runs on an async thread.
pub(super) async fn in_store<T: Send + 'static>(
    store: &Arc<Mutex<ExportStore>>,
    work: impl FnOnce(&mut ExportStore) -> T + Send + 'static,
) -> T {
    let store = Arc::clone(store);
    let done = tokio::task::spawn_blocking(move || {
        work(&mut store.lock().unwrap_or_else(PoisonError::into_inner))
    });
    match done.await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // An error means that the runtime, and this task with it, is shutting down.
            Err(_) => std::future::pending().await,
        },
    }
}

const fn range(batch: &Batch) -> (i64, i64) {
    (batch.first_seq, batch.last_seq)
}

/// Returns when the shutdown is announced, or when the sender of the announcement no longer exists.
pub(super) async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    while !*shutdown.borrow_and_update() {
        if shutdown.changed().await.is_err() {
            return;
        }
    }
}
