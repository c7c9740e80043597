//! Every endpoint, once: its path, a description of its answer, and its handler. The router and the API's description
//! are both made from this list.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::description::{Index, Operation, Output, index};
use super::{
    Answer, Table, access, compare, critical, detail, digest, edits, errors, export, files, health,
    install, json, latency, lints, login, marks, now, overview, payload, privacy, received, search,
    sessions, spans, steps, stream, time,
};

/// The committed description.
const DOCUMENT: &str = include_str!("../../openapi.json");

pub(super) fn endpoints(table: &mut impl Table) {
    about(table);
    of_sessions(table);
    of_spans(table);
    over_all(table);
    administration(table);
}

fn about(table: &mut impl Table) {
    table.get("/api/v1", "this list", list);
    table.get("/api/v1/openapi.json", "this list as an OpenAPI 3.1 document", openapi);
    signing_in(table);
}

fn signing_in(table: &mut impl Table) {
    let challenge = "proves to a page that this is the collector which made its credential";
    table.post("/api/v1/login/challenge", challenge, login::challenge);
    let login = "signs a page in; docs/decisions/0005-no-cookie.md describes the proof";
    table.post("/api/v1/login", login, login::login);
    let code = "a code that signs one browser in; for `hookspan open`";
    table.post("/api/v1/login/codes", code, login::code);
    let state = "whether a code was used; for `hookspan open`";
    table.get("/api/v1/login/codes/{code}", state, login::code_state);
    table.post("/api/v1/logout", "signs the browser out", login::logout);
    let access = "browsers that are signed in, and tokens of scripts";
    table.get("/api/v1/access", access, access::list);
    let audit = "sign-ins, deletions and exports, newest first; refusals are counted";
    table.get("/api/v1/audit", audit, access::audit);
    table.post("/api/v1/access/revoke", "signs a browser out, or revokes a token", access::revoke);
}

fn of_sessions(table: &mut impl Table) {
    table.get("/api/v1/sessions", "sessions, newest activity first", sessions::list);
    table.get("/api/v1/sessions/{session}", "one session", sessions::one);
    let turns = "turns of a session, and where their time went";
    table.get("/api/v1/sessions/{session}/turns", turns, sessions::turns);
    let spans =
        "spans of a session: as columns in pre-order, as a list of changes, or as rows in pages";
    table.get("/api/v1/sessions/{session}/spans", spans, spans::of_session);
    let steps = "texts of some rows of a session, each shortened for a page";
    table.get("/api/v1/sessions/{session}/steps", steps, steps::steps);
    let edits = "files that a session changed, with the edits of each";
    table.get("/api/v1/sessions/{session}/edits", edits, edits::edits);
    let lints = "patterns that cost time, with the spans that show them";
    table.get("/api/v1/sessions/{session}/lints", lints, lints::lints);
    let path = "the critical path of a turn: the spans that its end waited for";
    table.get("/api/v1/sessions/{session}/critical-path", path, critical::critical_path);
    let received = "what other programs sent over OTLP for it, each span after the one above it";
    table.get("/api/v1/sessions/{session}/received", received, received::of_session);
    table.get("/api/v1/sessions/{session}/export", "the session as a file", export::file);
    table.post("/api/v1/sessions/{session}/marks", "its star, tags and note", marks::mark);
    table.post(
        "/api/v1/sessions/{session}/delete",
        "deletes the session from all tables",
        privacy::delete,
    );
    table.get("/api/v1/compare", "compares two sessions or two turns", compare::compare);
}

fn of_spans(table: &mut impl Table) {
    table.get("/api/v1/spans", "newest spans of all sessions", spans::latest);
    let one = "one span by hex id or row key, without content";
    table.get("/api/v1/spans/{span}", one, detail::detail);
    let payload = "content in pieces of 256 KiB";
    table.get("/api/v1/spans/{span}/payload/{part}", payload, payload::payload);
    let diff = "one edit as hunks; for a large edit only the numbers of lines";
    table.get("/api/v1/spans/{span}/diff", diff, edits::diff);
    let apart = "what was received over OTLP and belongs to no session, newest first";
    table.get("/api/v1/received", apart, received::apart);
    table.get("/api/v1/traces/{trace}", "the session of a trace", detail::trace);
}

fn over_all(table: &mut impl Table) {
    let overview = "what needs you, what runs, and sums of the day";
    table.get("/api/v1/overview", overview, overview::overview);
    let now = "what each agent does now, compared with its usual times";
    table.get("/api/v1/now", now, now::now);
    table.get("/api/v1/errors", "failures in groups, most frequent first", errors::errors);
    table.get("/api/v1/latency", "percentiles per UTC day and name", latency::latency);
    let heatmap = "number of calls by duration and time";
    table.get("/api/v1/latency/heatmap", heatmap, latency::heatmap);
    let time = "where the time of finished turns went, and what they cost";
    table.get("/api/v1/time", time, time::time);
    let digest = "what was done in finished turns, by project";
    let files = "files that agents read and changed";
    table.get("/api/v1/files", files, files::files);
    table.get(
        "/api/v1/file",
        "one file: the calls that read or changed it, and their sessions",
        files::file,
    );
    table.get("/api/v1/digest", digest, digest::digest);
    table.get("/api/v1/search", "texts that contain all words, newest first", search::search);
    table.get("/api/v1/filters", "filters of lists that were kept by name", marks::filters);
    table.post("/api/v1/filters", "keeps a filter by name", marks::save);
    table.post("/api/v1/filters/delete", "removes a kept filter", marks::forget);
    table.get("/api/v1/stream", "server-sent events", stream::stream);
}

fn administration(table: &mut impl Table) {
    table.get("/api/v1/privacy", "what is kept, where, and for how long", privacy::privacy);
    let preview = "what a destination would get of a session, as OTLP/JSON; nothing is sent";
    table.get("/api/v1/privacy/preview", preview, export::preview);
    let purge = "deletes the sessions that match, or only counts them";
    table.post("/api/v1/privacy/purge", purge, privacy::purge);
    table.get("/api/v1/install", "what is left to do until hooks arrive", install::install);
    table.get("/api/v1/health", "journal, database, destinations, counters", health::health);
    table.post("/api/v1/exporters/{name}/retry", "makes a destination send now", health::retry);
}

async fn list() -> Answer<Index> {
    json(index(DOCUMENT))
}

/// The description, for tools that read it.
struct OpenApi;

impl IntoResponse for OpenApi {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], DOCUMENT).into_response()
    }
}

impl Output for OpenApi {
    fn describe(operation: &mut Operation<'_>) {
        let any = json!({ "type": "object", "additionalProperties": true });
        operation.media("application/json", &any);
    }
}

async fn openapi() -> OpenApi {
    OpenApi
}
