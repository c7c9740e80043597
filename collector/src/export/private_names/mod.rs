//! Replaces names at `content = "off"`. Names that ship with the editors stay. Every other name becomes a short hash.
//!
//! The hash has no key, so a name gives the same hash on every machine of a team and in every run. Somebody who guesses
//! a name can therefore check the guess.

mod lists;

use std::borrow::Cow;

use hookspan_core::SpanKind;
use sha2::{Digest as _, Sha256};

use lists::{AGENTS, EXTENSIONS, MODEL_WORDS, PARAMETERS, TOOLS, WORDS};

/// The name, if it belongs to a tool of the editors.
pub(crate) fn known_tool(name: &str) -> Option<&str> {
    TOOLS.binary_search(&name).is_ok().then_some(name)
}

/// A tool's name.
pub(super) fn tool(name: &str) -> Cow<'_, str> {
    known_or_hash(&TOOLS, name)
}

/// A type of subagent.
pub(super) fn agent(name: &str) -> Cow<'_, str> {
    known_or_hash(&AGENTS, name)
}

/// A word of one of Cursor's closed lists, or the name of a hook.
pub(super) fn word(text: &str) -> Cow<'_, str> {
    known_or_hash(&WORDS, text)
}

/// The name of a parameter inside a tool's input or output.
pub(super) fn parameter(name: &str) -> Cow<'_, str> {
    known_or_hash(&PARAMETERS, name)
}

/// The label of a model. A label is known if it consists of known words and versions.
pub(super) fn model(label: &str) -> Cow<'_, str> {
    let mut parts =
        label.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let is_word = |part: &str| MODEL_WORDS.binary_search(&&*part.to_ascii_lowercase()).is_ok();
    let is_ascii = label.len() <= 64 && label.is_ascii();
    if is_ascii
        && label.contains(char::is_alphanumeric)
        && parts.all(|part| is_word(part) || is_version(part))
    {
        return Cow::Borrowed(label);
    }
    hash(label)
}

/// A version of Cursor: digits and dots, optionally followed by a date or a short build (`2026.01.15-a1b2c3d`).
pub(super) fn version(text: &str) -> Cow<'_, str> {
    let (numbers, build) = text.split_once('-').unwrap_or((text, ""));
    let is_plain = (1..=24).contains(&numbers.len())
        && numbers.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && build.len() <= 12
        && build.bytes().all(|b| b.is_ascii_hexdigit());
    if is_plain || text == "unknown" { Cow::Borrowed(text) } else { hash(text) }
}

/// The text of the attribute `key` in the form that may leave the machine; `None` if it stays as it is.
///
/// Ids and hookspan's own words stay. The text of any other key is sent only if it is a known word of Cursor, and
/// otherwise as a hash. So a new attribute reveals too little rather than too much.
pub(super) fn attribute<'a>(key: &str, text: &'a str) -> Option<Cow<'a, str>> {
    Some(match key {
        "cursor.model.params" => return None,
        "gen_ai.tool.name" => tool(text),
        "gen_ai.agent.name" | "cursor.subagent.type" => agent(text),
        "file.extension" => known_or_hash(&EXTENSIONS, text),
        "cursor.version" | "service.version" => version(text),
        _ if key.ends_with("model") => model(text),
        _ if key.ends_with(".id") || is_own(key) => Cow::Borrowed(text),
        _ => word(text),
    })
}

/// The text of a payload's field in the form that may leave the machine. For fields that contain a name, an id or a
/// word.
pub(super) fn field<'a>(key: &str, text: &'a str) -> Cow<'a, str> {
    match key {
        "tool_name" => tool(text),
        "subagent_type" => agent(text),
        "model" | "model_id" | "model_name" | "subagent_model" => model(text),
        "cursor_version" => version(text),
        _ if key.ends_with("_id") => Cow::Borrowed(text),
        _ => word(text),
    }
}

/// Whether hookspan chose the words under this key.
fn is_own(key: &str) -> bool {
    const KEYS: [&str; 9] = [
        "cursor.permission.decision",
        "error.type",
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.response.finish_reasons",
        "gen_ai.tool.type",
        "mcp.method.name",
        "network.transport",
        "openinference.span.kind",
    ];
    key.starts_with("hookspan.") || KEYS.contains(&key)
}

/// The name of a span, from its plain name and the type of subagent that it starts.
pub(super) fn span(kind: SpanKind, plain: &str, started: Option<&str>) -> String {
    match (kind, plain.split_once(' ')) {
        (SpanKind::Tool, Some((what, name))) => {
            let ending = started.map(|agent| format!(" {agent}")).unwrap_or_default();
            match name.strip_suffix(&*ending).filter(|_| !ending.is_empty()) {
                Some(name) => format!("{what} {} {}", tool(name), agent(ending.trim_start())),
                None => format!("{what} {}", tool(name)),
            }
        }
        (SpanKind::Generation | SpanKind::Subagent, Some((what, name))) => {
            format!("{what} {}", agent(name))
        }
        (SpanKind::Response, Some((what, name))) => format!("{what} {}", model(name)),
        _ => plain.to_owned(),
    }
}

/// `4`, `4o`, `1m`, `20250929`, `o3`, `v3`, `70b`, `8x7b`.
fn is_version(part: &str) -> bool {
    let (head, tail) = part.split_at(part.len().min(1));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let sized = part.strip_suffix(|c: char| c.is_ascii_alphabetic()).unwrap_or(part);
    let by = sized.split_once('x').is_some_and(|(a, b)| digits(a) && digits(b));
    part.len() <= 8
        && (digits(sized) || by || (head.bytes().all(|b| b.is_ascii_alphabetic()) && digits(tail)))
}

fn known_or_hash<'a>(known: &[&str], name: &'a str) -> Cow<'a, str> {
    // The lists are sorted; a test checks that.
    if known.binary_search(&name).is_ok() { Cow::Borrowed(name) } else { hash(name) }
}

fn hash(name: &str) -> Cow<'_, str> {
    // An empty text is no name. Its hash would look like one.
    if name.is_empty() {
        return Cow::Borrowed(name);
    }
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest.iter().take(3).map(|b| format!("{b:02x}")).collect();
    Cow::Owned(format!("custom-{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_or_a_hash() {
        for list in [&TOOLS[..], &AGENTS, &EXTENSIONS, &MODEL_WORDS, &PARAMETERS, &WORDS] {
            assert!(list.is_sorted());
        }
        assert_eq!(tool("Shell"), "Shell");
        assert_eq!(agent("explore"), "explore");
        assert_eq!(attribute("file.extension", "rs").as_deref(), Some("rs"));
        let custom = tool("pay_acme_invoice");
        assert!(custom.len() == 13 && custom.starts_with("custom-"), "{custom}");
        assert_eq!(custom, tool("pay_acme_invoice"));
        assert_ne!(custom, tool("pay_other_invoice"));
        assert_eq!((field("model", ""), field("status", "")), ("".into(), "".into()));
        assert_eq!(attribute("hookspan.kind", "tool").as_deref(), Some("tool"));
        assert_eq!(attribute("cursor.model.params", "{\"acme\":1}"), None);
    }

    #[test]
    fn the_name_of_a_span_has_no_custom_part() {
        let cases = [
            (SpanKind::Tool, "execute_tool Shell", None, "execute_tool Shell"),
            (SpanKind::Tool, "execute_tool mcp", None, "execute_tool mcp"),
            (
                SpanKind::Tool,
                "execute_tool Task explore",
                Some("explore"),
                "execute_tool Task explore",
            ),
            (SpanKind::Generation, "invoke_agent cursor", None, "invoke_agent cursor"),
            (SpanKind::Session, "cursor.session", None, "cursor.session"),
        ];
        for (kind, plain, agent, expected) in cases {
            assert_eq!(span(kind, plain, agent), expected);
        }
        for (kind, plain, agent) in [
            (SpanKind::Tool, "execute_tool acme deploy", None),
            (SpanKind::Tool, "execute_tool Task acme reviewer", Some("acme reviewer")),
            (SpanKind::Subagent, "invoke_agent acme reviewer", None),
        ] {
            let name = span(kind, plain, agent);
            assert!(!name.contains("acme") && name.contains("custom-"), "{name}");
        }
    }

    #[test]
    fn models_are_known_by_their_words() {
        for known in [
            "gpt-5.5-medium",
            "claude-opus-4-8[1m]",
            "composer-2.5-fast",
            "default",
            "o3",
            "gpt-4o-mini",
            "anthropic/claude-sonnet-4-5@20250929",
            "us.anthropic.claude-sonnet-4-20250514-v1:0",
            "deepseek-r1-distill-qwen-32b",
            "mixtral-8x7b",
            "Kimi K2",
        ] {
            assert_eq!(model(known), known);
        }
        for custom in [
            "acme-llama-3",
            "gpt-4-ACME",
            "ft:gpt-4o-mini:acme::9x",
            "accounts/acme/models/qwen",
            "клод",
            "--",
        ] {
            assert!(model(custom).starts_with("custom-"), "{custom}");
        }
    }

    #[test]
    fn words_of_others_are_a_hash_wherever_they_stand() {
        for (key, text) in [
            ("cursor.hook.name", "onAcmeDeploy"),
            ("cursor.failure_type", "acme_down"),
            ("cursor.status", "acme"),
            ("gen_ai.request.model", "acme-7b"),
            ("cursor.some.new.key", "acme"),
        ] {
            let left = attribute(key, text).unwrap();
            assert!(left.starts_with("custom-"), "{key}: {left}");
        }
        assert_eq!(
            attribute("cursor.hook.name", "beforeReadFile").as_deref(),
            Some("beforeReadFile")
        );
        assert_eq!(field("cursor_version", "3.7.19"), "3.7.19");
        assert_eq!(field("cursor_version", "2026.01.15-a1b2c3d"), "2026.01.15-a1b2c3d");
        assert!(field("cursor_version", "3.7-acme").starts_with("custom-"));
        assert_eq!(field("tool_use_id", "call 1"), "call 1");
        assert!(parameter("acme_invoice").starts_with("custom-"));
    }
}
