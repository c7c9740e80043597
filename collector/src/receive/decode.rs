//! Decodes a request's bytes into rows to store.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Metric, metric::Data, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use sha2::{Digest as _, Sha256};

use super::agents::{self, Agent};
use super::attributes::{self, kept, number, shorten, text};
use super::wire::{Encoding, Item, Malformed, walk};
use crate::redaction::Redaction;
use crate::store::received::{Incoming, LOG_RECORD, Point, ReceivedSpan};

/// Maximum number of stored items of one request. SDKs send 512 at a time, a collector some thousands.
pub(super) const ITEMS_MAX: usize = 10_000;
const NAME_MAX_BYTES: usize = 256;
const PATH_MAX_BYTES: usize = 1_024;

/// What a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
    Logs,
}

/// A decoded request.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) incoming: Incoming,
    /// Items that are not valid, and items beyond [`ITEMS_MAX`].
    pub(super) invalid: u64,
    pub(super) too_many: u64,
}

/// Decodes a request.
///
/// # Errors
/// [`Malformed`] if the body is not a request. A single invalid item is only counted.
pub(super) fn decode(
    signal: Signal,
    encoding: Encoding,
    body: &[u8],
    redaction: &Redaction,
) -> Result<Decoded, Malformed> {
    let mut decoder = Decoder { redaction, decoded: Decoded::default(), ignored: BTreeMap::new() };
    walk(encoding, body, &mut |resource, scope, item| {
        let Some((resource, scope)) = resource.zip(scope) else {
            decoder.decoded.invalid += 1;
            return;
        };
        let incoming = &decoder.decoded.incoming;
        if incoming.spans.len() + incoming.points.len() >= ITEMS_MAX {
            decoder.decoded.too_many += 1;
            return;
        }
        let from = From::new(resource, scope);
        if from.is_ours() {
            decoder.ignore("otlp.came_back");
            return;
        }
        let done = match signal {
            Signal::Traces => decoder.span(&from, item),
            Signal::Metrics => decoder.metric(&from, item),
            Signal::Logs => decoder.record(&from, item),
        };
        if done.is_none() {
            decoder.decoded.invalid += 1;
        }
    })?;
    let mut decoded = decoder.decoded;
    decoded.incoming.counts = decoder.ignored;
    Ok(decoded)
}

/// The sender of an item.
struct From<'a> {
    agent: Agent,
    resource: &'a [KeyValue],
    service: &'a str,
    scope: &'a str,
}

impl<'a> From<'a> {
    fn new(resource: &'a Resource, scope: &'a InstrumentationScope) -> Self {
        let service = text(&resource.attributes, "service.name").unwrap_or_default();
        let agent = Agent::of(service, &scope.name);
        Self { agent, resource: &resource.attributes, service, scope: &scope.name }
    }

    /// Whether the sender is hookspan: an exported span comes back, or a collector sends its own telemetry.
    fn is_ours(&self) -> bool {
        self.scope == "hookspan"
            || self.service == "hookspan"
            || text(self.resource, "telemetry.sdk.name") == Some("hookspan")
    }
}

struct Decoder<'a> {
    redaction: &'a Redaction,
    decoded: Decoded,
    /// Counts of valid items that are not stored, and of attributes that were cut, by counter name.
    ignored: BTreeMap<&'static str, u64>,
}

impl Decoder<'_> {
    fn ignore(&mut self, why: &'static str) {
        *self.ignored.entry(why).or_default() += 1;
    }

    fn words(&self, text: &str, max_bytes: usize) -> String {
        shorten(&self.redaction.text(text), max_bytes).into_owned()
    }

    /// `None` if the item is no valid span.
    fn span(&mut self, from: &From<'_>, item: Item<'_>) -> Option<()> {
        let mut span: Span = item.decode()?;
        let (trace, id) = (id(&span.trace_id)?, id(&span.span_id)?);
        let start_ns = i64::try_from(span.start_time_unix_nano).ok().filter(|start| *start > 0)?;
        // Clocks may step backwards while a span runs.
        let end_ns = i64::try_from(span.end_time_unix_nano).ok()?.max(start_ns);
        let status = span.status.take().unwrap_or_default();
        let own = &mut span.attributes;
        // Of a span's events, only an exception is kept.
        if let Some(event) = span.events.iter_mut().find(|event| event.name == "exception") {
            let more = event.attributes.drain(..).filter(|pair| pair.key != "exception.stacktrace");
            own.extend(more);
        }
        let failed = status.code == 2;
        if agents::is_noise(from.agent, &span.name, end_ns - start_ns, failed, own) {
            self.ignore("otlp.left_out.internal");
            return Some(());
        }
        let usage = agents::span_usage(from.agent, &span.name, own);
        let row = ReceivedSpan {
            trace,
            id,
            parent: self::id(&span.parent_span_id),
            kind: u8::try_from(span.kind).ok().filter(|kind| *kind <= 5).unwrap_or(0),
            name: self.words(&span.name, NAME_MAX_BYTES),
            start_ns,
            end_ns,
            status: u8::try_from(status.code).ok().filter(|code| *code <= 2).unwrap_or(0),
            message: (!status.message.is_empty())
                .then(|| self.words(&status.message, attributes::TEXT_MAX_BYTES)),
            session: agents::session(from.agent, own, from.resource),
            usage,
            ..self.row(from, own)
        };
        self.decoded.incoming.spans.push(row);
        Some(())
    }

    /// The parts that spans and log records have in common.
    fn row(&mut self, from: &From<'_>, own: &[KeyValue]) -> ReceivedSpan {
        let (attributes, cut) = kept(own, self.redaction);
        if cut > 0 {
            *self.ignored.entry("otlp.cut_attributes").or_default() += u64::from(cut);
        }
        ReceivedSpan {
            service: self.words(from.service, NAME_MAX_BYTES),
            scope: self.words(from.scope, NAME_MAX_BYTES),
            attributes,
            cut,
            tool: agents::tool(own),
            directory: text(from.resource, "process.working_directory")
                .filter(|path| path.len() <= PATH_MAX_BYTES && path.starts_with('/'))
                .map(str::to_owned),
            model: agents::model(own),
            ..ReceivedSpan::default()
        }
    }

    /// `None` if the item is no valid log record.
    fn record(&mut self, from: &From<'_>, item: Item<'_>) -> Option<()> {
        let record: LogRecord = item.decode()?;
        let own = &record.attributes;
        let body = match record.body.as_ref().and_then(|body| body.value.as_ref()) {
            Some(any_value::Value::StringValue(body)) => body.as_str(),
            _ => "",
        };
        let named = [record.event_name.as_str(), text(own, "event.name").unwrap_or_default(), body];
        let name = named.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        let Some(event) = agents::event(from.agent, name, own) else {
            self.ignore("otlp.left_out.logs");
            return Some(());
        };
        let Some(session) = agents::session(from.agent, own, from.resource) else {
            self.ignore("otlp.left_out.without_session");
            return Some(());
        };
        let at = [record.time_unix_nano, record.observed_time_unix_nano];
        let at = at.into_iter().find(|at| *at > 0)?;
        let end_ns = i64::try_from(at).ok()?;
        let length_ns = number(own, "duration_ms").map_or(0, |ms| (ms * 1e6) as i64);
        let row = ReceivedSpan {
            // A record outside of any trace gets a trace id that is made from its session's id.
            trace: id(&record.trace_id).unwrap_or_else(|| hash(&[b"session", session.as_bytes()])),
            id: event_id(&session, &event, at, own),
            parent: id(&record.span_id),
            kind: LOG_RECORD,
            status: if event.ends_with("error") { 2 } else { 0 },
            start_ns: end_ns.saturating_sub(length_ns).max(0),
            end_ns,
            usage: agents::event_usage(from.agent, &event, own),
            name: event,
            session: Some(session),
            ..self.row(from, own)
        };
        self.decoded.incoming.spans.push(row);
        Some(())
    }

    /// `None` if the item is no valid metric.
    fn metric(&mut self, from: &From<'_>, item: Item<'_>) -> Option<()> {
        let metric: Metric = item.decode()?;
        let Some(counter) = agents::counter(&metric.name) else {
            self.ignore("otlp.left_out.metrics");
            return Some(());
        };
        let (points, temporality) = points(metric.data?);
        let is_cumulative = temporality == AggregationTemporality::Cumulative as i32;
        for (own, start, at, value) in points {
            let Some(session) = agents::session(from.agent, &own, from.resource) else {
                self.ignore("otlp.left_out.without_session");
                continue;
            };
            let Some((of, beside_input)) = counter.field(&own) else {
                self.ignore("otlp.left_out.metrics");
                continue;
            };
            let (Ok(at_ns), true) = (i64::try_from(at), (0.0..=attributes::MOST).contains(&value))
            else {
                self.decoded.invalid += 1;
                continue;
            };
            let start = if is_cumulative { start } else { 0 };
            let key = series(from, &metric.name, &own, start);
            let model = agents::model(&own).unwrap_or_default();
            let service = self.words(from.service, NAME_MAX_BYTES);
            self.decoded.incoming.points.push(Point {
                key,
                session,
                service,
                model,
                at_ns,
                is_cumulative,
                value,
                of,
                beside_input,
            });
        }
        Some(())
    }
}

/// An id of the right length that is not zero.
fn id<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let id: [u8; N] = bytes.try_into().ok()?;
    (id != [0; N]).then_some(id)
}

/// A point: attributes, start, time, value.
type Told = (Vec<KeyValue>, u64, u64, f64);

/// The points of a counter, or the sums of a histogram, and their temporality.
fn points(data: Data) -> (Vec<Told>, i32) {
    match data {
        Data::Sum(sum) => {
            let points = sum.data_points.into_iter().filter_map(|point| {
                let value = match point.value? {
                    number_data_point::Value::AsDouble(value) => value,
                    number_data_point::Value::AsInt(value) => value as f64,
                };
                Some((point.attributes, point.start_time_unix_nano, point.time_unix_nano, value))
            });
            (points.collect(), sum.aggregation_temporality)
        }
        Data::Histogram(all) => {
            let points = all.data_points.into_iter().filter_map(|point| {
                let (start, at) = (point.start_time_unix_nano, point.time_unix_nano);
                Some((point.attributes, start, at, point.sum?))
            });
            (points.collect(), all.aggregation_temporality)
        }
        Data::ExponentialHistogram(all) => {
            let points = all.data_points.into_iter().filter_map(|point| {
                let (start, at) = (point.start_time_unix_nano, point.time_unix_nano);
                Some((point.attributes, start, at, point.sum?))
            });
            (points.collect(), all.aggregation_temporality)
        }
        Data::Gauge(_) | Data::Summary(_) => (Vec::new(), 0),
    }
}

fn hash<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    std::array::from_fn(|at| digest.get(at).copied().unwrap_or(0))
}

/// Pairs as bytes. Their order does not matter.
fn canonical(pairs: &[KeyValue]) -> Vec<u8> {
    let mut pairs: Vec<String> =
        pairs.iter().map(|pair| format!("{}={:?}", pair.key, pair.value)).collect();
    pairs.sort_unstable();
    pairs.join("\n").into_bytes()
}

fn series(from: &From<'_>, metric: &str, own: &[KeyValue], start: u64) -> [u8; 16] {
    let resource = canonical(from.resource);
    hash(&[&resource, metric.as_bytes(), &canonical(own), &start.to_be_bytes()])
}

/// The id of a log record. A record that is sent twice gets the same id. The id is made from the sender's own id of the
/// record, otherwise from the record's time and attributes. Codex sends two records for one event. Their attributes
/// differ, so `event.timestamp`, which is equal in both, replaces the attributes.
fn event_id(session: &str, event: &str, at: u64, own: &[KeyValue]) -> [u8; 8] {
    if let Some(id) = text(own, "cursor.event.id") {
        return hash(&[session.as_bytes(), event.as_bytes(), id.as_bytes()]);
    }
    let say = match (event, text(own, "event.timestamp")) {
        ("codex.response", Some(at)) => at.as_bytes().to_vec(),
        _ => canonical(own),
    };
    hash(&[session.as_bytes(), event.as_bytes(), &at.to_be_bytes(), &say])
}

/// Makes an attribute; for tests.
#[cfg(test)]
pub(super) fn pair(key: &str, value: any_value::Value) -> KeyValue {
    let value = Some(opentelemetry_proto::tonic::common::v1::AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}
