//! Content of a span, read from the raw hooks on demand and in pieces.

use std::sync::Arc;

use axum::extract::State;
use hookspan_core::Span;
use hookspan_core::content::{Content, Field, extract};
use hookspan_view::subject::readable;
use hookspan_view::{self as view, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Params, Route};
use super::query::Number;
use super::span_ref::{SpanRef, find};
use super::{Answer, json, read};
use crate::App;
use crate::problem::Problem;

/// Maximum size of one piece in bytes.
const PIECE_MAX_BYTES: usize = 256 * 1024;
/// Maximum number of parts of one span.
const PARTS_MAX: usize = 64;

/// A part that can be fetched.
#[derive(Serialize, JsonSchema)]
pub(super) struct PayloadItem {
    part: String,
    /// Label of the tab.
    title: &'static str,
    bytes: usize,
    truncated: bool,
    redacted: bool,
    kind: &'static str,
}

/// A piece of a part.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PayloadPiece")]
pub(super) struct Piece {
    part: String,
    kind: &'static str,
    /// Null when it is not stored.
    text: Option<String>,
    redacted: bool,
    offset: usize,
    total: usize,
    next: Option<usize>,
}

/// A part, and the stored hook that contains it.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) title: &'static str,
    hook: u64,
    /// `None` for the hook's whole body.
    field: Option<Field>,
}

pub(super) fn list(source: &dyn Source, span: &Span) -> view::Result<Vec<PayloadItem>> {
    let item = |part: Part| {
        let content = load(source, &part)?;
        Ok(PayloadItem {
            part: part.name,
            title: part.title,
            bytes: content.as_ref().map_or(0, |content| content.text.len()),
            truncated: false,
            redacted: content.is_none(),
            kind: content.as_ref().map_or("text", kind),
        })
    };
    parts(span).into_iter().map(item).collect()
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Offset {
    /// offset in bytes: `next` of the previous piece
    offset: Option<Number>,
}

pub(super) async fn payload(
    State(app): State<Arc<App>>,
    Route((span, name)): Route<(String, String)>,
    Params(from): Params<Offset>,
) -> Answer<Piece> {
    let span = SpanRef::parse(&span)?;
    let offset = from.offset.map_or(0, |offset| offset.0);
    let bad_offset = || Problem::bad_parameter("offset", "a byte position from an earlier answer");
    let offset = usize::try_from(offset).map_err(|_| bad_offset())?;
    let found = read(&app, move |source| {
        let Some((_, span)) = find(source, &span)? else { return Ok(None) };
        let Some(part) = parts(&span).into_iter().find(|part| part.name == name) else {
            return Ok(None);
        };
        let content = load(source, &part)?;
        Ok(Some((part.name, content)))
    });
    let (part, content) = found.await?.ok_or_else(|| Problem::not_found("part"))?;
    let Some(content) = content else {
        let none =
            Piece { part, kind: "text", text: None, redacted: true, offset, total: 0, next: None };
        return json(none);
    };
    let total = content.text.len();
    let end = boundary(&content.text, offset.saturating_add(PIECE_MAX_BYTES));
    let piece = content.text.get(offset..end.max(offset)).ok_or_else(bad_offset)?;
    let kind = kind(&content);
    let next = Some(end).filter(|&end| end < total);
    json(Piece { part, kind, text: Some(piece.to_owned()), redacted: false, offset, total, next })
}

/// The last character boundary at or before `at`.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The parts of a span: its contents, followed by the hooks that they come from.
pub(super) fn parts(span: &Span) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for content in span.contents.iter().take(PARTS_MAX) {
        let (name, title) = words(content.field);
        let twins = parts.iter().filter(|part| part.title == title).count();
        let name = if twins == 0 { name.to_owned() } else { format!("{name}-{}", twins + 1) };
        parts.push(Part { name, title, hook: content.hook, field: Some(content.field) });
    }
    let mut hooks: Vec<u64> = parts.iter().map(|part| part.hook).collect();
    hooks.sort_unstable();
    hooks.dedup();
    parts.extend(hooks.into_iter().map(|hook| Part {
        name: format!("hook-{hook}"),
        title: "Raw hook",
        hook,
        field: None,
    }));
    parts
}

const fn words(field: Field) -> (&'static str, &'static str) {
    match field {
        Field::Prompt => ("prompt", "Prompt"),
        Field::Response => ("response", "Response"),
        Field::Thought => ("thought", "Thought"),
        Field::ToolInput => ("input", "Input"),
        Field::ToolOutput => ("output", "Output"),
        Field::Task => ("task", "Task"),
        Field::Summary => ("result", "Result"),
        Field::Description => ("description", "Description"),
        Field::McpCommand => ("mcp-command", "MCP command"),
        Field::ErrorMessage => ("error", "Error"),
    }
}

pub(super) fn load(source: &dyn Source, part: &Part) -> view::Result<Option<Content>> {
    let Some(body) = source.body(part.hook)? else { return Ok(None) };
    Ok(match part.field {
        Some(field) => extract(field, &body).map(readable),
        None => Some(Content { text: String::from_utf8_lossy(&body).into_owned(), json: true }),
    })
}

pub(super) fn kind(content: &Content) -> &'static str {
    match content.text.contains('\u{1b}') {
        _ if content.json => "json",
        true => "ansi",
        false => "text",
    }
}
