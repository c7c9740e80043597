//! The JSON API under `/api/v1`: the same answers for pages, scripts and agents.
//!
//! Times are integer microseconds (`*_us`), since the epoch or durations. Every item has its page's `url`. Lists are
//! `{items, next}`; `next` is the `cursor` of the next page, null at the end. Errors are `application/problem+json`.

mod columns;
mod compare;
mod critical;
mod cursor;
mod detail;
mod edits;
mod errors;
mod events;
mod export;
mod extract;
mod focus;
mod health;
pub(crate) mod hub;
mod index;
mod install;
mod latency;
mod lints;
mod login;
mod overview;
mod payload;
mod privacy;
mod search;
mod sessions;
mod span_ref;
mod spans;
mod stream;
mod time;

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hookspan_view::Source;
use serde::Serialize;

use crate::App;
use crate::problem::Problem;

/// An answer or a problem.
type Answer = Result<Response, Problem>;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1", get(index::index))
        .route("/api/v1/openapi.json", get(index::openapi))
        .route("/api/v1/login", post(login::login))
        .route("/api/v1/logout", post(login::logout))
        .route("/api/v1/overview", get(overview::overview))
        .route("/api/v1/sessions", get(sessions::list))
        .route("/api/v1/sessions/{session}", get(sessions::one))
        .route("/api/v1/sessions/{session}/turns", get(sessions::turns))
        .route("/api/v1/sessions/{session}/spans", get(spans::of_session))
        .route("/api/v1/sessions/{session}/edits", get(edits::edits))
        .route("/api/v1/sessions/{session}/lints", get(lints::lints))
        .route("/api/v1/sessions/{session}/critical-path", get(critical::critical_path))
        .route("/api/v1/sessions/{session}/export", get(export::file))
        .route("/api/v1/sessions/{session}/delete", post(privacy::delete))
        .route("/api/v1/compare", get(compare::compare))
        .route("/api/v1/spans", get(spans::latest))
        .route("/api/v1/spans/{span}", get(detail::detail))
        .route("/api/v1/spans/{span}/payload/{part}", get(payload::payload))
        .route("/api/v1/spans/{span}/diff", get(edits::diff))
        .route("/api/v1/traces/{trace}", get(detail::trace))
        .route("/api/v1/errors", get(errors::errors))
        .route("/api/v1/latency", get(latency::latency))
        .route("/api/v1/latency/heatmap", get(latency::heatmap))
        .route("/api/v1/time", get(time::time))
        .route("/api/v1/search", get(search::search))
        .route("/api/v1/privacy", get(privacy::privacy))
        .route("/api/v1/privacy/purge", post(privacy::purge))
        .route("/api/v1/install", get(install::install))
        .route("/api/v1/health", get(health::health))
        .route("/api/v1/exporters/{name}/retry", post(health::retry))
        .route("/api/v1/stream", get(stream::stream))
}

/// Runs a read where blocking is allowed.
async fn read<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&dyn Source) -> hookspan_view::Result<T> + Send + 'static,
) -> Result<T, Problem> {
    let source = Arc::clone(&app.source);
    let result = tokio::task::spawn_blocking(move || work(&*source)).await;
    let result =
        result.unwrap_or_else(|_| Err(hookspan_view::SourceError("a read panicked".to_owned())));
    result.map_err(Problem::from)
}

fn json(value: &impl Serialize) -> Answer {
    Ok(axum::Json(value).into_response())
}

/// A page of a list.
#[derive(Serialize)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

/// The page of a session, with `id` made safe for a path.
fn session_url(root: &str) -> String {
    format!("/s/{}", escape(root))
}

/// Percent-encodes all but unreserved characters.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
