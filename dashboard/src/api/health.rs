//! The health of hookspan itself, and making a destination try again.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use hookspan_view::health::{Arrival, DestinationHealth, Health, JournalHealth, drift_report};
use schemars::JsonSchema;
use serde::Serialize;

use super::extract::Route;
use super::{Answer, json, read};
use crate::App;
use crate::problem::Problem;

/// hookspan's own state.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Health")]
pub(super) struct HealthItem {
    now_us: i64,
    version: String,
    token_required: bool,
    trouble: Option<String>,
    /// Time from a hook's timestamp until the collector has read the hook, over the last day.
    shim: Option<ShimItem>,
    spool: SpoolItem,
    /// Hooks that were not kept, by reason.
    lost: BTreeMap<String, u64>,
    parse_errors: u64,
    unknown_events: Vec<NamedCount>,
    unknown_fields: Vec<NamedCount>,
    unknown_values: Vec<NamedCount>,
    /// A report of all unknown names as text, with names, types and counts only. Null if everything is known.
    drift_report: Option<String>,
    queue: QueueItem,
    journal: JournalItem,
    db: DbItem,
    search: SearchItem,
    counters: BTreeMap<String, u64>,
    exporters: Vec<ExporterItem>,
    versions: Versions,
}

#[derive(Serialize, JsonSchema)]
struct ShimItem {
    n: u64,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
    over_budget: u64,
    /// Upper limit in microseconds, and number of hooks.
    hist: Vec<(u64, u64)>,
}

#[derive(Serialize, JsonSchema)]
struct SpoolItem {
    segments: u64,
    bytes: u64,
    /// Bytes that have not been read.
    behind: u64,
    /// Age of the oldest waiting hook, as an upper bound; null if none is waiting.
    oldest_us: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
struct NamedCount {
    name: String,
    n: u64,
}

#[derive(Serialize, JsonSchema)]
struct SearchItem {
    bytes: u64,
    /// Number of changes that are not in the search index yet.
    lag: u64,
}

#[derive(Serialize, JsonSchema)]
struct Versions {
    collector: String,
    shim: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct JournalItem {
    segments: u64,
    bytes: u64,
    behind_bytes: u64,
    unread_bytes: u64,
    read_up_to_us: Option<i64>,
    queue: QueueItem,
    stopped: bool,
    /// Tasks of the journal's reader that fail at the moment and are tried again.
    problems: Vec<JournalProblem>,
}

#[derive(Serialize, JsonSchema)]
struct JournalProblem {
    since_us: i64,
    what: String,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
struct QueueItem {
    len: u64,
    cap: u64,
}

#[derive(Serialize, JsonSchema)]
struct DbItem {
    bytes: u64,
    wal: u64,
    fts: u64,
}

#[derive(Serialize, JsonSchema)]
struct ExporterItem {
    name: String,
    endpoint_host: String,
    state: String,
    last_ok_us: Option<i64>,
    last_error: Option<String>,
    advice: Option<String>,
    losing: bool,
    last_loss: Option<String>,
    queued: u64,
    delivered: u64,
    rejected: u64,
    expired: u64,
    /// Spans that were not delivered, by reason.
    lost: BTreeMap<String, u64>,
    /// The metrics for this destination, if it gets metrics.
    metrics: Option<MetricsItem>,
}

#[derive(Serialize, JsonSchema)]
struct MetricsItem {
    state: String,
    last_ok_us: Option<i64>,
    last_error: Option<String>,
    advice: Option<String>,
    /// Points delivered.
    delivered: u64,
    /// Points lost.
    lost: u64,
    /// Spans that are left out of all metrics, because they ended more than a day earlier.
    left_out: u64,
}

pub(super) async fn health(State(app): State<Arc<App>>) -> Answer<HealthItem> {
    let health = read(&app, |source| source.health()).await?;
    json(view(app.clock.now_ns() / 1_000, health, app.guard.door.is_some()))
}

fn view(now_us: i64, health: Health, token_required: bool) -> HealthItem {
    let counters = health.counters.iter().map(|(key, count)| (key.as_str(), *count));
    let drift_report = drift_report(&health.version, counters);
    let journal = health.journal;
    let named = |list: Vec<(String, u64)>| {
        list.into_iter().map(|(name, n)| NamedCount { name, n }).collect()
    };
    let lost = health.counters.iter().filter_map(|(name, count)| {
        let reason = name.strip_prefix("lost.").or_else(|| name.strip_prefix("lost_"))?;
        Some((reason.to_owned(), *count))
    });
    let count = |name: &str| {
        health.counters.iter().find(|(key, _)| key == name).map_or(0, |(_, count)| *count)
    };
    let spool = spool_item(&journal);
    let trouble = journal.trouble.clone();
    let journal = journal_item(journal);
    HealthItem {
        now_us,
        version: health.version.clone(),
        token_required,
        trouble,
        shim: health.arrival.map(shim_item),
        spool,
        queue: journal.queue,
        lost: lost.collect(),
        parse_errors: count("malformed"),
        unknown_events: named(health.unknown_events),
        unknown_fields: named(health.unknown_fields),
        unknown_values: named(health.unknown_values),
        drift_report,
        journal,
        db: DbItem {
            bytes: health.database_bytes,
            wal: health.wal_bytes,
            fts: health.search_bytes,
        },
        search: SearchItem { bytes: health.search_bytes, lag: health.search_lag },
        counters: health.counters.into_iter().collect(),
        exporters: health.destinations.into_iter().map(exporter).collect(),
        versions: Versions { collector: health.version, shim: health.shim_version },
    }
}

fn shim_item(arrival: Arrival) -> ShimItem {
    ShimItem {
        n: arrival.count,
        p50_us: arrival.p50_us,
        p99_us: arrival.p99_us,
        max_us: arrival.max_us,
        over_budget: arrival.over_budget,
        hist: arrival.hist,
    }
}

fn spool_item(journal: &JournalHealth) -> SpoolItem {
    let read_up_to = journal.read_up_to_ns.filter(|_| journal.unread_bytes > 0);
    SpoolItem {
        segments: journal.segments,
        bytes: journal.bytes,
        behind: journal.unread_bytes,
        oldest_us: read_up_to.map(|at| at / 1_000),
    }
}

fn journal_item(journal: JournalHealth) -> JournalItem {
    let (len, cap) = journal.queue;
    let problems = journal.problems.into_iter();
    JournalItem {
        segments: journal.segments,
        bytes: journal.bytes,
        behind_bytes: journal.behind_bytes,
        unread_bytes: journal.unread_bytes,
        read_up_to_us: journal.read_up_to_ns.map(|at| at / 1_000),
        queue: QueueItem { len, cap },
        stopped: journal.stopped,
        problems: problems
            .map(|(since_ns, what)| JournalProblem { since_us: since_ns / 1_000, what })
            .collect(),
    }
}

fn exporter(destination: DestinationHealth) -> ExporterItem {
    let lost = |reasons: &[&str]| {
        let counted = destination.lost.iter().filter(|(name, _)| reasons.contains(&name.as_str()));
        counted.map(|(_, count)| count).sum()
    };
    ExporterItem {
        rejected: lost(&["rejected", "partial", "too_large"]),
        expired: lost(&["expired", "overflow"]),
        name: destination.name,
        endpoint_host: destination.endpoint_host,
        state: destination.state,
        last_ok_us: destination.last_ok.map(|at| at.as_us()),
        last_error: destination.last_error,
        advice: destination.advice,
        losing: destination.losing,
        last_loss: destination.last_loss,
        queued: destination.queued,
        delivered: destination.delivered,
        lost: destination.lost.into_iter().collect(),
        metrics: destination.metrics.map(|metrics| MetricsItem {
            state: metrics.state,
            last_ok_us: metrics.last_ok.map(|at| at.as_us()),
            last_error: metrics.last_error,
            advice: metrics.advice,
            delivered: metrics.delivered,
            lost: metrics.lost,
            left_out: metrics.left_out,
        }),
    }
}

/// A destination was woken.
#[derive(Serialize, JsonSchema)]
pub(super) struct Retrying {
    retrying: bool,
    url: &'static str,
}

pub(super) async fn retry(
    State(app): State<Arc<App>>,
    Route(name): Route<String>,
) -> Answer<Retrying> {
    let control = Arc::clone(&app.control);
    let woken = read(&app, move |_| control.retry(&name)).await?;
    if !woken {
        return Err(Problem::not_found("exporter"));
    }
    json(Retrying { retrying: true, url: "/health" })
}
