//! Splits a stored request into smaller ones. Needs only the bytes of the request.
//!
//! The parts divide the batch's range of sequence numbers in order, each in proportion to its number of spans. A part's
//! range tells how many spans it contains, but not which.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

use super::otlp::SHED_ORDER;
use crate::store::export::Batch;

/// Two halves with about the same number of spans. `None` for a single span.
pub(super) fn halve(batch: &Batch) -> Option<[Batch; 2]> {
    let request = decode(batch)?;
    let half = spans(&request).count() / 2;
    if half == 0 {
        return None;
    }
    let mut index = 0;
    Some(part(batch, request, |_| {
        index += 1;
        index <= half
    }))
}

/// Two halves that have no trace in common. `None` if all spans belong to one trace.
pub(super) fn halve_between_traces(batch: &Batch) -> Option<[Batch; 2]> {
    let request = decode(batch)?;
    let traces: BTreeSet<Vec<u8>> = spans(&request).map(|span| span.trace_id.clone()).collect();
    if traces.len() < 2 {
        return None;
    }
    let first: BTreeSet<Vec<u8>> = traces.iter().take(traces.len() / 2).cloned().collect();
    Some(part(batch, request, |span| first.contains(&span.trace_id)))
}

/// The same batch without content; `None` if it has no content.
pub(super) fn shed_content(batch: &Batch) -> Option<Batch> {
    let mut request = decode(batch)?;
    let mut shed = 0;
    for span in spans_mut(&mut request) {
        let before = span.attributes.len();
        span.attributes.retain(|pair| !is_content(&pair.key));
        let dropped = before - span.attributes.len();
        span.dropped_attributes_count =
            span.dropped_attributes_count.saturating_add(u32::try_from(dropped).unwrap_or(0));
        shed += dropped;
    }
    (shed > 0).then(|| Batch { body: request.encode_to_vec(), ..batch.clone() })
}

/// The end of the newest span, nanoseconds since the epoch.
pub(super) fn newest_end_ns(batch: &Batch) -> u64 {
    decode(batch)
        .and_then(|request| spans(&request).map(|span| span.end_time_unix_nano).max())
        .unwrap_or(u64::MAX)
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

fn decode(batch: &Batch) -> Option<ExportTraceServiceRequest> {
    ExportTraceServiceRequest::decode(batch.body.as_slice()).ok()
}

fn spans(request: &ExportTraceServiceRequest) -> impl Iterator<Item = &Span> {
    request.resource_spans.iter().flat_map(|r| &r.scope_spans).flat_map(|s| &s.spans)
}

fn spans_mut(request: &mut ExportTraceServiceRequest) -> impl Iterator<Item = &mut Span> {
    request.resource_spans.iter_mut().flat_map(|r| &mut r.scope_spans).flat_map(|s| &mut s.spans)
}

fn part(
    batch: &Batch,
    request: ExportTraceServiceRequest,
    mut goes_first: impl FnMut(&Span) -> bool,
) -> [Batch; 2] {
    let mut halves = [ExportTraceServiceRequest::default(), ExportTraceServiceRequest::default()];
    for resource in request.resource_spans {
        for scope in resource.scope_spans {
            let (first, second) = scope.spans.into_iter().partition::<Vec<_>, _>(&mut goes_first);
            for (half, spans) in halves.iter_mut().zip([first, second]) {
                if !spans.is_empty() {
                    half.resource_spans.push(ResourceSpans {
                        resource: resource.resource.clone(),
                        scope_spans: vec![ScopeSpans {
                            scope: scope.scope.clone(),
                            spans,
                            schema_url: scope.schema_url.clone(),
                        }],
                        schema_url: resource.schema_url.clone(),
                    });
                }
            }
        }
    }
    let counts = halves.each_ref().map(|half| spans(half).count());
    let middle = batch.first_seq.saturating_add(i64::try_from(counts[0]).unwrap_or(i64::MAX));
    let ranges = [(batch.first_seq, middle - 1), (middle, batch.last_seq)];
    let [first, second] = halves;
    let make = |half: &ExportTraceServiceRequest, count: usize, range: (i64, i64)| Batch {
        first_seq: range.0,
        last_seq: range.1,
        spans: count as u64,
        body: half.encode_to_vec(),
        attempts: batch.attempts,
    };
    [make(&first, counts[0], ranges[0]), make(&second, counts[1], ranges[1])]
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
            body: request.encode_to_vec(),
            attempts: 3,
        }
    }

    fn traces(batch: &Batch) -> Vec<u8> {
        spans(&decode(batch).unwrap()).map(|span| span.trace_id[0]).collect()
    }

    #[test]
    fn halves_keep_the_order_and_share_out_the_range() {
        let [a, b] = halve(&batch(&[1, 2, 3, 4, 5])).unwrap();
        assert_eq!((traces(&a), traces(&b)), (vec![1, 2], vec![3, 4, 5]));
        assert_eq!((a.first_seq, a.last_seq, a.spans), (10, 11, 2));
        assert_eq!((b.first_seq, b.last_seq, b.spans), (12, 19, 3));
        assert!(halve(&batch(&[1])).is_none());
    }

    #[test]
    fn a_trace_is_never_cut() {
        let [a, b] = halve_between_traces(&batch(&[1, 2, 1, 3, 2])).unwrap();
        assert_eq!((traces(&a), traces(&b)), (vec![1, 1], vec![2, 3, 2]));
        assert!(halve_between_traces(&batch(&[7, 7, 7])).is_none());
    }

    #[test]
    fn content_is_shed_once_and_counted() {
        let mut request = decode(&batch(&[1])).unwrap();
        let span = spans_mut(&mut request).next().unwrap();
        span.attributes = ["a", "gen_ai.tool.call.result"]
            .map(|key| key_value(key, Value::StringValue("x".to_owned())))
            .to_vec();
        let full = Batch { body: request.encode_to_vec(), ..batch(&[1]) };
        let less = shed_content(&full).unwrap();
        let request = decode(&less).unwrap();
        let span = spans(&request).next().unwrap();
        assert_eq!((span.attributes.len(), span.dropped_attributes_count), (1, 1));
        assert!(shed_content(&less).is_none());
    }

    #[test]
    fn the_newest_span_decides_the_age_of_a_batch() {
        assert_eq!(newest_end_ns(&batch(&[1, 2, 3])), 2);
    }
}
