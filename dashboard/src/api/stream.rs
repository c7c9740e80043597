//! Server-sent events: small notices after which a page fetches what it shows.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hookspan_view::Source;
use hookspan_view::source::Position;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use super::description::{Operation, Output};
use super::events::{event, health_event, notice_events, resync};
use super::extract::Params;
use super::hub::{RESUME_MAX, Subscription};
use super::read;
use crate::App;
use crate::guard::Who;
use crate::problem::Problem;

/// A description of the events.
const DETAILS: &str = "server-sent events: `hello` {epoch, rev, version}; `session` (an item of the session list); \
`spans` {session, rev, changed}: ask for what changed since the rev you have; `health` {now_us, behind_bytes, failing}; \
`resync` {reason: epoch, old or lag}: ask for everything again. The id of an event is epoch:rev; \
give the last one as Last-Event-ID, or as `after`, to resume";

/// A comment is sent this often, so that a proxy and the reader know that the stream is alive.
const COMMENT_EVERY: Duration = Duration::from_secs(15);

#[derive(Deserialize, JsonSchema)]
pub(super) struct After {
    /// epoch:rev, the id of the last event; the header Last-Event-ID takes precedence
    after: Option<String>,
}

/// A stream without an end.
pub(super) struct Events(Body);

impl IntoResponse for Events {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "text/event-stream")], self.0).into_response()
    }
}

impl Output for Events {
    fn describe(operation: &mut Operation<'_>) {
        operation.media("text/event-stream", &json!({ "type": "string" }));
        operation.details(DETAILS);
    }
}

pub(super) async fn stream(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    headers: HeaderMap,
    Params(from): Params<After>,
) -> Result<Events, Problem> {
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = after.map(str::to_owned).or(from.after);
    // Subscribes before reading the store, so that no change is missed in between.
    let subscription = app.hub.subscribe().ok_or_else(too_many)?;
    let remembered = after.as_deref().and_then(parse).and_then(|at| app.hub.remembered(at.rev));
    let now_ns = app.clock.now_ns();
    let first =
        read(&app, move |source| opening(source, after.as_deref(), remembered, now_ns)).await?;
    let door = app.guard.door.clone();
    let body = stream::unfold((Some(first), subscription), move |(first, mut subscription)| {
        let (door, who) = (door.clone(), who.clone());
        async move {
            let bytes = match first {
                Some(first) => first,
                None => next(&mut subscription).await?,
            };
            // If the reader was signed out in the meantime, nothing more is sent.
            let admitted = door.is_none_or(|door| door.still_admits(&who));
            admitted.then_some((Ok::<_, Infallible>(bytes), (None, subscription)))
        }
    });
    Ok(Events(Body::from_stream(body)))
}

fn too_many() -> Problem {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "too-many-streams",
        "too many open streams",
        "every place in the live stream is taken",
        "close other readers; pages of one browser share one stream",
    )
}

async fn next(subscription: &mut Subscription) -> Option<Bytes> {
    tokio::select! {
        notice = subscription.notices.recv() => match notice {
            Ok(bytes) => Some(bytes),
            Err(RecvError::Lagged(_)) => Some(resync("lag")),
            Err(RecvError::Closed) => None,
        },
        _ = subscription.closing.wait_for(|&closing| closing) => None,
        () = tokio::time::sleep(COMMENT_EVERY) => Some(Bytes::from_static(b": alive\n\n")),
    }
}

/// The first events for a client: the store's position, and what the client missed.
fn opening(
    source: &dyn Source,
    after: Option<&str>,
    remembered: Option<Vec<Arc<str>>>,
    now_ns: i64,
) -> hookspan_view::Result<Bytes> {
    let now = source.position()?;
    let mut text = "retry: 2000\n".to_owned();
    let hello = json!({ "epoch": now.epoch, "rev": now.rev, "version": env!("CARGO_PKG_VERSION") });
    event(&mut text, &now, "hello", &hello);
    let missed = match after.map(parse) {
        None => Ok(Vec::new()),
        Some(at) => missed(source, &now, at, remembered)?,
    };
    match missed {
        Ok(roots) => text.push_str(&notice_events(source, &now, &roots)?),
        Err(reason) => text.push_str(&String::from_utf8_lossy(&resync(reason))),
    }
    text.push_str(&health_event(source, now_ns)?);
    Ok(Bytes::from(text))
}

type Missed = Result<Vec<(String, u64)>, &'static str>;

fn missed(
    source: &dyn Source,
    now: &Position,
    at: Option<Position>,
    remembered: Option<Vec<Arc<str>>>,
) -> hookspan_view::Result<Missed> {
    let Some(at) = at.filter(|at| at.epoch == now.epoch && at.rev <= now.rev) else {
        return Ok(Err("epoch"));
    };
    if at.rev == now.rev {
        return Ok(Ok(Vec::new()));
    }
    if let Some(roots) = remembered {
        return Ok(Ok(roots.into_iter().map(|root| (root.to_string(), 0)).collect()));
    }
    let sessions = source.changed(at.rev, RESUME_MAX + 1)?;
    if sessions.len() > RESUME_MAX {
        return Ok(Err("old"));
    }
    Ok(Ok(sessions.into_iter().map(|session| (session.root.to_string(), 0)).collect()))
}

/// An id of the stream: `epoch:rev`.
fn parse(id: &str) -> Option<Position> {
    let (epoch, rev) = id.split_once(':')?;
    Some(Position { epoch: epoch.to_owned(), rev: rev.parse().ok()? })
}
