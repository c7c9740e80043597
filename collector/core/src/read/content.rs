//! Reads content out of a raw hook on demand.

use serde_json::value::RawValue;

use crate::model::content::{Content, Field};
use crate::read::payload::{Fields, Raw, decode, text};
use crate::read::repair::repair;

/// Reads `field` from the raw bytes of a hook. `None` if the body lacks the field or cannot be read.
#[must_use]
pub fn extract(field: Field, body: &[u8]) -> Option<Content> {
    let body = decode(body);
    if let Some(fields) = Fields::parse(&body) {
        return of(field, &fields);
    }
    of(field, &Fields::parse(&repair(&body)?)?)
}

/// Reads `field` from a body that has been cut into its fields.
pub(crate) fn of(field: Field, envelope: &Fields<'_>) -> Option<Content> {
    let mut store = String::new();
    let tool_info = envelope.object("tool_info", &mut store);
    let fields = tool_info.as_ref().unwrap_or(envelope);
    match field {
        Field::Prompt => message(fields.first(&["prompt", "user_prompt"])?, "user", "text"),
        Field::Response => message(fields.first(&["text", "response"])?, "assistant", "text"),
        Field::Thought => message(fields.raw("text")?, "assistant", "reasoning"),
        Field::Task => message(fields.first(&["task", "prompt"])?, "user", "text"),
        Field::Summary => {
            let names = ["summary", "result", "last_assistant_message"];
            message(fields.first(&names)?, "assistant", "text")
        }
        Field::ToolInput => tool_input(fields),
        Field::ToolOutput => {
            let names = [
                "tool_output",
                "tool_response",
                "tool_result",
                "result_json",
                "output",
                "result",
                "error_message",
                "error",
            ];
            fields.first(&names).map(unwrapped)
        }
        Field::Description => plain(fields.raw("description")?),
        Field::McpCommand => plain(fields.raw("command")?),
        Field::ErrorMessage => plain(fields.first(&["error_message", "error"])?),
    }
}

/// The input as JSON: as the generic hook sends it, or an object made from the specific event's own fields.
fn tool_input(fields: &Fields<'_>) -> Option<Content> {
    if let Some(input) = fields.first(&["tool_input", "params", "tool_args"]) {
        return Some(unwrapped(input));
    }
    let own = ["command", "cwd", "file_path", "file", "edits"];
    let own: Vec<String> = own
        .into_iter()
        .filter_map(|name| fields.raw(name).map(|value| format!("\"{name}\":{}", value.get())))
        .collect();
    (!own.is_empty()).then(|| Content { text: format!("{{{}}}", own.join(",")), json: true })
}

/// A value as it is. If it is JSON inside a string, the JSON.
fn unwrapped(raw: Raw<'_>) -> Content {
    let Some(inner) = text(raw) else {
        return Content { text: raw.get().to_owned(), json: true };
    };
    let json = inner.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<&RawValue>(&inner).is_ok();
    Content { text: inner.into_owned(), json }
}

fn plain(raw: Raw<'_>) -> Option<Content> {
    text(raw).map(|text| Content { text: text.into_owned(), json: false })
}

/// `[{"role", "parts": [{"type", "content"}]}]`, the form of the GenAI conventions.
fn message(raw: Raw<'_>, role: &str, kind: &str) -> Option<Content> {
    let content = text(raw)?;
    let parts = serde_json::json!([{"type": kind, "content": content}]);
    let text = serde_json::json!([{"role": role, "parts": parts}]).to_string();
    Some(Content { text, json: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(field: Field, body: &str, expected: Option<(&str, bool)>) {
        let expected = expected.map(|(text, json)| Content { text: text.to_owned(), json });
        assert_eq!(extract(field, body.as_bytes()), expected);
    }

    #[test]
    fn a_prompt_is_a_user_message() {
        let message = r#"[{"parts":[{"content":"a \"b\"","type":"text"}],"role":"user"}]"#;
        check(Field::Prompt, r#"{"prompt":"a \"b\""}"#, Some((message, true)));
        check(Field::Prompt, r#"{"text":"a"}"#, None);
    }

    #[test]
    fn json_inside_a_string_is_taken_out_of_it() {
        check(Field::ToolOutput, r#"{"tool_output":"{\"a\":1}"}"#, Some((r#"{"a":1}"#, true)));
        check(Field::ToolOutput, r#"{"tool_output":{"a":1}}"#, Some((r#"{"a":1}"#, true)));
        check(Field::ToolOutput, r##"{"tool_output":"# no"}"##, Some(("# no", false)));
        check(Field::ToolOutput, r#"{"error_message":"gone"}"#, Some(("gone", false)));
    }

    #[test]
    fn a_specific_event_gives_its_own_fields_as_input() {
        let body = r#"{"command":"ls","cwd":"/x","output":"y"}"#;
        check(Field::ToolInput, body, Some((r#"{"command":"ls","cwd":"/x"}"#, true)));
    }
}
