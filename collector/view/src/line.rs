//! A span as a row of the waterfall, with everything that is needed to draw it.

use hookspan_core::{EndReason, Span, SpanId, SpanKind, Status, Timestamp};

use crate::label::label;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The span's row in the store. A small number that a rebuild changes.
    pub row: i64,
    /// Span id: stable.
    pub id: SpanId,
    /// Store row of the parent in the session's tree. For a turn, the parent is its session segment, in every trace
    /// mode.
    pub parent: Option<i64>,
    /// What it is drawn as.
    pub kind: LineKind,
    /// The label, at most [`crate::label::LABEL_MAX_CHARS`] characters. It is payload text and must never be used as
    /// markup.
    pub label: String,
    /// Start.
    pub start: Timestamp,
    /// End, `None` while it runs.
    pub end: Option<Timestamp>,
    /// How it went.
    pub outcome: Outcome,
    /// Bits of [`flag`].
    pub flags: u8,
    /// Time in microseconds between the call's two hooks in which the call did not run. It is derived, not reported.
    pub wait_us: i64,
}

/// The part of a line that a store keeps in columns. With it, a waterfall needs no other part of a span.
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
    /// The part of a line that is stored. `subject` comes from the span's content.
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
    /// Attributes of the span were cut. A turn has this flag also if its session reached a limit: some of its hooks
    /// were dropped, so its figures are too low.
    pub const TRUNCATED: u8 = 4;
    /// There is content to fetch.
    pub const PAYLOAD: u8 = 8;
    /// Of a subagent: the link to its parent is not certain.
    pub const TENTATIVE: u8 = 16;
    /// Of a call, which has no such link: its failure is that of the subagent below it, and is not counted again.
    pub const REPEATS: u8 = TENTATIVE;
    /// The span settled after its turn.
    pub const LATE: u8 = 32;
    /// No hook reports the duration.
    pub const UNKNOWN_LENGTH: u8 = 64;
    /// It asks a person: its length is the wait for the answer.
    pub const ASKS_PERSON: u8 = 128;
}

/// How a line ended. The number is its code in the store's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No hook reports a failure.
    Ok = 0,
    /// It failed.
    Error = 1,
    /// It has no end yet.
    Open = 2,
    /// It was closed without its own end.
    Unknown = 3,
}

impl Outcome {
    /// The result of a span of `kind`, from its status and the reason of its end.
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

/// The kind of a row: the kind of its span or, for tools, the kind of work.
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
    /// All of them. The index is the code that a store keeps.
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

    /// The kind as which `span` is drawn.
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
            SpanKind::Tool => match span.text("hookspan.tool.class").unwrap_or_default() {
                "shell" => Self::Shell,
                "mcp" => Self::Mcp,
                "edit" | "delete" => Self::Edits,
                _ => Self::Tools,
            },
        }
    }
}

impl Line {
    /// Whether it counts as an error.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        let repeats = self.kind != LineKind::Subagent && self.flags & flag::REPEATS != 0;
        self.outcome == Outcome::Error && !repeats
    }

    /// Duration in nanoseconds. `None` while it runs, or if no hook reports it.
    #[must_use]
    pub fn length_ns(&self) -> Option<i64> {
        let is_known = self.flags & flag::UNKNOWN_LENGTH == 0;
        Some(self.end?.since(self.start)).filter(|_| is_known)
    }

    /// Time of work in nanoseconds, as [`Span::work_ns`].
    #[must_use]
    pub fn work_ns(&self) -> Option<i64> {
        self.length_ns().filter(|_| !self.asks_person())
    }

    /// Whether it is a call that asks a person.
    #[must_use]
    pub fn asks_person(&self) -> bool {
        self.flags & flag::ASKS_PERSON != 0
    }

    /// The line of `span`. `detail` comes from the span's content and completes the label: a command, a query or a
    /// prompt.
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

fn flags(span: &Span) -> u8 {
    let timing = match span.text("hookspan.timing") {
        Some("inferred_start") => flag::INFERRED_START,
        Some("inferred_end") => flag::INFERRED_END,
        Some("inferred") => flag::INFERRED_START | flag::INFERRED_END,
        _ => 0,
    };
    let tentative = matches!(span.text("hookspan.subagent.link"), Some("tentative" | "ambiguous"));
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    let has = |key: &str| span.attribute(key).is_some();
    timing
        | bit(has("hookspan.truncated") || has("hookspan.hooks_left_out"), flag::TRUNCATED)
        | bit(!span.contents.is_empty(), flag::PAYLOAD)
        | bit(tentative, flag::TENTATIVE)
        | bit(has("hookspan.late"), flag::LATE)
        | bit(has("hookspan.duration_unknown"), flag::UNKNOWN_LENGTH)
        | bit(span.asks_person(), flag::ASKS_PERSON)
        | bit(span.status != Status::Unset && !span.is_failure(), flag::REPEATS)
}

/// Derived waiting time of a call in microseconds. Time in which only hooks can have run is not included.
#[must_use]
pub fn wait_us(span: &Span) -> Option<i64> {
    let wait = span.number("hookspan.wait_ms")?;
    let hooks = span.number("hookspan.hook_ms").unwrap_or(0.0);
    Some(((wait - hooks).max(0.0) * 1_000.0) as i64)
}
