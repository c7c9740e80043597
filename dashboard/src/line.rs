//! A span as a line of the waterfall: what is drawn, and nothing that would have to be fetched.

use std::borrow::Cow;
use std::fmt;

use hookspan_core::content::{Content, Field};
use hookspan_core::{EndReason, Span, SpanId, SpanKind, Status, Timestamp, Value};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::api::{is_messages, readable};

/// Longest label, in characters.
pub const LABEL_MAX_CHARS: usize = 120;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Store row: small, not stable over a rebuild.
    pub row: i64,
    /// Span id: stable.
    pub id: SpanId,
    /// Store row of the line above it in the session's tree. A turn's is its session segment, whatever the trace mode.
    pub parent: Option<i64>,
    /// What it is drawn as.
    pub kind: LineKind,
    /// What it is called, at most [`LABEL_MAX_CHARS`] characters. Payload text: never markup.
    pub label: String,
    /// Start.
    pub start: Timestamp,
    /// End, `None` while it runs.
    pub end: Option<Timestamp>,
    /// How it went.
    pub outcome: Outcome,
    /// Bits of [`flag`].
    pub flags: u8,
    /// Time between its two hooks in which it did not run, microseconds; derived.
    pub wait_us: i64,
}

/// The part of a line that a store keeps in columns, so that a waterfall needs no other part of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Label, without a turn's prompt.
    pub label: String,
    /// What it is drawn as.
    pub kind: LineKind,
    /// Bits of [`flag`].
    pub flags: u8,
    /// As [`Line::wait_us`].
    pub wait_us: i64,
}

impl Kept {
    /// What is kept of `span`; `subject` is what its content says it is about.
    #[must_use]
    pub fn new(span: &Span, subject: Option<&str>) -> Self {
        Self {
            label: label(span, subject),
            kind: LineKind::of(span),
            flags: flags(span),
            wait_us: wait_us(span).unwrap_or(0),
        }
    }
}

/// Bits of [`Line::flags`].
pub mod flag {
    /// The start is inferred.
    pub const INFERRED_START: u8 = 1;
    /// The end is inferred.
    pub const INFERRED_END: u8 = 2;
    /// Attributes were cut.
    pub const TRUNCATED: u8 = 4;
    /// There is content to fetch.
    pub const PAYLOAD: u8 = 8;
    /// The link to the parent is not certain.
    pub const TENTATIVE: u8 = 16;
    /// It settled after its turn had left.
    pub const LATE: u8 = 32;
}

/// How a line went; the number is its code in the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing said it failed.
    Ok = 0,
    /// It failed.
    Error = 1,
    /// It has no end yet.
    Open = 2,
    /// It was closed without its own end.
    Unknown = 3,
}

impl Outcome {
    /// How a span of `kind` went: whether it failed, and why it ended.
    #[must_use]
    pub fn of(kind: SpanKind, failed: bool, end: Option<EndReason>) -> Self {
        match end {
            _ if failed => Self::Error,
            None => Self::Open,
            Some(reason) if reason != EndReason::Matched && kind == SpanKind::Tool => Self::Unknown,
            Some(_) => Self::Ok,
        }
    }

    /// The word in row objects.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Open => "open",
            Self::Unknown => "unknown",
        }
    }
}

/// What a line is drawn as: the kind of span, and for tools what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineKind {
    /// A segment of a session.
    Session,
    /// A turn.
    Turn,
    /// A thought.
    Thinking,
    /// A response.
    Response,
    /// A tool that is none of the others.
    Tools,
    /// A shell command.
    Shell,
    /// An MCP call.
    Mcp,
    /// An edit or a deletion.
    Edits,
    /// A subagent.
    Subagent,
    /// A compaction.
    Compaction,
    /// A minute of Tab.
    Tab,
}

impl LineKind {
    /// All of them; the place is the code that a store keeps.
    pub const ALL: [Self; 11] = [
        Self::Session,
        Self::Turn,
        Self::Thinking,
        Self::Response,
        Self::Tools,
        Self::Shell,
        Self::Mcp,
        Self::Edits,
        Self::Subagent,
        Self::Compaction,
        Self::Tab,
    ];

    /// The kind a word names.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The word in JSON and in CSS classes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Turn => "turn",
            Self::Thinking => "thinking",
            Self::Response => "response",
            Self::Tools => "tools",
            Self::Shell => "shell",
            Self::Mcp => "mcp",
            Self::Edits => "edits",
            Self::Subagent => "subagent",
            Self::Compaction => "compaction",
            Self::Tab => "tab",
        }
    }

    /// What `span` is drawn as.
    #[must_use]
    pub fn of(span: &Span) -> Self {
        match span.kind {
            SpanKind::Session => Self::Session,
            SpanKind::Generation => Self::Turn,
            SpanKind::Thought => Self::Thinking,
            SpanKind::Response => Self::Response,
            SpanKind::Subagent => Self::Subagent,
            SpanKind::Compaction => Self::Compaction,
            SpanKind::Tab => Self::Tab,
            SpanKind::Tool => match text(span, "hookspan.tool.class").unwrap_or_default() {
                "shell" => Self::Shell,
                "mcp" => Self::Mcp,
                "edit" | "delete" => Self::Edits,
                _ => Self::Tools,
            },
        }
    }
}

impl Line {
    /// The line of `span`. `detail` is what its content adds to the label: a command, a query, a prompt.
    #[must_use]
    pub fn new(row: i64, parent: Option<i64>, span: &Span, detail: Option<&str>) -> Self {
        Self {
            row,
            id: span.id,
            parent,
            kind: LineKind::of(span),
            label: label(span, detail),
            start: span.start,
            end: span.end.map(|end| end.at),
            outcome: Outcome::of(
                span.kind,
                matches!(span.status, Status::Error { .. }),
                span.end.map(|end| end.reason),
            ),
            flags: flags(span),
            wait_us: wait_us(span).unwrap_or(0),
        }
    }
}

/// `head`, and after it `subject`, as one label.
#[must_use]
pub fn with_subject(head: &str, subject: &str) -> String {
    shorten(&join(head, subject), LABEL_MAX_CHARS)
}

/// The hook and the part of it that say what a call was about, when its own attributes do not.
#[must_use]
pub fn subject_source(span: &Span) -> Option<(u64, Field)> {
    let wanted = match span.kind {
        SpanKind::Tool if text(span, "file.path").is_none() => Field::ToolInput,
        SpanKind::Subagent => Field::Task,
        _ => return None,
    };
    let content = span.contents.iter().find(|content| content.field == wanted)?;
    Some((content.hook, wanted))
}

fn flags(span: &Span) -> u8 {
    let timing = match text(span, "hookspan.timing") {
        Some("inferred_start") => flag::INFERRED_START,
        Some("inferred_end") => flag::INFERRED_END,
        Some("inferred") => flag::INFERRED_START | flag::INFERRED_END,
        _ => 0,
    };
    let tentative = matches!(text(span, "hookspan.subagent.link"), Some("tentative" | "ambiguous"));
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    timing
        | bit(value(span, "hookspan.truncated").is_some(), flag::TRUNCATED)
        | bit(!span.contents.is_empty(), flag::PAYLOAD)
        | bit(tentative, flag::TENTATIVE)
        | bit(value(span, "hookspan.late").is_some(), flag::LATE)
}

/// Derived waiting time of a call without the part that is known to be hooks, microseconds.
#[must_use]
pub fn wait_us(span: &Span) -> Option<i64> {
    let wait = number(span, "hookspan.wait_ms")?;
    let hooks = number(span, "hookspan.hook_ms").unwrap_or(0.0);
    Some(((wait - hooks).max(0.0) * 1_000.0) as i64)
}

fn label(span: &Span, detail: Option<&str>) -> String {
    let tool = || text(span, "gen_ai.tool.name").unwrap_or(&span.name);
    let subject = detail.or_else(|| relative_path(span)).unwrap_or_default();
    let words = match span.kind {
        SpanKind::Session => join("session", subject),
        SpanKind::Generation => match number(span, "hookspan.generation.index") {
            Some(index) => join(&format!("turn {index}"), subject),
            None => join("turn", subject),
        },
        SpanKind::Thought => join("thought", subject),
        SpanKind::Response => join("response", subject),
        SpanKind::Subagent => join(text(span, "gen_ai.agent.name").unwrap_or("subagent"), subject),
        SpanKind::Compaction => "context compaction".to_owned(),
        SpanKind::Tab => "Tab completions".to_owned(),
        SpanKind::Tool if subject.is_empty() => {
            span.name.strip_prefix("execute_tool ").unwrap_or(&span.name).to_owned()
        }
        SpanKind::Tool => join(tool(), subject),
    };
    shorten(&words, LABEL_MAX_CHARS)
}

fn join(word: &str, subject: &str) -> String {
    if subject.is_empty() { word.to_owned() } else { format!("{word} {subject}") }
}

/// Fields of a call's input that say what it is about, the most telling first.
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

/// What a call was about, from its input: the command, the query, the address. `None` when nothing in it says so shortly.
#[must_use]
pub fn subject(content: &Content) -> Option<String> {
    let messages = is_messages(content).then(|| readable(content.clone()));
    let content = messages.as_ref().unwrap_or(content);
    if !content.json {
        return said(&content.text);
    }
    let Telling(fields) = serde_json::from_str(&content.text).ok()?;
    let mut texts = fields.iter().flatten().filter_map(|raw| serde_json::from_str(raw.get()).ok());
    said(&texts.next().map(|Text(words)| words)?)
}

fn said(words: &str) -> Option<String> {
    Some(shorten(words, LABEL_MAX_CHARS)).filter(|words| !words.is_empty())
}

/// Text of a document, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The fields of an object that [`TELLING`] names, in that order; of equal ones the last. Their values are not read, and what
/// else there is, which may be large, is passed over.
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

/// The path of a call, relative to its workspace where it lies inside.
fn relative_path(span: &Span) -> Option<&str> {
    let path = text(span, "file.path")?;
    let inside = span.workspace.as_deref().and_then(|root| path.strip_prefix(root));
    Some(inside.map_or(path, |tail| tail.trim_start_matches(['/', '\\'])))
}

/// The first line of `text`, white space folded, at most `max` characters with an ellipsis in the last place.
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let room = max - count;
        let space = usize::from(count > 0);
        let chars = word.chars().take(room + 1).count() + space;
        if chars > room {
            out.extend(core::iter::repeat_n(' ', space.min(room.saturating_sub(1))));
            out.extend(word.chars().take(room.saturating_sub(1 + space)));
            out.push('…');
            return out;
        }
        out.extend(core::iter::repeat_n(' ', space));
        out.push_str(word);
        count += chars;
        if count == max {
            return out;
        }
    }
    out
}

/// An attribute of a span.
#[must_use]
pub fn value<'a>(span: &'a Span, key: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|attribute| attribute.key == key).map(|found| &found.value)
}

/// A text attribute of a span.
#[must_use]
pub fn text<'a>(span: &'a Span, key: &str) -> Option<&'a str> {
    match value(span, key)? {
        Value::Str(text) => Some(text),
        _ => None,
    }
}

/// A numeric attribute of a span.
#[must_use]
pub fn number(span: &Span, key: &str) -> Option<f64> {
    match value(span, key)? {
        Value::Int(number) => Some(*number as f64),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_line_of_bounded_length() {
        assert_eq!(shorten("  cargo\n test\t--all ", 120), "cargo test --all");
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abcdefg", 6), "abcde…");
        assert_eq!(shorten("abc defg", 6), "abc d…");
        assert_eq!(shorten("abcdef g", 6), "abcdef");
        let wide = "é".repeat(500);
        assert_eq!(shorten(&wide, 120).chars().count(), 120);
    }

    #[test]
    fn a_subject_is_the_most_telling_text_of_a_calls_input() {
        let deep =
            format!("{{\"x\":{}{},\"path\":\"deep\"}}", "[".repeat(9_999), "]".repeat(9_999));
        let cases = [
            (r#"{"path":"/a","command":"ls -la\n# all"}"#, Some("ls -la # all")),
            (r#"{"query":"a","query":"b"}"#, Some("b")),
            (r#"{"\u0063ommand":"escaped"}"#, Some("escaped")),
            // What is no text says nothing, and neither does half a character.
            (r#"{"command":["ls"],"url":"https://x"}"#, Some("https://x")),
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
}
