//! The local dashboard: an axum router for a [`Source`] (reads) and a [`Control`] (the few changes that a page may
//! request).
//!
//! It has no SQL, no clock and no writes of its own. Security is one layer around the whole router (`guard`). Pages
//! and assets contain no data; everything else is only for signed-in senders. Reading order: the collector uses
//! [`router`] and `guard`; pages, scripts and agents use `api`. What they read is defined in `hookspan-view`.

mod guard;
mod problem;
mod api;
mod fingerprint;
mod assets;
mod shell;

pub use api::document;
pub use guard::{
    Access, BadHost, BadToken, BrowserSession, BySocket, Door, Knock, ScriptToken, Vault,
    VaultError,
};
pub use problem::Problem;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{broadcast, watch};

use guard::{Guard, Hosts};
use hookspan_view::Source;
use hookspan_view::changes::Notice;
use hookspan_view::source::Control;

/// Settings of the router.
#[derive(Debug)]
pub struct Settings {
    /// Decides who may enter; `None` if everybody may.
    pub door: Option<Arc<Door>>,
    /// The address on which it listens; `None` if it listens only on Unix sockets.
    pub address: Option<SocketAddr>,
    /// Further `NAME:PORT` entries that requests may use.
    pub allow_hosts: Vec<String>,
    /// Becomes true (or is dropped) when the collector stops. Open streams then end, so that a graceful shutdown does
    /// not wait for them.
    pub closing: watch::Receiver<bool>,
    /// The wall clock in nanoseconds since the epoch.
    pub clock: Clock,
    /// A notice for each commit. A page that reads the notices too slowly must reload.
    pub changes: broadcast::Sender<Notice>,
}

/// Returns the time of the wall clock in nanoseconds since the epoch. The dashboard reads no clock itself.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// A clock that returns the result of `now`.
    pub fn new(now: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Nanoseconds since the epoch.
    pub(crate) fn now_ns(&self) -> i64 {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock").finish_non_exhaustive()
    }
}

/// What handlers share.
pub(crate) struct App {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) control: Arc<dyn Control>,
    pub(crate) guard: Arc<Guard>,
    pub(crate) hub: api::hub::Hub,
    pub(crate) clock: Clock,
}

/// Pages. Each is a constant shell without data. Only these routes may be followed from another site.
const PAGES: &[&str] = &[
    "/",
    "/login",
    "/sessions",
    "/s/{session}",
    "/t/{trace}",
    "/t/{trace}/{span}",
    "/errors",
    "/latency",
    "/time",
    "/files",
    "/file",
    "/search",
    "/live",
    "/now",
    "/health",
    "/compare",
    "/privacy",
];

/// API routes for senders that are not signed in.
const OPEN: &[&str] = &["/api/v1/login", "/api/v1/login/challenge"];

/// The dashboard. Building it starts nothing, but serving it needs a tokio runtime.
///
/// # Errors
///
/// An entry of `allow_hosts` that is not `NAME:PORT`.
pub fn router(
    source: Arc<dyn Source>,
    control: Arc<dyn Control>,
    settings: Settings,
) -> Result<Router, BadHost> {
    let guard = Arc::new(Guard {
        hosts: Hosts::new(settings.address, &settings.allow_hosts)?,
        door: settings.door,
        old_cookie: format!("hookspan_{}", settings.address.map_or(0, |address| address.port())),
        pages: PAGES,
        open: OPEN,
    });
    let hub = api::hub::Hub::new(api::hub::Inputs {
        source: Arc::clone(&source),
        changes: settings.changes,
        closing: settings.closing,
        clock: settings.clock.clone(),
    });
    let app =
        Arc::new(App { source, control, guard: Arc::clone(&guard), hub, clock: settings.clock });
    let mut router = Router::new();
    for page in PAGES {
        router = router.route(page, get(shell::page));
    }
    Ok(router
        .route("/a/{build}/{*path}", get(assets::asset))
        .route("/favicon.ico", get(assets::icon))
        .route("/metrics", get(api::metrics::metrics))
        .merge(api::routes())
        .fallback(fallback)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(app)
        .layer(from_fn_with_state(guard, guard::layer)))
}

async fn fallback(uri: axum::http::Uri) -> Response {
    if uri.path() == "/api" || uri.path().starts_with("/api/") {
        return Problem::not_found("endpoint").into_response();
    }
    (StatusCode::NOT_FOUND, shell::page().await).into_response()
}

async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method",
        "method not allowed",
        "this path does not take that method",
        "GET /api/v1 lists every endpoint with its method",
    )
}
