//! Spans over all sessions or of one: as lines, whole, or filtered.

use hookspan_core::{Span, SpanId, TraceId};

use crate::Result;
use crate::line::{Line, LineKind};

/// Spans, as lines of the waterfall and whole, with the raw hooks behind them. Every call is short (it runs on a blocking thread) and bounded by its arguments.
pub trait Spans {
    /// Its spans as lines of the waterfall, at most `limit`, ordered by start then row; with `since`, only those written
    /// after that revision.
    fn lines(&self, root: &str, since: Option<u64>, limit: usize) -> Result<Lines>;
    /// One span of a session by id, with its store row.
    fn span_of(&self, root: &str, id: SpanId) -> Result<Option<(i64, Span)>>;
    /// One span by id alone, with its store row: slower with every conversation that is stored.
    fn span(&self, id: SpanId) -> Result<Option<(i64, Span)>>;
    /// One span by store row.
    fn span_row(&self, row: i64) -> Result<Option<(i64, Span)>>;
    /// Spans of a session that are drawn as one of `kinds`, by start, at most `limit`, with their rows.
    fn spans_of(&self, root: &str, kinds: &[LineKind], limit: usize) -> Result<Vec<(i64, Span)>>;
    /// Root conversation of a trace and its root span.
    fn trace(&self, trace: TraceId) -> Result<Option<(String, SpanId)>>;
    /// Newest spans over all sessions, newest first, at most `limit`, with a row below `before`.
    fn latest(&self, before: Option<i64>, limit: usize) -> Result<Vec<(String, Line)>>;
    /// Spans over all sessions that match, by start and row, both falling, at most `limit`, strictly before `before` (a
    /// cursor: start in nanoseconds and row).
    fn matching(
        &self,
        filter: &LineFilter,
        before: Option<(i64, i64)>,
        limit: usize,
    ) -> Result<Vec<(String, Line)>>;
    /// The newest call of a session that has no end yet.
    fn open_call(&self, root: &str) -> Result<Option<Line>>;
    /// Failed spans, newest first, at most `limit`, as lines with the message of each.
    fn failures(&self, filter: &LineFilter, limit: usize) -> Result<Vec<Failure>>;
    /// Raw body of a hook; `None` when it is not stored (any more).
    fn body(&self, seq: u64) -> Result<Option<Vec<u8>>>;
    /// What each destination did with a span (by row): name and `sent`, `waiting`, `lost` or `open`.
    fn exports(&self, row: i64) -> Result<Vec<(String, String)>>;
}

/// The waterfall of a session, or what changed in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// The lines asked for.
    pub lines: Vec<Line>,
    /// How many lines the session has in all: a reader that holds another number after a delta has missed a removal.
    pub total: u64,
    /// The revision this answer is complete up to.
    pub rev: u64,
}

/// Filters of spans over all sessions; all of them must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFilter {
    /// Root conversation.
    pub session: Option<String>,
    /// The project by name, whatever the case, or the whole path of the workspace.
    pub project: Option<String>,
    /// The model of the turn that it belongs to, whatever the case.
    pub model: Option<String>,
    /// A tool by name, whatever the case.
    pub tool: Option<String>,
    /// What it is drawn as.
    pub kind: Option<LineKind>,
    /// Only failed ones.
    pub failed: bool,
    /// Duration of at least so many nanoseconds.
    pub min_ns: Option<i64>,
    /// Duration below so many nanoseconds.
    pub max_ns: Option<i64>,
    /// Start at or after.
    pub from_ns: Option<i64>,
    /// Start at or before.
    pub to_ns: Option<i64>,
}

impl LineFilter {
    /// Whether it lets everything through.
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
    /// The file that it worked on, as it was sent.
    pub path: Option<String>,
}
