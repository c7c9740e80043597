//! What can be asked.

use axum::http::header;
use axum::response::IntoResponse as _;
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

static ENDPOINTS: &[Endpoint] = &[
    get("/api/v1", &[], "this list"),
    get("/api/v1/openapi.json", &[], "this list as an OpenAPI 3.1 document"),
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
    get("/api/v1/spans/{span}/diff", &[], "one edit as hunks, or its sums when it is large"),
    get("/api/v1/sessions/{session}/edits", &[], "files that were changed, with the edits of each"),
    get(
        "/api/v1/sessions/{session}/lints",
        &[],
        "patterns that cost time, with the spans that show them",
    ),
    get(
        "/api/v1/sessions/{session}/critical-path",
        &["turn (a span; else the longest)"],
        "what the end of a turn waited for, from start to end",
    ),
    get(
        "/api/v1/sessions/{session}/export",
        &["format=html|jsonl|otlp-json|otlp-proto|chrome-trace", "content=off|metadata|full"],
        "the session as a file",
    ),
    post("/api/v1/sessions/{session}/delete", &["confirm (the id again)"], "deletes it everywhere"),
    get(
        "/api/v1/compare",
        &["a", "b (a session, or session:number for a turn)"],
        "two side by side",
    ),
    get(
        "/api/v1/errors",
        &[PAGE[0], PAGE[1], "session", "project", "model", "tool", "kind", "from_us", "to_us"],
        "failures in groups, most frequent first",
    ),
    get(
        "/api/v1/latency",
        &["group=tool|model|kind|project", "days", "from_us", "to_us"],
        "percentiles per UTC day and name",
    ),
    get(
        "/api/v1/latency/heatmap",
        &["group=tool|model|kind|project", "name", "days", "from_us", "to_us"],
        "how often which durations happened, over time",
    ),
    get(
        "/api/v1/time",
        &["project", "days", "from_us", "to_us"],
        "where the time of finished turns went, by UTC day and project",
    ),
    get(
        "/api/v1/search",
        &[
            "q (words, \"phrases\", kind: tool: project: model: field: status:error)",
            PAGE[0],
            PAGE[1],
            "field=prompt|response|thought|input|output|task|result|error",
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
        "texts that hold all words, newest first",
    ),
    get("/api/v1/privacy", &[], "what is kept, where, and for how long"),
    post(
        "/api/v1/privacy/purge",
        &["before_us", "project", "dry_run"],
        "deletes sessions by age or project, or says how many it would",
    ),
    get("/api/v1/install", &[], "what is left to do until hooks arrive"),
    get("/api/v1/health", &[], "journal, database, destinations, counters"),
    post("/api/v1/exporters/{name}/retry", &[], "wakes a destination"),
    get("/api/v1/stream", &["after (epoch:rev)"], "server-sent events"),
];

/// The description of all of this, for tools that read it.
pub(super) async fn openapi() -> Answer {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    Ok((headers, include_str!("../../openapi.json")).into_response())
}

pub(super) async fn index() -> Answer {
    json(&Index { version: env!("CARGO_PKG_VERSION"), items: ENDPOINTS })
}
