//! Tests that the description of the API is complete and that every answer fits it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::support::client::World;

fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(include_str!("../openapi.json")).unwrap());
    &DOCUMENT
}

#[test]
fn the_committed_description_is_the_one_that_the_handlers_give() {
    let generated = hookspan_dashboard::document();
    assert!(
        generated == include_str!("../openapi.json"),
        "dashboard/openapi.json is out of date: cargo run -p hookspan-dashboard --example openapi"
    );
}

#[test]
fn every_segment_and_every_answer_has_words() {
    for (path, methods) in document()["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            assert_ne!(operation["summary"], "", "{path}");
            for parameter in operation["parameters"].as_array().unwrap() {
                let in_path = parameter["in"] == "path";
                assert!(
                    !in_path || parameter["description"] != "",
                    "{path}: {}",
                    parameter["name"]
                );
            }
        }
    }
}

/// The name of a parameter as `GET /api/v1` lists it: without its values and explanations.
fn name(listed: &str) -> &str {
    listed.split(['=', ' ']).next().unwrap()
}

#[tokio::test]
async fn every_endpoint_is_described_with_every_parameter() {
    let document = document();
    let index = World::locked().get("/api/v1").await.json();
    let mut described = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            described.insert((method.to_uppercase(), path.clone()));
        }
    }
    let mut listed = BTreeSet::new();
    for endpoint in index["items"].as_array().unwrap() {
        let (method, url) =
            (endpoint["method"].as_str().unwrap(), endpoint["url"].as_str().unwrap());
        listed.insert((method.to_owned(), url.to_owned()));
        let operation = &document["paths"][url][method.to_lowercase()];
        let body = &operation["requestBody"]["content"]["application/json"]["schema"]["properties"];
        let parameters = operation["parameters"].as_array().unwrap();
        for parameter in endpoint["parameters"].as_array().unwrap() {
            let name = name(parameter.as_str().unwrap());
            let in_query = parameters.iter().any(|one| one["name"] == name && one["in"] == "query");
            assert!(in_query || body.get(name).is_some(), "{method} {url}: {name}");
        }
        for segment in url.split('/').filter_map(|part| part.strip_prefix('{')) {
            let name = segment.trim_end_matches('}');
            let in_path = parameters.iter().any(|one| one["name"] == name && one["in"] == "path");
            assert!(in_path, "{url}: {name}");
        }
        assert!(operation["responses"]["default"].is_object(), "{method} {url}");
    }
    assert_eq!(described, listed);
}

#[tokio::test]
async fn every_answer_is_as_described() {
    let document = document();
    let world = World::locked();
    let agents = world.get("/api/v1/spans?kind=subagent&limit=1").await.json();
    let agent = &agents["items"][0];
    let focused = format!(
        "/api/v1/sessions/{}/spans?focus={}",
        agent["session"].as_str().unwrap(),
        agent["id"].as_str().unwrap()
    );
    let edits = world.get("/api/v1/spans?kind=edits&limit=1").await.json();
    let diff = format!("/api/v1/spans/{}/diff", edits["items"][0]["id"].as_str().unwrap());
    let detail = world.get("/api/v1/spans/5").await.json();
    let trace = format!("/api/v1/traces/{}", detail["trace_id"].as_str().unwrap());
    let session = "/api/v1/sessions/{session}";
    for (path, target) in [
        ("/api/v1", "/api/v1"),
        ("/api/v1/overview", "/api/v1/overview"),
        ("/api/v1/sessions", "/api/v1/sessions?limit=500"),
        (session, "/api/v1/sessions/0176a3f0-live"),
        (session, "/api/v1/sessions/0176a3f0-hostile"),
        ("/api/v1/sessions/{session}/turns", "/api/v1/sessions/0176a3f0-live/turns"),
        ("/api/v1/sessions/{session}/spans", "/api/v1/sessions/0176a3f0-flaky/spans"),
        ("/api/v1/sessions/{session}/spans", "/api/v1/sessions/0176a3f0-flaky/spans?since=0"),
        ("/api/v1/sessions/{session}/spans", "/api/v1/sessions/0176a3f0-flaky/spans?format=rows"),
        ("/api/v1/sessions/{session}/spans", &focused),
        (
            "/api/v1/sessions/{session}/steps",
            "/api/v1/sessions/0176a3f0-flaky/steps?rows=2,3,4,5,6,7,8,9,10,11,12",
        ),
        ("/api/v1/sessions/{session}/edits", "/api/v1/sessions/0176a3f0-flaky/edits"),
        ("/api/v1/sessions/{session}/lints", "/api/v1/sessions/0176a3f0-flaky/lints"),
        (
            "/api/v1/sessions/{session}/critical-path",
            "/api/v1/sessions/0176a3f0-flaky/critical-path",
        ),
        ("/api/v1/compare", "/api/v1/compare?a=0176a3f0-flaky&b=0176a3f0-live:7"),
        ("/api/v1/spans", "/api/v1/spans?limit=500"),
        ("/api/v1/spans/{span}", "/api/v1/spans/2"),
        ("/api/v1/spans/{span}", "/api/v1/spans/5"),
        ("/api/v1/spans/{span}/payload/{part}", "/api/v1/spans/2/payload/prompt"),
        ("/api/v1/spans/{span}/diff", &diff),
        ("/api/v1/traces/{trace}", &trace),
        ("/api/v1/errors", "/api/v1/errors"),
        ("/api/v1/latency", "/api/v1/latency"),
        ("/api/v1/latency/heatmap", "/api/v1/latency/heatmap"),
        ("/api/v1/latency", "/api/v1/latency?from_us=1&to_us=86400000000"),
        ("/api/v1/time", "/api/v1/time"),
        ("/api/v1/time", "/api/v1/time?days=365&project=api"),
        ("/api/v1/search", "/api/v1/search?q=cargo"),
        ("/api/v1/search", "/api/v1/search"),
        ("/api/v1/audit", "/api/v1/audit"),
        ("/api/v1/privacy", "/api/v1/privacy"),
        ("/api/v1/access", "/api/v1/access"),
        ("/api/v1/install", "/api/v1/install"),
        ("/api/v1/health", "/api/v1/health"),
    ] {
        let answer = world.get(target).await;
        assert_eq!(answer.status.as_u16(), 200, "{target}");
        let content = &document["paths"][path]["get"]["responses"]["200"]["content"];
        let schema = &content["application/json"]["schema"];
        assert!(schema.is_object(), "{path} has no schema");
        if let Err(wrong) = fits(schema, &answer.json(), "answer") {
            panic!("{target}: {wrong}");
        }
    }
    let problem = world.get("/api/v1/sessions?limit=0").await.json();
    fits(&document["components"]["schemas"]["Problem"], &problem, "problem").unwrap();
}

#[tokio::test]
async fn what_is_posted_is_answered_as_described() {
    let document = document();
    let world = World::locked();
    for (path, target, body) in [
        ("/api/v1/login/codes", "/api/v1/login/codes", json!({})),
        ("/api/v1/logout", "/api/v1/logout", json!({})),
        (
            "/api/v1/sessions/{session}/delete",
            "/api/v1/sessions/0176a3f0-flaky/delete",
            json!({ "confirm": "0176a3f0-flaky" }),
        ),
        (
            "/api/v1/privacy/purge",
            "/api/v1/privacy/purge",
            json!({ "before_us": 1_795_000_000_000_000_i64, "dry_run": true }),
        ),
        ("/api/v1/privacy/purge", "/api/v1/privacy/purge", json!({ "project": "api" })),
        ("/api/v1/exporters/{name}/retry", "/api/v1/exporters/datadog/retry", json!({})),
    ] {
        let operation = &document["paths"][path]["post"];
        let asked = &operation["requestBody"]["content"]["application/json"]["schema"];
        if let Err(wrong) = fits(asked, &body, "body") {
            panic!("{target}: {wrong}");
        }
        let answer = world.post(target, &body).await;
        assert_eq!(answer.status.as_u16(), 200, "{target}");
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{path} has no schema");
        if let Err(wrong) = fits(schema, &answer.json(), "answer") {
            panic!("{target}: {wrong}");
        }
        let refused = world.post(target, &json!([])).await;
        if refused.status.as_u16() != 200 {
            fits(&document["components"]["schemas"]["Problem"], &refused.json(), "problem")
                .unwrap();
        }
    }
}

#[tokio::test]
async fn files_and_the_stream_have_the_described_types() {
    let document = document();
    let world = World::locked();
    let path = "/api/v1/sessions/{session}/export";
    let described = document["paths"][path]["get"]["responses"]["200"]["content"].as_object();
    let described: BTreeSet<&str> = described.unwrap().keys().map(String::as_str).collect();
    let mut served = BTreeSet::new();
    for format in ["html", "jsonl", "otlp-json", "otlp-proto", "chrome-trace"] {
        let target = format!("/api/v1/sessions/0176a3f0-flaky/export?format={format}");
        let answer = world.get(&target).await;
        let kind = answer.header("content-type").split(';').next().unwrap().to_owned();
        assert!(described.contains(&*kind), "{format}: {kind}");
        served.insert(kind);
    }
    assert_eq!(served.iter().map(String::as_str).collect::<BTreeSet<_>>(), described);
    // The stream never ends. Its headers tell its type, and its description lists every event.
    let stream = &document["paths"]["/api/v1/stream"]["get"]["responses"]["200"];
    assert!(stream["content"]["text/event-stream"].is_object());
    for event in ["hello", "session", "spans", "health", "resync"] {
        let text = stream["description"].as_str().unwrap();
        assert!(text.contains(&format!("`{event}`")), "{event} is not described");
    }
}

#[tokio::test]
async fn the_description_is_served_as_it_is() {
    let answer = World::locked().get("/api/v1/openapi.json").await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json(), *document());
}

/// Checks as much of JSON Schema as the description uses. The description was made from the types, so this tests
/// whether serde and schemars read the same declarations in the same way.
fn fits(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let named = document().pointer(name.trim_start_matches('#'));
        return fits(named.unwrap(), value, at);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let wrong: Vec<String> =
            choices.iter().filter_map(|one| fits(one, value, at).err()).collect();
        return if wrong.len() < choices.len() { Ok(()) } else { Err(wrong.join(" / ")) };
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
        _ => return Ok(()),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !(kinds.contains(&kind) || kind == "integer" && kinds.contains(&"number")) {
        return Err(format!("{at} is {kind}, not {kinds:?}"));
    }
    match value {
        Value::Array(items) => items.iter().enumerate().try_for_each(|(n, item)| {
            let place = schema["prefixItems"].get(n).unwrap_or(&schema["items"]);
            fits(place, item, &format!("{at}[{n}]"))
        }),
        Value::Object(fields) => {
            for required in schema["required"].as_array().into_iter().flatten() {
                let name = required.as_str().unwrap();
                if !fields.contains_key(name) {
                    return Err(format!("{at}.{name} is missing"));
                }
            }
            let others = &schema["additionalProperties"];
            for (name, field) in fields {
                match schema["properties"].get(name) {
                    Some(schema) => fits(schema, field, &format!("{at}.{name}"))?,
                    None if *others == true => {}
                    None if others.is_object() => fits(others, field, &format!("{at}.{name}"))?,
                    None => return Err(format!("{at}.{name} is not described")),
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
