//! Requests as programs send them, through the router into a real database.

use std::io::Write as _;
use std::sync::Mutex;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt as _;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Wire;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use rusqlite::Connection;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use axum::body::Bytes;

use super::decode::pair;
use super::*;
use crate::access::{Access, BySocket, Clock, Vault, VaultError};
use crate::store::received::{Limits, take};
use crate::store::write::Store;

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_780_000_000 * SECOND;

/// Access of the tests: one token that only sends, and one that reads.
struct Keys(Mutex<Arc<Access>>);

impl Vault for Keys {
    fn read(&self) -> Result<Arc<Access>, VaultError> {
        Ok(Arc::clone(&self.0.lock().unwrap()))
    }
    fn change(&self, change: &mut dyn FnMut(&mut Access)) -> Result<(), VaultError> {
        change(Arc::make_mut(&mut self.0.lock().unwrap()));
        Ok(())
    }
    fn random(&self) -> Result<[u8; 32], VaultError> {
        Ok([7; 32])
    }
}

struct Database {
    store: Mutex<Store>,
    limits: Limits,
    /// The store refuses every write.
    is_full: bool,
}

impl Keep for Database {
    fn keep(&self, incoming: Incoming) -> Result<Taken, NotKept> {
        if self.is_full {
            return Err(NotKept);
        }
        let now_ns = START as i64 + 60 * SECOND as i64;
        let take = |db: &Connection| take::take(db, &incoming, self.limits, now_ns);
        self.store.lock().unwrap().run(take).map_err(|_| NotKept)
    }
}

struct World {
    temp: tempfile::TempDir,
    receiver: Arc<Receiver>,
    token: String,
}

const LIMITS: Limits = Limits { session_spans: 100, day_spans: 200, day_bytes: 1 << 20 };

impl World {
    fn new() -> Self {
        Self::with(LIMITS, false)
    }

    fn with(limits: Limits, is_full: bool) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let store = Store::open(&temp.path().join("hookspan.db")).unwrap();
        let mut access = Access::default();
        let token = access.create_sending_token("build", [1; 32], 0).unwrap();
        let door =
            Door::new(Arc::new(Keys(Mutex::new(Arc::new(access)))), Clock::new(|| 0), "owner");
        let keep = Box::new(Database { store: Mutex::new(store), limits, is_full });
        let receiver = Receiver::new(Arc::new(door.unwrap()), keep, Redaction::default());
        Self { temp, receiver, token }
    }

    fn db(&self) -> Connection {
        Connection::open(self.temp.path().join("hookspan.db")).unwrap()
    }

    fn post(&self, path: &str) -> axum::http::request::Builder {
        Request::post(path).header("authorization", format!("Bearer {}", self.token))
    }

    async fn ask(&self, request: Request<Body>) -> Response<Body> {
        self.receiver.router().oneshot(request).await.unwrap()
    }

    async fn json(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = self.post(path).header("content-type", "application/json");
        let answer = self.ask(request.body(Body::from(body.to_string())).unwrap()).await;
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// Sends spans as protobuf; returns the number of rejected ones.
    async fn send(&self, spans: Vec<Span>) -> i64 {
        let request = self.post("/v1/traces").header("content-type", "application/x-protobuf");
        let body = of(vec![("service.name", "build")], spans).encode_to_vec();
        let answer = self.ask(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let answer = ExportTraceServiceResponse::decode(body).unwrap();
        answer.partial_success.map_or(0, |partial| partial.rejected_spans)
    }

    fn stored(&self) -> i64 {
        self.db().query_row("SELECT count(*) FROM received_span", [], |row| row.get(0)).unwrap()
    }

    fn count(&self, key: &str) -> i64 {
        let sql = "SELECT coalesce(sum(value), 0) FROM counter WHERE key = ?1";
        self.db().query_row(sql, [key], |row| row.get(0)).unwrap()
    }
}

fn of(resource: Vec<(&str, &str)>, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let pairs = resource.into_iter().map(|(key, value)| pair(key, Wire::StringValue(value.into())));
    let resource = Resource { attributes: pairs.collect(), ..Resource::default() };
    let scope = InstrumentationScope { name: "cargo".into(), ..InstrumentationScope::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
    let all = ResourceSpans { resource: Some(resource), scope_spans, ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![all] }
}

fn span(number: u64) -> Span {
    Span {
        trace_id: vec![9; 16],
        span_id: (number + 1).to_be_bytes().to_vec(),
        name: format!("step {number}"),
        start_time_unix_nano: START + number,
        end_time_unix_nano: START + number + SECOND,
        ..Span::default()
    }
}

#[tokio::test]
async fn the_same_spans_as_json_protobuf_and_grpc_are_one_row_each() {
    let world = World::new();
    let body = of(vec![("service.name", "build")], vec![span(1), span(2)]);
    let json = serde_json::to_value(&body).unwrap();
    assert_eq!(json["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"], "09".repeat(16));
    assert_eq!(world.json("/v1/traces", &json).await, (StatusCode::OK, json!({})));
    assert_eq!(world.send(vec![span(1), span(2)]).await, 0);

    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&body.encode_to_vec()).unwrap();
    let packed = packed.finish().unwrap();
    let mut frame = vec![1];
    frame.extend((packed.len() as u32).to_be_bytes());
    frame.extend(packed);
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    let request = world.post(path).header("content-type", "application/grpc");
    let request = request.header("grpc-encoding", "gzip").body(Body::from(frame)).unwrap();
    let answer = world.ask(request).await.into_body().collect().await.unwrap();
    assert_eq!(answer.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(&answer.to_bytes()[..], [0; 5], "an empty message");

    assert_eq!((world.stored(), world.count("otlp.duplicate")), (2, 4));
    let row: (String, String, i64, i64) = world
        .db()
        .query_row(
            "SELECT name, service, start_ns, end_ns FROM received_span ORDER BY id",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .unwrap();
    let start = START as i64 + 1;
    assert_eq!(row, ("step 1".into(), "build".into(), start, start + SECOND as i64));
}

#[tokio::test]
async fn who_shows_no_token_is_refused_before_the_body_is_read() {
    let world = World::new();
    let never =
        || Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
    let plain = Request::post("/v1/traces").header("content-type", "application/json");
    let answer = world.ask(plain.body(never()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(answer.headers()["www-authenticate"], "Bearer");
    let wrong = Request::post("/v1/logs").header("authorization", "Bearer hookspan_0");
    let wrong = wrong.header("content-type", "application/grpc").body(never()).unwrap();
    let answer = world.ask(wrong).await;
    assert_eq!(
        (answer.status(), &answer.headers()["grpc-status"]),
        (StatusCode::OK, &"16".parse().unwrap())
    );
    let page = world.post("/v1/traces").header("origin", "http://127.0.0.1:4328");
    assert_eq!(world.ask(page.body(never()).unwrap()).await.status(), StatusCode::FORBIDDEN);
    // Only the owner can reach the socket.
    let near = Request::post("/v1/traces").header("content-type", "application/json");
    let mut near = near.body(Body::from("{}")).unwrap();
    near.extensions_mut().insert(BySocket);
    assert_eq!(world.ask(near).await.status(), StatusCode::OK);
    assert_eq!(world.count("otlp.refused.token"), 2);
    assert_eq!(world.count("otlp.refused.browser"), 1);
}

#[tokio::test]
async fn each_wrong_request_gets_the_answer_that_a_sender_understands() {
    let world = World::new();
    let big = "x".repeat(BODY_MAX_BYTES + 6);
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![b' '; INFLATED_MAX_BYTES + 1]).unwrap();
    let bomb = bomb.finish().unwrap();
    let deep = format!("{{\"resourceSpans\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let json = "application/json";
    let cases: [(&str, &str, &str, Vec<u8>, u16); 10] = [
        ("/v1/traces", "text/plain", "identity", vec![], 415),
        ("/v1/traces", json, "br", vec![], 415),
        ("/v1/traces", json, "gzip", b"no gzip".to_vec(), 400),
        ("/v1/traces", json, "gzip", bomb, 413),
        ("/v1/traces", json, "identity", big.into(), 413),
        ("/v1/traces", json, "identity", b"{\"resourceSpans\":7}".to_vec(), 400),
        ("/v1/traces", json, "identity", deep.into(), 400),
        ("/v1/traces", "application/x-protobuf", "identity", vec![0x0a, 0xff, 0xff, 0x7f], 400),
        ("/v1/profiles", json, "identity", b"{}".to_vec(), 404),
        ("/", json, "identity", b"{}".to_vec(), 404),
    ];
    for (path, media, encoding, body, expected) in cases {
        let shown: String = String::from_utf8_lossy(&body).chars().take(20).collect();
        let request = world.post(path).header("content-type", media);
        let request = request.header("content-encoding", encoding).body(Body::from(body)).unwrap();
        let answer = world.ask(request).await;
        assert_eq!(answer.status(), expected, "{path} {media} {encoding} {shown}");
    }
    let read =
        Request::get("/v1/traces").header("authorization", format!("Bearer {}", world.token));
    let answer = world.ask(read.body(Body::empty()).unwrap()).await;
    assert_eq!(
        (answer.status(), answer.headers()["allow"].as_bytes()),
        (StatusCode::METHOD_NOT_ALLOWED, &b"POST"[..])
    );
    assert_eq!(world.stored(), 0);
}

#[tokio::test]
async fn what_cannot_be_stored_is_to_be_sent_again() {
    let world = World::with(LIMITS, true);
    let request = world.post("/v1/traces").header("content-type", "application/json");
    let answer = world.ask(request.body(Body::from("{}")).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.headers()["retry-after"], "1");
    let path = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
    let request = world.post(path).header("content-type", "application/grpc");
    let answer = world.ask(request.body(Body::from(vec![0; 5])).unwrap()).await;
    assert_eq!(answer.headers()["grpc-status"], "14");
    assert!(answer.headers().contains_key("grpc-status-details-bin"), "with RetryInfo");
}

#[tokio::test]
async fn a_hundred_thousand_spans_at_once_fill_the_limits_and_the_rest_is_counted() {
    let world =
        World::with(Limits { session_spans: 50, day_spans: u64::MAX, day_bytes: u64::MAX }, false);
    // A span without ids takes two bytes of a request and is invalid.
    assert_eq!(world.send(vec![Span::default(); 100_000]).await, 100_000);
    let many: Vec<Span> = (0..decode::ITEMS_MAX as u64 + 25).map(span).collect();
    assert_eq!(world.send(many).await, 25);
    assert_eq!(world.stored(), decode::ITEMS_MAX as i64, "none names a session");
    let own = |number| Span {
        attributes: vec![pair("session.id", Wire::StringValue("s".into()))],
        trace_id: vec![8; 16],
        ..span(number)
    };
    assert_eq!(world.send((0..80).map(own).collect()).await, 30);
    assert_eq!(world.count("otlp.refused.session_spans"), 30);
    assert_eq!(world.count("otlp.refused.items"), 25);
    assert_eq!(world.count("otlp.refused.invalid"), 100_000);

    let small = World::with(Limits { day_spans: 10, ..LIMITS }, false);
    assert_eq!(small.send((0..14).map(span).collect()).await, 4);
    let tiny = World::with(Limits { day_bytes: 400, ..LIMITS }, false);
    assert_eq!(tiny.send((0..14).map(span).collect()).await, 11, "three of about 120 bytes fit");
}

#[tokio::test]
async fn odd_spans_are_kept_as_far_as_they_make_sense() {
    let world = World::new();
    let backwards = Span { end_time_unix_nano: START - SECOND, ..span(1) };
    let never = Span { start_time_unix_nano: 0, ..span(2) };
    let future = Span { end_time_unix_nano: u64::MAX, ..span(3) };
    let short_id = Span { span_id: vec![1, 2], ..span(4) };
    let no_id = Span { trace_id: vec![0; 16], ..span(5) };
    let twice = span(6);
    let long = Span { name: "é".repeat(400), kind: 77, ..span(7) };
    let all = vec![backwards, never, future, short_id, no_id, twice.clone(), twice, long];
    assert_eq!(world.send(all).await, 4);
    assert_eq!((world.stored(), world.count("otlp.duplicate")), (3, 1));
    let lengths: i64 = world
        .db()
        .query_row(
            "SELECT count(*) FROM received_span WHERE end_ns < start_ns OR length(name) > 256",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(lengths, 0);
}

#[tokio::test]
async fn attributes_lose_secrets_and_people_and_are_bounded() {
    let world = World::new();
    let secret =
        format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0".repeat(2).chars().take(36).collect::<String>());
    let text = |value: &str| Wire::StringValue(value.to_owned());
    let mut attributes = vec![
        pair("user.email", text("dev@example.com")),
        pair("http.url", text(&format!("https://x:{secret}@example.com/"))),
        pair("note", text(&"n".repeat(3_000))),
        pair("count", Wire::IntValue(i64::MIN)),
        pair("nan", Wire::DoubleValue(f64::NAN)),
    ];
    attributes.extend((0..100).map(|n| pair(&format!("k{n}"), Wire::BoolValue(true))));
    let name = format!("GET {secret}");
    assert_eq!(world.send(vec![Span { attributes, name, ..span(1) }]).await, 0);
    let (name, stored, cut): (String, String, i64) = world
        .db()
        .query_row("SELECT name, attributes, cut FROM received_span", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    let kept: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(kept.as_object().unwrap().len(), 64);
    assert_eq!(cut, 1 + 40, "the note, and what is beyond 64 attributes");
    assert_eq!(kept["count"], i64::MIN);
    assert!(kept["note"].as_str().unwrap().len() <= 2_048, "{kept}");
    for gone in [secret.as_str(), "dev@example.com"] {
        assert!(!stored.contains(gone) && !name.contains(gone), "{gone}: {name} {stored}");
    }
}

#[tokio::test]
async fn spans_that_hookspan_exported_are_recognised_when_they_come_back() {
    let world = World::new();
    let mut body = of(vec![("service.name", "cursor-agent")], vec![span(1)]);
    body.resource_spans[0].scope_spans[0].scope.as_mut().unwrap().name = "hookspan".into();
    let request = world.post("/v1/traces").header("content-type", "application/x-protobuf");
    let request = request.body(Body::from(body.encode_to_vec())).unwrap();
    assert_eq!(world.ask(request).await.status(), StatusCode::OK);
    assert_eq!((world.stored(), world.count("otlp.came_back")), (0, 1));
}

/// Attributes in JSON, all as texts, as some agents send them.
fn texts(pairs: &[(&str, &str)]) -> Vec<Value> {
    pairs.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}

fn logs(resource: &[(&str, &str)], scope: &str, records: Vec<Value>) -> Value {
    json!({"resourceLogs": [{"resource": {"attributes": texts(resource)},
        "scopeLogs": [{"scope": {"name": scope}, "logRecords": records}]}]})
}

fn record(body: &str, attributes: &[(&str, &str)]) -> Value {
    json!({"timeUnixNano": (START + SECOND).to_string(), "body": {"stringValue": body},
        "attributes": texts(attributes)})
}

/// The stored rows: name, session, model, tokens (input, output, cache read, cache write) and cost.
fn rows(world: &World) -> Vec<Value> {
    let db = world.db();
    let mut all = db
        .prepare(
            "SELECT json_array(name, session, model, json_array(input, output, cache_read, cache_write), cost)
             FROM received_span ORDER BY start_ns, name, row",
        )
        .unwrap();
    let rows = all.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(|row| serde_json::from_str(&row.unwrap()).unwrap()).collect()
}

#[tokio::test]
async fn records_of_claude_code_tell_requests_and_cached_tokens_are_input() {
    let world = World::new();
    let request = [
        ("event.name", "api_request"),
        ("session.id", "c1"),
        ("event.sequence", "4"),
        ("model", "claude-opus-4-7"),
        ("input_tokens", "2"),
        ("output_tokens", "1200"),
        ("cache_read_tokens", "84562"),
        ("cache_creation_tokens", "7096"),
        ("cost_usd", "0.0875"),
        ("duration_ms", "500"),
    ];
    let prompt = [("event.name", "user_prompt"), ("session.id", "c1"), ("prompt", "secret plans")];
    let body = logs(
        &[("service.name", "claude-code")],
        "com.anthropic.claude_code.events",
        vec![
            record("claude_code.api_request", &request),
            record("claude_code.user_prompt", &prompt),
        ],
    );
    for _ in 0..2 {
        assert_eq!(world.json("/v1/logs", &body).await, (StatusCode::OK, json!({})));
    }
    let expected = json!([
        "claude_code.api_request",
        "c1",
        "claude-opus-4-7",
        [91_660, 1_200, 84_562, 7_096],
        0.0875
    ]);
    assert_eq!(rows(&world), [expected]);
    assert_eq!((world.count("otlp.duplicate"), world.count("otlp.left_out.logs")), (1, 2));
    let length: i64 = world
        .db()
        .query_row("SELECT end_ns - start_ns FROM received_span", [], |row| row.get(0))
        .unwrap();
    assert_eq!(length, 500_000_000);
}

#[tokio::test]
async fn the_two_records_that_codex_sends_for_one_answer_count_once() {
    let world = World::new();
    let common = [
        ("event.kind", "response.completed"),
        ("conversation.id", "x1"),
        ("event.timestamp", "T1"),
    ];
    let tokens = [
        ("input_token_count", "32562"),
        ("output_token_count", "35"),
        ("cached_token_count", "1920"),
        ("model", "gpt-5.5"),
    ];
    let with_tokens = [&common[..], &tokens[..]].concat();
    let named = [&common[..], &[("event.name", "codex.websocket_event")][..]].concat();
    let sse = [&with_tokens[..], &[("event.name", "codex.sse_event"), ("user.email", "d@e.f")][..]]
        .concat();
    let records = vec![record("", &with_tokens), record("event a.rs:1", &named), record("", &sse)];
    let body = logs(&[("service.name", "codex_cli_rs")], "codex_otel.log_only", records);
    assert_eq!(world.json("/v1/logs", &body).await, (StatusCode::OK, json!({})));
    assert_eq!(
        rows(&world),
        [json!(["codex.response", "x1", "gpt-5.5", [32_562, 35, 1_920, null], null])]
    );
    assert_eq!(world.count("otlp.duplicate"), 1);
}

#[tokio::test]
async fn codex_keeps_the_turn_and_what_a_person_needs() {
    let world = World::new();
    let turn =
        |key: &str, value| pair(&format!("codex.turn.token_usage.{key}"), Wire::IntValue(value));
    let thread = pair("thread.id", Wire::StringValue("0196-thread".into()));
    let mut spans = vec![Span {
        name: "session_task.turn".into(),
        attributes: vec![thread, turn("input_tokens", 1_200), turn("output_tokens", 80)],
        ..span(1)
    }];
    let milliseconds = |number: u64, ms: u64, name: &str| Span {
        name: name.into(),
        end_time_unix_nano: START + number + ms * 1_000_000,
        ..span(number)
    };
    spans.extend((10..400).map(|n| milliseconds(n, 0, "receiving")));
    spans.extend((400..780).map(|n| milliseconds(n, 70, "handle_responses")));
    spans.push(milliseconds(800, 900, "handle_tool_call"));
    spans.push(milliseconds(801, 3, "build_tool_call"));
    let request = world.post("/v1/traces").header("content-type", "application/x-protobuf");
    let body = of(vec![("service.name", "codex_exec")], spans).encode_to_vec();
    assert_eq!(world.ask(request.body(Body::from(body)).unwrap()).await.status(), StatusCode::OK);
    // The tool's span names no session, but its trace does.
    assert_eq!(
        rows(&world),
        [
            json!(["session_task.turn", "0196-thread", null, [1_200, 80, null, null], null]),
            json!(["handle_tool_call", "0196-thread", null, [null, null, null, null], null]),
        ]
    );
    assert_eq!(world.count("otlp.left_out.internal"), 771);
}

#[tokio::test]
async fn gemini_copilot_and_cursor_tell_tokens_where_their_references_say() {
    let world = World::new();
    let gemini = [
        ("event.name", "gemini_cli.api_response"),
        ("session.id", "g1"),
        ("model", "gemini-2.5-pro"),
        ("input_token_count", "12000"),
        ("cached_content_token_count", "8000"),
        ("output_token_count", "350"),
        ("thoughts_token_count", "420"),
    ];
    let body = logs(&[("service.name", "gemini-cli")], "gemini_cli", vec![record("x", &gemini)]);
    assert_eq!(world.json("/v1/logs", &body).await.0, StatusCode::OK);
    let cursor = [
        ("cursor.event.id", "e1"),
        ("cursor.conversation.id", "k1"),
        ("cursor.model.name", "grok-5"),
        ("cursor.api.request.input_tokens", "1000"),
        ("cursor.api.request.output_tokens", "200"),
        ("cursor.api.request.cache_read_tokens", "50"),
        ("cursor.api.request.cache_creation_tokens", "25"),
    ];
    let again = [&cursor[..], &[("cursor.api.billable", "true")][..]].concat();
    let records = vec![record("api_request", &cursor), record("api_request", &again)];
    let body = logs(&[("service.name", "cursor")], "cursor.telemetry", records);
    assert_eq!(world.json("/v1/logs", &body).await.0, StatusCode::OK);
    let number = |key: &str, value| pair(key, Wire::IntValue(value));
    let text = |key: &str, value: &str| pair(key, Wire::StringValue(value.into()));
    let usage =
        || vec![number("gen_ai.usage.input_tokens", 900), number("gen_ai.usage.output_tokens", 30)];
    let id = || text("gen_ai.conversation.id", "p1");
    let agent = [vec![text("gen_ai.operation.name", "invoke_agent"), id()], usage()].concat();
    let chat = [vec![text("gen_ai.operation.name", "chat"), id()], usage()].concat();
    let late = |number| Span { start_time_unix_nano: START + 2 * SECOND, ..span(number) };
    let spans = vec![Span { attributes: agent, ..late(1) }, Span { attributes: chat, ..late(2) }];
    assert_eq!(world.send(spans).await, 0);
    assert_eq!(
        rows(&world),
        [
            json!(["cursor.api_request", "k1", "grok-5", [1_075, 200, 50, 25], null]),
            json!([
                "gemini_cli.api_response",
                "g1",
                "gemini-2.5-pro",
                [12_000, 770, 8_000, null],
                null
            ]),
            json!(["step 1", "p1", null, [null, null, null, null], null]),
            json!(["step 2", "p1", null, [900, 30, null, null], null]),
        ]
    );
    assert_eq!(world.count("otlp.duplicate"), 1, "the record that Cursor sent again");
}

fn counter(name: &str, temporality: u8, points: Vec<Value>) -> Value {
    json!({"resourceMetrics": [{"resource": {"attributes": texts(&[("service.name", "claude-code")])},
    "scopeMetrics": [{"scope": {"name": "com.anthropic.claude_code"}, "metrics": [
        {"name": name, "sum": {"aggregationTemporality": temporality, "isMonotonic": true, "dataPoints": points}}
    ]}]}]})
}

fn point(kind: &str, start: u64, at: u64, value: f64) -> Value {
    let attributes = texts(&[("session.id", "c1"), ("model", "m"), ("type", kind)]);
    json!({"attributes": attributes, "asDouble": value,
        "startTimeUnixNano": (START + start * SECOND).to_string(), "timeUnixNano": (START + at * SECOND).to_string()})
}

fn usage(world: &World) -> Value {
    let sql = "SELECT json_group_array(json_array(session, model, input, output, cache_read, cache_write, cost))
               FROM received_usage";
    let text: String = world.db().query_row(sql, [], |row| row.get(0)).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_point_that_comes_twice_counts_once_whatever_its_temporality() {
    let world = World::new();
    let name = "claude_code.token.usage";
    let first = counter(name, 1, vec![point("input", 0, 5, 10.0), point("cacheRead", 0, 5, 400.0)]);
    for body in [
        &first,
        &first,
        &counter(name, 1, vec![point("input", 5, 10, 7.0), point("output", 5, 10, 3.0)]),
    ] {
        assert_eq!(world.json("/v1/metrics", body).await, (StatusCode::OK, json!({})));
    }
    let cost = counter("claude_code.cost.usage", 1, vec![point("", 0, 5, 0.25)]);
    assert_eq!(world.json("/v1/metrics", &cost).await.0, StatusCode::OK);
    assert_eq!(usage(&world), json!([["c1", "m", 417, 3, 400, null, 0.25]]));

    let world = World::new();
    // Cumulative sums of one process, one of them out of order, and then the sums of another process.
    for (start, at, value) in
        [(0, 5, 10.0), (0, 15, 30.0), (0, 10, 20.0), (0, 15, 30.0), (20, 25, 4.0)]
    {
        let body = counter(name, 2, vec![point("output", start, at, value)]);
        assert_eq!(world.json("/v1/metrics", &body).await.0, StatusCode::OK);
    }
    assert_eq!(usage(&world), json!([["c1", "m", null, 34, null, null, null]]));
    assert_eq!(world.count("otlp.duplicate"), 2);
}

#[tokio::test]
async fn counters_without_a_session_and_unknown_ones_are_left_out() {
    let world = World::new();
    let mut lone = counter("codex.turn.token_usage", 1, vec![point("input", 0, 5, 10.0)]);
    let point_at = "/resourceMetrics/0/scopeMetrics/0/metrics/0/sum/dataPoints/0/attributes";
    *lone.pointer_mut(point_at).unwrap() = json!(texts(&[("token_type", "input")]));
    let odd = counter("http.server.requests", 1, vec![point("input", 0, 5, 10.0)]);
    let wild = counter("claude_code.token.usage", 1, vec![point("input", 0, 5, -1.0)]);
    assert_eq!(world.json("/v1/metrics", &lone).await, (StatusCode::OK, json!({})));
    assert_eq!(world.json("/v1/metrics", &odd).await, (StatusCode::OK, json!({})));
    let (_, told) = world.json("/v1/metrics", &wild).await;
    assert_eq!(told["partialSuccess"]["rejectedDataPoints"], "1", "{told}");
    assert_eq!(usage(&world), json!([]));
    assert_eq!(world.count("otlp.left_out.without_session"), 1);
    assert_eq!(world.count("otlp.left_out.metrics"), 1);
}
