//! Tests the encoding of spans and requests.

use std::borrow::Cow;

use hookspan_core::{Class, End, EndReason, ErrorType, SpanId, SpanKind, Timestamp, TraceId};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span as OtlpSpan;
use prost::Message as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::config::Environment;
use crate::export::attribute_list::ATTRIBUTE_MAX_BYTES;
use crate::redaction::Redaction;

mod limits; // limits of values, spans and requests
mod policies; // content, names, paths and secrets

fn encoding(content: ContentPolicy) -> Encoding {
    let env = Environment::of(&[], "/");
    let resource = ResourceBase::from_env(&env, Some("laptop".to_owned())).expect("valid");
    Encoding {
        paths: PathPolicy::Relative,
        ..Encoding::file(content, resource, Some(Redaction::default()))
    }
}

fn attribute(key: &'static str, value: Value, class: Class) -> Attribute {
    Attribute { key: Cow::Borrowed(key), value, class }
}

fn text(value: &str) -> Value {
    Value::Str(value.into())
}

/// A failed tool call that uses every kind of field.
fn tool() -> Span {
    Span {
        id: SpanId::derive("c1", "g1", "tool", "call"),
        trace: TraceId::derive("generation", "c1", "g1"),
        parent: Some(SpanId::derive("c1", "g1", "generation", "")),
        links: vec![Link {
            trace: TraceId::derive("generation", "c1", "g0"),
            span: SpanId::derive("c1", "g0", "generation", ""),
            kind: "previous_generation",
            at: Timestamp(5),
        }],
        kind: SpanKind::Tool,
        name: "execute_tool Shell cargo".to_owned(),
        plain_name: Cow::Borrowed("execute_tool Shell"),
        root: "c1".into(),
        conversation: "c1".into(),
        generation: "g1".into(),
        workspace: Some("/home/me/acme".into()),
        cursor_version: Some("3.7.19".into()),
        start: Timestamp(1_000_000_000),
        end: Some(End { at: Timestamp(2_500_000_000), reason: EndReason::Matched }),
        status: Status::Error { kind: ErrorType::ExitCode, message: "exit code 101".to_owned() },
        attributes: vec![
            attribute("file.path", text("/home/me/acme/src/lib.rs"), Class::Path),
            attribute("gen_ai.tool.name", text("Shell"), Class::Plain),
            attribute("hookspan.hooks", Value::StrList(vec!["a".into(), "b".into()]), Class::Plain),
            attribute("hookspan.wait_ms", Value::Double(1.5), Class::Plain),
            attribute("process.executable.name", text("cargo"), Class::Detail),
            attribute("process.exit.code", Value::Int(101), Class::Plain),
        ],
        events: vec![SpanEvent {
            at: Timestamp(1_200_000_000),
            name: Cow::Borrowed("cursor.hook"),
            attributes: vec![attribute("cursor.hook.name", text("x"), Class::Plain)],
        }],
        contents: vec![
            ContentRef {
                key: "gen_ai.tool.call.arguments",
                hook: 7,
                field: hookspan_core::content::Field::ToolInput,
            },
            ContentRef {
                key: "gen_ai.tool.call.result",
                hook: 8,
                field: hookspan_core::content::Field::ToolOutput,
            },
        ],
        settled: true,
    }
}

fn contents(part: &ContentRef) -> Option<Content> {
    Some(match part.hook {
        7 => Content { text: json!({"command": "cargo test"}).to_string(), json: true },
        8 => Content { text: "failed".to_owned(), json: false },
        _ => return None,
    })
}

fn request(encoding: &Encoding, spans: &[Span]) -> ExportTraceServiceRequest {
    let mut request = Request::new(encoding);
    for span in spans {
        assert!(request.push(span, &encoding.bytes(span, &mut contents), usize::MAX));
    }
    ExportTraceServiceRequest::decode(&*request.finish()).unwrap()
}

/// Attributes as `key=value` lines.
fn lines(span: &OtlpSpan) -> Vec<String> {
    span.attributes
        .iter()
        .map(|pair| {
            let value = serde_json::to_value(pair.value.as_ref().expect("a value")).expect("json");
            let value = value.as_object().and_then(|map| map.values().next()).expect("one").clone();
            format!("{}={}", pair.key, value.as_str().map_or(value.to_string(), str::to_owned))
        })
        .collect()
}

#[track_caller]
fn has(span: &OtlpSpan, line: &str) {
    let lines = lines(span);
    assert!(lines.iter().any(|have| have == line), "{line} is not in {lines:#?}");
}

#[track_caller]
fn lacks(span: &OtlpSpan, key: &str) {
    assert!(span.attributes.iter().all(|pair| pair.key != key), "{key} is there");
}

fn encoded(encoding: &Encoding, span: &Span) -> OtlpSpan {
    message(&encoding.bytes(span, &mut contents))
}

/// The span in `bytes`, which are exactly what the generated types write.
#[track_caller]
fn message(bytes: &[u8]) -> OtlpSpan {
    let span = OtlpSpan::decode(bytes).unwrap();
    assert_eq!(span.encode_to_vec(), bytes);
    span
}

#[test]
fn a_span_is_written_as_the_specification_says() {
    let request = request(&encoding(ContentPolicy::Full), &[tool()]);
    let span = serde_json::to_value(&request.resource_spans[0].scope_spans[0].spans[0]).unwrap();
    let string = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let expected = json!({
        "traceId": "373a8e23b076bfa7f095bc597ef7cce7",
        "spanId": SpanId::derive("c1", "g1", "tool", "call").to_string(),
        "traceState": "",
        "parentSpanId": "fe2ee738878dc6cb",
        "flags": 0x101,
        "name": "execute_tool Shell cargo",
        "kind": 1,
        "startTimeUnixNano": "1000000000",
        "endTimeUnixNano": "2500000000",
        "attributes": [
            string("cursor.conversation.id", "c1"),
            string("cursor.generation.id", "g1"),
            string("error.type", "exit_code"),
            string("file.path", "src/lib.rs"),
            string("gen_ai.conversation.id", "c1"),
            string("gen_ai.tool.call.arguments", "{\"command\":\"cargo test\"}"),
            string("gen_ai.tool.call.result", "failed"),
            string("gen_ai.tool.name", "Shell"),
            string("hookspan.end_reason", "matched"),
            {"key": "hookspan.hooks", "value": {"arrayValue": {"values": [
                {"stringValue": "a"}, {"stringValue": "b"}]}}},
            string("hookspan.kind", "tool"),
            {"key": "hookspan.wait_ms", "value": {"doubleValue": 1.5}},
            string("openinference.span.kind", "TOOL"),
            string("process.executable.name", "cargo"),
            {"key": "process.exit.code", "value": {"intValue": "101"}},
            string("session.id", "c1"),
        ],
        "droppedAttributesCount": 0,
        "events": [{
            "timeUnixNano": "1200000000",
            "name": "cursor.hook",
            "attributes": [string("cursor.hook.name", "x")],
            "droppedAttributesCount": 0,
        }],
        "droppedEventsCount": 0,
        "links": [{
            "traceId": TraceId::derive("generation", "c1", "g0").to_string(),
            "spanId": SpanId::derive("c1", "g0", "generation", "").to_string(),
            "traceState": "",
            "attributes": [string("hookspan.link.type", "previous_generation")],
            "droppedAttributesCount": 0,
            "flags": 0x101,
        }],
        "droppedLinksCount": 0,
        "status": {"message": "exit code 101", "code": 2},
    });
    assert_eq!(span, expected);
}

#[test]
fn the_bytes_are_frozen() {
    let mut other = tool();
    other.workspace = None;
    let mut encoding = encoding(ContentPolicy::Full);
    // The machine and the release are removed, so that the bytes are the same everywhere.
    encoding.resource.pin_for_test();
    let mut request = request(&encoding, &[tool(), other]);
    for scope in request.resource_spans.iter_mut().flat_map(|r| &mut r.scope_spans) {
        scope.scope.as_mut().unwrap().version = "0".to_owned();
    }
    let bytes = request.encode_to_vec();
    let digest: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!((bytes.len(), digest.as_str()), (GOLDEN.0, GOLDEN.1));
}

/// Length and SHA-256 of the request above. If they change, a request that is sent again after an upgrade no longer has
/// the same bytes.
const GOLDEN: (usize, &str) =
    (2_048, "1f91a8dcdf0504d26fa3cab29124ff5c77bccb14313d68872d3d18f5c258ef1b");

#[test]
fn resources_hold_what_is_known_and_are_one_per_version_and_project() {
    let mut other = tool();
    other.cursor_version = Some("3.8.0".into());
    let request = request(&encoding(ContentPolicy::Metadata), &[tool(), other, tool()]);
    let counts: Vec<_> =
        request.resource_spans.iter().map(|r| r.scope_spans[0].spans.len()).collect();
    assert_eq!(counts, [2, 1]);
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    let keys: Vec<_> = resource.attributes.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "host.name",
            "openinference.project.name",
            "os.type",
            "service.name",
            "service.version",
            "telemetry.sdk.language",
            "telemetry.sdk.name",
            "telemetry.sdk.version"
        ]
    );
    let scope = request.resource_spans[0].scope_spans[0].scope.as_ref().unwrap();
    assert_eq!(scope.name, "hookspan");
    assert_eq!(request.resource_spans[0].schema_url, "");
}

#[test]
fn the_profile_names_the_cache_keys() {
    let mut span = tool();
    span.attributes = vec![
        attribute("gen_ai.provider.name", text("anthropic"), Class::Plain),
        attribute("gen_ai.usage.cache_creation.input_tokens", Value::Int(3), Class::Plain),
        attribute("gen_ai.usage.input_tokens", Value::Int(9), Class::Plain),
    ];
    let with = |semconv, kind| {
        let encoding = Encoding { semconv, ..encoding(ContentPolicy::Metadata) };
        encoded(&encoding, &Span { kind, ..span.clone() })
    };
    has(
        &with(Profile::Genai141, SpanKind::Generation),
        "gen_ai.usage.cache_creation.input_tokens=3",
    );
    let response = with(Profile::Genai01, SpanKind::Response);
    has(&response, "gen_ai.usage.cache_write.input_tokens=3");
    lacks(&response, "gen_ai.usage.cache_creation.input_tokens");
    let agent = with(Profile::Genai01, SpanKind::Generation);
    for key in ["gen_ai.usage.cache_write.input_tokens", "gen_ai.provider.name"] {
        lacks(&agent, key);
    }
    has(&agent, "gen_ai.usage.input_tokens=9");
}

#[test]
fn the_openinference_view_is_added_as_asked() {
    let mut span = Span { kind: SpanKind::Response, ..tool() };
    span.attributes = vec![
        attribute("gen_ai.request.model", text("claude"), Class::Plain),
        attribute("openinference.span.kind", text("LLM"), Class::Plain),
        attribute("gen_ai.usage.input_tokens", Value::Int(9), Class::Plain),
        attribute("gen_ai.usage.output_tokens", Value::Int(2), Class::Plain),
    ];
    let with = |openinference, hide_outputs| {
        let base = encoding(ContentPolicy::Full);
        encoded(&Encoding { openinference, hide_outputs, ..base }, &span)
    };
    let off = with(OpenInference::Off, false);
    assert!(lines(&off).iter().all(|line| !line.starts_with("openinference")));
    let full = with(OpenInference::Full, true);
    has(&full, "llm.model_name=claude");
    has(&full, "llm.token_count.prompt=9");
    has(&full, "llm.token_count.total=11");
    has(&full, "input.value={\"command\":\"cargo test\"}");
    has(&full, "input.mime_type=application/json");
    has(&full, "output.value=__REDACTED__");
}

#[test]
fn langfuse_learns_what_a_span_is() {
    let langfuse = Encoding { langfuse: true, ..encoding(ContentPolicy::Metadata) };
    has(&encoded(&langfuse, &tool()), "langfuse.observation.type=tool");
    let response = Span { kind: SpanKind::Response, ..tool() };
    has(&encoded(&langfuse, &response), "langfuse.observation.type=generation");
}

#[test]
fn lists_of_traces_have_a_name_tags_and_a_person() {
    let mut root = tool();
    root.parent = None;
    root.attributes.push(attribute("hookspan.surface", text("cli"), Class::Plain));
    let strict = Encoding {
        semconv: Profile::Genai141Strict,
        user: Some("aa11".to_owned()),
        ..encoding(ContentPolicy::Metadata)
    };
    let langfuse = Encoding { langfuse: true, ..strict.clone() };
    let shown = encoded(&langfuse, &root);
    has(&shown, "langfuse.trace.name=execute_tool Shell: acme");
    has(&shown, "user.id=aa11");
    assert!(lines(&shown).iter().any(|line| {
        line.starts_with("langfuse.trace.tags=") && line.contains("cli") && line.contains("acme")
    }));
    let phoenix = Encoding { openinference: OpenInference::Full, ..strict.clone() };
    assert!(lines(&encoded(&phoenix, &root)).iter().any(|line| line.starts_with("tag.tags=")));
    // Child spans contain only the person. Encodings for other backends do not contain it.
    let child = lines(&encoded(&langfuse, &tool()));
    assert!(child.contains(&"user.id=aa11".to_owned()));
    assert!(!child.iter().any(|line| line.starts_with("langfuse.trace.")));
    assert!(!lines(&encoded(&strict, &root)).iter().any(|line| line.starts_with("user.id")));
    let older = Encoding { semconv: Profile::Genai141, ..langfuse.clone() };
    assert!(!lines(&encoded(&older, &root)).iter().any(|line| line.starts_with("user.id")));
    for private in [
        Encoding { paths: PathPolicy::Off, ..langfuse.clone() },
        Encoding { paths: PathPolicy::Hash, ..langfuse.clone() },
        Encoding { content: ContentPolicy::Off, ..langfuse },
    ] {
        let told = lines(&encoded(&private, &root)).join("\n");
        assert!(!told.contains(": acme") && !told.contains("\"acme\""), "{told}");
    }
}

#[test]
fn a_span_that_runs_is_marked() {
    let span = Span { end: None, ..tool() };
    let span = encoded(&encoding(ContentPolicy::Metadata), &span);
    has(&span, "hookspan.incomplete=true");
    lacks(&span, "hookspan.end_reason");
    assert_eq!(span.end_time_unix_nano, span.start_time_unix_nano);
}

#[test]
fn the_folds_own_word_beats_a_derived_one() {
    let mut span = tool();
    span.attributes = vec![attribute("session.id", text("own"), Class::Plain)];
    has(&encoded(&encoding(ContentPolicy::Metadata), &span), "session.id=own");
}
