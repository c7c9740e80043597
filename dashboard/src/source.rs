//! What the dashboard asks of whoever stores the data.

use hookspan_core::price::{Prices, Usage};
use hookspan_core::{
    Parts, SessionState, SessionSummary, Span, SpanId, Timestamp, Tokens, TraceId, TurnSummary,
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
    /// One span of a session by id, with its store row.
    fn span_of(&self, root: &str, id: SpanId) -> Result<Option<(i64, Span)>>;
    /// One span by id alone, with its store row: slower with every conversation that is stored.
    fn span(&self, id: SpanId) -> Result<Option<(i64, Span)>>;
    /// One span by store row.
    fn span_row(&self, row: i64) -> Result<Option<(i64, Span)>>;
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
    /// Raw body of a hook; `None` when it is not stored (any more).
    fn body(&self, seq: u64) -> Result<Option<Vec<u8>>>;
    /// What each destination did with a span (by row): name and `sent`, `waiting`, `lost` or `open`.
    fn exports(&self, row: i64) -> Result<Vec<(String, String)>>;
    /// Sums over the turns that started at or after a time, nanoseconds since the epoch.
    fn totals(&self, from_ns: i64) -> Result<Totals>;
    /// Tokens by model over the turns that started at or after a time, nanoseconds since the epoch.
    fn usage(&self, from_ns: i64) -> Result<Vec<(Option<String>, Usage)>>;
    /// Tokens by model over the turns of a session.
    fn usage_of(&self, root: &str) -> Result<Vec<(Option<String>, Usage)>>;
    /// What tokens cost, if anybody said so.
    fn prices(&self) -> &Prices;
    /// Failed spans, newest first, at most `limit`, as lines with the message of each.
    fn failures(&self, filter: &LineFilter, limit: usize) -> Result<Vec<Failure>>;
    /// Percentiles per name of a dimension (`tool`, `model`, `kind`, `project`) over the days given (days since the epoch,
    /// inclusive).
    fn latency(&self, dimension: &str, days: (i64, i64)) -> Result<Vec<LatencyRow>>;
    /// How often a duration happened, by hour (or, with `daily`, by UTC day) and power of two, over the hours given (hours
    /// since the epoch, inclusive), in the order of time; of one name of the dimension, or of all.
    fn heat(
        &self,
        dimension: &str,
        name: Option<&str>,
        hours: (i64, i64),
        daily: bool,
    ) -> Result<Vec<HeatCell>>;
    /// Where the time of finished turns went, over the days given (days since the epoch, inclusive), by day, then project.
    fn times(&self, days: (i64, i64)) -> Result<Vec<DayTime>>;
    /// The newest day before `before` that [`Source::latency`] of `dimension` knows anything of, and how many spans there are
    /// before `before` in all.
    fn older(&self, dimension: &str, before: i64) -> Result<Option<(i64, u64)>>;
    /// Spans of a session that are drawn as one of `kinds`, by start, at most `limit`, with their rows.
    fn spans_of(&self, root: &str, kinds: &[LineKind], limit: usize) -> Result<Vec<(i64, Span)>>;
    /// Stretches in which no collector ran, and in which there was something to collect, newest first.
    fn gaps(&self, from_ns: i64, limit: usize) -> Result<Vec<Gap>>;
    /// Texts that hold every word asked for, newest first, at most `limit`, strictly before `before` (a cursor that
    /// [`Found::next`] gave).
    fn search(&self, query: &Query, before: Option<i64>, limit: usize) -> Result<Found>;
    /// What is kept, and for how long.
    fn privacy(&self) -> Result<Privacy>;
    /// What is left to do until hooks arrive.
    fn install(&self) -> Result<Vec<InstallStep>>;
    /// Where else a span can be looked at: a name, and a URL with `{trace_id}`, `{span_id}` and `{start_ms}`.
    fn links(&self) -> Vec<(String, String)>;
    /// A session as a file; `None` when there is no such session. `format` and `content` are words of [`FILE_FORMATS`] and
    /// [`FILE_CONTENTS`].
    fn file(&self, root: &str, format: &str, content: &str) -> Result<Option<Vec<u8>>>;
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
    /// Deletes everything that is stored of the sessions with these roots: rows, texts, hooks, what waits to be sent. It is
    /// in no file any more when this returns.
    fn delete(&self, roots: &[String]) -> Result<Deleted>;
}

/// What a deletion came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Sessions.
    pub sessions: u64,
    /// Spans.
    pub spans: u64,
    /// Raw hooks.
    pub hooks: u64,
}

/// Formats of a session as a file, each with the file's extension and media type.
pub const FILE_FORMATS: [(&str, &str, &str); 5] = [
    ("jsonl", "jsonl", "application/x-ndjson"),
    ("otlp-json", "otlp.json", "application/json"),
    ("otlp-proto", "otlp.pb", "application/x-protobuf"),
    ("chrome-trace", "trace.json", "application/json"),
    ("html", "html", "text/html; charset=utf-8"),
];

/// How much of the content goes into a file.
pub const FILE_CONTENTS: [&str; 3] = ["off", "metadata", "full"];

/// A failed span.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Root conversation.
    pub root: String,
    /// The span as a line.
    pub line: Line,
    /// What went wrong, in words.
    pub message: String,
}

/// How often a duration happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeatCell {
    /// Hours since the epoch; of a day the first.
    pub hour: i64,
    /// Calls of `2^bucket` microseconds and more, below twice that.
    pub bucket: u32,
    /// How many.
    pub count: u64,
}

/// Where the time of the finished turns of one day and project went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DayTime {
    /// UTC day on which the turns started, since the epoch.
    pub day: i64,
    /// Last name of the workspace; `None` when Cursor named none.
    pub project: Option<String>,
    /// Turns.
    pub turns: u64,
    /// Tool calls.
    pub calls: u64,
    /// Spans with status error.
    pub errors: u64,
    /// Time inside the turns, nanoseconds.
    pub active_ns: i64,
    /// What it is made of.
    pub parts: Parts,
    /// Tokens in, cache included.
    pub input: u64,
    /// Tokens out.
    pub output: u64,
}

/// A stretch in which no collector ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last sign of life before it, nanoseconds since the epoch.
    pub from_ns: i64,
    /// The next start.
    pub to_ns: i64,
    /// Hooks of that time, taken in afterwards.
    pub hooks: u64,
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Words and phrases; all of them must be in the same text. A query of one is never empty.
    pub terms: Vec<String>,
    /// What the span must be.
    pub filter: LineFilter,
    /// Only in texts of this name: prompt, response, thought, input, output, task, result, error.
    pub field: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Newest first.
    pub hits: Vec<Hit>,
    /// Cursor of what follows; `None` at the end.
    pub next: Option<i64>,
    /// How many texts hold the words, filters aside; `None` when they were not counted.
    pub total: Option<u64>,
    /// There are more than `total`.
    pub total_is_more: bool,
    /// Changes that are not in the index yet.
    pub lag: u64,
}

/// One text that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Root conversation.
    pub root: String,
    /// Its span.
    pub line: Line,
    /// Which of its texts: prompt, response, thought, input, output ...
    pub field: String,
    /// The text around the first mark. Redacted, and never markup.
    pub text: String,
    /// Where the words stand in `text`: start and end in UTF-16 units.
    pub marks: Vec<(u32, u32)>,
}

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privacy {
    /// Kinds of content: name, what is kept locally, what leaves the machine at most.
    pub classes: Vec<PrivacyClass>,
    /// Days after which sessions are deleted; `None`: never.
    pub retention_days: Option<u64>,
    /// Secrets that were blanked in the search index.
    pub redacted: u64,
    /// Whether texts can be searched.
    pub search: bool,
}

/// One kind of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivacyClass {
    /// prompts, outputs, files ...
    pub name: &'static str,
    /// What the store keeps: none, hash, preview, full.
    pub stored: &'static str,
    /// What the search index keeps: none, redacted.
    pub indexed: &'static str,
    /// The most that any destination gets: none, hash, preview, full.
    pub exported: &'static str,
}

/// One thing to do until hooks arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallStep {
    /// install, restart, first_hook.
    pub id: &'static str,
    /// todo, ok, failed.
    pub state: &'static str,
    /// What to type, if anything.
    pub command: Option<String>,
    /// What it is for, or what went wrong.
    pub hint: String,
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
    /// All of them together.
    pub total_us: u64,
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
    /// Search index bytes.
    pub search_bytes: u64,
    /// Changes that are not in the search index yet.
    pub search_lag: u64,
    /// From the stamp of a hook to the collector's hands, over the last day; `None` without hooks.
    pub arrival: Option<Arrival>,
    /// Names of events that hookspan does not know, with how often they came, most frequent first.
    pub unknown_events: Vec<(String, u64)>,
    /// Fields that hookspan does not know.
    pub unknown_fields: Vec<(String, u64)>,
    /// Destinations.
    pub destinations: Vec<DestinationHealth>,
    /// hookspan's version.
    pub version: String,
    /// Version of the hook program that is installed, when it is known.
    pub shim_version: Option<String>,
}

/// How long hooks took to arrive, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Hooks.
    pub count: u64,
    /// Median.
    pub p50_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Longest.
    pub max_us: u64,
    /// Hooks that took longer than 5 ms.
    pub over_budget: u64,
    /// Upper edges of buckets and how many hooks fell into each.
    pub hist: Vec<(u64, u64)>,
}

/// The journal as the collector sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalHealth {
    /// Segments on disk.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes kept for a lost write-ahead log: not yet known to be in the database file itself.
    pub behind_bytes: u64,
    /// Bytes not yet read.
    pub unread_bytes: u64,
    /// When the newest hook that has been read was received, nanoseconds since the epoch.
    pub read_up_to_ns: Option<i64>,
    /// Batches that wait for the one writer, and how many may: when they are as many, reading waits.
    pub queue: (u64, u64),
    /// The journal is at its bound: hooks are counted instead of kept.
    pub stopped: bool,
    /// Why the database does not take hooks, while it does not.
    pub trouble: Option<String>,
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
