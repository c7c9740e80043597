//! How the collector is doing.

use hookspan_core::Timestamp;

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
    /// What the journal's reader cannot do at present and tries again: since when, nanoseconds since the epoch, and in words.
    pub problems: Vec<(i64, String)>,
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
    /// What to do about the last failure.
    pub advice: Option<String>,
    /// Whether spans were lost during the last day.
    pub losing: bool,
    /// The last loss in words, with what to do about it.
    pub last_loss: Option<String>,
    /// Spans waiting.
    pub queued: u64,
    /// Spans delivered.
    pub delivered: u64,
    /// Spans lost, by reason.
    pub lost: Vec<(String, u64)>,
}
