//! Spans of one session or of all sessions: as lines, whole, or filtered.

use hookspan_core::{Span, SpanId, TraceId};

use crate::Result;
use crate::line::{Line, LineKind};
use crate::outcome::OutcomeFilter;
use crate::received::AllReceived;

/// Spans as lines of the waterfall or whole, with the raw hooks behind them. Every call is short (it runs on a thread
/// for blocking work) and bounded by its arguments.
pub trait Spans {
    /// Spans of a session as lines of the waterfall, at most `limit`, ordered by start, then by row. With `since`, only
    /// spans written after that revision.
    fn lines(&self, root: &str, since: Option<u64>, limit: usize) -> Result<Lines>;
    /// One span of a session by id, with its store row.
    fn span_of(&self, root: &str, id: SpanId) -> Result<Option<(i64, Span)>>;
    /// One span by its id alone, with its store row. This takes longer the more conversations are stored.
    fn span(&self, id: SpanId) -> Result<Option<(i64, Span)>>;
    /// One span by store row.
    fn span_row(&self, row: i64) -> Result<Option<(i64, Span)>>;
    /// Spans of a session that are drawn as one of `kinds`, by start, at most `limit`, with their rows.
    fn spans_of(&self, root: &str, kinds: &[LineKind], limit: usize) -> Result<Vec<(i64, Span)>>;
    /// The root conversation and the root span of a trace.
    fn trace(&self, trace: TraceId) -> Result<Option<(String, SpanId)>>;
    /// The newest spans of all sessions, newest first, at most `limit`, with rows below `before`.
    fn latest(&self, before: Option<i64>, limit: usize) -> Result<Vec<(String, Line)>>;
    /// Matching spans of all sessions, latest start first, then highest row first, at most `limit`, strictly before
    /// `before`: the start in nanoseconds and the row of the last span of the previous page.
    fn matching(
        &self,
        filter: &LineFilter,
        before: Option<(i64, i64)>,
        limit: usize,
    ) -> Result<Vec<(String, Line)>>;
    /// The newest call of a session that has not ended.
    fn open_call(&self, root: &str) -> Result<Option<Line>>;
    /// Failed spans as lines, each with its message, newest first, at most `limit`.
    fn failures(&self, filter: &LineFilter, limit: usize) -> Result<Vec<Failure>>;
    /// Raw body of a hook; `None` if it is not stored, or no longer stored.
    fn body(&self, seq: u64) -> Result<Option<Vec<u8>>>;
    /// What each destination did with the span in this row: name, and `sent`, `waiting`, `lost` or `open`.
    fn exports(&self, row: i64) -> Result<Vec<(String, String)>>;
    /// What other programs sent over OTLP that belongs to a session, or, without one, to no session. At most `limit` spans.
    fn received(&self, root: Option<&str>, limit: usize) -> Result<AllReceived>;
}

/// The waterfall of a session, or the changes in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// The lines asked for.
    pub lines: Vec<Line>,
    /// Number of lines of the whole session. If a reader that applied the changes has another number of lines, it has
    /// missed a removal.
    pub total: u64,
    /// The revision up to which this answer is complete.
    pub rev: u64,
}

/// Filters of spans over all sessions. A span must match all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFilter {
    /// Root conversation.
    pub session: Option<String>,
    /// The project by name, ignoring case, or the whole path of the workspace. [`crate::filter::NONE`]: sessions
    /// without a workspace.
    pub project: Option<String>,
    /// The model of the span's turn, ignoring case. [`crate::filter::NONE`]: no model was named.
    pub model: Option<String>,
    /// The branch at the end of its session, ignoring case. [`crate::filter::NONE`]: none is known.
    pub branch: Option<String>,
    /// What came of its session.
    pub outcome: Option<OutcomeFilter>,
    /// A tag of its session, ignoring case. [`crate::filter::NONE`]: the session has no tag.
    pub tag: Option<String>,
    /// Only of sessions with a star.
    pub starred: bool,
    /// A tool by name, ignoring case.
    pub tool: Option<String>,
    /// What it is drawn as.
    pub kind: Option<LineKind>,
    /// Only failed ones.
    pub failed: bool,
    /// Minimum duration in nanoseconds.
    pub min_ns: Option<i64>,
    /// Maximum duration in nanoseconds, exclusive.
    pub max_ns: Option<i64>,
    /// Start at or after.
    pub from_ns: Option<i64>,
    /// Start at or before.
    pub to_ns: Option<i64>,
}

impl LineFilter {
    /// Whether every span matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A failed span.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Root conversation.
    pub root: String,
    /// The span as a line.
    pub line: Line,
    /// What went wrong, in words.
    pub message: String,
    /// The file that the call worked on, as sent.
    pub path: Option<String>,
}
