//! Compares every span of every stream of the core with the conventions' own files. `genai-1.41.json` is an extract of
//! these files and names its commit. It contains attributes, three GenAI spans with their groups resolved, and the
//! schemas of messages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hookspan_core::{
    Change, Config, Hook, HookSource, Reader, Sessions, Span, SpanId, Timestamp, content,
};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogramDataPoint, Metric, metric::Data,
};
use opentelemetry_proto::tonic::trace::v1::Span as OtlpSpan;
use prost::Message as _;
use serde_json::Value as Json;

use crate::config::destination::ContentPolicy;
use crate::config::{Environment, OpenInference, Profile};
use crate::export::otlp::Encoding;
use crate::export::resource::ResourceBase;
use crate::export::series;
use crate::redaction::Redaction;

/// The project's folder. If tests run as a user who cannot read the checkout, an environment variable names a copy.
pub(super) fn root() -> PathBuf {
    let checkout = || Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    std::env::var_os("HOOKSPAN_E2E_PROJECT").map_or_else(checkout, PathBuf::from)
}

fn schema() -> Json {
    serde_json::from_str(include_str!("genai-1.41.json")).unwrap()
}

/// The streams with the hooks of each.
pub(super) fn streams() -> Vec<(String, Vec<Hook>)> {
    let folder = root().join("collector/core/tests/streams");
    let mut streams: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter(|line| !line.trim().is_empty()).enumerate();
            let hooks = lines.map(|(at, line)| hook(at as u64 + 1, line)).collect();
            (path.file_stem().unwrap().to_string_lossy().into_owned(), hooks)
        })
        .collect();
    streams.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(streams.len() > 100, "the streams are there: {}", streams.len());
    streams
}

fn hook(seq: u64, line: &str) -> Hook {
    let line: Json = serde_json::from_str(line).unwrap();
    let body = line["event"].as_str().map_or_else(|| line["event"].to_string(), str::to_owned);
    let at: jiff::Timestamp = line["observed_at"].as_str().unwrap().parse().unwrap();
    Hook {
        seq,
        observed_at: Timestamp(i64::try_from(at.as_nanosecond()).unwrap()),
        argument: line["argument"].as_str().map(str::to_owned),
        source: if line["evidence"] == true { HookSource::Evidence } else { HookSource::Shim },
        body: body.into_bytes(),
        ..Hook::default()
    }
}

/// The spans of a stream, a day after its last hook.
pub(super) fn fold(hooks: &[Hook]) -> Vec<Span> {
    let mut sessions = Sessions::new(Config::default());
    let mut reader = Reader::default();
    let mut spans: BTreeMap<SpanId, Span> = BTreeMap::new();
    let mut last = Timestamp(0);
    for hook in hooks {
        last = last.max(hook.observed_at);
        sessions.handle(reader.read(hook));
    }
    sessions.handle_deadline(last.plus(86_400_000_000_000));
    while let Some(change) = sessions.poll_change() {
        match change {
            Change::Span(span) => drop(spans.insert(span.id, *span)),
            Change::Withdraw(key) => drop(spans.remove(&key.id)),
            _ => {}
        }
    }
    spans.into_values().collect()
}

pub(super) fn encoding(profile: Profile, content: ContentPolicy) -> Encoding {
    let env = Environment::of(&[("HOME", "/home/me")], "/");
    let resource = ResourceBase::from_env(&env, Some("laptop".to_owned())).unwrap();
    Encoding {
        semconv: profile,
        prices: std::sync::Arc::new(crate::prices::with_public(Default::default())),
        ..Encoding::file(content, resource, Some(Redaction::default()))
    }
}

/// Every span of every stream as `encoding` writes it, with the name of its stream.
pub(super) fn exported(encoding: &Encoding) -> Vec<(String, OtlpSpan)> {
    let mut all = Vec::new();
    for (name, hooks) in streams() {
        for span in fold(&hooks) {
            let read = |hook: u64| Some(&hooks.get(usize::try_from(hook).ok()? - 1)?.body);
            let bytes = encoding.bytes(&span, &mut |part| {
                content::extract(part.field, read(part.hook)?.as_slice())
            });
            let encoded = OtlpSpan::decode(&*bytes).unwrap();
            assert_eq!(encoded.encode_to_vec(), bytes, "{name}: as the generated types write it");
            all.push((name.clone(), encoded));
        }
    }
    all
}

fn text<'a>(span: &'a OtlpSpan, key: &str) -> Option<&'a str> {
    match value(span, key)? {
        Any::StringValue(text) => Some(text),
        _ => None,
    }
}

fn value<'a>(span: &'a OtlpSpan, key: &str) -> Option<&'a Any> {
    let found = span.attributes.iter().find(|pair| pair.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

/// Everything about a span that contradicts the schema.
fn faults(schema: &Json, span: &OtlpSpan) -> Vec<String> {
    let mut faults = Vec::new();
    let operation = text(span, "gen_ai.operation.name");
    if let Some(rules) = operation.map(|operation| &schema["spans"][operation])
        && rules.is_object()
    {
        let kind = match rules["kind"].as_str() {
            Some("client") => 3,
            _ => 1,
        };
        if span.kind != kind {
            faults.push(format!("kind {} of a {operation:?} span, not {kind}", span.kind));
        }
        for (key, level) in rules["attributes"].as_object().unwrap() {
            if level == "required" && value(span, key).is_none() {
                faults.push(format!("{key} is required"));
            }
        }
        let of = match operation {
            Some("chat") => "gen_ai.request.model",
            Some("invoke_agent") => "gen_ai.agent.name",
            _ => "gen_ai.tool.name",
        };
        let words = [operation, text(span, of)].into_iter().flatten().collect::<Vec<_>>();
        if span.name != words.join(" ") {
            faults.push(format!("name {:?}, not {:?}", span.name, words.join(" ")));
        }
    }
    let is_error = span.status.as_ref().is_some_and(|status| status.code == 2);
    if is_error != value(span, "error.type").is_some() {
        faults.push("error.type exactly on failed spans".to_owned());
    }
    for pair in &span.attributes {
        faults.extend(attribute_fault(
            schema,
            &pair.key,
            pair.value.as_ref().unwrap().value.as_ref(),
        ));
    }
    for side in ["input", "output"] {
        if let Some(text) = text(span, &format!("gen_ai.{side}.messages")) {
            let of = &schema[format!("{side}_messages")];
            let messages = serde_json::from_str(text).unwrap_or(Json::Null);
            faults.extend(mismatch(of, of, &messages, side));
        }
    }
    faults
}

/// If a name has a prefix of the conventions, it must be one of their current names, and have its type.
fn attribute_fault(schema: &Json, key: &str, value: Option<&Any>) -> Option<String> {
    const OURS: [&str; 3] = ["cursor.", "hookspan.", "openinference."];
    if OURS.iter().any(|own| key.starts_with(own)) {
        return None;
    }
    let rule = &schema["attributes"][key];
    let told = match value {
        Some(Any::StringValue(_)) => "string",
        Some(Any::IntValue(_)) => "int",
        Some(Any::DoubleValue(_)) => "double",
        Some(Any::BoolValue(_)) => "boolean",
        Some(Any::ArrayValue(_)) => "string[]",
        _ => "none",
    };
    match rule["type"].as_str() {
        None => Some(format!("{key} is not in the conventions")),
        _ if rule["deprecated"] == true => Some(format!("{key} is deprecated")),
        Some("any") => None,
        Some(wanted) if wanted != told => Some(format!("{key} is {told}, not {wanted}")),
        Some(_) => None,
    }
}

/// The parts of JSON Schema that the conventions' files use.
fn mismatch(root: &Json, schema: &Json, value: &Json, place: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/$defs/").unwrap();
        return mismatch(root, &root["$defs"][name], value, place);
    }
    for any in ["anyOf", "oneOf"] {
        if let Some(several) = schema[any].as_array() {
            let fits = |one| mismatch(root, one, value, place).is_none();
            return (!several.iter().any(fits)).then(|| format!("{place} fits nothing: {value}"));
        }
    }
    let is_type = match schema["type"].as_str() {
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("string") => value.is_string(),
        Some("null") => value.is_null(),
        _ => true,
    };
    let is_const = schema["const"].is_null() || schema["const"] == *value;
    let is_member = schema["enum"].as_array().is_none_or(|members| members.contains(value));
    if !is_type || !is_const || !is_member {
        return Some(format!("{place}: {value}"));
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
    if let Some(missing) = required.into_iter().find(|key| value.get(key).is_none()) {
        return Some(format!("{place} lacks {missing}"));
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut properties = properties.filter_map(|(key, of)| Some((key, of, value.get(key)?)));
    if let Some(fault) =
        properties.find_map(|(key, of, own)| mismatch(root, of, own, &format!("{place}.{key}")))
    {
        return Some(fault);
    }
    let items = value.as_array().into_iter().flatten();
    items.into_iter().find_map(|item| mismatch(root, &schema["items"], item, place))
}

#[test]
fn every_span_of_every_stream_is_as_the_conventions_say() {
    let schema = schema();
    for content in [ContentPolicy::Off, ContentPolicy::Metadata, ContentPolicy::Full] {
        let spans = exported(&encoding(Profile::Genai141Strict, content));
        assert!(spans.len() > 900, "{}", spans.len());
        let told: BTreeSet<String> = spans
            .iter()
            .flat_map(|(stream, span)| {
                let faults = faults(&schema, span).into_iter();
                faults.map(move |fault| format!("{stream}: {}: {fault}", span.name))
            })
            .collect();
        let shown: Vec<_> = told.iter().take(40).collect();
        assert!(told.is_empty(), "{content:?}: {} faults, such as {shown:#?}", told.len());
    }
}

/// Everything about a metric that contradicts the schema.
fn metric_faults(schema: &Json, metric: &Metric) -> Vec<String> {
    let rules = &schema["metrics"][&metric.name];
    let Some(Data::ExponentialHistogram(histogram)) = &metric.data else {
        let is_own = metric.name.starts_with("hookspan.");
        return if is_own { Vec::new() } else { vec!["is no histogram".to_owned()] };
    };
    let mut faults = Vec::new();
    for point in &histogram.data_points {
        let told: BTreeMap<&str, Option<&Any>> = point
            .attributes
            .iter()
            .map(|pair| (&*pair.key, pair.value.as_ref().unwrap().value.as_ref()))
            .collect();
        assert_eq!(told.len(), point.attributes.len(), "each attribute once");
        assert!(point.attributes.is_sorted_by(|a, b| a.key < b.key));
        faults.extend(told.iter().filter_map(|(key, value)| attribute_fault(schema, key, *value)));
        assert!(!point.exemplars.is_empty() && point.exemplars.len() <= 4);
        if metric.name.starts_with("hookspan.") {
            continue;
        }
        let of = rules["attributes"].as_object().expect(&metric.name);
        let required = of.iter().filter(|(_, level)| *level == "required");
        let missing = required.filter(|(key, _)| !told.contains_key(key.as_str()));
        faults.extend(missing.map(|(key, _)| format!("{key} is required")));
        faults.extend(
            told.keys()
                .filter(|key| !of.contains_key(**key))
                .map(|key| format!("{key} is foreign")),
        );
    }
    if !metric.name.starts_with("hookspan.") && metric.unit != rules["unit"] {
        faults.push(format!("unit {}", metric.unit));
    }
    faults
}

#[test]
fn every_metric_of_all_streams_is_as_the_conventions_say() {
    let schema = schema();
    let spans: Vec<Span> = streams().iter().flat_map(|(_, hooks)| fold(hooks)).collect();
    let mut names = BTreeSet::new();
    for content in [ContentPolicy::Off, ContentPolicy::Metadata, ContentPolicy::Full] {
        let encoding = encoding(Profile::Genai141Strict, content);
        let request = series::sample(&encoding, &spans);
        let scope = &request.resource_metrics[0].scope_metrics[0];
        for metric in &scope.metrics {
            let faults = metric_faults(&schema, metric);
            assert!(faults.is_empty(), "{content:?}: {}: {faults:#?}", metric.name);
            names.insert(metric.name.clone());
        }
        let all = format!("{request:?}");
        let is_named = all.contains("github") || all.contains("linear");
        assert!(content != ContentPolicy::Off || !is_named, "a server's name at off");
    }
    let expected = [
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
        "gen_ai.execute_tool.duration",
        "hookspan.cost.estimate",
        "hookspan.hook.duration",
        "hookspan.tool.wait",
        "hookspan.usage.cache_tokens",
        "mcp.client.operation.duration",
    ];
    assert_eq!(names, expected.map(str::to_owned).into());
    let page = std::fs::read_to_string(root().join("docs/attributes.md")).unwrap();
    for name in names {
        assert!(page.contains(&format!("| `{name}` |")), "docs/attributes.md lacks {name}");
    }
}

/// Sums of a histogram of `name` in seconds, by tool.
fn seconds(request: &ExportMetricsServiceRequest, name: &str) -> BTreeMap<String, f64> {
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    let found = metrics.iter().find(|metric| metric.name == name).unwrap();
    let Some(Data::ExponentialHistogram(all)) = &found.data else { panic!("{found:?}") };
    let tool = |point: &ExponentialHistogramDataPoint| {
        let pair = point.attributes.iter().find(|pair| pair.key == "gen_ai.tool.name").unwrap();
        match pair.value.as_ref().unwrap().value.as_ref().unwrap() {
            Any::StringValue(text) => text.clone(),
            other => panic!("{other:?}"),
        }
    };
    all.data_points.iter().map(|point| (tool(point), point.sum.unwrap())).collect()
}

#[test]
fn an_answer_of_a_person_is_waiting_and_no_length_of_a_tool() {
    let streams = streams();
    let (_, hooks) = streams.iter().find(|(name, _)| name == "question-to-a-person").unwrap();
    let encoding = encoding(Profile::Genai141Strict, ContentPolicy::Full);
    let request = series::sample(&encoding, &fold(hooks));
    let run = seconds(&request, "gen_ai.execute_tool.duration");
    assert_eq!(run.keys().collect::<Vec<_>>(), ["Read"], "{run:?}");
    let wait = seconds(&request, "hookspan.tool.wait");
    assert!((wait["AskQuestion"] - 240.0).abs() < 0.001, "{wait:?}");
    assert!(wait["Read"] < 0.1, "{wait:?}");
}

#[test]
fn the_check_finds_what_the_older_profile_does_otherwise() {
    let schema = schema();
    let spans = exported(&encoding(Profile::Genai141, ContentPolicy::Full));
    let told: BTreeSet<String> = spans.iter().flat_map(|(_, span)| faults(&schema, span)).collect();
    for fault in ["output lacks finish_reason", "kind 1 of a Some(\"chat\") span, not 3"] {
        assert!(told.contains(fault), "{fault}: {told:#?}");
    }
    assert!(told.iter().any(|fault| fault.starts_with("name \"execute_tool Shell ")), "{told:#?}");
}

#[test]
fn every_attribute_of_ours_is_in_the_written_schema() {
    let page = std::fs::read_to_string(root().join("docs/attributes.md")).unwrap();
    let encoding = Encoding {
        openinference: OpenInference::Full,
        ..encoding(Profile::Genai141Strict, ContentPolicy::Full)
    };
    let mut missing = BTreeSet::new();
    for (_, span) in exported(&encoding) {
        let events = span.events.iter().flat_map(|event| &event.attributes);
        for pair in span.attributes.iter().chain(events) {
            let of = match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
                Some(Any::StringValue(_)) => "string",
                Some(Any::IntValue(_)) => "int",
                Some(Any::DoubleValue(_)) => "double",
                Some(Any::BoolValue(_)) => "boolean",
                _ => "string[]",
            };
            let row = format!("| `{}` | {of} |", pair.key);
            let is_ours = ["cursor.", "hookspan."].iter().any(|own| pair.key.starts_with(own));
            if is_ours && !page.contains(&row) {
                missing.insert(row);
            }
        }
    }
    assert!(missing.is_empty(), "docs/attributes.md lacks {missing:#?}");
}
