//! How the collector is doing.

use hookspan_core::Timestamp;

/// The health of hookspan itself. It never contains a header's value or a token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// Segments of the journal, with the bytes and hooks that are not committed yet.
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
    /// The time from a hook's stamp until the collector had it, over the last day; `None` without hooks.
    pub arrival: Option<Arrival>,
    /// Names of events that hookspan does not know, each with its count, the most frequent first.
    pub unknown_events: Vec<(String, u64)>,
    /// Fields that hookspan does not know, each with the shape of its value.
    pub unknown_fields: Vec<(String, u64)>,
    /// Words that hookspan does not know, in fields whose value is one word from a fixed list.
    pub unknown_values: Vec<(String, u64)>,
    /// Destinations.
    pub destinations: Vec<DestinationHealth>,
    /// hookspan's version.
    pub version: String,
    /// Version of the hook program that is installed, when it is known.
    pub shim_version: Option<String>,
}

/// How long hooks took to arrive, in microseconds.
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
    /// Upper limit of each bucket, and the number of hooks in it.
    pub hist: Vec<(u64, u64)>,
}

/// The journal as the collector sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalHealth {
    /// Segments on disk.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that are kept in case the write-ahead log is lost. They may not be in the database file yet.
    pub behind_bytes: u64,
    /// Bytes not yet read.
    pub unread_bytes: u64,
    /// The time at which the newest hook that was read had been received, in nanoseconds since the epoch.
    pub read_up_to_ns: Option<i64>,
    /// Number of batches in the writer's queue, and the capacity of the queue. The reader waits while the queue is
    /// full.
    pub queue: (u64, u64),
    /// The journal is at its bound: new hooks are counted and not stored.
    pub stopped: bool,
    /// Operations of the journal's reader that fail at the moment and are tried again: since when (nanoseconds since
    /// the epoch), and what fails.
    pub problems: Vec<(i64, String)>,
    /// Why the database accepts no hooks at the moment; `None` if it does.
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
    /// The last loss in words, and what to do about it.
    pub last_loss: Option<String>,
    /// Spans waiting.
    pub queued: u64,
    /// Spans delivered.
    pub delivered: u64,
    /// Spans lost, by reason.
    pub lost: Vec<(String, u64)>,
    /// Its metrics, if it is sent any.
    pub metrics: Option<MetricsHealth>,
}

/// The metrics of one export destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsHealth {
    /// ok, retry, paused.
    pub state: String,
    /// Last success.
    pub last_ok: Option<Timestamp>,
    /// Last failure in words.
    pub last_error: Option<String>,
    /// What to do about the last failure.
    pub advice: Option<String>,
    /// Points delivered.
    pub delivered: u64,
    /// Points lost.
    pub lost: u64,
    /// Spans that no metric counts, because they ended more than a day before they were read.
    pub left_out: u64,
}

/// Report of everything that hookspan does not know: versions, names, shapes and counts, but no content. `None` if
/// everything is known.
#[must_use]
pub fn drift_report<'a>(
    version: &str,
    counters: impl IntoIterator<Item = (&'a str, u64)>,
) -> Option<String> {
    let counters: Vec<(&str, u64)> = counters.into_iter().collect();
    let mut report = format!("hookspan {version} received hooks that are new to it.\n");
    let mut any = false;
    for (title, kind) in DRIFT {
        let found = || {
            let named = counters.iter();
            named.filter_map(|(key, count)| {
                Some((key.strip_prefix(kind)?.strip_prefix('.')?, count))
            })
        };
        if found().next().is_none() {
            continue;
        }
        any = true;
        report += &format!("\n{title} (version of Cursor, name, how often)\n");
        for (name, count) in found() {
            report += &format!("- {name}: {count}\n");
        }
    }
    any.then_some(report)
}

/// Counters of unknown names.
const DRIFT: [(&str, &str); 3] = [
    ("Events", "unknown_event"),
    ("Fields with the shape of their value", "unknown_field"),
    ("Words of a list", "unknown_value"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_what_is_new_and_nothing_else() {
        let counters = [
            ("received", 9),
            ("unknown_event", 2),
            ("unknown_event.3.30.1 onDream", 2),
            ("unknown_field.3.30.1 mood:text", 7),
            ("unknown_value.3.30.1 stop.status=paused", 1),
        ];
        let report = drift_report("1.2.3", counters).unwrap_or_default();
        let expected = "hookspan 1.2.3 received hooks that are new to it.\n\n\
            Events (version of Cursor, name, how often)\n- 3.30.1 onDream: 2\n\n\
            Fields with the shape of their value (version of Cursor, name, how often)\n- 3.30.1 mood:text: 7\n\n\
            Words of a list (version of Cursor, name, how often)\n- 3.30.1 stop.status=paused: 1\n";
        assert_eq!(report, expected);
        assert_eq!(drift_report("1.2.3", [("received", 9)]), None);
    }
}
