//! Writes prompts and answers as OTLP log records, as the GenAI conventions define them.
//!
//! The conventions have one event for prompts and answers: `gen_ai.client.inference.operation.details`. It repeats the
//! attributes of its span, and carries messages in parts instead of as text. Its predecessors (`gen_ai.user.message`,
//! `gen_ai.choice` ...) are deprecated and are not written.

use hookspan_core::{Span, SpanKind, Timestamp};

use super::attribute_list::List;
use super::encoding::Encoding;
use super::otlp::{CONTENT_MIN_BYTES, ReadContent, SPAN_MAX_BYTES, unsigned};
use super::strict;
use super::value::Val;
use super::wire::Wire;

const EVENT: &str = "gen_ai.client.inference.operation.details";

/// `DEBUG`, which the conventions ask for.
const SEVERITY: u64 = 5;

/// The flag of a sampled trace.
const SAMPLED: u32 = 1;

/// Attributes of the event besides `gen_ai.*`: the ids of its session, and sizes.
const MORE: [&str; 6] = [
    "cursor.conversation.id",
    "cursor.generation.id",
    "error.type",
    "hookspan.kind",
    "hookspan.text.bytes",
    "session.id",
];

impl Encoding {
    /// The log record of a span as the bytes of a `LogRecord`; `None` if the span has neither prompt nor answer.
    /// Messages are in it only at policy `full`.
    pub(super) fn record(&self, span: &Span, read: &mut ReadContent<'_>) -> Option<Vec<u8>> {
        let at = match span.kind {
            // The time of the prompt. Answers have their own spans, unless `llm_spans = false`.
            SpanKind::Generation => span.start,
            SpanKind::Response | SpanKind::Subagent => span.end.map_or(span.start, |end| end.at),
            _ => return None,
        };
        let contents = self.contents(span, read);
        let mut budget = self.content_max_bytes;
        loop {
            let mut list = List::new(self, span);
            list.extend(&span.attributes);
            list.identity();
            strict::add(&mut list);
            for (key, content) in contents.iter().filter(|(key, _)| is_message(key)) {
                list.content(key, content, budget);
            }
            let record = self.record_of(span, at, list);
            if record.len() <= SPAN_MAX_BYTES || budget < CONTENT_MIN_BYTES {
                return Some(record);
            }
            budget /= 2;
        }
    }

    fn record_of(&self, span: &Span, at: Timestamp, mut list: List<'_>) -> Vec<u8> {
        list.pairs.retain(|(key, _)| key.starts_with("gen_ai.") || MORE.contains(key));
        let (mut attributes, dropped) = list.finish();
        for (key, value) in attributes.iter_mut().filter(|(key, _)| is_message(key)) {
            debug_assert!(is_message(key));
            if let Val::Text(text) = value
                && let Ok(document) = serde_json::from_str(text)
            {
                *value = Val::Json(document);
            }
        }
        // The numbers of the fields are those of OTLP's `LogRecord`.
        let mut wire = Wire::with_capacity(1_024);
        wire.fixed64(1, unsigned(at.0));
        wire.number(2, SEVERITY);
        self.attributes(&mut wire, 6, &attributes);
        wire.number(7, dropped as u64);
        wire.fixed32(8, SAMPLED);
        wire.bytes(9, &span.trace.0);
        wire.bytes(10, &span.id.0);
        wire.fixed64(11, unsigned(at.0));
        wire.bytes(12, EVENT.as_bytes());
        wire.finish()
    }
}

fn is_message(key: &str) -> bool {
    matches!(key, "gen_ai.input.messages" | "gen_ai.output.messages")
}
