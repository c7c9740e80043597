use hookspan_core::{Change, Hook, HookSource, SpanId, Timestamp};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use serde_json::Value;

use super::*;
use crate::config::Environment;
use crate::export::resource::ResourceBase;
use crate::redaction::Redaction;
use crate::store::open::reader;
use crate::store::sample;
use crate::store::write::Preparer;
use crate::store::write::{Changes, Store};

const BODY: &str = r#"{"hook_event_name":"beforeSubmitPrompt","conversation_id":"c1","prompt":"a secret \"plan\"","new_key":{"deep":"also secret","n":1e400},"file_path":"/home/me/acme/src/a.rs","user_email":"me@example.com"}"#;

/// Two sessions with spans, one of which still runs, and four hooks.
fn database() -> (tempfile::TempDir, Connection) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("hookspan.db");
    let mut store = Store::open(&path).unwrap();
    let mut changes = Changes::default();
    for root in ["c1", "c2"] {
        let mut session = sample::session(root);
        session.last_at = Timestamp(1_780_000_009_000_000_000);
        changes.push(Change::Session(Box::new(session)));
        let mut running = sample::span(root, "Read");
        running.end = None;
        running.settled = false;
        running.id = SpanId::derive(root, "g1", "tool", "running");
        running.name = "</script><b>".to_owned();
        running.start = Timestamp(1_780_000_000_500_000_000);
        for span in [sample::span(root, "Shell"), running] {
            changes.push(Change::Span(Box::new(span)));
        }
        for own in [root.to_owned(), format!("{root}-child")] {
            changes.push(Change::Bind { conversation: own.as_str().into(), root: root.into() });
        }
    }
    let bodies: [(&[u8], HookSource); 4] = [
        (BODY.as_bytes(), HookSource::Shim),
        (b"{\"pretty\":\n1}", HookSource::Shim),
        (b"not json \xff", HookSource::Shim),
        (b"{\"evidence\":1}", HookSource::Evidence),
    ];
    store
        .transaction(|open| {
            for (i, (body, source)) in bodies.into_iter().enumerate() {
                let hook = Hook {
                    observed_at: Timestamp(1_780_000_000_123_456_789),
                    source,
                    body: body.to_vec(),
                    ..Hook::default()
                };
                let id = [u8::try_from(i).unwrap(); 16];
                open.hook(&Preparer::default().prepare(id, 0, hook))?;
            }
            open.changes(&changes)
        })
        .unwrap();
    let db = reader(&path).unwrap();
    (temp, db)
}

fn encoding(content: ContentPolicy) -> Encoding {
    let env = Environment::of(&[], "/");
    Encoding::file(content, ResourceBase::from_env(&env, None).unwrap(), Some(Redaction::default()))
}

fn written(session: Option<&str>, format: Format, content: ContentPolicy) -> Vec<u8> {
    let (_temp, db) = database();
    let sessions = whole::sessions(&db, session).unwrap();
    let selection = Selection {
        db: &db,
        sessions: &sessions,
        all: session.is_none(),
        encoding: &encoding(content),
    };
    let mut out = Vec::new();
    write(&selection, format, &mut out, &mut || {}).unwrap();
    out
}

fn text(session: Option<&str>, format: Format, content: ContentPolicy) -> String {
    String::from_utf8(written(session, format, content)).unwrap()
}

fn json(session: Option<&str>, format: Format) -> Value {
    serde_json::from_slice(&written(session, format, ContentPolicy::Full)).unwrap()
}

fn spans_in(document: &Value) -> Vec<&Value> {
    let resources = document["resourceSpans"].as_array().unwrap();
    let scopes = resources.iter().flat_map(|r| r["scopeSpans"].as_array().unwrap());
    scopes.flat_map(|scope| scope["spans"].as_array().unwrap()).collect()
}

#[test]
fn otlp_json_is_one_document_in_the_form_of_the_specification() {
    let document = json(None, Format::OtlpJson);
    let spans = spans_in(&document);
    assert_eq!(spans.len(), 4);
    let span = spans[0];
    assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
    assert_eq!(span["startTimeUnixNano"], "1780000000123456789");
    assert_eq!(span["status"]["code"], 2);
    assert_eq!(spans_in(&json(Some("c2"), Format::OtlpJson)).len(), 2);
}

#[test]
fn a_span_that_runs_is_cut_at_the_last_known_time_and_marked() {
    let document = json(Some("c1"), Format::OtlpJson);
    let span = spans_in(&document)[1].clone();
    assert_eq!(span["endTimeUnixNano"], "1780000009000000000");
    let marked = span["attributes"]
        .as_array()
        .unwrap()
        .iter()
        .any(|pair| pair["key"] == "hookspan.incomplete" && pair["value"]["boolValue"] == true);
    assert!(marked, "{span:#}");
}

#[test]
fn otlp_proto_is_one_request_with_the_same_spans() {
    let bytes = written(None, Format::OtlpProto, ContentPolicy::Full);
    let request = ExportTraceServiceRequest::decode(bytes.as_slice()).unwrap();
    let mut document = serde_json::to_value(&request).unwrap();
    assert_eq!(document["resourceSpans"].take(), json(None, Format::OtlpJson)["resourceSpans"]);
}

#[test]
fn the_raw_log_keeps_every_byte_and_leaves_evidence_out() {
    let text = text(None, Format::Jsonl, ContentPolicy::Full);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].ends_with(&format!("\"event\":{BODY}}}")), "{}", lines[0]);
    assert!(
        lines[0].starts_with(r#"{"observed_at":"2026-05-28T20:26:40.123456789Z""#),
        "{}",
        lines[0]
    );
    let event = |line: &str| serde_json::from_str::<Value>(line).unwrap()["event"].clone();
    assert_eq!(event(lines[1]), "{\"pretty\":\n1}");
    assert_eq!(event(lines[2]), "not json \u{fffd}");
    let one = self::text(Some("c1"), Format::Jsonl, ContentPolicy::Full);
    assert_eq!(one.lines().collect::<Vec<_>>(), lines[..1]);
}

#[test]
fn the_raw_log_without_content_keeps_its_shape() {
    let metadata = text(None, Format::Jsonl, ContentPolicy::Metadata);
    let off = text(None, Format::Jsonl, ContentPolicy::Off);
    for secret in ["secret", "example.com", "not json", "/home/me"] {
        assert!(!metadata.contains(secret) && !off.contains(secret), "{secret} left");
    }
    assert!(metadata.contains("\"file_path\":\"a.rs\"") && !off.contains("a.rs"));
    for shape in ["beforeSubmitPrompt", "new_key", "\"conversation_id\":\"c1\""] {
        assert!(metadata.contains(shape) && off.contains(shape), "{shape} is gone");
    }
}

#[test]
fn a_chrome_trace_nests_within_each_row() {
    let document = json(None, Format::ChromeTrace);
    let events = document["traceEvents"].as_array().unwrap();
    let mut open: std::collections::BTreeMap<String, Vec<f64>> = Default::default();
    let mut spans = 0;
    for event in events.iter().filter(|event| event["ph"] == "X") {
        spans += 1;
        let (start, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        let row = open.entry(format!("{} {}", event["pid"], event["tid"])).or_default();
        row.retain(|end| *end > start);
        assert!(row.last().is_none_or(|end| *end >= start + length), "{event:#}");
        row.push(start + length);
    }
    assert_eq!(spans, 4);
    // Such large numbers would be rounded to a quarter of a microsecond.
    let first = events.iter().find(|event| event["ph"] == "X").unwrap();
    assert_eq!(first["ts"], 0.0);
    assert!(document["otherData"]["times_count_from"].as_str().unwrap().ends_with('Z'));
    assert!(events.iter().any(|event| event["args"]["name"] == "c2"));
}

#[test]
fn the_page_escapes_everything_and_needs_nothing() {
    let page = text(None, Format::Html, ContentPolicy::Full);
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("&lt;/script&gt;&lt;b&gt;"));
    for forbidden in ["<script", "</script><b>", "style=", "http://", "https://", "src="] {
        assert!(!page.contains(forbidden), "{forbidden} is in the page");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_session_is_found_by_a_part_of_its_id_or_a_childs_id() {
    let (_temp, db) = database();
    let roots = |prefix| -> Vec<String> {
        whole::sessions(&db, prefix).unwrap().into_iter().map(|session| session.root).collect()
    };
    assert_eq!(roots(None), ["c1", "c2"]);
    assert_eq!(roots(Some("c")), ["c1", "c2"]);
    assert_eq!(roots(Some("c2")), ["c2"]);
    assert_eq!(roots(Some("c2-child")), ["c2"]);
    assert!(roots(Some("%")).is_empty());
}
