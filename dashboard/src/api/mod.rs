//! The JSON API under `/api/v1`. Pages, scripts and agents get the same answers.
//!
//! Times are integer microseconds (`*_us`): points in time since the epoch, or durations. Every item has the `url` of
//! its page. Lists are `{items, next}`; `next` is the `cursor` of the next page, or null at the end. Errors are
//! `application/problem+json`.

mod access;
mod columns;
mod compare;
mod critical;
mod cursor;
mod description;
mod detail;
mod digest;
mod document;
mod edits;
mod endpoints;
mod errors;
mod events;
mod export;
mod extract;
mod files;
mod focus;
mod health;
pub(crate) mod hub;
mod install;
mod latency;
mod lints;
mod login;
mod marks;
pub(crate) mod metrics;
mod now;
mod overview;
mod payload;
mod period;
mod privacy;
mod query;
mod received;
mod search;
mod sessions;
mod span_ref;
mod spans;
mod steps;
mod stream;
mod time;

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{get, post};
use axum::{Json, Router};
use hookspan_view::Source;
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::problem::Problem;
use description::Described;
use endpoints::endpoints;

/// What all handlers share.
type Shared = Arc<App>;
/// An answer in JSON, or a problem.
type Answer<T> = Result<Json<T>, Problem>;

/// Something that reads the list of [`mod@endpoints`].
trait Table {
    /// `GET path`. `answers` describes its answer.
    fn get<M, H>(&mut self, path: &'static str, answers: &'static str, handler: H)
    where
        H: Handler<M, Shared> + Described<M>,
        M: 'static;
    /// `POST path`. `answers` describes its answer.
    fn post<M, H>(&mut self, path: &'static str, answers: &'static str, handler: H)
    where
        H: Handler<M, Shared> + Described<M>,
        M: 'static;
}

#[derive(Default)]
struct Routes(Router<Shared>);

impl Table for Routes {
    fn get<M, H>(&mut self, path: &'static str, _: &'static str, handler: H)
    where
        H: Handler<M, Shared> + Described<M>,
        M: 'static,
    {
        self.0 = std::mem::take(&mut self.0).route(path, get(handler));
    }

    fn post<M, H>(&mut self, path: &'static str, _: &'static str, handler: H)
    where
        H: Handler<M, Shared> + Described<M>,
        M: 'static,
    {
        self.0 = std::mem::take(&mut self.0).route(path, post(handler));
    }
}

pub(crate) fn routes() -> Router<Shared> {
    let mut routes = Routes::default();
    endpoints(&mut routes);
    routes.0
}

/// The API as an OpenAPI 3.1 document, made from the handlers. `dashboard/openapi.json` must equal it.
#[must_use]
pub fn document() -> String {
    document::document()
}

/// Runs a read on a thread for blocking work.
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

fn json<T>(value: T) -> Answer<T> {
    Ok(Json(value))
}

/// A page of a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
struct Page<T> {
    items: Vec<T>,
    /// Cursor of the next page; null at the end.
    next: Option<String>,
}

/// The page of a session, with `id` made safe for a path.
fn session_url(root: &str) -> String {
    format!("/s/{}", escape(root))
}

/// Percent-encodes all characters except unreserved ones.
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
