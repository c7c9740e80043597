//! Many spans at once: the waterfall's columns, plain rows, the newest spans of all sessions.

use std::sync::Arc;

use axum::extract::State;
use hookspan_view::line::Line;
use hookspan_view::source::LineFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::columns::{self, Columns, LineItem};
use super::extract::{Params, Route};
use super::query::{Number, OneOf, Paging, SpanQuery, words};
use super::{Answer, Page, cursor, focus, json, read};
use crate::App;
use crate::problem::Problem;

/// Maximum number of lines of one session in an answer.
const LINES_MAX: usize = 200_000;

words! {
    /// Shape of an answer.
    Format { Columns = "columns", Rows = "rows" }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wanted {
    /// a `rev`: only spans that changed after it
    since: Option<Number>,
    /// id of a span: only this span and the spans below it
    focus: Option<String>,
    /// columns unless given
    format: Option<OneOf<Format>>,
}

/// Columns, or a page of rows.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Spans {
    Columns(Box<Columns>),
    Rows(Page<LineItem>),
}

pub(super) async fn of_session(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
    Params(wanted): Params<Wanted>,
    Params(paging): Params<Paging>,
) -> Answer<Spans> {
    let since = wanted.since.map(|since| u64::try_from(since.0).unwrap_or(0));
    let session = root.clone();
    let lines = read(&app, move |source| {
        if source.session(&root)?.is_none() {
            return Ok(None);
        }
        source.lines(&root, since, LINES_MAX).map(Some)
    });
    let mut lines = lines.await?.ok_or_else(|| Problem::not_found("session"))?;
    if let Some(focus) = wanted.focus {
        return json(Spans::Columns(Box::new(focus::answer(&app, &focus, &mut lines).await?)));
    }
    json(match wanted.format.map_or(Format::Columns, |format| format.0) {
        Format::Columns if since.is_some() => Spans::Columns(Box::new(columns::delta(lines))),
        Format::Columns => Spans::Columns(Box::new(columns::whole(lines))),
        Format::Rows => Spans::Rows(rows(&session, lines.lines, &paging)?),
    })
}

fn rows(session: &str, mut lines: Vec<Line>, paging: &Paging) -> Result<Page<LineItem>, Problem> {
    let limit = paging.limit();
    let after = paging.position()?.map_or(0, |(row, _)| row);
    lines.retain(|line| line.row > after);
    lines.sort_by_key(|line| line.row);
    let more = lines.len() > limit;
    lines.truncate(limit);
    let next = lines.last().filter(|_| more).map(|line| cursor::encode(line.row, ""));
    let items = lines.into_iter().map(|line| LineItem::new(session, line)).collect();
    Ok(Page { items, next })
}

pub(super) async fn latest(
    State(app): State<Arc<App>>,
    Params(paging): Params<Paging>,
    Params(query): Params<SpanQuery>,
) -> Answer<Page<LineItem>> {
    let (limit, before) = (paging.limit(), paging.position()?);
    let filter = LineFilter::from(query);
    // Without a filter, spans are sorted by when they were written, because a page that follows shows what was written
    // last.
    let by_row = filter.is_empty();
    let mut lines = read(&app, move |source| {
        if by_row {
            return source.latest(before.map(|(row, _)| row), limit + 1);
        }
        let before = before.map(|(start, row)| (start, row.parse().unwrap_or(0)));
        source.matching(&filter, before, limit + 1)
    })
    .await?;
    let more = lines.len() > limit;
    lines.truncate(limit);
    let next = lines.last().filter(|_| more).map(|(_, line)| match by_row {
        true => cursor::encode(line.row, ""),
        false => cursor::encode(line.start.0, &line.row.to_string()),
    });
    let items = lines.into_iter().map(|(root, line)| LineItem::new(&root, line)).collect();
    json(Page { items, next })
}
