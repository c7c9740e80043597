//! Tests log records: what they contain, and a receiver that does not accept them.

use hookspan_core::content::Field;
use hookspan_core::{Attribute, Class, ContentRef, SpanKind, Value};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::LogRecord;

use super::sink::{Answer, Sink, eventually};
use super::*;
use crate::config::Config;
use crate::config::destination;

/// A destination and the destination of its log records, as the configuration creates them.
fn with_logs(sink: &Sink, protocol: &str, more: &str) -> Vec<Destination> {
    let env = Environment::of(&[], "/");
    let text = format!(
        "[[destination]]\nname = 'test'\nendpoint = 'http://127.0.0.1:{}'\nprotocol = '{protocol}'\n\
         backfill = 'all'\nlogs = true\n{more}",
        sink.port
    );
    let config = Config::of_text(Path::new("c.toml"), &text, &env).unwrap();
    destination::all(&config, &env).unwrap()
}

/// Ten spans, four of them with a record.
fn of_all_kinds(world: &World) {
    let kinds = [
        SpanKind::Generation,
        SpanKind::Thought,
        SpanKind::Tool,
        SpanKind::Response,
        SpanKind::Subagent,
        SpanKind::Compaction,
        SpanKind::Session,
        SpanKind::Tab,
        SpanKind::Response,
        SpanKind::Tool,
    ];
    for kind in kinds {
        world.settle_with(1, |span| span.kind = kind);
    }
}

fn records(body: &[u8]) -> Vec<LogRecord> {
    let request = ExportLogsServiceRequest::decode(body).unwrap();
    assert_eq!(request.encode_to_vec(), body, "as the generated types write it");
    let scopes = request.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
    scopes.flat_map(|scope| scope.log_records).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_and_answers_leave_as_events_beside_the_spans() {
    for protocol in ["http/protobuf", "grpc"] {
        let world = World::new();
        of_all_kinds(&world);
        let sink = Sink::answering(&[]).await;
        let _exporters = world.export(with_logs(&sink, protocol, ""));
        world.drained().await;
        let row = || world.row("test:logs");
        eventually(|| row().queued == 0, || format!("{:?}", row())).await;
        assert_eq!((row().delivered, row().lost.len()), (4, 0), "{protocol}");
        assert_eq!(world.row("test").delivered, 10);
        let seen = sink.logs();
        let all: Vec<_> = seen.iter().flat_map(|seen| records(&seen.body)).collect();
        assert_eq!(all.len(), 4);
        for record in &all {
            assert_eq!(record.event_name, "gen_ai.client.inference.operation.details");
            assert_eq!((record.trace_id.len(), record.span_id.len()), (16, 8));
            assert_eq!((record.severity_number, record.flags), (5, 1));
            assert!(record.time_unix_nano > 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_without_logs_gets_its_spans_and_says_why() {
    for (protocol, answer) in [
        ("http/protobuf", Answer::Http(404, None)),
        ("http/protobuf", Answer::Http(405, None)),
        ("grpc", Answer::grpc(tonic::Code::Unimplemented)),
    ] {
        let world = World::new();
        of_all_kinds(&world);
        let sink = Sink::answering(&[]).await;
        sink.answer_logs(&[answer]);
        let exporters = world.export(with_logs(&sink, protocol, ""));
        world.drained().await;
        let row = || world.row("test:logs");
        eventually(|| row().state == "paused", || format!("{:?}", row())).await;
        let advice = row().advice.unwrap();
        assert!(
            advice.contains("takes no logs") && advice.contains("logs = false` for test"),
            "{advice}"
        );
        assert_eq!((world.row("test").delivered, world.row("test").state.as_str()), (10, "ok"));
        assert_eq!(row().lost, Vec::new(), "they wait");
        assert!(exporters.retry("test:logs"));
        eventually(|| row().delivered == 4, || format!("{:?}", row())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_records_that_are_refused_are_isolated_like_spans() {
    let world = World::new();
    for index in 0..40 {
        world.settle_with(1, |span| {
            span.kind = SpanKind::Response;
            span.trace = TraceId::derive("generation", "c1", &index.to_string());
        });
    }
    let sink = Sink::answering(&[]).await;
    sink.answer_logs(&[Answer::Http(413, None), Answer::Http(503, None)]);
    let _exporters = world.export(with_logs(&sink, "http/protobuf", ""));
    let row = || world.row("test:logs");
    eventually(|| row().delivered == 40, || format!("{:?}", row())).await;
    let seen = sink.logs();
    assert!(records(&seen[0].body).len() == 40 && records(&seen[1].body).len() == 20);
    assert_eq!(seen[1].body, seen[2].body, "a repeat is byte for byte the same");
    assert!(row().lost.is_empty());
}

#[test]
fn messages_are_in_parts_and_only_at_full() {
    let mut span = sample::span("c1", "Shell");
    span.kind = SpanKind::Response;
    span.attributes = vec![
        Attribute {
            key: "gen_ai.operation.name".into(),
            value: Value::Str("chat".into()),
            class: Class::Plain,
        },
        Attribute { key: "hookspan.text.bytes".into(), value: Value::Int(2), class: Class::Plain },
        Attribute { key: "file.path".into(), value: Value::Str("/x".into()), class: Class::Path },
    ];
    span.contents =
        vec![ContentRef { key: "gen_ai.output.messages", hook: 1, field: Field::Response }];
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let record = |content: &str| {
        let sink = format!("name = 'a'\nendpoint = 'http://127.0.0.1:1'\ncontent = '{content}'");
        let form: DestinationForm = toml::from_str(&sink).unwrap();
        let mut destination = form.build(&Environment::of(&[], "/"), Semconv::default()).unwrap();
        destination.signal = destination::Signal::Logs;
        let plan = plan::Plan::of(&destination, &Settings::default());
        let bytes = plan.encoding.record(&span, &mut |_| {
            let text = format!("key {secret}");
            let part = serde_json::json!([{"role": "assistant", "parts": [{"type": "text", "content": text}]}]);
            Some(hookspan_core::content::Content { text: part.to_string(), json: true })
        });
        LogRecord::decode(&*bytes.unwrap()).unwrap()
    };
    let full = record("full");
    let keys: Vec<&str> = full.attributes.iter().map(|pair| pair.key.as_str()).collect();
    assert!(keys.contains(&"gen_ai.operation.name") && keys.contains(&"session.id"), "{keys:?}");
    assert!(!keys.contains(&"file.path"), "{keys:?}");
    let messages =
        full.attributes.iter().find(|pair| pair.key == "gen_ai.output.messages").unwrap();
    let Some(Any::ArrayValue(messages)) = messages.value.as_ref().unwrap().value.as_ref() else {
        panic!("{messages:?}")
    };
    let shown = format!("{messages:?}");
    assert!(
        shown.contains("finish_reason") && shown.contains("[redacted:github-token:"),
        "{shown}"
    );
    assert!(!shown.contains(secret));
    for less in ["metadata", "off"] {
        let shown = format!("{:?}", record(less));
        assert!(!shown.contains("messages") && !shown.contains("redacted"), "{shown}");
    }
}
