//! The span: what every other part of hookspan stores, ships and draws.

use std::borrow::Cow;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::model::id::{SpanId, TraceId};
use crate::model::path;
use crate::model::time::Timestamp;
use crate::model::tool::ToolClass;

/// A span as a whole value. A store inserts or replaces it by its derived id, so replays, duplicates and late halves
/// need no special case. While the span runs, `end` is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Derived id. It never changes, no matter what becomes known later.
    pub id: SpanId,
    /// Trace; changes when a child conversation is bound to its parent.
    pub trace: TraceId,
    /// Parent span, always one that exists. `None` for the root of a trace.
    pub parent: Option<SpanId>,
    /// Links to other traces, sorted by (type, time of the target).
    pub links: Vec<Link>,
    /// What it describes.
    pub kind: SpanKind,
    /// Name, at most 128 characters; may hold an executable or an MCP tool's name.
    pub name: String,
    /// Name without anything that content policy `off` withholds.
    pub plain_name: Cow<'static, str>,
    /// `conversation_id` of the session it belongs to: the topmost conversation.
    pub root: Arc<str>,
    /// `conversation_id` the event itself carried.
    pub conversation: Arc<str>,
    /// Normalised generation id, empty outside a turn.
    pub generation: Arc<str>,
    /// Folder of the project (see [`crate::event::About::workspace`]), for project names and relative paths.
    pub workspace: Option<Arc<str>>,
    /// `cursor_version`, for the resource's `service.version`.
    pub cursor_version: Option<Arc<str>>,
    /// Start.
    pub start: Timestamp,
    /// End and why, or `None` while it runs.
    pub end: Option<End>,
    /// Unset or an error; never OK.
    pub status: Status,
    /// Sorted bytewise by key, unique.
    pub attributes: Vec<Attribute>,
    /// Sorted by (time, name).
    pub events: Vec<SpanEvent>,
    /// Where content attributes are read from, sorted by key.
    pub contents: Vec<ContentRef>,
    /// The span is final and may be exported. A settled span never changes again, except in the local store when
    /// evidence arrives later.
    pub settled: bool,
}

impl Span {
    /// Duration in nanoseconds. `None` while the span runs, and if no hook reports the end: a duration inferred from
    /// neighbouring spans counts nowhere.
    #[must_use]
    pub fn length_ns(&self) -> Option<i64> {
        let is_known = self.attribute("hookspan.duration_unknown").is_none();
        Some(self.end?.at.since(self.start)).filter(|_| is_known)
    }

    /// Whether it is a call that asks a person. Such a call runs until the answer.
    #[must_use]
    pub fn asks_person(&self) -> bool {
        self.kind == SpanKind::Tool
            && self.text("hookspan.tool.class") == Some(ToolClass::Question.as_str())
    }

    /// Time of work in nanoseconds. `None` as for [`Self::length_ns`], and if it asks a person: its length is the wait
    /// for the answer.
    #[must_use]
    pub fn work_ns(&self) -> Option<i64> {
        self.length_ns().filter(|_| !self.asks_person())
    }

    /// Whether it counts as an error, see [`Status::counts`].
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.status.counts(self.kind)
    }

    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, key: &str) -> Option<&Value> {
        self.attributes.iter().find(|attribute| attribute.key == key).map(|found| &found.value)
    }

    /// The value of a text attribute.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.attribute(key)? {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The root to which paths of this span are relative: the call's own root if it has one, else [`Self::workspace`].
    #[must_use]
    pub fn file_root(&self) -> Option<&str> {
        self.text("hookspan.file.root").or(self.workspace.as_deref())
    }

    /// The file of a call as a page shows it: below its root, or whole where it lies outside.
    #[must_use]
    pub fn file_shown(&self) -> Option<Cow<'_, str>> {
        let path = self.text("file.path")?;
        let inside = self.file_root().and_then(|root| path::below(root, path));
        Some(inside.map_or(Cow::Borrowed(path), Cow::Owned))
    }

    /// The value of a numeric attribute.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<f64> {
        match self.attribute(key)? {
            Value::Int(number) => Some(*number as f64),
            Value::Double(number) => Some(*number),
            _ => None,
        }
    }
}

/// The kinds of span, also the `kind` part of a span id and the value of `hookspan.kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanKind {
    /// A segment of a conversation, from its first event to `sessionEnd` or idleness.
    Session,
    /// A turn: prompt to stop.
    Generation,
    /// `afterAgentThought`.
    Thought,
    /// `afterAgentResponse`.
    Response,
    /// A tool call, both hook layers merged.
    Tool,
    /// A delegated agent.
    Subagent,
    /// `preCompact`.
    Compaction,
    /// One minute of Tab completions.
    Tab,
}

impl SpanKind {
    /// Every kind, in the order of their codes.
    pub const ALL: [Self; 8] = [
        Self::Session,
        Self::Generation,
        Self::Thought,
        Self::Response,
        Self::Tool,
        Self::Subagent,
        Self::Compaction,
        Self::Tab,
    ];

    /// The word in ids, attributes and URLs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Generation => "generation",
            Self::Thought => "thought",
            Self::Response => "response",
            Self::Tool => "tool",
            Self::Subagent => "subagent",
            Self::Compaction => "compaction",
            Self::Tab => "tab",
        }
    }

    /// The inverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// When a span ended, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The end; never before the start.
    pub at: Timestamp,
    /// Why.
    pub reason: EndReason,
}

/// `hookspan.end_reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Its own end event arrived.
    Matched,
    /// The turn or session ended around it.
    Stopped,
    /// The next prompt arrived.
    Superseded,
    /// Nothing arrived for long enough.
    Idle,
    /// Memory ran out of room for it.
    Evicted,
}

impl EndReason {
    /// Every reason, in the order of their codes.
    pub const ALL: [Self; 5] =
        [Self::Matched, Self::Stopped, Self::Superseded, Self::Idle, Self::Evicted];

    /// The word in attributes and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::Stopped => "stopped",
            Self::Superseded => "superseded",
            Self::Idle => "idle",
            Self::Evicted => "evicted",
        }
    }

    /// The inverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

/// OpenTelemetry status; OK is never set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// No hook reports a failure.
    #[default]
    Unset,
    /// The span failed. `error.type` is among the attributes exactly in this case.
    Error {
        /// The value of `error.type`.
        kind: ErrorType,
        /// Our own fixed text (`exit code 101`), never Cursor's.
        message: String,
    },
}

impl Status {
    /// Whether a span of `kind` with this status counts as an error of its turn and its session. The failure of a
    /// subagent counts once, where it happened: the call that delegated to it merely repeats it.
    #[must_use]
    pub fn counts(&self, kind: SpanKind) -> bool {
        match self {
            Self::Unset => false,
            Self::Error { kind: error, .. } => {
                kind != SpanKind::Tool || *error != ErrorType::SubagentError
            }
        }
    }
}

/// The closed list of `error.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// `stop` with status error.
    AgentError,
    /// `sessionEnd` with reason or final status error.
    SessionError,
    /// A shell command's exit code was not 0.
    ExitCode,
    /// `failure_type` timeout.
    Timeout,
    /// `failure_type` permission_denied.
    PermissionDenied,
    /// MCP `isError`.
    ToolError,
    /// Any other failure event.
    ToolFailure,
    /// `subagentStop` with status error.
    SubagentError,
}

impl ErrorType {
    /// Every type, in the order of their codes.
    pub const ALL: [Self; 8] = [
        Self::AgentError,
        Self::SessionError,
        Self::ExitCode,
        Self::Timeout,
        Self::PermissionDenied,
        Self::ToolError,
        Self::ToolFailure,
        Self::SubagentError,
    ];

    /// The value of `error.type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentError => "agent_error",
            Self::SessionError => "session_error",
            Self::ExitCode => "exit_code",
            Self::Timeout => "timeout",
            Self::PermissionDenied => "permission_denied",
            Self::ToolError => "tool_error",
            Self::ToolFailure => "tool_failure",
            Self::SubagentError => "subagent_error",
        }
    }

    /// The inverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// One attribute and how sensitive it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Key, as pinned in `telemetry`.
    pub key: Cow<'static, str>,
    /// Value.
    pub value: Value,
    /// Tells what a content policy may do with the attribute.
    pub class: Class,
}

/// An attribute's value, in one of the OTLP types that hookspan uses.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Str(SmolStr),
    /// Counts, bytes, codes.
    Int(i64),
    /// Milliseconds (`_ms`) and percentages.
    Double(f64),
    /// Flags.
    Bool(bool),
    /// Sorted text.
    StrList(Vec<SmolStr>),
}

/// How sensitive an attribute is. Content itself is never an attribute of a [`Span`]; see [`ContentRef`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Leaves at every policy.
    Plain,
    /// Names a program, tool, host or server: withheld at `off`.
    Detail,
    /// A path: withheld at `off`, else rewritten as `paths` says.
    Path,
}

/// A point in time inside a span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    /// When.
    pub at: Timestamp,
    /// Event name (`cursor.prompt.submit`, `cursor.hook`, `cursor.permission`).
    pub name: Cow<'static, str>,
    /// Sorted bytewise by key, unique.
    pub attributes: Vec<Attribute>,
}

/// A link to another span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its trace.
    pub trace: TraceId,
    /// Its id.
    pub span: SpanId,
    /// `hookspan.link.type`: previous_generation, generation, previous_segment, subagent_candidate.
    pub kind: &'static str,
    /// Start of the target, for the order of links.
    pub at: Timestamp,
}

/// A content attribute, by reference: which hook holds it and how to read it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentRef {
    /// The attribute it becomes at policy `full` (`gen_ai.tool.call.arguments` ...).
    pub key: &'static str,
    /// `seq` of the hook whose body holds it.
    pub hook: u64,
    /// Which field of that body.
    pub field: crate::model::content::Field,
}
