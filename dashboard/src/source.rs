//! What the dashboard asks of whoever stores the data.

use hookspan_core::{
    SessionState, SessionSummary, Span, SpanId, Timestamp, Tokens, TraceId, TurnSummary,
};

use crate::line::{Line, LineKind};

/// Why a read failed. The page shows a 503 and tries again. Never holds payload text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError(pub String);

/// Result of a read.
pub type Result<T> = core::result::Result<T, SourceError>;

/// Reads. Every call is short (it runs on a blocking thread) and bounded by its arguments.
pub trait Source: Send + Sync + 'static {
    /// The epoch (changes when the store is rebuilt) and the newest committed revision.
    fn position(&self) -> Result<Position>;
    /// Sessions written after revision `since`, newest activity first, at most `limit`.
    fn changed(&self, since: u64, limit: usize) -> Result<Vec<SessionSummary>>;
    /// Sessions in the filter's order, largest first, at most `limit`, strictly after `before` (a cursor: the sort key of
    /// the last one and its root).
    fn sessions(
        &self,
        filter: &SessionFilter,
        before: Option<(i64, String)>,
        limit: usize,
    ) -> Result<Vec<SessionSummary>>;
    /// One session by root conversation id.
    fn session(&self, root: &str) -> Result<Option<SessionSummary>>;
    /// Its turns in order.
    fn turns(&self, root: &str) -> Result<Vec<TurnSummary>>;
    /// Its spans as lines of the waterfall, at most `limit`, ordered by start then row; with `since`, only those written
    /// after that revision.
    fn lines(&self, root: &str, since: Option<u64>, limit: usize) -> Result<Lines>;
    /// One span by id, with its store row.
    fn span(&self, id: SpanId) -> Result<Option<(i64, Span)>>;
    /// One span by store row.
    fn span_row(&self, row: i64) -> Result<Option<(i64, Span)>>;
    /// Root conversation of a trace and its root span (its earliest one, when the root is not known).
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
    /// Raw body of a hook; `None` when it is not stored (any more).
    fn body(&self, seq: u64) -> Result<Option<Vec<u8>>>;
    /// What each destination did with a span (by row): name and `sent`, `waiting`, `lost` or `open`.
    fn exports(&self, row: i64) -> Result<Vec<(String, String)>>;
    /// Sums over the turns that started at or after a time, nanoseconds since the epoch.
    fn totals(&self, from_ns: i64) -> Result<Totals>;
    /// Error groups over stored spans, most frequent first.
    fn errors(&self, limit: usize) -> Result<Vec<ErrorGroup>>;
    /// Percentiles per name of a dimension (`tool`, `model`, `kind`) over the days given (days since the epoch, inclusive).
    fn latency(&self, dimension: &str, days: (i64, i64)) -> Result<Vec<LatencyRow>>;
    /// How hookspan itself is doing.
    fn health(&self) -> Result<Health>;
    /// The wall clock, nanoseconds since the epoch: the dashboard reads none of its own.
    fn now_ns(&self) -> i64;
    /// Changes as they are committed. A slow receiver lags and then resynchronises.
    fn changes(&self) -> tokio::sync::broadcast::Receiver<Notice>;
}

/// What a page may ask for; handed to the one writer.
pub trait Control: Send + Sync + 'static {
    /// Wakes a paused or waiting destination. False when there is none of that name.
    fn retry(&self, destination: &str) -> Result<bool>;
}

/// Where the store stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Changes when the store is rebuilt; short ASCII without a colon.
    pub epoch: String,
    /// Revision of the last transaction.
    pub rev: u64,
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

/// Filters of the session list; all of them must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// State.
    pub state: Option<SessionState>,
    /// Workspace contains this text.
    pub project: Option<String>,
    /// Model contains this text.
    pub model: Option<String>,
    /// First prompt, workspace or id contains this text.
    pub text: Option<String>,
    /// At least one error.
    pub errored: bool,
    /// Has a span that fits all of this.
    pub spans: SpanFilter,
    /// Something happened in it at or after.
    pub from_ns: Option<i64>,
    /// It began at or before.
    pub to_ns: Option<i64>,
    /// Order.
    pub sort: SessionSort,
}

/// What a session must have a span of; all of it must hold for the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanFilter {
    /// A tool by name, whatever the case.
    pub tool: Option<String>,
    /// What it is drawn as.
    pub kind: Option<LineKind>,
    /// Duration of at least so many nanoseconds.
    pub min_ns: Option<i64>,
}

impl SpanFilter {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Order of a session list; the largest comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionSort {
    /// Latest activity.
    #[default]
    Last,
    /// Start.
    Start,
    /// Time in turns.
    Active,
    /// Errors.
    Errors,
    /// Tool calls.
    Calls,
    /// Tokens, in and out.
    Tokens,
}

impl SessionSort {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Last, Self::Start, Self::Active, Self::Errors, Self::Calls, Self::Tokens];

    /// The word in a URL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Start => "start",
            Self::Active => "active",
            Self::Errors => "errors",
            Self::Calls => "calls",
            Self::Tokens => "tokens",
        }
    }

    /// What `session` is sorted by.
    #[must_use]
    pub fn key(self, session: &SessionSummary) -> i64 {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        match self {
            Self::Last => session.last_at.0,
            Self::Start => session.started_at.0,
            Self::Active => session.active_ns,
            Self::Errors => count(session.errors),
            Self::Calls => count(session.tool_calls),
            Self::Tokens => {
                session.tokens.map_or(0, |tokens| count(tokens.input.saturating_add(tokens.output)))
            }
        }
    }
}

/// Filters of spans over all sessions; all of them must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFilter {
    /// Root conversation.
    pub session: Option<String>,
    /// Workspace contains this text.
    pub project: Option<String>,
    /// Model contains this text.
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

/// Sums over turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Turns.
    pub turns: u64,
    /// Time inside them, nanoseconds; open turns not included.
    pub active_ns: i64,
    /// Spans with status error.
    pub errors: u64,
    /// `None` when no turn reported any.
    pub tokens: Option<Tokens>,
}

/// Something was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The transaction's revision.
    pub rev: u64,
    /// Sessions it touched, with how many spans were written for each.
    pub sessions: Vec<(String, u64)>,
}

/// Failures that look alike: tool and message with numbers, paths and ids blanked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorGroup {
    /// The shape they share.
    pub fingerprint: String,
    /// How many.
    pub count: u64,
    /// In how many sessions.
    pub sessions: u64,
    /// When it was first seen.
    pub first: Timestamp,
    /// When it was last seen.
    pub last: Timestamp,
    /// The newest of them.
    pub sample: SpanId,
    /// Session of the sample.
    pub sample_root: String,
    /// Name of the sample.
    pub sample_name: String,
}

/// One line of the latency table, microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyRow {
    /// Tool, model or kind.
    pub name: String,
    /// Calls.
    pub count: u64,
    /// Failed calls.
    pub errors: u64,
    /// 50th percentile.
    pub p50_us: u64,
    /// 90th percentile.
    pub p90_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Longest.
    pub max_us: u64,
}

/// How hookspan itself is doing. Never holds a header value or a token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// Journal segments, bytes and hooks not yet committed.
    pub journal: JournalHealth,
    /// Counters by name: received, duplicate, malformed, lost by reason, unknown events ...
    pub counters: Vec<(String, u64)>,
    /// Database bytes.
    pub database_bytes: u64,
    /// Write-ahead log bytes.
    pub wal_bytes: u64,
    /// Destinations.
    pub destinations: Vec<DestinationHealth>,
    /// hookspan's version.
    pub version: String,
}

/// The journal as the collector sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalHealth {
    /// Segments on disk.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes not yet committed.
    pub behind_bytes: u64,
}

/// One export destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestinationHealth {
    /// Its name in the configuration.
    pub name: String,
    /// Host and port of the endpoint, without path, user or query.
    pub endpoint_host: String,
    /// ok, retry, paused, off.
    pub state: String,
    /// Last success.
    pub last_ok: Option<Timestamp>,
    /// Last failure in words.
    pub last_error: Option<String>,
    /// Spans waiting.
    pub queued: u64,
    /// Spans delivered.
    pub delivered: u64,
    /// Spans lost, by reason.
    pub lost: Vec<(String, u64)>,
}
