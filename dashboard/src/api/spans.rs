//! Spans in bulk: the waterfall's columns, plain rows, the newest of all sessions.

use std::sync::Arc;

use axum::extract::State;
use hookspan_view::source::LineFilter;

use super::columns::{self, LineItem};
use super::extract::{Params, Route};
use super::{Answer, Page, cursor, focus, json, read};
use crate::App;
use crate::problem::Problem;

/// Most lines of one session that are answered at once.
const LINES_MAX: usize = 200_000;

pub(super) async fn of_session(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
    params: Params,
) -> Answer {
    let since = params.number("since")?.map(|since| u64::try_from(since).unwrap_or(0));
    let session = root.clone();
    let lines = read(&app, move |source| {
        if source.session(&root)?.is_none() {
            return Ok(None);
        }
        source.lines(&root, since, LINES_MAX).map(Some)
    });
    let mut lines = lines.await?.ok_or_else(|| Problem::not_found("session"))?;
    if let Some(focus) = params.text("focus") {
        return focus::answer(&app, focus, &mut lines).await;
    }
    match params.text("format") {
        None | Some("columns") if since.is_some() => json(&columns::delta(lines)),
        None | Some("columns") => json(&columns::whole(lines)),
        Some("rows") => json(&rows(&session, lines.lines, &params)?),
        Some(_) => Err(Problem::bad_parameter("format", "columns or rows")),
    }
}

fn rows(
    session: &str,
    mut lines: Vec<hookspan_view::line::Line>,
    params: &Params,
) -> Result<Page<LineItem>, Problem> {
    let limit = params.limit()?;
    let after = params.text("cursor").map(cursor::decode).transpose()?.map_or(0, |(row, _)| row);
    lines.retain(|line| line.row > after);
    lines.sort_by_key(|line| line.row);
    let more = lines.len() > limit;
    lines.truncate(limit);
    let next = lines.last().filter(|_| more).map(|line| cursor::encode(line.row, ""));
    let items = lines.into_iter().map(|line| LineItem::new(session, line)).collect();
    Ok(Page { items, next })
}

pub(super) async fn latest(State(app): State<Arc<App>>, params: Params) -> Answer {
    let limit = params.limit()?;
    let filter = filter(&params)?;
    let before = params.text("cursor").map(cursor::decode).transpose()?;
    // Without a filter the order is that of writing: what came last is what a page that follows wants.
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
    json(&Page { items, next })
}

/// Filters of spans, as in the bar.
pub(super) fn filter(params: &Params) -> Result<LineFilter, Problem> {
    let owned = |name| params.text(name).map(str::to_owned);
    let failed = match params.text("status") {
        None => false,
        Some("error") => true,
        Some(_) => return Err(Problem::bad_parameter("status", "error, or nothing")),
    };
    Ok(LineFilter {
        session: owned("session"),
        project: owned("project"),
        model: owned("model"),
        tool: owned("tool"),
        kind: params.kind()?,
        failed,
        min_ns: params.nanoseconds("min_us")?,
        max_ns: params.nanoseconds("max_us")?,
        from_ns: params.nanoseconds("from_us")?,
        to_ns: params.nanoseconds("to_us")?,
    })
}
