//! Checks where each hook of a generated session is visible. The number of hooks shown by all spans together must be
//! the number of hooks sent. Hooks that repeat another hook do not count.

use std::collections::BTreeMap;

use hookspan_core::{Attribute, Hook, Span, SpanEvent, SpanKind, Timestamp, Value};

use crate::support::Store;

/// Number of hooks that the spans of a store show, by event name.
pub(crate) fn shown(store: &Store) -> BTreeMap<String, usize> {
    let mut shown = BTreeMap::new();
    for name in store.spans.values().flat_map(of) {
        *shown.entry(name).or_default() += 1;
    }
    shown
}

/// Number of hooks that were sent, by event name.
pub(crate) fn sent(hooks: &[Hook]) -> BTreeMap<String, usize> {
    let mut sent = BTreeMap::new();
    for hook in hooks {
        let body = String::from_utf8_lossy(&hook.body);
        // A body may be cut, so it is not parsed.
        let name = body.split_once("\"hook_event_name\":\"").map_or("", |(_, rest)| rest);
        let name = name.split('"').next().unwrap_or_default();
        *sent.entry(name.to_owned()).or_default() += 1;
    }
    sent
}

/// Two equal hooks within this time may be one hook that was delivered twice.
const REPEAT_NS: i64 = 5_000_000_000;

/// Number of hooks that may be copies of an earlier hook: they have the same content, except for the spelling of
/// roots and files.
pub(crate) fn copies(hooks: &[Hook]) -> usize {
    let mut last: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut sorted: Vec<&Hook> = hooks.iter().collect();
    sorted.sort_by_key(|hook| hook.observed_at);
    let mut copies = 0;
    for hook in sorted {
        let Ok(serde_json::Value::Object(mut body)) = serde_json::from_slice(&hook.body) else {
            continue;
        };
        body.remove("workspace_roots");
        if let Some(serde_json::Value::String(path)) = body.get_mut("file_path") {
            *path = path.trim_start_matches("file://").to_owned();
        }
        let said = serde_json::Value::Object(body).to_string();
        let before = last.insert(said, hook.observed_at);
        let is_copy = before.is_some_and(|at| hook.observed_at.since(at) <= REPEAT_NS);
        copies += usize::from(is_copy);
    }
    copies
}

/// The events of the hooks that a span shows.
fn of(span: &Span) -> Vec<String> {
    let has = |key: &str| span.attributes.iter().any(|one| one.key == key);
    let if_has = |key: &str, name: &str| has(key).then(|| name.to_owned());
    let told = |name: &str| vec![name.to_owned()];
    let events = || {
        let name = |event: &SpanEvent| match &*event.name {
            "cursor.prompt.submit" => "beforeSubmitPrompt".to_owned(),
            _ => text(&event.attributes, "cursor.hook.name").unwrap_or_default(),
        };
        span.events.iter().map(name)
    };
    match span.kind {
        SpanKind::Tool => hooks(span),
        SpanKind::Thought => told("afterAgentThought"),
        SpanKind::Response => told("afterAgentResponse"),
        SpanKind::Compaction => told("preCompact"),
        // Only the start hook says whether the subagent runs in parallel, and only the stop hook has a status.
        SpanKind::Subagent => {
            let start = if_has("cursor.subagent.parallel", "subagentStart");
            start.into_iter().chain(if_has("cursor.subagent.status", "subagentStop")).collect()
        }
        // The prompt and unknown hooks are events.
        SpanKind::Generation => events().chain(if_has("cursor.status", "stop")).collect(),
        _ => {
            let start = if_has("cursor.is_background_agent", "sessionStart");
            events().chain(start).chain(if_has("cursor.session.reason", "sessionEnd")).collect()
        }
    }
}

fn text(attributes: &[Attribute], key: &str) -> Option<String> {
    attributes.iter().find(|one| one.key == key).map(|one| match &one.value {
        Value::Str(text) => text.to_string(),
        other => format!("{other:?}"),
    })
}

fn hooks(span: &Span) -> Vec<String> {
    let list = span.attributes.iter().find(|one| one.key == "hookspan.hooks");
    match list.map(|one| &one.value) {
        Some(Value::StrList(names)) => names.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}
