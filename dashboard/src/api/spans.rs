//! Spans in bulk: the waterfall's columns, plain rows, the newest of all sessions.

use std::sync::Arc;

use axum::extract::State;

use super::columns::{self, LineItem};
use super::extract::{Params, Route};
use super::{Answer, Page, cursor, json, read};
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
    let lines = lines.await?.ok_or_else(|| Problem::not_found("session"))?;
    match params.text("format") {
        None | Some("columns") if since.is_some() => json(&columns::delta(lines)),
        None | Some("columns") => json(&columns::whole(lines)),
        Some("rows") => json(&rows(&session, lines.lines, &params)?),
        Some(_) => Err(Problem::bad_parameter("format", "columns or rows")),
    }
}

fn rows(
    session: &str,
    mut lines: Vec<crate::line::Line>,
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
    let before = params.text("cursor").map(cursor::decode).transpose()?.map(|(row, _)| row);
    let mut lines = read(&app, move |source| source.latest(before, limit + 1)).await?;
    let more = lines.len() > limit;
    lines.truncate(limit);
    let next = lines.last().filter(|_| more).map(|(_, line)| cursor::encode(line.row, ""));
    let items = lines.into_iter().map(|(root, line)| LineItem::new(&root, line)).collect();
    json(&Page { items, next })
}
