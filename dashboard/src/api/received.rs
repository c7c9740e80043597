//! What other programs sent over OTLP, beside the session or the call that it belongs to.

use std::sync::Arc;

use axum::extract::State;
use hookspan_view::received::{AllReceived, Placed, ToldUsage};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::extract::Route;
use super::{Answer, json, read, session_url};
use crate::App;

/// Maximum number of spans in an answer.
pub(super) const SPANS_MAX: usize = 2_000;

/// A received span, or a log record that is shown like one.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReceivedItem {
    trace_id: String,
    id: String,
    parent_id: Option<String>,
    /// The span of ours below which it stands.
    below: Option<String>,
    /// Received spans above it that stand below the same span of ours.
    depth: usize,
    /// span, record.
    kind: &'static str,
    name: String,
    service: String,
    start_us: i64,
    dur_us: i64,
    failed: bool,
    message: Option<String>,
    attributes: Map<String, Value>,
    /// Attributes that were dropped or shortened.
    cut: u32,
    /// How its session is known: traceparent, session_id, inferred; null if it is not.
    joined: Option<&'static str>,
    model: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl From<Placed> for ReceivedItem {
    fn from(placed: Placed) -> Self {
        let Placed { below, depth, span } = placed;
        Self {
            trace_id: span.trace.to_string(),
            id: span.id.to_string(),
            parent_id: span.parent.map(|id| id.to_string()),
            below: below.map(|id| id.to_string()),
            depth,
            kind: if span.is_record { "record" } else { "span" },
            name: span.name,
            service: span.service,
            start_us: span.start_ns / 1_000,
            dur_us: span.end_ns.saturating_sub(span.start_ns) / 1_000,
            failed: span.failed,
            message: span.message,
            attributes: serde_json::from_str(&span.attributes).unwrap_or_default(),
            cut: span.cut,
            joined: span.joined.map(|joined| joined.as_str()),
            model: span.model,
            input_tokens: span.input,
            output_tokens: span.output,
        }
    }
}

/// Tokens and cost that a program told over OTLP, of one model.
#[derive(Serialize, JsonSchema)]
pub(super) struct ToldItem {
    service: String,
    model: Option<String>,
    /// counter, record, span.
    source: &'static str,
    /// Both cache parts included.
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    /// As the program estimates.
    cost_usd: Option<f64>,
    requests: Option<u64>,
}

impl From<ToldUsage> for ToldItem {
    fn from(told: ToldUsage) -> Self {
        let ToldUsage {
            service,
            model,
            source,
            input,
            output,
            cache_read,
            cache_write,
            cost,
            requests,
        } = told;
        Self {
            service,
            model,
            source,
            input,
            output,
            cache_read,
            cache_write,
            cost_usd: cost,
            requests,
        }
    }
}

/// What was received.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReceivedList {
    items: Vec<ReceivedItem>,
    /// Number of all; more than `items` has if they are too many for one answer.
    total: u64,
    usage: Vec<ToldItem>,
    url: String,
}

impl ReceivedList {
    fn new(all: AllReceived, url: String) -> Self {
        Self {
            items: all.spans.into_iter().map(Into::into).collect(),
            total: all.total,
            usage: all.usage.into_iter().map(Into::into).collect(),
            url,
        }
    }
}

pub(super) async fn of_session(
    State(app): State<Arc<App>>,
    Route(session): Route<String>,
) -> Answer<ReceivedList> {
    let url = session_url(&session);
    let all = read(&app, move |source| source.received(Some(&session), SPANS_MAX)).await?;
    json(ReceivedList::new(all, url))
}

pub(super) async fn apart(State(app): State<Arc<App>>) -> Answer<ReceivedList> {
    let all = read(&app, |source| source.received(None, SPANS_MAX)).await?;
    json(ReceivedList::new(all, "/health".to_owned()))
}
