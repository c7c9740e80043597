//! What the dashboard asks of whoever stores the data.

use hookspan_core::{SessionState, SessionSummary, Span, SpanId, TraceId, TurnSummary};

/// Why a read failed. The page shows a 503 and tries again.
#[derive(Debug)]
pub struct SourceError(pub String);

/// Result of a read.
pub type Result<T> = core::result::Result<T, SourceError>;

/// Reads. Every call is short (it runs on a blocking thread) and bounded by its arguments.
pub trait Source: Send + Sync + 'static {
    /// Sessions, newest activity first, at most `limit`, strictly older than `before` (a cursor: last_ns and root).
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
    /// All its spans with their store rows, ordered by start then row; with `since`, only those whose rev is greater.
    /// Second value: the rev this answer is complete up to.
    fn spans(&self, root: &str, since: Option<u64>) -> Result<(Vec<(i64, Span)>, u64)>;
    /// One span by id.
    fn span(&self, id: SpanId) -> Result<Option<(i64, Span)>>;
    /// One span by store row.
    fn span_row(&self, row: i64) -> Result<Option<(i64, Span)>>;
    /// Root conversation of a trace and its root span.
    fn trace(&self, trace: TraceId) -> Result<Option<(String, SpanId)>>;
    /// Newest spans over all sessions, newest first, at most `limit`, with a row below `before`.
    fn latest(&self, before: Option<i64>, limit: usize) -> Result<Vec<(i64, Span)>>;
    /// Raw body of a hook.
    fn body(&self, seq: u64) -> Result<Option<Vec<u8>>>;
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
    /// Nanoseconds since the epoch.
    pub first_ns: i64,
    /// Nanoseconds since the epoch.
    pub last_ns: i64,
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
    /// Whether the port needs a token.
    pub token_required: bool,
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
    /// Last success, nanoseconds since the epoch.
    pub last_ok_ns: Option<i64>,
    /// Last failure in words.
    pub last_error: Option<String>,
    /// Spans waiting.
    pub queued: u64,
    /// Spans delivered.
    pub delivered: u64,
    /// Spans lost, by reason.
    pub lost: Vec<(String, u64)>,
}
