//! One destination's loop: decide, send, record; one request in flight.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tracing::{Instrument as _, debug, info, warn};

use super::client::Client;
use super::outcome::{Outcome, Refusal};
use super::plan::{Built, Plan, Step, loss};
use super::split;
use super::timing::Timing;
use crate::clock;
use crate::store::export::{
    Batch, DestinationState, ExportStore, Loss, LossReason, Position, Setback,
};
use crate::telemetry::Metrics;

/// A request on its way gets this long to finish when the collector stops. What does not is sent again later.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);

/// Batches in a row of which the destination takes nothing, after which it is left alone.
const REJECTED_BEFORE_PAUSE: u32 = 3;

/// From here on a failure over TLS names what else could be the cause.
const TLS_HINT_FROM: u32 = 3;

pub(super) struct Worker {
    pub(super) name: String,
    pub(super) client: Client,
    pub(super) is_tls_without_client: bool,
    pub(super) store: Arc<Mutex<ExportStore>>,
    pub(super) plan: Arc<Plan>,
    pub(super) timing: Timing,
    pub(super) wake: watch::Receiver<u64>,
    pub(super) retry: Arc<Notify>,
    pub(super) shutdown: watch::Receiver<bool>,
    pub(super) metrics: Metrics,
    pub(super) gathering: Option<Instant>,
    pub(super) isolation: Isolation,
}

/// What became of the batch that is being taken apart.
#[derive(Debug, Default)]
pub(super) struct Isolation {
    /// Some part of the current batch was taken.
    accepted: bool,
    /// Batches in a row of which nothing was.
    rejected: u32,
}

/// Why a wait ended.
enum Woken {
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

    /// Waits for time to pass, for a person to ask, for the end, and, if `for_spans`, for spans to settle.
    async fn wait(&mut self, longest: Duration, for_spans: bool) -> Woken {
        tokio::select! {
            () = tokio::time::sleep(longest) => Woken::Time,
            () = self.retry.notified() => Woken::Asked,
            changed = self.wake.changed(), if for_spans => match changed {
                Ok(()) => Woken::Time,
                // Nobody is left to settle spans; what is stored still leaves, by the clock.
                Err(_) => tokio::select! {
                    () = tokio::time::sleep(longest) => Woken::Time,
                    () = stopped(&mut self.shutdown) => Woken::Shutdown,
                },
            },
            () = stopped(&mut self.shutdown) => Woken::Shutdown,
        }
    }

    async fn trouble(&mut self, error: &rusqlite::Error) -> Woken {
        warn!(destination = %self.name, %error, "the export tables cannot be used; trying again");
        self.wait(Duration::from_secs(1), false).await
    }

    async fn send(&mut self, batch: Batch, position: Position, alone: bool) -> Woken {
        let started = clock::instant();
        let span = tracing::info_span!(
            "export.request",
            destination = %self.name,
            spans = batch.spans,
            bytes = batch.body.len(),
            attempt = batch.attempts + 1,
        );
        // While it is on its way, the next one is put together: only when things go well, or it would be work thrown away.
        let ahead = alone && position.attempts == 0;
        let body = Bytes::from(batch.body.clone());
        let mut shutdown = self.shutdown.clone();
        let request = async {
            tokio::select! {
                outcome = self.client.send(body) => Some(outcome),
                () = async {
                    stopped(&mut shutdown).await;
                    tokio::time::sleep(SHUTDOWN_GRACE).await;
                } => None,
            }
        }
        .instrument(span);
        let (outcome, next) = tokio::join!(request, self.ahead(ahead, batch.last_seq, &position));
        let Some(outcome) = outcome else { return Woken::Shutdown };
        self.metrics.export_request(&self.name, &outcome, batch.spans, started.elapsed());
        match self.settle(&batch, &position, outcome, next).await {
            Ok(()) => Woken::Time,
            Err(error) => self.trouble(&error).await,
        }
    }

    async fn ahead(&self, wanted: bool, seq: i64, position: &Position) -> Option<Built> {
        if !wanted {
            return None;
        }
        let (plan, position) = (Arc::clone(&self.plan), position.clone());
        let built =
            self.in_store(move |store| plan.ahead(store, seq, &position, clock::now())).await;
        // Whatever was wrong will be met again, and reported, when its turn comes.
        built.ok().flatten()
    }

    async fn settle(
        &mut self,
        batch: &Batch,
        position: &Position,
        outcome: Outcome,
        next: Option<Built>,
    ) -> rusqlite::Result<()> {
        match outcome {
            Outcome::Ok => {
                debug!(destination = %self.name, spans = batch.spans, "delivered");
                self.delivered(batch, position, Vec::new(), next).await
            }
            Outcome::Partial { rejected, message } => {
                warn!(destination = %self.name, rejected, message, "delivered in part");
                let lost = rejected.min(batch.spans);
                let losses = if lost > 0 {
                    vec![loss(range(batch), lost, LossReason::Partial, &message)]
                } else {
                    Vec::new()
                };
                self.delivered(batch, position, losses, next).await
            }
            Outcome::Retry { after, detail } => {
                let paused = position.state == DestinationState::Paused;
                let attempts = position.attempts.saturating_add(1);
                let wait = if paused {
                    self.timing.probe
                } else {
                    self.timing.wait(attempts, after, fastrand::f64())
                };
                let state = if paused { DestinationState::Paused } else { DestinationState::Retry };
                self.set_back(batch, state, attempts, wait, self.with_hint(detail, attempts)).await
            }
            Outcome::Permanent { class: Refusal::Auth | Refusal::Config, detail } => {
                self.pause(batch, position, detail).await
            }
            Outcome::Permanent { class: Refusal::TooLarge, detail } => {
                self.shrink(batch, detail).await
            }
            Outcome::Permanent { class: Refusal::Rejected, detail } => {
                self.isolate(batch, position, detail).await
            }
        }
    }

    async fn delivered(
        &mut self,
        batch: &Batch,
        position: &Position,
        losses: Vec<Loss>,
        next: Option<Built>,
    ) -> rusqlite::Result<()> {
        let lost: u64 = losses.iter().map(|loss| loss.count).sum();
        self.finish(batch, Some(batch.spans - lost), losses, next).await?;
        if position.state != DestinationState::Ok {
            info!(destination = %self.name, "delivers again");
        }
        self.isolation = Isolation::default();
        self.isolation.accepted = true;
        Ok(())
    }

    /// Gives up a batch, or what is left of one, and pauses when that becomes a habit.
    async fn give_up(
        &mut self,
        batch: &Batch,
        position: &Position,
        reason: LossReason,
        detail: String,
    ) -> rusqlite::Result<()> {
        warn!(
            destination = %self.name, spans = batch.spans, reason = reason.as_str(), detail, "lost"
        );
        let lost = loss(range(batch), batch.spans, reason, &detail);
        self.finish(batch, None, vec![lost], None).await?;
        if reason != LossReason::Rejected || self.in_store(|store| store.batches()).await? > 0 {
            return Ok(());
        }
        if std::mem::take(&mut self.isolation.accepted) {
            self.isolation.rejected = 0;
            return Ok(());
        }
        self.isolation.rejected += 1;
        if self.isolation.rejected >= REJECTED_BEFORE_PAUSE {
            let detail = format!("nothing of {REJECTED_BEFORE_PAUSE} batches was taken: {detail}");
            self.pause(batch, position, detail).await?;
        }
        Ok(())
    }

    async fn shrink(&mut self, batch: &Batch, detail: String) -> rusqlite::Result<()> {
        let parts = match split::halve(batch) {
            Some(parts) => parts.to_vec(),
            None => match split::shed_content(batch) {
                Some(part) => vec![part],
                None => {
                    let position = self.in_store(|store| store.position()).await?;
                    return self.give_up(batch, &position, LossReason::TooLarge, detail).await;
                }
            },
        };
        let whole = batch.clone();
        self.in_store(move |store| store.replace(&whole, &parts)).await
    }

    async fn isolate(
        &mut self,
        batch: &Batch,
        position: &Position,
        detail: String,
    ) -> rusqlite::Result<()> {
        if position.state == DestinationState::Paused {
            return self.pause(batch, position, detail).await;
        }
        match split::halve_between_traces(batch) {
            Some(parts) => {
                let whole = batch.clone();
                self.in_store(move |store| store.replace(&whole, &parts)).await
            }
            None => self.give_up(batch, position, LossReason::Rejected, detail).await,
        }
    }

    async fn pause(
        &mut self,
        batch: &Batch,
        position: &Position,
        detail: String,
    ) -> rusqlite::Result<()> {
        if position.state != DestinationState::Paused {
            warn!(destination = %self.name, detail, "paused; the queue is kept");
        }
        let attempts = position.attempts.saturating_add(1);
        self.set_back(batch, DestinationState::Paused, attempts, self.timing.probe, detail).await
    }

    async fn set_back(
        &mut self,
        batch: &Batch,
        state: DestinationState,
        attempts: u32,
        wait: Duration,
        error: String,
    ) -> rusqlite::Result<()> {
        if attempts == 1 {
            warn!(destination = %self.name, error, wait_ms = wait.as_millis(), "not delivered");
        }
        let wait_ns = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        let setback = Setback { state, not_before: clock::now().plus(wait_ns), attempts, error };
        let first_seq = batch.first_seq;
        self.in_store(move |store| store.set_back(first_seq, &setback)).await
    }

    async fn finish(
        &self,
        batch: &Batch,
        delivered: Option<u64>,
        losses: Vec<Loss>,
        next: Option<Built>,
    ) -> rusqlite::Result<()> {
        let batch = batch.clone();
        self.in_store(move |store| {
            let mut losses = losses;
            let next = next.and_then(|built| {
                losses.extend(built.losses);
                built.batch
            });
            store.finish(&batch, delivered, &losses, next.as_ref(), clock::now())
        })
        .await
    }

    /// A server that wants a client certificate just hangs up: say so once it cannot be chance.
    fn with_hint(&self, detail: String, attempts: u32) -> String {
        if self.is_tls_without_client && attempts >= TLS_HINT_FROM {
            format!(
                "{detail} (if the server asks for a client certificate, set client_certificate and client_key)"
            )
        } else {
            detail
        }
    }

    /// Runs `work` on a blocking thread: SQLite never runs on an async one.
    async fn in_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ExportStore) -> T + Send + 'static,
    ) -> T {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || {
            work(&mut store.lock().unwrap_or_else(PoisonError::into_inner))
        });
        match done.await {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down and takes this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

const fn range(batch: &Batch) -> (i64, i64) {
    (batch.first_seq, batch.last_seq)
}

/// Returns once the end was announced, or nobody is left to announce it.
async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    while !*shutdown.borrow_and_update() {
        if shutdown.changed().await.is_err() {
            return;
        }
    }
}
