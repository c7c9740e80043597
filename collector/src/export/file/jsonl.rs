//! The raw log, one hook per line. `hookspan import` can read it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use hookspan_core::Hook;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{FileError, Selection};
use crate::config::destination::ContentPolicy;
use crate::export::otlp::Encoding;
use crate::export::path_text::KEYS as PATHS;
use crate::export::private_names;
use crate::export::value::base_name;
use crate::store::whole;

/// Fields that contain names, or words from closed lists. They tell what happened, and contain no text that a person or
/// a model wrote.
const PLAIN: [&str; 26] = [
    "hook_event_name",
    "conversation_id",
    "session_id",
    "generation_id",
    "parent_conversation_id",
    "parent_generation_id",
    "tool_use_id",
    "tool_call_id",
    "parent_tool_call_id",
    "subagent_id",
    "subagent_type",
    "model",
    "model_id",
    "model_name",
    "subagent_model",
    "cursor_version",
    "composer_mode",
    "status",
    "final_status",
    "reason",
    "failure_type",
    "trigger",
    "tool_name",
    "type",
    "permission",
    "attachment_type",
];

pub(super) fn write(
    selection: &Selection<'_>,
    out: &mut dyn Write,
    done: &mut dyn FnMut(),
) -> Result<(), FileError> {
    if selection.all {
        return whole::hooks_of(selection.db, None, |hook| line(&hook, selection.encoding, out));
    }
    for session in selection.sessions {
        whole::hooks_of(selection.db, Some(&session.root), |hook| {
            line(&hook, selection.encoding, out)
        })?;
        done();
    }
    Ok(())
}

#[derive(Serialize)]
struct Line<'a> {
    observed_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<Cow<'a, str>>,
    event: Body<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'a> {
    Object(&'a RawValue),
    Text(String),
    Reduced(Value),
}

fn line(hook: &Hook, encoding: &Encoding, out: &mut dyn Write) -> Result<(), FileError> {
    let policy = encoding.content;
    let text = String::from_utf8_lossy(&hook.body);
    let mut event = match policy {
        ContentPolicy::Full => verbatim(&text),
        ContentPolicy::Metadata | ContentPolicy::Off => reduced(&text, policy),
    };
    let mut argument = hook.argument.as_deref().map(Cow::Borrowed);
    // At `full`, the file is the raw log, byte for byte.
    if policy != ContentPolicy::Full
        && let Some(redaction) = &encoding.redaction
    {
        if let Body::Reduced(value) = &mut event {
            redaction.json(value);
        }
        argument = argument.map(|text| Cow::Owned(redaction.text(&text).into_owned()));
    }
    if policy == ContentPolicy::Off {
        argument = argument.map(|text| Cow::Owned(private_names::word(&text).into_owned()));
    }
    let since = Duration::from_nanos(u64::try_from(hook.observed_at.0).unwrap_or(0));
    let observed_at = humantime::format_rfc3339_nanos(UNIX_EPOCH + since).to_string();
    let line = Line { observed_at, argument, event };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// An object exactly as received. A body that cannot be stored as an object without changes (damage, line breaks, space
/// around it) becomes a string.
fn verbatim(text: &str) -> Body<'_> {
    let is_plain = text.starts_with('{') && text.ends_with('}') && !text.contains(['\n', '\r']);
    match serde_json::from_str::<&RawValue>(text) {
        Ok(object) if is_plain => Body::Object(object),
        _ => Body::Text(text.to_owned()),
    }
}

/// The object without text that a person or a model wrote. Each such text is replaced by its length. Numbers, booleans
/// and unknown keys stay.
fn reduced(text: &str, policy: ContentPolicy) -> Body<'static> {
    let text = text.trim_start_matches('\u{feff}');
    // Each key is handled separately. So a number that no double can represent, or very deep nesting, affects only one
    // value and not the whole object.
    let Ok(mut map) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else {
        return Body::Text(size(text));
    };
    let event = map.get("hook_event_name").map_or("", |raw| raw.get());
    if policy == ContentPolicy::Off && is_mcp(event) {
        map.remove("tool_name");
    }
    let reduced = map.into_iter().map(|(key, raw)| {
        let value = match serde_json::from_str(raw.get()) {
            Ok(value) => reduce(&key, value, policy),
            Err(_) => Value::String(size(raw.get())),
        };
        (key, value)
    });
    Body::Reduced(Value::Object(reduced.collect()))
}

fn size(text: &str) -> String {
    format!("[{} bytes]", text.len())
}

fn is_mcp(event: &str) -> bool {
    event.to_ascii_lowercase().contains("mcp")
}

fn reduce(key: &str, value: Value, policy: ContentPolicy) -> Value {
    match value {
        Value::String(text) if PLAIN.contains(&key) && !is_detail(key, &text, policy) => {
            Value::String(match policy {
                ContentPolicy::Off => private_names::field(key, &text).into_owned(),
                ContentPolicy::Metadata | ContentPolicy::Full => text,
            })
        }
        Value::String(text) if PATHS.contains(&key) && policy == ContentPolicy::Metadata => {
            Value::String(base_name(&text).to_owned())
        }
        Value::String(text) => Value::String(size(&text)),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| reduce(key, item, policy)).collect())
        }
        // The keys inside an input are chosen by the tool and may be any text. So only known words stay.
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(key, value)| {
                    let value = reduce(&key, value, policy);
                    let key = match policy {
                        ContentPolicy::Off => private_names::parameter(&key).into_owned(),
                        ContentPolicy::Metadata | ContentPolicy::Full => key,
                    };
                    (key, value)
                })
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Generic hooks name an MCP tool `MCP:name`. At `off`, that name is removed.
fn is_detail(key: &str, text: &str, policy: ContentPolicy) -> bool {
    policy == ContentPolicy::Off
        && key == "tool_name"
        && text.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("mcp:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_hashes_names_of_tools_and_subagents() {
        let event = |policy, text: &str| match reduced(text, policy) {
            Body::Reduced(value) => value.to_string(),
            Body::Object(_) | Body::Text(_) => String::new(),
        };
        for name in ["acme_deploy", "mcp__acme__pay", "MCP:acme_pay"] {
            let call = format!(
                r#"{{"hook_event_name":"preToolUse","tool_name":"{name}","subagent_type":"acme-x"}}"#
            );
            let off = event(ContentPolicy::Off, &call);
            assert!(!off.contains("acme") && off.contains("custom-"), "{off}");
            assert!(event(ContentPolicy::Metadata, &call).contains(name));
        }
        let known =
            r#"{"hook_event_name":"preToolUse","tool_name":"Shell","subagent_type":"explore"}"#;
        let off = event(ContentPolicy::Off, known);
        assert!(off.contains("Shell") && off.contains("explore"), "{off}");
    }
}
