use std::borrow::Cow;

use hookspan_core::{Class, End, EndReason, ErrorType, SpanId, SpanKind, Timestamp, TraceId};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::config::Environment;
use crate::export::attribute_list::ATTRIBUTE_MAX_BYTES;
use crate::redaction::Redaction;

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
        assert!(request.push(span, encoding.span(span, &mut contents), usize::MAX));
    }
    request.finish()
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
    encoding.span(span, &mut contents)
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
fn off_withholds_names_paths_and_content() {
    let span = encoded(&encoding(ContentPolicy::Off), &tool());
    assert_eq!(span.name, "execute_tool Shell");
    for key in ["file.path", "process.executable.name", "gen_ai.tool.call.arguments"] {
        lacks(&span, key);
    }
    has(&span, "process.exit.code=101");
    let request = request(&encoding(ContentPolicy::Off), &[tool()]);
    let bytes = String::from_utf8_lossy(&request.encode_to_vec()).into_owned();
    for secret in ["acme", "laptop", "cargo"] {
        assert!(!bytes.contains(secret), "{secret} left at off");
    }
}

#[test]
fn off_hashes_names_of_tools_agents_and_extensions() {
    let mut span = tool();
    span.name = "execute_tool acme_deploy acme-reviewer".to_owned();
    span.plain_name = Cow::Borrowed("execute_tool acme_deploy acme-reviewer");
    let named = ["cursor.subagent.type", "file.extension", "gen_ai.agent.name", "gen_ai.tool.name"];
    let names = ["acme-reviewer", "acmedoc", "acme-reviewer", "acme_deploy"];
    span.attributes = named
        .iter()
        .zip(names)
        .map(|(key, name)| attribute(key, text(name), Class::Plain))
        .collect();
    span.events = Vec::new();
    let request = request(&encoding(ContentPolicy::Off), &[span.clone()]);
    let bytes = String::from_utf8_lossy(&request.encode_to_vec()).into_owned();
    assert!(!bytes.contains("acme"), "{bytes}");
    let off = encoded(&encoding(ContentPolicy::Off), &span);
    assert_eq!(off.name.matches("custom-").count(), 2, "{}", off.name);
    has(&encoded(&encoding(ContentPolicy::Metadata), &span), "gen_ai.tool.name=acme_deploy");
}

#[test]
fn off_calls_every_mcp_tool_mcp() {
    let mut span = tool();
    span.attributes = vec![attribute("gen_ai.tool.name", text("pay_invoice"), Class::Detail)];
    has(&encoded(&encoding(ContentPolicy::Off), &span), "gen_ai.tool.name=mcp");
    has(&encoded(&encoding(ContentPolicy::Metadata), &span), "gen_ai.tool.name=pay_invoice");
}

#[test]
fn metadata_reads_no_content() {
    let mut reads = 0;
    let span = encoding(ContentPolicy::Metadata).span(&tool(), &mut |_| {
        reads += 1;
        None
    });
    assert_eq!(reads, 0);
    lacks(&span, "gen_ai.tool.call.result");
    has(&span, "process.executable.name=cargo");
}

#[test]
fn paths_are_written_as_the_policy_says() {
    let with = |paths, path: &str| {
        let encoding = Encoding { paths, ..encoding(ContentPolicy::Metadata) };
        let mut span = tool();
        span.attributes = vec![attribute("file.path", text(path), Class::Path)];
        let span = encoded(&encoding, &span);
        lines(&span).into_iter().find_map(|line| line.strip_prefix("file.path=").map(str::to_owned))
    };
    let relative = |path| with(PathPolicy::Relative, path).unwrap();
    assert_eq!(relative("/home/me/acme/src/a.rs"), "src/a.rs");
    assert_eq!(relative("/home/me/acme"), ".");
    assert_eq!(relative("/home/me/acme-two/a.rs"), "a.rs");
    assert_eq!(relative("/etc/passwd"), "passwd");
    assert_eq!(relative("src/a.rs"), "src/a.rs");
    assert_eq!(relative("../other/a.rs"), "a.rs");
    assert_eq!(relative("C:\\Users\\me\\a.rs"), "a.rs");
    assert_eq!(with(PathPolicy::Full, "/etc/passwd").unwrap(), "/etc/passwd");
    assert_eq!(with(PathPolicy::Off, "/etc/passwd"), None);
    let hash = with(PathPolicy::Hash, "/etc/passwd").unwrap();
    assert!(hash.starts_with("sha256:") && hash.len() == 23, "{hash}");
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
fn long_values_are_cut_and_counted() {
    let mut span = tool();
    span.name = "n".repeat(500);
    span.attributes = vec![
        attribute(
            "cursor.model.params",
            text(&json!(["x".repeat(9_000)]).to_string()),
            Class::Plain,
        ),
        attribute("long", text(&"é".repeat(4_000)), Class::Plain),
    ];
    let span = encoded(&encoding(ContentPolicy::Metadata), &span);
    assert_eq!(span.name.chars().count(), NAME_MAX_CHARS);
    has(&span, "hookspan.truncated=2");
    for line in lines(&span) {
        assert!(line.len() < ATTRIBUTE_MAX_BYTES + 64, "{}", line.len());
        if let Some(json) = line.strip_prefix("cursor.model.params=") {
            serde_json::from_str::<serde_json::Value>(json).expect("still JSON");
        }
    }
}

#[test]
fn a_span_of_any_size_fits_and_its_json_stays_json() {
    let huge = |part: &ContentRef| {
        let text = "\u{1f980}\"\\".repeat(200_000);
        Some(match part.hook {
            7 => Content { text: json!({"command": text}).to_string(), json: true },
            _ => Content { text, json: false },
        })
    };
    let span = encoding(ContentPolicy::Full).span(&tool(), &mut |part| huge(part));
    assert!(span.encoded_len() <= SPAN_MAX_BYTES, "{}", span.encoded_len());
    has(&span, "hookspan.truncated=2");
    let arguments = lines(&span)
        .into_iter()
        .find_map(|line| line.strip_prefix("gen_ai.tool.call.arguments=").map(str::to_owned))
        .expect("arguments");
    assert!(arguments.len() > 10_000, "the room is used: {}", arguments.len());
    serde_json::from_str::<serde_json::Value>(&arguments).expect("still JSON");
}

#[test]
fn attributes_events_and_links_have_their_limits() {
    let mut span = tool();
    span.attributes = (0..200)
        .map(|i| Attribute {
            key: Cow::Owned(format!("k{i:03}")),
            value: Value::Int(i),
            class: Class::Plain,
        })
        .collect();
    span.events = vec![span.events[0].clone(); 100];
    span.links = vec![span.links[0].clone(); 200];
    let span = encoded(&encoding(ContentPolicy::Metadata), &span);
    assert_eq!((span.attributes.len(), span.events.len(), span.links.len()), (96, 64, 128));
    assert!(span.dropped_attributes_count > 100);
    assert_eq!((span.dropped_events_count, span.dropped_links_count), (36, 72));
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

#[test]
fn a_request_stops_before_its_limit_but_takes_one_span_of_any_size() {
    let encoding = encoding(ContentPolicy::Full);
    let mut request = Request::new(&encoding);
    let size = encoded(&encoding, &tool()).encoded_len();
    assert!(request.push(&tool(), encoded(&encoding, &tool()), 1));
    let limit = 1_024 + 2 * (size + 6);
    assert!(request.push(&tool(), encoded(&encoding, &tool()), limit));
    assert!(!request.push(&tool(), encoded(&encoding, &tool()), limit));
    assert_eq!(request.len(), 2);
    assert!(request.finish().encoded_len() <= limit);
}

const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/// [`tool`] with a secret in each of its strings.
fn tool_full_of_secrets() -> Span {
    let mut span = tool();
    let with = |place: &str| format!("{place} {SECRET}");
    span.name = with("execute_tool");
    span.plain_name = Cow::Owned(with("plain"));
    span.workspace = Some(format!("/home/me/{SECRET}").into());
    span.cursor_version = Some(with("3").as_str().into());
    span.status = Status::Error { kind: ErrorType::ExitCode, message: with("exit") };
    span.attributes.extend([
        attribute("a.plain", text(&with("a")), Class::Plain),
        attribute("a.detail", text(&with("b")), Class::Detail),
        attribute("a.path", text(&format!("/tmp/{SECRET}")), Class::Path),
        attribute("a.long", text(&format!("{}{}", "x ".repeat(1_010), with("c"))), Class::Plain),
        attribute("a.list", Value::StrList(vec![with("d").as_str().into()]), Class::Plain),
    ]);
    span.events[0].name = Cow::Owned(with("event"));
    span.events[0].attributes.push(attribute("a.event", text(&with("e")), Class::Plain));
    span
}

#[test]
fn no_string_of_a_span_lets_a_secret_out_at_any_policy() {
    let span = tool_full_of_secrets();
    let holds = |bytes: &[u8], text: &str| String::from_utf8_lossy(bytes).contains(text);
    for content in [ContentPolicy::Off, ContentPolicy::Metadata, ContentPolicy::Full] {
        let encoding = encoding(content);
        let mut request = Request::new(&encoding);
        // The content is cut within the secret.
        let long = format!("{}{SECRET}", "y ".repeat(16 * 1_024 - 6));
        let mut read = |_: &ContentRef| Some(Content { text: long.clone(), json: false });
        request.push(&span, encoding.span(&span, &mut read), usize::MAX);
        let bytes = request.finish().encode_to_vec();
        assert!(!holds(&bytes, &SECRET[..10]), "{content:?}");
        assert!(holds(&bytes, "[redacted:github-token:"), "{content:?}");
        let open = Encoding { redaction: None, ..encoding.clone() };
        let bytes = open.span(&span, &mut |_: &ContentRef| None).encode_to_vec();
        assert!(holds(&bytes, SECRET), "{content:?}: the secrets are not planted");
    }
}

#[test]
fn a_span_without_a_secret_keeps_its_bytes() {
    let span = tool();
    let redacted = encoding(ContentPolicy::Metadata);
    let open = Encoding { redaction: None, ..redacted.clone() };
    assert_eq!(encoded(&redacted, &span), encoded(&open, &span));
}
