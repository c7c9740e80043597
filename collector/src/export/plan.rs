//! Decides a destination's next step from its rows alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hookspan_core::content;
use hookspan_core::{ContentRef, Span, Timestamp};
use sha2::{Digest as _, Sha256};

use super::otlp::{Encoding, Request};
use super::{Settings, client, split};
use crate::config::Profile;
use crate::config::destination::{Destination, Signal};
use crate::store::bodies::Bodies;
use crate::store::export::{Batch, ExportStore, Loss, LossReason, Position};

/// Maximum number of spans in one request.
pub(super) const BATCH_SPANS: usize = 512;

/// Maximum number of spans read for one request. Most spans have no log record, so a request of them would otherwise
/// read the whole history.
const SPANS_READ_MAX: i64 = 16 * BATCH_SPANS as i64;

/// Maximum number of requests in flight while a destination catches up. They hide the network's delay: with a
/// receiver 50 ms away, one request in flight carries 10,000 spans/s, four carry 40,000.
const IN_FLIGHT: usize = 4;

/// If the requests of a group together reach this size, the group gets no further request. This limits the memory for
/// requests with content.
const IN_FLIGHT_BYTES: usize = 3 << 20;

/// After a receiver has refused a size, that size is the maximum for one hour. Then twice that size is tried, and so
/// on.
const SIZE_TRUST_NS: i64 = 3_600_000_000_000;

/// Fixed settings of a destination that decide what is sent when.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) signal: Signal,
    pub(super) encoding: Encoding,
    pub(super) sample: f64,
    pub(super) max_span_age: Option<Duration>,
    pub(super) backlog_max_spans: u64,
    pub(super) request_max_bytes: usize,
    pub(super) flush: Duration,
    pub(super) probe: Duration,
}

/// The next thing to do.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing is waiting.
    Idle,
    /// Wait for more spans, at most this long.
    Gather(Duration),
    /// No attempt for this long.
    Wait(Duration),
    /// A person paused the destination.
    Stopped,
    /// Send this request. It is stored.
    Send { batch: Batch, position: Position, alone: bool },
}

/// A request made from the store. It is not stored itself yet.
#[derive(Debug, Default)]
pub(super) struct Built {
    pub(super) batch: Option<Batch>,
    pub(super) losses: Vec<Loss>,
    pub(super) last_seq: i64,
}

impl Plan {
    /// The plan of a destination.
    pub(super) fn of(destination: &Destination, settings: &Settings) -> Self {
        // Log records are newer than the other profiles, so there is none of an older form.
        let semconv = match destination.signal {
            Signal::Logs => Profile::Genai141Strict,
            Signal::Traces | Signal::Metrics => destination.semconv,
        };
        Self {
            signal: destination.signal,
            encoding: Encoding {
                semconv,
                hide_inputs: settings.hide_inputs,
                hide_outputs: settings.hide_outputs,
                prices: Arc::clone(&settings.prices),
                answers_apart: settings.llm_spans && !destination.preset.shows_the_root(),
                ..Encoding::of(destination, settings.resource.clone(), &settings.redaction)
            },
            sample: destination.sample,
            max_span_age: destination.max_span_age,
            backlog_max_spans: destination.backlog_max_spans,
            request_max_bytes: client::request_max_bytes(destination.connection.protocol),
            flush: settings.timing.flush,
            probe: settings.timing.probe,
        }
    }

    /// Whether a settled span would be sent now. False if `sample` leaves it out or if it is too old.
    pub(super) fn sends(&self, span: &Span, now: Timestamp) -> bool {
        self.is_sampled(&span.root) && !self.is_too_old(span, now)
    }

    /// Decides the next step, and stores the state on which the decision rests. `gathering` is when the first waiting
    /// span was seen. `at_once` skips a wait, because the user asked for it.
    pub(super) fn next(
        &self,
        store: &mut ExportStore,
        gathering: &mut Option<Instant>,
        at_once: bool,
        now: Timestamp,
    ) -> rusqlite::Result<Step> {
        self.shed_backlog(store, now)?;
        loop {
            let position = store.position()?;
            if position.stopped {
                return Ok(Step::Stopped);
            }
            let wait =
                Duration::from_nanos(u64::try_from(position.not_before.since(now)).unwrap_or(0));
            let stored = store.batch()?;
            if let Some(batch) = stored {
                if self.is_expired(split::newest_end_ns(&batch, self.signal), now) {
                    let loss = expired(&batch);
                    store.finish(&[batch], None, &[loss], &[], now)?;
                    continue;
                }
                if !at_once && !wait.is_zero() {
                    return Ok(Step::Wait(wait));
                }
                let alone = store.batches()?.0 == 1 && batch.last_seq == position.built_seq;
                return Ok(Step::Send { batch, position, alone });
            }
            match store.waiting(position.built_seq, BATCH_SPANS as u64)? {
                0 => {
                    *gathering = None;
                    match self.until_release(store, at_once, now)? {
                        Some(left) if left.is_zero() => {
                            store.release()?;
                            continue;
                        }
                        Some(left) => return Ok(Step::Gather(left)),
                        None => return Ok(Step::Idle),
                    }
                }
                _ if !at_once && !wait.is_zero() => return Ok(Step::Wait(wait)),
                n if n < BATCH_SPANS as u64 && !at_once => {
                    let since = gathering.get_or_insert_with(crate::clock::instant).elapsed();
                    if let Some(left) = self.flush.checked_sub(since).filter(|d| !d.is_zero()) {
                        return Ok(Step::Gather(left));
                    }
                }
                _ => {}
            }
            *gathering = None;
            let built = self.build(store, position.built_seq, &position, now)?;
            match &built.batch {
                Some(batch) => store.store_batch(batch, &built.losses, now)?,
                None => store.skip_to(built.last_seq, &built.losses, now)?,
            }
        }
    }

    /// Time until the batches that were set aside are sent again, although no other batch was accepted meanwhile. Zero
    /// means now. `None` if no batch is set aside.
    fn until_release(
        &self,
        store: &ExportStore,
        at_once: bool,
        now: Timestamp,
    ) -> rusqlite::Result<Option<Duration>> {
        let (_, _, oldest) = store.batches()?;
        Ok(oldest.map(|at| {
            let since = Duration::from_nanos(u64::try_from(now.since(at)).unwrap_or(0));
            if at_once { Duration::ZERO } else { self.probe.saturating_sub(since) }
        }))
    }

    /// Maximum bytes of the next request: the protocol's limit, or less if the receiver refused a size.
    fn max_bytes(&self, position: &Position, now: Timestamp) -> usize {
        let Some((bytes, learned)) = position.size else { return self.request_max_bytes };
        let doublings = u32::try_from(now.since(learned) / SIZE_TRUST_NS).unwrap_or(0).min(32);
        let bytes = bytes.saturating_mul(1 << doublings);
        usize::try_from(bytes).unwrap_or(usize::MAX).min(self.request_max_bytes)
    }

    /// The next requests after `seq`: as many full ones as may be in flight together. They are encoded while the
    /// previous ones are in flight.
    pub(super) fn ahead(
        &self,
        store: &ExportStore,
        seq: i64,
        position: &Position,
        now: Timestamp,
    ) -> rusqlite::Result<Vec<Built>> {
        let (mut group, mut bytes, mut after) = (Vec::new(), 0, seq);
        while group.len() < IN_FLIGHT
            && bytes < IN_FLIGHT_BYTES
            && store.waiting(after, BATCH_SPANS as u64)? == BATCH_SPANS as u64
        {
            let built = self.build(store, after, position, now)?;
            let Some(batch) = &built.batch else { break };
            bytes += batch.body.len();
            after = built.last_seq;
            group.push(built);
        }
        Ok(group)
    }

    fn build(
        &self,
        store: &ExportStore,
        after: i64,
        position: &Position,
        now: Timestamp,
    ) -> rusqlite::Result<Built> {
        let mut built = Built { last_seq: after, ..Built::default() };
        let mut request = Request::new(&self.encoding);
        let mut bodies = store.bodies();
        let mut old = 0;
        let max_bytes = self.max_bytes(position, now);
        store.settled_after(after, |seq, span| {
            if !self.is_sampled(&span.root) {
                built.last_seq = seq;
                return true;
            }
            if self.is_too_old(&span, now) {
                old += 1;
                built.last_seq = seq;
                return true;
            }
            if let Some(encoded) = self.encode(&span, &mut bodies)
                && !request.push(&span, &encoded, max_bytes)
            {
                return false;
            }
            built.last_seq = seq;
            request.len() < BATCH_SPANS && seq - after < SPANS_READ_MAX
        })?;
        let range = (after + 1, built.last_seq);
        if old > 0 {
            built.losses.push(loss(range, old, LossReason::Expired, "older than max_span_age"));
        }
        if !request.is_empty() {
            built.batch = Some(Batch {
                first_seq: range.0,
                last_seq: range.1,
                spans: request.len() as u64,
                body: request.finish().into(),
                attempts: 0,
            });
        }
        Ok(built)
    }

    /// What is sent of a span; `None` if it has no log record.
    pub(super) fn encode(&self, span: &Span, bodies: &mut Bodies<'_>) -> Option<Vec<u8>> {
        // If a body is damaged or pruned, the span merely lacks that content.
        let read = &mut |part: &ContentRef| content::extract(part.field, bodies.get(part.hook)?);
        match self.signal {
            Signal::Logs => self.encoding.record(span, read),
            Signal::Traces | Signal::Metrics => Some(self.encoding.bytes(span, read)),
        }
    }

    /// Limits the number of spans that wait for a failing destination, by dropping the oldest. A request that is
    /// already built is kept if some of its spans are within the limit. So up to one request more than the limit may
    /// wait, and no span is dropped without need.
    fn shed_backlog(&self, store: &mut ExportStore, now: Timestamp) -> rusqlite::Result<()> {
        let position = store.position()?;
        if position.attempts == 0 || self.backlog_max_spans == u64::MAX {
            return Ok(());
        }
        let floor = store.seq_before_last(self.backlog_max_spans)?;
        if position.acked_seq >= floor {
            return Ok(());
        }
        while let Some(batch) = store.oldest_batch()?.filter(|batch| batch.first_seq <= floor) {
            if batch.last_seq > floor {
                return Ok(());
            }
            let lost = loss(
                (batch.first_seq, batch.last_seq),
                batch.spans,
                LossReason::Overflow,
                "too many spans were waiting",
            );
            store.finish(&[batch], None, &[lost], &[], now)?;
        }
        let built = store.position()?.built_seq;
        if built < floor {
            let count = u64::try_from(floor - built).unwrap_or(0);
            let lost = loss(
                (built + 1, floor),
                count,
                LossReason::Overflow,
                "too many spans were waiting",
            );
            store.skip_to(floor, &[lost], now)?;
        }
        Ok(())
    }

    fn is_too_old(&self, span: &Span, now: Timestamp) -> bool {
        let end = span.end.map_or(span.start, |end| end.at);
        self.is_expired(u64::try_from(end.0).unwrap_or(0), now)
    }

    /// Spans are dropped by age only if the user has configured it. Otherwise, a destination gets everything even after
    /// an outage of weeks.
    fn is_expired(&self, end_ns: u64, now: Timestamp) -> bool {
        let Some(limit) = self.max_span_age else { return false };
        let age = u64::try_from(now.0).unwrap_or(0).saturating_sub(end_ns);
        u128::from(age) > limit.as_nanos()
    }

    /// Whether `sample` selects a conversation. The first eight bytes of the id's hash, read as a fraction, are
    /// compared with `sample`.
    pub(super) fn is_sampled(&self, conversation: &str) -> bool {
        if self.sample >= 1.0 {
            return true;
        }
        let digest = Sha256::digest(conversation.as_bytes());
        let head = digest.iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        // A double can represent 53 bits exactly.
        #[expect(clippy::cast_precision_loss, reason = "shifted down to 53 bits")]
        let fraction = (head >> 11) as f64 / (1_u64 << 53) as f64;
        fraction < self.sample
    }
}

pub(super) fn loss(range: (i64, i64), count: u64, reason: LossReason, detail: &str) -> Loss {
    Loss { first_seq: range.0, last_seq: range.1, count, reason, detail: detail.to_owned() }
}

fn expired(batch: &Batch) -> Loss {
    loss(
        (batch.first_seq, batch.last_seq),
        batch.spans,
        LossReason::Expired,
        "older than max_span_age",
    )
}
