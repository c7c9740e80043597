//! Splits a stored request into smaller ones. Needs only the bytes of the request.
//!
//! The parts divide the batch's range of sequence numbers in order, each in proportion to its number of spans. A
//! part's range tells how many spans it contains, but not which. A request of log records is split in the same way.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

use super::otlp::SHED_ORDER;
use crate::config::destination::Signal;
use crate::store::export::Batch;

/// Two halves by number of spans; `None` for a single span.
pub(super) fn halve(batch: &Batch, signal: Signal) -> Option<[Batch; 2]> {
    match signal {
        Signal::Logs => halve_of::<ExportLogsServiceRequest>(batch),
        Signal::Traces | Signal::Metrics => halve_of::<ExportTraceServiceRequest>(batch),
    }
}

/// Two halves without a common trace; `None` for a single trace.
pub(super) fn halve_between_traces(batch: &Batch, signal: Signal) -> Option<[Batch; 2]> {
    match signal {
        Signal::Logs => between_traces::<ExportLogsServiceRequest>(batch),
        Signal::Traces | Signal::Metrics => between_traces::<ExportTraceServiceRequest>(batch),
    }
}

/// The same batch without content; `None` if it has no content.
pub(super) fn shed_content(batch: &Batch, signal: Signal) -> Option<Batch> {
    match signal {
        Signal::Logs => shed::<ExportLogsServiceRequest>(batch),
        Signal::Traces | Signal::Metrics => shed::<ExportTraceServiceRequest>(batch),
    }
}

/// The end of the newest span, nanoseconds since the epoch.
pub(super) fn newest_end_ns(batch: &Batch, signal: Signal) -> u64 {
    let newest = match signal {
        Signal::Logs => newest::<ExportLogsServiceRequest>(batch),
        Signal::Traces | Signal::Metrics => newest::<ExportTraceServiceRequest>(batch),
    };
    newest.unwrap_or(u64::MAX)
}

/// A request of one signal.
trait Request: Message + Default {
    /// What it carries.
    type Item: Item;

    /// Takes the items out and leaves the rest of the request.
    fn take(&mut self) -> Vec<Vec<Self::Item>>;

    /// The same request with other items, one list per scope. Scopes without items are left out.
    fn with(&self, lists: Vec<Vec<Self::Item>>) -> Self;
}

/// A span or a log record.
trait Item {
    fn trace(&self) -> &[u8];
    fn attributes(&mut self) -> (&mut Vec<KeyValue>, &mut u32);
    fn end_ns(&self) -> u64;
}

impl Item for Span {
    fn trace(&self) -> &[u8] {
        &self.trace_id
    }

    fn attributes(&mut self) -> (&mut Vec<KeyValue>, &mut u32) {
        (&mut self.attributes, &mut self.dropped_attributes_count)
    }

    fn end_ns(&self) -> u64 {
        self.end_time_unix_nano
    }
}

impl Item for LogRecord {
    fn trace(&self) -> &[u8] {
        &self.trace_id
    }

    fn attributes(&mut self) -> (&mut Vec<KeyValue>, &mut u32) {
        (&mut self.attributes, &mut self.dropped_attributes_count)
    }

    fn end_ns(&self) -> u64 {
        self.time_unix_nano
    }
}

/// The two requests have equal shapes and different names.
macro_rules! request {
    ($request:ident, $resources:ident, $resource:ident, $scopes:ident, $scope:ident, $items:ident, $item:ident) => {
        impl Request for $request {
            type Item = $item;

            fn take(&mut self) -> Vec<Vec<$item>> {
                let scopes = self.$resources.iter_mut().flat_map(|one| &mut one.$scopes);
                scopes.map(|scope| std::mem::take(&mut scope.$items)).collect()
            }

            fn with(&self, lists: Vec<Vec<$item>>) -> Self {
                let mut lists = lists.into_iter();
                let mut request = Self::default();
                for resource in &self.$resources {
                    for scope in &resource.$scopes {
                        let items = lists.next().unwrap_or_default();
                        if items.is_empty() {
                            continue;
                        }
                        request.$resources.push($resource {
                            resource: resource.resource.clone(),
                            $scopes: vec![$scope {
                                scope: scope.scope.clone(),
                                $items: items,
                                schema_url: scope.schema_url.clone(),
                            }],
                            schema_url: resource.schema_url.clone(),
                        });
                    }
                }
                request
            }
        }
    };
}

request!(
    ExportTraceServiceRequest,
    resource_spans,
    ResourceSpans,
    scope_spans,
    ScopeSpans,
    spans,
    Span
);
request!(
    ExportLogsServiceRequest,
    resource_logs,
    ResourceLogs,
    scope_logs,
    ScopeLogs,
    log_records,
    LogRecord
);

fn halve_of<R: Request>(batch: &Batch) -> Option<[Batch; 2]> {
    let (request, lists) = open::<R>(batch)?;
    let half = lists.iter().map(Vec::len).sum::<usize>() / 2;
    if half == 0 {
        return None;
    }
    let mut index = 0;
    Some(part(batch, &request, lists, |_| {
        index += 1;
        index <= half
    }))
}

fn between_traces<R: Request>(batch: &Batch) -> Option<[Batch; 2]> {
    let (request, lists) = open::<R>(batch)?;
    let traces: BTreeSet<Vec<u8>> =
        lists.iter().flatten().map(|item| item.trace().to_vec()).collect();
    if traces.len() < 2 {
        return None;
    }
    let first: BTreeSet<Vec<u8>> = traces.iter().take(traces.len() / 2).cloned().collect();
    Some(part(batch, &request, lists, |item| first.contains(item.trace())))
}

fn shed<R: Request>(batch: &Batch) -> Option<Batch> {
    let (request, mut lists) = open::<R>(batch)?;
    let mut shed = 0;
    for item in lists.iter_mut().flatten() {
        let (attributes, count) = item.attributes();
        let before = attributes.len();
        attributes.retain(|pair| !is_content(&pair.key));
        let dropped = before - attributes.len();
        *count = count.saturating_add(u32::try_from(dropped).unwrap_or(0));
        shed += dropped;
    }
    let body = || request.with(lists).encode_to_vec().into();
    (shed > 0).then(|| Batch { body: body(), ..batch.clone() })
}

fn newest<R: Request>(batch: &Batch) -> Option<u64> {
    open::<R>(batch)?.1.iter().flatten().map(Item::end_ns).max()
}

/// The request without its items, and the items.
fn open<R: Request>(batch: &Batch) -> Option<(R, Vec<Vec<R::Item>>)> {
    let mut request = R::decode(&*batch.body).ok()?;
    let lists = request.take();
    Some((request, lists))
}

fn part<R: Request>(
    batch: &Batch,
    request: &R,
    lists: Vec<Vec<R::Item>>,
    mut goes_first: impl FnMut(&R::Item) -> bool,
) -> [Batch; 2] {
    let mut halves = [Vec::new(), Vec::new()];
    for list in lists {
        let (first, second) = list.into_iter().partition::<Vec<_>, _>(&mut goes_first);
        halves[0].push(first);
        halves[1].push(second);
    }
    let counts = halves.each_ref().map(|half| half.iter().map(Vec::len).sum::<usize>());
    let middle = batch.first_seq.saturating_add(i64::try_from(counts[0]).unwrap_or(i64::MAX));
    let ranges = [(batch.first_seq, middle - 1), (middle, batch.last_seq)];
    let [first, second] = halves;
    let make = |half: Vec<Vec<R::Item>>, count: usize, range: (i64, i64)| Batch {
        first_seq: range.0,
        last_seq: range.1,
        spans: count as u64,
        body: request.with(half).encode_to_vec().into(),
        attempts: batch.attempts,
    };
    [make(first, counts[0], ranges[0]), make(second, counts[1], ranges[1])]
}

fn is_content(key: &str) -> bool {
    SHED_ORDER.contains(&key)
        || matches!(
            key,
            "input.value"
                | "output.value"
                | "tool.parameters"
                | "llm.output_messages.0.message.content"
                | "langfuse.observation.input"
                | "langfuse.observation.output"
                | "gen_ai.agent.description"
                | "cursor.mcp.command"
        )
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;

    use super::*;
    use crate::export::value::key_value;

    fn batch(traces: &[u8]) -> Batch {
        let spans = traces
            .iter()
            .enumerate()
            .map(|(i, trace)| Span {
                trace_id: vec![*trace; 16],
                span_id: vec![u8::try_from(i).unwrap(); 8],
                end_time_unix_nano: i as u64,
                ..Span::default()
            })
            .collect();
        let scope = ScopeSpans { spans, ..ScopeSpans::default() };
        let resource = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
        let request = ExportTraceServiceRequest { resource_spans: vec![resource] };
        Batch {
            first_seq: 10,
            last_seq: 10 + traces.len() as i64 + 4,
            spans: traces.len() as u64,
            body: request.encode_to_vec().into(),
            attempts: 3,
        }
    }

    /// The same batch with log records instead of spans.
    fn logs(traces: &[u8]) -> Batch {
        let log_records = traces
            .iter()
            .enumerate()
            .map(|(i, trace)| LogRecord {
                trace_id: vec![*trace; 16],
                time_unix_nano: i as u64 + 1,
                attributes: vec![key_value(
                    "gen_ai.input.messages",
                    Value::StringValue("x".to_owned()),
                )],
                ..LogRecord::default()
            })
            .collect();
        let scope = ScopeLogs { log_records, ..ScopeLogs::default() };
        let resource = ResourceLogs { scope_logs: vec![scope], ..ResourceLogs::default() };
        let request = ExportLogsServiceRequest { resource_logs: vec![resource] };
        Batch { body: request.encode_to_vec().into(), ..batch(traces) }
    }

    fn traces_of<R: Request>(batch: &Batch) -> Vec<u8> {
        let (_, lists) = open::<R>(batch).unwrap();
        lists.iter().flatten().map(|item| item.trace()[0]).collect()
    }

    fn traces(batch: &Batch) -> Vec<u8> {
        traces_of::<ExportTraceServiceRequest>(batch)
    }

    #[test]
    fn log_records_are_split_like_spans() {
        let records = traces_of::<ExportLogsServiceRequest>;
        let batch = logs(&[1, 2, 1, 3, 2]);
        let [a, b] = halve(&batch, Signal::Logs).unwrap();
        assert_eq!((records(&a), records(&b)), (vec![1, 2], vec![1, 3, 2]));
        let [a, b] = halve_between_traces(&batch, Signal::Logs).unwrap();
        assert_eq!((records(&a), records(&b)), (vec![1, 1], vec![2, 3, 2]));
        assert!(halve(&logs(&[1]), Signal::Logs).is_none());
        let less = shed_content(&batch, Signal::Logs).unwrap();
        assert!(shed_content(&less, Signal::Logs).is_none());
        assert_eq!(newest_end_ns(&batch, Signal::Logs), 5);
    }

    #[test]
    fn halves_keep_the_order_and_share_out_the_range() {
        let [a, b] = halve(&batch(&[1, 2, 3, 4, 5]), Signal::Traces).unwrap();
        assert_eq!((traces(&a), traces(&b)), (vec![1, 2], vec![3, 4, 5]));
        assert_eq!((a.first_seq, a.last_seq, a.spans), (10, 11, 2));
        assert_eq!((b.first_seq, b.last_seq, b.spans), (12, 19, 3));
        assert!(halve(&batch(&[1]), Signal::Traces).is_none());
    }

    #[test]
    fn a_trace_is_never_cut() {
        let [a, b] = halve_between_traces(&batch(&[1, 2, 1, 3, 2]), Signal::Traces).unwrap();
        assert_eq!((traces(&a), traces(&b)), (vec![1, 1], vec![2, 3, 2]));
        assert!(halve_between_traces(&batch(&[7, 7, 7]), Signal::Traces).is_none());
    }

    #[test]
    fn content_is_shed_once_and_counted() {
        let (request, mut lists) = open::<ExportTraceServiceRequest>(&batch(&[1])).unwrap();
        lists[0][0].attributes = ["a", "gen_ai.tool.call.result"]
            .map(|key| key_value(key, Value::StringValue("x".to_owned())))
            .to_vec();
        let full = Batch { body: request.with(lists).encode_to_vec().into(), ..batch(&[1]) };
        let less = shed_content(&full, Signal::Traces).unwrap();
        let (_, lists) = open::<ExportTraceServiceRequest>(&less).unwrap();
        let span = &lists[0][0];
        assert_eq!((span.attributes.len(), span.dropped_attributes_count), (1, 1));
        assert!(shed_content(&less, Signal::Traces).is_none());
    }

    #[test]
    fn the_newest_span_decides_the_age_of_a_batch() {
        assert_eq!(newest_end_ns(&batch(&[1, 2, 3]), Signal::Traces), 2);
    }
}
