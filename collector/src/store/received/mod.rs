//! Stores what other programs sent over OTLP. None of it is derived from hooks, so a rebuild does not change it.
//!
//! [`take`] stores one request in one transaction. [`join`] finds the session of a trace. [`read`] lists what belongs to a
//! session. [`age`] deletes telemetry that is old and belongs to no session.

pub(crate) mod age;
pub(crate) mod join;
pub(crate) mod read;
pub(crate) mod take;

use std::collections::BTreeMap;

/// `kind` of a log record. Kinds of spans are those of OTLP, 0 to 5.
pub(crate) const LOG_RECORD: u8 = 16;

/// One request, decoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Incoming {
    /// Spans and log records.
    pub spans: Vec<ReceivedSpan>,
    /// Points of counters.
    pub points: Vec<Point>,
    /// Counters to add to.
    pub counts: BTreeMap<&'static str, u64>,
}

/// A span or a log record that is worth keeping.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReceivedSpan {
    pub trace: [u8; 16],
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    /// As in OTLP, or [`LOG_RECORD`].
    pub kind: u8,
    pub name: String,
    pub service: String,
    pub scope: String,
    pub start_ns: i64,
    pub end_ns: i64,
    /// 0 unset, 1 ok, 2 error.
    pub status: u8,
    pub message: Option<String>,
    /// A JSON object.
    pub attributes: String,
    /// Number of attributes that were dropped or shortened.
    pub cut: u32,
    /// The session that its attributes name.
    pub session: Option<String>,
    /// The tool call that its attributes name.
    pub tool: Option<String>,
    /// The working directory of its process.
    pub directory: Option<String>,
    pub model: Option<String>,
    pub usage: Option<Usage>,
}

/// Tokens and cost of one request to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// Input tokens, including those read from and written to the cache.
    pub input: Option<i64>,
    pub output: Option<i64>,
    pub cache_read: Option<i64>,
    pub cache_write: Option<i64>,
    /// US dollars.
    pub cost: Option<f64>,
}

/// One point of a counter of tokens or cost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Identifies the series: a hash over resource, name, attributes and, if the series is cumulative, its start.
    pub key: [u8; 16],
    pub session: String,
    pub service: String,
    /// Empty if the point names no model.
    pub model: String,
    pub at_ns: i64,
    /// The value is the sum since the start of the series, not since the last point.
    pub is_cumulative: bool,
    pub value: f64,
    pub of: Field,
    /// The sender's input tokens do not include this part.
    pub beside_input: bool,
}

/// What a point counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Input,
    Output,
    CacheRead,
    CacheWrite,
    Cost,
}

/// How much may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Spans of one session.
    pub session_spans: u64,
    /// Spans of one UTC day.
    pub day_spans: u64,
    /// Bytes of one UTC day.
    pub day_bytes: u64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// New rows and points.
    pub stored: u64,
    /// Rows and points that were stored before.
    pub duplicate: u64,
    /// Spans of ours that came back.
    pub own: u64,
    /// Rows refused because of a limit: per session, per day, or for spans without a session.
    pub refused: u64,
    /// There are recent spans whose session is not known.
    pub unjoined: bool,
}
