//! A session with its turns and spans as JSON. Times are RFC 3339.

use std::collections::BTreeMap;

use hookspan_core::price::Prices;
use hookspan_core::{SessionParts, SessionSummary, Span, Status, TurnSummary, Value};
use hookspan_view::item::{RepositoryItem, TokenCounts};
use hookspan_view::received::AllReceived;
use serde::Serialize;

use super::received::{ReceivedSpan, Told};
use crate::cli::cost::Cost;
use crate::cli::sessions::{Session, rfc3339};

/// What `show --json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    session: Session,
    /// Where the session's time went: its turns' parts and `idle`. They add up to `whole_ns`.
    parts_ns: BTreeMap<&'static str, i64>,
    whole_ns: i64,
    /// Estimated by the configured price table; not a bill. Null without a price table.
    estimated_cost: Option<Cost>,
    turns: Vec<Turn>,
    spans: Vec<ShownSpan>,
    /// What other programs sent over OTLP. Absent if there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    received: Vec<ReceivedSpan>,
    /// Tokens and cost that they told. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    received_usage: Vec<Told>,
}

#[derive(Debug, Serialize)]
struct Turn {
    index: u64,
    generation: String,
    span_id: String,
    trace_id: String,
    started_at: String,
    ended_at: Option<String>,
    end_reason: Option<&'static str>,
    status: Option<String>,
    model: Option<String>,
    prompt: Option<String>,
    tool_calls: u64,
    errors: u64,
    tokens: TokenCounts,
    parts_ns: BTreeMap<&'static str, i64>,
    estimated_cost: Option<Cost>,
    repository: Option<RepositoryItem>,
}

#[derive(Debug, Serialize)]
struct ShownSpan {
    span_id: String,
    trace_id: String,
    parent_id: Option<String>,
    kind: &'static str,
    name: String,
    conversation: String,
    generation: String,
    started_at: String,
    ended_at: Option<String>,
    duration_ns: Option<i64>,
    end_reason: Option<&'static str>,
    error_type: Option<&'static str>,
    error_message: Option<String>,
    attributes: BTreeMap<String, serde_json::Value>,
}

impl Shown {
    pub(super) fn new(
        shown: Session,
        session: &SessionSummary,
        turns: Vec<TurnSummary>,
        spans: Vec<Span>,
        received: AllReceived,
        prices: &Prices,
    ) -> Self {
        let SessionParts { turns: parts, idle, whole } = SessionParts::of(session, &turns);
        let mut parts_ns = BTreeMap::from(parts.named());
        parts_ns.insert("idle", idle);
        Self {
            session: shown,
            parts_ns,
            whole_ns: whole,
            estimated_cost: Cost::of(prices, prices.of_turns(&turns)),
            turns: turns.into_iter().map(|turn| Turn::new(turn, prices)).collect(),
            spans: spans.into_iter().map(Into::into).collect(),
            received: received.spans.into_iter().map(Into::into).collect(),
            received_usage: received.usage.into_iter().map(Into::into).collect(),
        }
    }
}

impl Turn {
    fn new(turn: TurnSummary, prices: &Prices) -> Self {
        Self {
            estimated_cost: Cost::of(prices, prices.of_turn(&turn)),
            index: turn.index,
            generation: turn.generation.to_string(),
            span_id: turn.span.to_string(),
            trace_id: turn.trace.to_string(),
            started_at: rfc3339(turn.started_at),
            ended_at: turn.ended_at.map(rfc3339),
            end_reason: turn.end_reason.map(hookspan_core::EndReason::as_str),
            status: turn.status,
            model: turn.model.map(|model| model.to_string()),
            prompt: turn.prompt,
            tool_calls: turn.tool_calls,
            errors: turn.errors,
            tokens: turn.tokens.unwrap_or_default().into(),
            parts_ns: BTreeMap::from(turn.parts.named()),
            repository: turn.repository.map(RepositoryItem::from),
        }
    }
}

impl From<Span> for ShownSpan {
    fn from(span: Span) -> Self {
        let duration_ns = span.length_ns();
        let (error_type, error_message) = match span.status {
            Status::Unset => (None, None),
            Status::Error { kind, message } => (Some(kind.as_str()), Some(message)),
        };
        Self {
            span_id: span.id.to_string(),
            trace_id: span.trace.to_string(),
            parent_id: span.parent.map(|parent| parent.to_string()),
            kind: span.kind.as_str(),
            name: span.name,
            conversation: span.conversation.to_string(),
            generation: span.generation.to_string(),
            started_at: rfc3339(span.start),
            ended_at: span.end.map(|end| rfc3339(end.at)),
            duration_ns,
            end_reason: span.end.map(|end| end.reason.as_str()),
            error_type,
            error_message,
            attributes: span
                .attributes
                .into_iter()
                .map(|attribute| (attribute.key.into_owned(), value(attribute.value)))
                .collect(),
        }
    }
}

fn value(value: Value) -> serde_json::Value {
    match value {
        Value::Str(text) => text.as_str().into(),
        Value::Int(number) => number.into(),
        Value::Double(number) => number.into(),
        Value::Bool(flag) => flag.into(),
        Value::StrList(list) => list.iter().map(|text| text.as_str()).collect::<Vec<_>>().into(),
    }
}
