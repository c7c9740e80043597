//! Checks where each hook of a generated session is visible. Over all spans, the sum must be the number of hooks,
//! without the hooks that repeat another one.

use std::collections::BTreeMap;

use hookspan_core::{Hook, Span, SpanKind, Timestamp, Value};

use crate::support::Store;

/// Number of hooks that the spans of a store show.
pub(crate) fn shown(store: &Store) -> usize {
    store.spans.values().map(of).sum()
}

/// Two equal hooks within this time may be one hook that was delivered twice.
const REPEAT_NS: i64 = 5_000_000_000;

/// Number of hooks that may be copies of an earlier hook: they have the same content, except for the spelling of the
/// roots.
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
        let said = serde_json::Value::Object(body).to_string();
        let before = last.insert(said, hook.observed_at);
        let is_copy = before.is_some_and(|at| hook.observed_at.since(at) <= REPEAT_NS);
        copies += usize::from(is_copy);
    }
    copies
}

fn of(span: &Span) -> usize {
    let has = |key: &str| usize::from(span.attributes.iter().any(|one| one.key == key));
    match span.kind {
        SpanKind::Tool => hooks(span),
        SpanKind::Thought | SpanKind::Response | SpanKind::Compaction => 1,
        // Only the start hook says whether the subagent runs in parallel, and only the stop hook has a status.
        SpanKind::Subagent => has("cursor.subagent.parallel") + has("cursor.subagent.status"),
        // The prompt and unknown hooks are events.
        SpanKind::Generation => span.events.len() + has("cursor.status"),
        _ => span.events.len() + has("cursor.is_background_agent") + has("cursor.session.reason"),
    }
}

fn hooks(span: &Span) -> usize {
    let list = span.attributes.iter().find(|one| one.key == "hookspan.hooks");
    match list.map(|one| &one.value) {
        Some(Value::StrList(names)) => names.len(),
        _ => 0,
    }
}
