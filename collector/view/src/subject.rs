//! Finds the subject of a call: the command, query or task in its label. Only this file knows which field contains the
//! subject. It is asked when a hook arrives ([`subject_field`]), when a span is written ([`subject_source`]), and when
//! a page reads a span ([`subject`]).

use std::borrow::Cow;
use std::fmt;

use hookspan_core::content::{Content, Field, extract};
use hookspan_core::{ContentRef, EventKind, Span, SpanKind};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::label::{LABEL_MAX_CHARS, shorten};
use crate::line::LineKind;
use crate::source::Spans;

/// The field of the body that a call's label needs. A call about a file needs none: its subject is the path, which the
/// fold keeps.
#[must_use]
pub fn subject_field(kind: &EventKind) -> Option<Field> {
    match kind {
        EventKind::ToolStart(tool)
        | EventKind::ToolEnd(tool)
        | EventKind::ToolFailure(tool)
        | EventKind::ShellStart(tool)
        | EventKind::ShellEnd(tool)
        | EventKind::McpStart(tool)
        | EventKind::McpEnd(tool) => tool.path.is_none().then_some(Field::ToolInput),
        EventKind::SubagentStart(_) | EventKind::SubagentStop(_) => Some(Field::Task),
        _ => None,
    }
}

/// The hook and the field that contain a call's subject. `None` if the span's own attributes contain it.
#[must_use]
pub fn subject_source(span: &Span) -> Option<(u64, Field)> {
    let wanted = match span.kind {
        SpanKind::Tool if span.text("file.path").is_none() => Field::ToolInput,
        SpanKind::Subagent => Field::Task,
        _ => return None,
    };
    let content = span.contents.iter().find(|content| content.field == wanted)?;
    Some((content.hook, wanted))
}

/// The field of a hook that contains the subject of a call drawn as `kind`.
#[must_use]
pub const fn field_of(kind: LineKind) -> Field {
    match kind {
        LineKind::Subagent => Field::Task,
        _ => Field::ToolInput,
    }
}

/// Reads the subject of one span from its raw hook, for a page that shows one span in full. The subject of a turn is
/// its prompt.
///
/// # Errors
/// The raw hook cannot be read.
pub fn subject_of(source: &(impl Spans + ?Sized), span: &Span) -> crate::Result<Option<String>> {
    const TELLING: [Field; 3] = [Field::Prompt, Field::ToolInput, Field::Task];
    let about = |content: &&ContentRef| {
        let file = content.field == Field::ToolInput && span.text("file.path").is_some();
        TELLING.contains(&content.field) && !file
    };
    let Some(content) = span.contents.iter().find(about) else { return Ok(None) };
    let body = source.body(content.hook)?;
    let content = body.and_then(|body| extract(content.field, &body));
    Ok(content.as_ref().and_then(subject))
}

/// Fields of a call's input that may contain its subject, the most informative first.
const TELLING: [&str; 9] = [
    "command",
    "pattern",
    "glob_pattern",
    "query",
    "search_term",
    "url",
    "description",
    "target_directory",
    "path",
];

/// The subject of a call, from its input: the command, the query, the address. `None` if no field of a subject has
/// text.
#[must_use]
pub fn subject(content: &Content) -> Option<String> {
    let messages = is_messages(content).then(|| readable(content.clone()));
    let content = messages.as_ref().unwrap_or(content);
    if !content.json {
        return said(&content.text);
    }
    let Telling(fields) = serde_json::from_str(&content.text).ok()?;
    said(&fields.iter().flatten().find_map(|raw| words_in(raw.get()))?)
}

/// A text, or a command line that is a list of words: a shell, its flag and a script, or a program and its arguments.
fn words_in(value: &str) -> Option<Cow<'_, str>> {
    if !value.starts_with('[') {
        return serde_json::from_str(value).ok().map(|Text(words)| words);
    }
    let words: Vec<Text<'_>> = serde_json::from_str(value).ok()?;
    match words.as_slice() {
        [] => None,
        [_, Text(flag), Text(script)] if matches!(&**flag, "-c" | "-lc") => Some(script.clone()),
        words => {
            let words: Vec<&str> = words.iter().map(|Text(word)| &**word).collect();
            Some(Cow::Owned(words.join(" ")))
        }
    }
}

fn said(words: &str) -> Option<String> {
    Some(shorten(words, LABEL_MAX_CHARS)).filter(|words| !words.is_empty())
}

/// Text of a document. Borrowed if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The fields of an object that [`TELLING`] names, in that order. If a key occurs twice, the last value counts. Values
/// are not parsed, and other fields, which may be large, are skipped.
#[derive(Default)]
struct Telling<'a>([Option<&'a RawValue>; TELLING.len()]);

impl<'de> Deserialize<'de> for Telling<'de> {
    fn deserialize<D: Deserializer<'de>>(document: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Telling<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found = Telling::default();
                while let Some((Text(key), value)) = map.next_entry()? {
                    let slots = TELLING.iter().zip(&mut found.0);
                    if let Some((_, slot)) = slots.into_iter().find(|(name, _)| **name == key) {
                        *slot = Some(value);
                    }
                }
                Ok(found)
            }
        }
        document.deserialize_map(Object)
    }
}

/// Whether `content` may be messages. The input of a call is an object and not messages.
#[must_use]
pub fn is_messages(content: &Content) -> bool {
    content.json && content.text.trim_start().starts_with('[')
}

/// Converts messages of an attribute to the text that a person wrote or read.
#[must_use]
pub fn readable(content: Content) -> Content {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        parts: Vec<MessagePart<'a>>,
    }
    #[derive(Deserialize)]
    struct MessagePart<'a> {
        #[serde(borrow)]
        content: Cow<'a, str>,
    }
    if !is_messages(&content) {
        return content;
    }
    let Ok(messages) = serde_json::from_str::<Vec<Message<'_>>>(&content.text) else {
        return content;
    };
    let parts: Vec<_> = messages.iter().flat_map(|message| &message.parts).collect();
    if parts.is_empty() {
        return content;
    }
    let texts: Vec<&str> = parts.iter().map(|part| &*part.content).collect();
    Content { text: texts.join("\n\n"), json: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_the_most_telling_text_of_a_calls_input() {
        let deep =
            format!("{{\"x\":{}{},\"path\":\"deep\"}}", "[".repeat(9_999), "]".repeat(9_999));
        let cases = [
            (r#"{"path":"/a","command":"ls -la\n# all"}"#, Some("ls -la # all")),
            (r#"{"query":"a","query":"b"}"#, Some("b")),
            (r#"{"\u0063ommand":"escaped"}"#, Some("escaped")),
            // A value that is not text, or contains half a character, is skipped.
            (r#"{"command":[7],"url":"https://x"}"#, Some("https://x")),
            (r#"{"command":["bash","-lc","cargo test\n"]}"#, Some("cargo test")),
            (r#"{"command":["git","log","-1"],"workdir":"/a"}"#, Some("git log -1")),
            (r#"{"command":"\ud83d","pattern":"p"}"#, Some("p")),
            (r#"{"command":"","pattern":"p"}"#, None),
            (r#"{"limit":7}"#, None),
            (r#"["a"]"#, None),
            (r#"[{"parts":[{"content":"look\naround"}]}]"#, Some("look around")),
            ("{", None),
            (&deep, Some("deep")),
        ];
        for (text, expected) in cases {
            let content = Content { text: text.to_owned(), json: true };
            assert_eq!(subject(&content).as_deref(), expected, "{text:.99}");
        }
        let plain = Content { text: " cargo\n test".to_owned(), json: false };
        assert_eq!(subject(&plain).as_deref(), Some("cargo test"));
    }

    #[test]
    fn messages_are_shown_as_their_text() {
        let json = |text: &str| Content { text: text.to_owned(), json: true };
        let message = r#"[{"role":"user","parts":[{"type":"text","content":"a\n\"b\""}]}]"#;
        let shown = readable(json(message));
        assert_eq!(shown, Content { text: "a\n\"b\"".to_owned(), json: false });
        for other in [r#"{"command":"ls"}"#, "[]", r#"[{"parts":[]}]"#, "[1]"] {
            assert_eq!(readable(json(other)), json(other));
        }
    }
}
