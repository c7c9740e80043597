//! Sends the spans of a period again without moving the destination's position. The spans are encoded now and stored as
//! requests, which the collector sends like any others.

use std::path::Path;

use bytes::Bytes;
use hookspan_core::Timestamp;

use super::Settings;
use super::otlp::Request;
use super::plan::{BATCH_SPANS, Plan};
use crate::config::destination::Destination;
use crate::store::export::{Batch, ExportStore, StartAt};
use crate::store::open::OpenError;

/// Maximum number of bytes that a replay adds to the database. A longer period must be replayed in parts.
const MAX_BYTES: usize = 256 << 20;

/// The result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replayed {
    /// All spans of the period wait to be sent. Contains their number.
    Spans(u64),
    /// The period contains too many spans, and nothing was stored. Contains the number of spans that would fit.
    TooMuch(u64),
}

/// Builds and stores requests from a sequence of spans.
struct Filling<'a> {
    plan: &'a Plan,
    request: Request<'a>,
    range: Option<(i64, i64)>,
    batches: Vec<Batch>,
    bytes: usize,
    spans: u64,
}

impl Filling<'_> {
    fn close(&mut self) {
        let request = std::mem::replace(&mut self.request, Request::new(&self.plan.encoding));
        let Some((first_seq, last_seq)) = self.range.take() else { return };
        let spans = request.len() as u64;
        let body = Bytes::from(request.finish());
        self.bytes += body.len();
        self.spans += spans;
        self.batches.push(Batch { first_seq, last_seq, spans, body, attempts: 0 });
    }
}

/// Stores requests with the spans that ended between `from` and `to`, both included. Spans that are not in a request
/// yet are left out, because they will be sent anyway. Spans that `sample` leaves out are left out as well.
/// `max_span_age` is ignored, because the user asked for these spans.
///
/// # Errors
/// Returns SQLite's error. Nothing is stored then.
pub(crate) fn period(
    database: &Path,
    destination: &Destination,
    settings: &Settings,
    (from, to): (Timestamp, Timestamp),
) -> Result<Replayed, OpenError> {
    let identity = destination.identity();
    let mut store = ExportStore::open(database, &destination.name, &identity, StartAt::Head)?;
    let failed = |source| OpenError::Sqlite { path: database.into(), source };
    let plan = Plan::of(destination, settings);
    let built = store.position().map_err(failed)?.built_seq;
    let start = store.start_seq(StartAt::Since(from)).map_err(failed)?;
    let mut filling = Filling {
        plan: &plan,
        request: Request::new(&plan.encoding),
        range: None,
        batches: Vec::new(),
        bytes: 0,
        spans: 0,
    };
    let mut bodies = store.bodies();
    let read = store.settled_after(start, |seq, span| {
        let end = span.end.map_or(span.start, |end| end.at);
        if seq > built || filling.bytes > MAX_BYTES {
            return false;
        }
        if end < from || end > to || !plan.is_sampled(&span.root) {
            return true;
        }
        let Some(encoded) = plan.encode(&span, &mut bodies) else { return true };
        if filling.request.len() == BATCH_SPANS
            || !filling.request.push(&span, &encoded, plan.request_max_bytes)
        {
            filling.close();
            filling.request.push(&span, &encoded, plan.request_max_bytes);
        }
        let first = filling.range.map_or(seq, |(first, _)| first);
        filling.range = Some((first, seq));
        true
    });
    drop(bodies);
    read.map_err(failed)?;
    filling.close();
    if filling.bytes > MAX_BYTES {
        return Ok(Replayed::TooMuch(filling.spans));
    }
    store.add_batches(&filling.batches).map_err(failed)?;
    Ok(Replayed::Spans(filling.spans))
}
