//! One span in full, without its content.

use std::sync::Arc;

use axum::extract::State;
use hookspan_core::{Attribute, Span, SpanEvent, Status, TraceId, Value};
use hookspan_view::Source;
use hookspan_view::facet;
use hookspan_view::line::{Line, wait_us};
use hookspan_view::subject::subject_of;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, json};

use super::extract::Route;
use super::files::file_url;
use super::payload::{self, PayloadItem};
use super::received::{self, ReceivedItem};
use super::span_ref::{SpanRef, find};
use super::{Answer, json, read, session_url};
use crate::App;
use crate::problem::Problem;

/// Maximum number of ancestors that are looked up. Further ones are left out of the path.
const PATH_MAX: usize = 64;

/// A span.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SpanDetail")]
pub(super) struct Detail {
    row: i64,
    id: String,
    trace_id: String,
    parent_id: Option<String>,
    session: String,
    conversation: String,
    generation: Option<String>,
    kind: &'static str,
    name: String,
    label: String,
    path: Vec<Step>,
    start_us: i64,
    /// Null while it runs.
    dur_us: Option<i64>,
    wait_us: Option<i64>,
    hook_us: Option<i64>,
    timing: Option<String>,
    status: &'static str,
    error_type: Option<&'static str>,
    message: Option<String>,
    end_reason: Option<&'static str>,
    attributes: Map<String, serde_json::Value>,
    events: Vec<EventItem>,
    links: Vec<LinkItem>,
    payloads: Vec<PayloadItem>,
    export: Vec<ExportItem>,
    /// What other programs sent over OTLP that stands below it.
    received: Vec<ReceivedItem>,
    /// The page of the file that the call reads, changes or deletes.
    file_url: Option<String>,
    /// Links to this span in other programs.
    open_in: Vec<OpenIn>,
    url: String,
}

#[derive(Serialize, JsonSchema)]
struct OpenIn {
    name: String,
    url: String,
}

impl OpenIn {
    /// Fills in the placeholders of a template. The values are hexadecimal digits and a number, so they cannot lead to
    /// another address.
    fn new((name, template): (String, String), span: &Span) -> Self {
        let url = template
            .replace("{trace_id}", &span.trace.to_string())
            .replace("{span_id}", &span.id.to_string())
            .replace("{start_ms}", &(span.start.as_us() / 1_000).to_string());
        Self { name, url }
    }
}

/// A span on the way from the root to a span.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PathStep")]
struct Step {
    row: i64,
    id: String,
    kind: &'static str,
    label: String,
}

#[derive(Serialize, JsonSchema)]
struct EventItem {
    at_us: i64,
    name: String,
    attributes: Map<String, serde_json::Value>,
}

#[derive(Serialize, JsonSchema)]
struct LinkItem {
    trace_id: String,
    id: String,
    r#type: &'static str,
    url: String,
}

#[derive(Serialize, JsonSchema)]
struct ExportItem {
    destination: String,
    state: String,
}

pub(super) async fn detail(
    State(app): State<Arc<App>>,
    Route(span): Route<String>,
) -> Answer<Detail> {
    let span = SpanRef::parse(&span)?;
    let detail = read(&app, move |source| {
        let Some((row, span)) = find(source, &span)? else { return Ok(None) };
        let subject = subject_of(source, &span)?;
        let line = Line::new(row, None, &span, subject.as_deref());
        let path = path(source, &span)?;
        let payloads = payload::list(source, &span)?;
        let export = source.exports(row)?;
        let all = source.received(Some(&span.root), received::SPANS_MAX)?;
        let below = all.spans.into_iter().filter(|one| one.below == Some(span.id));
        let received = below.map(ReceivedItem::from).collect();
        let open_in = source.links().into_iter().map(|link| OpenIn::new(link, &span)).collect();
        let view = view(line, span, path, payloads, export);
        Ok(Some(Detail { open_in, received, ..view }))
    });
    json(detail.await?.ok_or_else(|| Problem::not_found("span"))?)
}

fn path(source: &dyn Source, span: &Span) -> hookspan_view::Result<Vec<Step>> {
    let mut path = Vec::new();
    let mut parent = span.parent;
    while let Some(id) = parent.filter(|_| path.len() < PATH_MAX) {
        let Some((row, above)) = source.span_of(&span.root, id)? else { break };
        let line = Line::new(row, None, &above, None);
        path.push(Step { row, id: id.to_string(), kind: line.kind.as_str(), label: line.label });
        parent = above.parent;
    }
    path.reverse();
    Ok(path)
}

fn view(
    line: Line,
    span: Span,
    path: Vec<Step>,
    payloads: Vec<PayloadItem>,
    export: Vec<(String, String)>,
) -> Detail {
    let (error_type, message) = match &span.status {
        Status::Unset => (None, None),
        Status::Error { kind, message } => (Some(kind.as_str()), Some(message.clone())),
    };
    let export = export.into_iter().map(|(destination, state)| ExportItem { destination, state });
    Detail {
        row: line.row,
        id: span.id.to_string(),
        trace_id: span.trace.to_string(),
        parent_id: span.parent.map(|id| id.to_string()),
        session: span.root.to_string(),
        conversation: span.conversation.to_string(),
        generation: Some(span.generation.to_string()).filter(|id| !id.is_empty()),
        kind: line.kind.as_str(),
        label: line.label,
        path,
        start_us: span.start.as_us(),
        dur_us: span.length_ns().map(|ns| ns / 1_000),
        wait_us: wait_us(&span),
        hook_us: span.number("hookspan.hook_ms").map(|ms| (ms * 1_000.0) as i64),
        timing: span.text("hookspan.timing").map(str::to_owned),
        status: line.outcome.as_str(),
        error_type,
        message,
        end_reason: span.end.map(|end| end.reason.as_str()),
        attributes: attributes(&span.attributes),
        events: span.events.iter().map(event).collect(),
        links: span.links.iter().map(link).collect(),
        payloads,
        export: export.collect(),
        received: Vec::new(),
        file_url: facet::file(&span).map(|file| file_url(file.project.as_deref(), &file.path)),
        open_in: Vec::new(),
        url: format!("{}#{}", session_url(&span.root), span.id),
        name: span.name,
    }
}

fn attributes(attributes: &[Attribute]) -> Map<String, serde_json::Value> {
    attributes.iter().map(|one| (one.key.to_string(), plain(&one.value))).collect()
}

fn plain(value: &Value) -> serde_json::Value {
    match value {
        Value::Str(text) => json!(text),
        Value::Int(number) => json!(number),
        Value::Double(number) => json!(number),
        Value::Bool(flag) => json!(flag),
        Value::StrList(list) => json!(list),
    }
}

fn event(event: &SpanEvent) -> EventItem {
    EventItem {
        at_us: event.at.as_us(),
        name: event.name.to_string(),
        attributes: attributes(&event.attributes),
    }
}

fn link(link: &hookspan_core::Link) -> LinkItem {
    LinkItem {
        trace_id: link.trace.to_string(),
        id: link.span.to_string(),
        r#type: link.kind,
        url: format!("/t/{}/{}", link.trace, link.span),
    }
}

/// The session and the span of a trace.
#[derive(Serialize, JsonSchema)]
pub(super) struct TracePlace {
    trace_id: String,
    session: String,
    /// Its root span.
    span: String,
    url: String,
}

pub(super) async fn trace(
    State(app): State<Arc<App>>,
    Route(trace): Route<String>,
) -> Answer<TracePlace> {
    let not_found = || Problem::not_found("trace");
    let id = TraceId::from_hex(&trace).ok_or_else(not_found)?;
    let (root, span) = read(&app, move |source| source.trace(id)).await?.ok_or_else(not_found)?;
    let url = format!("{}#{span}", session_url(&root));
    json(TracePlace { trace_id: id.to_string(), session: root, span: span.to_string(), url })
}
