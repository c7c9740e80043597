//! What can be asked.

use serde::Serialize;

use super::{Answer, json};

#[derive(Serialize)]
struct Index {
    version: &'static str,
    items: &'static [Endpoint],
}

/// One endpoint.
#[derive(Serialize)]
struct Endpoint {
    method: &'static str,
    url: &'static str,
    parameters: &'static [&'static str],
    answers: &'static str,
}

const fn get(
    url: &'static str,
    parameters: &'static [&'static str],
    answers: &'static str,
) -> Endpoint {
    Endpoint { method: "GET", url, parameters, answers }
}

const fn post(
    url: &'static str,
    parameters: &'static [&'static str],
    answers: &'static str,
) -> Endpoint {
    Endpoint { method: "POST", url, parameters, answers }
}

const PAGE: [&str; 2] = ["limit (50, at most 500)", "cursor"];

static ENDPOINTS: [Endpoint; 17] = [
    get("/api/v1", &[], "this list"),
    post("/api/v1/login", &["token"], "sets the cookie"),
    post("/api/v1/logout", &[], "removes the cookie"),
    get("/api/v1/overview", &["from_us"], "what needs you, what runs, sums of the day"),
    get(
        "/api/v1/sessions",
        &[
            PAGE[0],
            PAGE[1],
            "sort=last|start|active|errors|calls|tokens",
            "state",
            "project",
            "model",
            "status=error",
            "q",
            "tool",
            "kind",
            "min_us",
            "from_us",
            "to_us",
        ],
        "sessions, newest activity first",
    ),
    get("/api/v1/sessions/{session}", &[], "one session"),
    get("/api/v1/sessions/{session}/turns", &[], "its turns and where their time went"),
    get(
        "/api/v1/sessions/{session}/spans",
        &["since (a rev)", "focus (a span)", "format=columns|rows", PAGE[0], PAGE[1]],
        "its spans: columns in pre-order, what changed since, or plain rows in pages",
    ),
    get(
        "/api/v1/spans",
        &[
            PAGE[0],
            PAGE[1],
            "session",
            "project",
            "model",
            "tool",
            "kind",
            "status=error",
            "min_us",
            "max_us",
            "from_us",
            "to_us",
        ],
        "newest spans of all sessions",
    ),
    get("/api/v1/spans/{span}", &[], "one span by hex id or row key, without content"),
    get("/api/v1/spans/{span}/payload/{part}", &["offset (bytes)"], "content in pieces of 256 KiB"),
    get("/api/v1/traces/{trace}", &[], "the session of a trace"),
    get("/api/v1/errors", &[PAGE[0]], "failures in groups, most frequent first"),
    get("/api/v1/latency", &["group=tool|model|kind", "days"], "percentiles"),
    get("/api/v1/health", &[], "journal, database, destinations, counters"),
    post("/api/v1/exporters/{name}/retry", &[], "wakes a destination"),
    get("/api/v1/stream", &["after (epoch:rev)"], "server-sent events"),
];

pub(super) async fn index() -> Answer {
    json(&Index { version: env!("CARGO_PKG_VERSION"), items: &ENDPOINTS })
}
