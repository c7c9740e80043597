//! The loop that sends metrics to one destination: count, store, send, record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hookspan_core::Timestamp;
use prost::Message as _;
use tokio::sync::{Notify, watch};
use tracing::{debug, info, warn};

use super::fold::{Rules, Series};
use super::request::{self, Own, Period};
use crate::clock;
use crate::config::destination::{Destination, MetricsExport, Signal, Temporality};
use crate::export::Settings;
use crate::export::client::Client;
use crate::export::outcome::{Outcome, Refusal, Trouble};
use crate::export::plan::Plan;
use crate::export::worker::{in_store, stopped};
use crate::store::damage::Suspicion;
use crate::store::export::{
    DestinationState, ExportStore, PointsPosition, Setback, StartAt, StoredPoints,
};

/// Maximum age of a counted span, in nanoseconds: one day. Older spans come from an import. They would distort the
/// current numbers, and receivers refuse points that are much older.
const AGE_MAX_NS: i64 = 86_400_000_000_000;

/// Maximum number of spans that one request counts. If more spans wait, the next request follows at once.
const SPANS_MAX: usize = 50_000;

/// Number of attempts before a request counts as refused, because a server may fail by chance.
const FAULTY_ATTEMPTS: u32 = 3;

/// Time that a request in flight gets when the collector stops.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);

/// Wait before the database is tried again.
const STORE_WAIT: Duration = Duration::from_secs(1);

/// Sends metrics to `destination` until the collector stops. Returns at once if the destination gets no metrics. A
/// notice on `retry` ends a wait and sends at once.
pub(in crate::export) async fn spawn(
    database: PathBuf,
    destination: Arc<Destination>,
    settings: Settings,
    retry: Arc<Notify>,
    mut shutdown: watch::Receiver<bool>,
) {
    let Some(metrics) = destination.metrics.clone() else { return };
    // The worker that sends spans reports why the destination cannot be used.
    let Ok(client) = Client::new(&metrics.connection, Signal::Metrics) else { return };
    let store = loop {
        let (path, name, identity) =
            (database.clone(), destination.name.clone(), destination.identity());
        let opened = tokio::task::spawn_blocking(move || {
            let mut store = ExportStore::open(&path, &name, &identity, StartAt::Head).ok()?;
            store.start_points(clock::now()).ok()?;
            Some(store)
        });
        if let Ok(Some(store)) = opened.await {
            break store;
        }
        tokio::select! {
            () = tokio::time::sleep(STORE_WAIT) => {}
            () = stopped(&mut shutdown) => return,
        }
    };
    let reporter = Reporter::new(&destination, &metrics, &settings);
    let worker = Worker {
        destination,
        metrics,
        client,
        store: Arc::new(Mutex::new(store)),
        reporter: Arc::new(Mutex::new(reporter)),
        settings,
        retry,
        shutdown,
    };
    worker.run().await;
}

struct Worker {
    destination: Arc<Destination>,
    metrics: MetricsExport,
    client: Client,
    store: Arc<Mutex<ExportStore>>,
    reporter: Arc<Mutex<Reporter>>,
    settings: Settings,
    retry: Arc<Notify>,
    shutdown: watch::Receiver<bool>,
}

/// The next thing to do.
#[derive(Debug)]
enum Step {
    Send(Box<(StoredPoints, PointsPosition)>),
    Wait(Duration),
    Gone,
}

impl Worker {
    async fn run(mut self) {
        let mut wait = self.metrics.interval;
        loop {
            let at_once = tokio::select! {
                () = tokio::time::sleep(wait) => false,
                () = self.retry.notified() => true,
                () = stopped(&mut self.shutdown) => return,
            };
            wait = match self.next(at_once).await {
                Ok(Step::Send(send)) => {
                    let (request, position) = *send;
                    let Some(outcome) = self.send(request.body.clone()).await else { return };
                    match self.settle(request, position, outcome).await {
                        Ok(wait) => wait,
                        Err(error) => trouble(&self.settings.suspicion, &error),
                    }
                }
                Ok(Step::Wait(wait)) => wait,
                Ok(Step::Gone) => return,
                Err(error) => trouble(&self.settings.suspicion, &error),
            };
        }
    }

    async fn next(&self, at_once: bool) -> rusqlite::Result<Step> {
        let reporter = Arc::clone(&self.reporter);
        let interval = self.metrics.interval;
        self.in_store(move |store| {
            let mut reporter = reporter.lock().unwrap_or_else(PoisonError::into_inner);
            reporter.next(store, interval, at_once, clock::now())
        })
        .await
    }

    /// Sends a request. Returns `None` if the collector stops before the answer arrives.
    async fn send(&self, body: Vec<u8>) -> Option<Outcome> {
        let mut shutdown = self.shutdown.clone();
        tokio::select! {
            outcome = self.client.send(Bytes::from(body)) => Some(outcome),
            () = async {
                stopped(&mut shutdown).await;
                tokio::time::sleep(SHUTDOWN_GRACE).await;
            } => None,
        }
    }

    /// Records an outcome. Returns how long to wait before the next step.
    async fn settle(
        &self,
        request: StoredPoints,
        position: PointsPosition,
        outcome: Outcome,
    ) -> rusqlite::Result<Duration> {
        let attempts = position.attempts.saturating_add(1);
        let name = self.destination.name.as_str();
        match outcome {
            Outcome::Ok => self.finish(request, &position, Some(0)).await,
            Outcome::Partial { rejected, message } => {
                warn!(destination = name, rejected, message, "metrics delivered in part");
                self.finish(request, &position, Some(rejected)).await
            }
            Outcome::Retry { after, trouble } => {
                let wait = self.settings.timing.wait(attempts, after, fastrand::f64());
                self.set_back(DestinationState::Retry, attempts, wait, trouble).await
            }
            Outcome::Permanent { class: Refusal::Faulty, trouble }
                if attempts < FAULTY_ATTEMPTS =>
            {
                let wait = self.settings.timing.wait(attempts, None, fastrand::f64());
                self.set_back(DestinationState::Retry, attempts, wait, trouble).await
            }
            Outcome::Permanent {
                class: Refusal::Rejected | Refusal::Faulty | Refusal::TooLarge,
                trouble,
            } if position.has_accepted && position.state != DestinationState::Paused => {
                warn!(destination = name, detail = trouble.detail, "metrics refused and lost");
                self.finish(request, &position, None).await
            }
            Outcome::Permanent { trouble, .. } => {
                if position.state != DestinationState::Paused {
                    warn!(destination = name, detail = trouble.detail, "metrics paused");
                }
                let wait = self.settings.timing.probe_after(attempts);
                self.set_back(DestinationState::Paused, attempts, wait, trouble).await
            }
        }
    }

    /// Records that a request is done. `rejected` is the number of refused points; `None` means all of them.
    async fn finish(
        &self,
        request: StoredPoints,
        position: &PointsPosition,
        rejected: Option<u64>,
    ) -> rusqlite::Result<Duration> {
        let lost = rejected.unwrap_or(request.points).min(request.points);
        let delivered = rejected.map(|_| request.points - lost);
        if delivered.is_some() {
            debug!(destination = %self.destination.name, points = request.points, "metrics delivered");
            if position.state != DestinationState::Ok {
                info!(destination = %self.destination.name, "takes metrics again");
            }
        }
        let reporter = Arc::clone(&self.reporter);
        let interval = self.metrics.interval;
        self.in_store(move |store| {
            store.finish_points(&request, delivered, lost, clock::now())?;
            let mut reporter = reporter.lock().unwrap_or_else(PoisonError::into_inner);
            let more = std::mem::take(&mut reporter.has_more);
            Ok(if more { Duration::ZERO } else { interval })
        })
        .await
    }

    async fn set_back(
        &self,
        state: DestinationState,
        attempts: u32,
        wait: Duration,
        trouble: Trouble,
    ) -> rusqlite::Result<Duration> {
        let wait_ns = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        let setback = Setback {
            state,
            not_before: clock::now().plus(wait_ns),
            attempts,
            advice: trouble.cause.metrics_advice(&self.destination),
            error: trouble.detail,
        };
        self.in_store(move |store| store.set_back_points(&setback)).await?;
        Ok(wait)
    }

    async fn in_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ExportStore) -> T + Send + 'static,
    ) -> T {
        in_store(&self.store, work).await
    }
}

fn trouble(suspicion: &Suspicion, error: &rusqlite::Error) -> Duration {
    suspicion.report(error);
    warn!(%error, "the table of metrics cannot be used; trying again");
    STORE_WAIT
}

/// Counts settled spans and hookspan's own state.
pub(super) struct Reporter {
    plan: Plan,
    temporality: Temporality,
    /// A random id of this collector run. It replaces the installation's id at `content = "off"`.
    instance: String,
    /// The sums since the start of the collector. Used only if the receiver takes cumulative sums.
    series: Series,
    /// Position in the queue up to which spans are counted in `series`. `None` until the queue was first read.
    folded: Option<i64>,
    /// The time from which `series` counts.
    since: Timestamp,
    /// hookspan's own state at the beginning of the next request's period. `None` until it was first read.
    before: Option<Own>,
    /// Whether more spans wait than one request counts.
    has_more: bool,
}

impl Reporter {
    pub(super) fn new(
        destination: &Destination,
        metrics: &MetricsExport,
        settings: &Settings,
    ) -> Self {
        Self {
            plan: Plan::of(destination, settings),
            temporality: metrics.temporality,
            instance: random_id(),
            series: Series::default(),
            folded: None,
            since: clock::now(),
            before: None,
            has_more: false,
        }
    }

    fn next(
        &mut self,
        store: &mut ExportStore,
        interval: Duration,
        at_once: bool,
        now: Timestamp,
    ) -> rusqlite::Result<Step> {
        let Some(position) = store.points()? else { return Ok(Step::Gone) };
        if position.stopped {
            return Ok(Step::Wait(interval));
        }
        let left = u64::try_from(position.not_before.since(now)).unwrap_or(0);
        if left > 0 && !at_once {
            return Ok(Step::Wait(Duration::from_nanos(left)));
        }
        // A stored request with cumulative sums need not be sent again, because a later request contains its values.
        let again = position.stored.clone().filter(|_| self.temporality == Temporality::Delta);
        let request = match again {
            Some(request) => request,
            None => {
                let (request, left_out) = self.build(store, &position, now)?;
                store.store_points(&request, left_out)?;
                request
            }
        };
        Ok(Step::Send(Box::new((request, position))))
    }

    /// Builds the next request. Returns it with the number of spans that were too old.
    pub(super) fn build(
        &mut self,
        store: &ExportStore,
        position: &PointsPosition,
        now: Timestamp,
    ) -> rusqlite::Result<(StoredPoints, u64)> {
        let is_delta = self.temporality == Temporality::Delta;
        if is_delta {
            self.series = Series::default();
            self.folded = Some(position.acked_seq);
        }
        let after = self.folded.unwrap_or(position.acked_seq);
        let (last_seq, left_out) = self.fold(store, after, now)?;
        self.folded = Some(last_seq);
        let own = own(store, position.left_out + left_out)?;
        let before = self.before.get_or_insert_with(|| own.clone());
        let start = if is_delta { position.counted } else { self.since };
        let period = Period { temporality: self.temporality, start: start.min(now), end: now };
        let resource = self.plan.encoding.machine(&self.instance);
        let (message, points) = request::request(resource, &self.series, &own, before, period);
        self.series.forget_exemplars();
        if is_delta {
            self.before = Some(own);
        }
        let body = message.encode_to_vec();
        Ok((StoredPoints { body, points, last_seq, built: now }, left_out))
    }

    fn fold(
        &mut self,
        store: &ExportStore,
        after: i64,
        now: Timestamp,
    ) -> rusqlite::Result<(i64, u64)> {
        let (mut last, mut left_out, mut count) = (after, 0, 0);
        store.settled_after(after, |seq, span| {
            last = seq;
            count += 1;
            let end = span.end.map_or(span.start, |end| end.at);
            if now.since(end) > AGE_MAX_NS {
                left_out += 1;
            } else {
                let is_sent = self.plan.sends(&span, now);
                self.series.add(&span, Rules { encoding: &self.plan.encoding, is_sent });
            }
            count < SPANS_MAX
        })?;
        self.has_more = count == SPANS_MAX;
        Ok((last, left_out))
    }
}

/// A random UUID.
fn random_id() -> String {
    let id = (fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{id:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn own(store: &ExportStore, left_out: u64) -> rusqlite::Result<Own> {
    let row = store.own_state()?;
    let mut own = Own::default();
    for (outcome, count) in store.hooks()? {
        own.sums.insert(("hookspan.hooks", outcome.to_owned()), count);
    }
    own.sums.insert(("hookspan.export.spans", "delivered".to_owned()), row.delivered);
    for (reason, count) in row.lost {
        own.sums.insert(("hookspan.export.spans", reason), count);
    }
    own.sums.insert(("hookspan.metrics.spans_left_out", String::new()), left_out);
    own.gauges = BTreeMap::from([
        ("hookspan.export.backlog", row.queued),
        ("hookspan.export.up", u64::from(row.state == "ok")),
        ("hookspan.store.size", store.database_bytes()?),
    ]);
    Ok(own)
}
