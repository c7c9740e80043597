//! `/metrics`: figures in the text format of Prometheus, 0.0.4.
//!
//! Every label comes from a list that ships with hookspan: kinds, tools of the editors, models of the public price
//! list. All other names are counted as `other`. So the number of series is bounded, and a scrape reveals neither
//! content nor custom names.
//!
//! Sums and histograms count what has settled since midnight (UTC) of the day on which the collector started. They
//! never fall while it runs, even if a session is deleted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use hookspan_core::price::Usage;
use hookspan_view::Result;
use hookspan_view::health::Health;
use hookspan_view::source::{Administration, HeatCell, LatencyRow, Spent, Statistics};

use crate::clock;
use crate::export;
use crate::prices;

const DAY_NS: i64 = 86_400_000_000_000;
const DAY_HOURS: i64 = 24;

/// Maximum number of names read per dimension, the most frequent first. Each costs a query.
const NAMES_MAX: usize = 500;

/// Buckets of a histogram: powers of two of a microsecond, from 1 ms to 2.4 h. The first one contains everything
/// shorter.
const BUCKETS: std::ops::RangeInclusive<u32> = 10..=33;

/// The sums of the last scrape, so that none of them falls.
#[derive(Debug)]
pub(super) struct Told {
    /// The day on which the collector started, in days since the epoch. Sums begin there.
    since: i64,
    sums: Mutex<BTreeMap<String, f64>>,
}

impl Told {
    /// No sums yet. They begin today.
    pub(super) fn new() -> Self {
        Self { since: today(), sums: Mutex::default() }
    }
}

fn today() -> i64 {
    clock::now().0.div_euclid(DAY_NS)
}

/// A page that is being written.
struct Page<'a> {
    out: String,
    told: &'a Told,
}

impl Page<'_> {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn gauge(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let _ = writeln!(self.out, "{name}{} {value}", written(labels));
    }

    /// A sample that does not fall.
    fn sum(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let series = format!("{name}{}", written(labels));
        let mut sums = self.told.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = sums.entry(series.clone()).or_insert(value);
        *kept = kept.max(value);
        let _ = writeln!(self.out, "{series} {kept}");
    }

    fn histogram(&mut self, name: &str, label: (&str, &str), all: &Distribution) {
        let mut below = 0_u64;
        let bucket = format!("{name}_bucket");
        for power in BUCKETS {
            let counted = all.counts.range(..=power).map(|(_, count)| count).sum::<u64>();
            below = below.max(counted);
            let edge = format!("{}", (1_u64 << (power + 1)) as f64 / 1e6);
            self.sum(&bucket, &[label, ("le", &edge)], below as f64);
        }
        let count = all.counts.values().sum::<u64>() as f64;
        self.sum(&bucket, &[label, ("le", "+Inf")], count);
        self.sum(&format!("{name}_sum"), &[label], all.total_us as f64 / 1e6);
        self.sum(&format!("{name}_count"), &[label], count);
    }
}

/// Durations of one series.
#[derive(Debug, Default)]
struct Distribution {
    /// Number of spans by the power of two of their duration in microseconds.
    counts: BTreeMap<u32, u64>,
    total_us: u64,
    errors: u64,
}

impl Distribution {
    fn add(&mut self, cells: &[HeatCell], row: &LatencyRow) {
        for cell in cells {
            *self.counts.entry(cell.bucket).or_default() += cell.count;
        }
        self.total_us = self.total_us.saturating_add(row.total_us.unwrap_or(0));
        self.errors += row.errors;
    }
}

/// `{name="value",...}`; empty without labels.
fn written(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

impl Told {
    /// The whole page.
    pub(super) fn page(&self, source: &(impl Statistics + Administration)) -> Result<String> {
        let (since, today) = (self.since, today());
        let mut page = Page { out: String::new(), told: self };
        own_health(&mut page, &source.health()?);
        tokens(&mut page, &source.usage(since.saturating_mul(DAY_NS))?);
        let days = (since, today);
        let of_kind = |name: &str| operation(name).map(str::to_owned);
        let operations = distributions(source, "kind", days, of_kind)?;
        let name = "gen_ai_client_operation_duration_seconds";
        page.family(name, "histogram", "Duration of turns, subagents and answers.");
        for (operation, all) in &operations {
            page.histogram(name, ("gen_ai_operation_name", operation), all);
        }
        let of_tool = |name: &str| Some(export::known_tool(name).unwrap_or("other").to_owned());
        let tools = distributions(source, "tool", days, of_tool)?;
        let name = "gen_ai_execute_tool_duration_seconds";
        page.family(name, "histogram", "Duration of tool calls.");
        for (tool, all) in &tools {
            page.histogram(name, ("gen_ai_tool_name", tool), all);
        }
        page.family("hookspan_tool_errors_total", "counter", "Failed tool calls.");
        for (tool, all) in &tools {
            let label = [("gen_ai_tool_name", tool.as_str())];
            page.sum("hookspan_tool_errors_total", &label, all.errors as f64);
        }
        let spent = source.spent(&[days.0 * DAY_NS, (days.1 + 1) * DAY_NS])?;
        turn_time(&mut page, &spent);
        Ok(page.out)
    }
}

/// Durations during these days, grouped by the label that `label` makes of a name. Names for which it makes none are
/// left out.
fn distributions(
    source: &impl Statistics,
    dimension: &str,
    days: (i64, i64),
    label: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, Distribution>> {
    let hours = (days.0 * DAY_HOURS, days.1 * DAY_HOURS + DAY_HOURS - 1);
    let mut all: BTreeMap<String, Distribution> = BTreeMap::new();
    for row in source.latency(dimension, days)?.into_iter().take(NAMES_MAX) {
        let Some(label) = label(&row.name) else { continue };
        let cells = source.heat(dimension, Some(&row.name), hours, true)?;
        all.entry(label).or_default().add(&cells, &row);
    }
    Ok(all)
}

/// The conventions' name for the operation of a kind of span.
fn operation(kind: &str) -> Option<&'static str> {
    match kind {
        "turn" | "subagent" => Some("invoke_agent"),
        "response" => Some("chat"),
        _ => None,
    }
}

fn tokens(page: &mut Page<'_>, usage: &[(Option<String>, Usage)]) {
    let known = prices::with_public(hookspan_core::price::Prices::default());
    let mut by_model: BTreeMap<&str, Usage> = BTreeMap::new();
    for (model, more) in usage {
        let name = model.as_deref().and_then(|label| known.name(label)).unwrap_or("other");
        let sum = by_model.entry(name).or_default();
        sum.input = sum.input.saturating_add(more.input);
        sum.output = sum.output.saturating_add(more.output);
        sum.cache_read = sum.cache_read.saturating_add(more.cache_read);
        sum.cache_write = sum.cache_write.saturating_add(more.cache_write);
    }
    let name = "hookspan_tokens_total";
    let help = "Tokens that Cursor reported; input without both cache parts.";
    page.family(name, "counter", help);
    for (model, sum) in by_model {
        for (kind, count) in [
            ("input", sum.input),
            ("output", sum.output),
            ("cache_read", sum.cache_read),
            ("cache_write", sum.cache_write),
        ] {
            let labels = [("gen_ai_response_model", model), ("gen_ai_token_type", kind)];
            page.sum(name, &labels, count as f64);
        }
    }
}

/// Where the time of turns went, including hooks and waits for approval.
fn turn_time(page: &mut Page<'_>, spent: &[Spent]) {
    let name = "hookspan_turn_seconds_total";
    page.family(name, "counter", "Where the time of finished turns went.");
    let mut parts: BTreeMap<&str, i64> = BTreeMap::new();
    for (part, ns) in spent.iter().flat_map(|one| one.time.parts.named()) {
        *parts.entry(part).or_default() += ns;
    }
    for (part, ns) in parts {
        page.sum(name, &[("part", part)], ns as f64 / 1e9);
    }
    page.family("hookspan_turns_total", "counter", "Finished turns.");
    let turns = spent.iter().map(|one| one.time.turns).sum::<u64>() as f64;
    page.sum("hookspan_turns_total", &[], turns);
}

fn own_health(page: &mut Page<'_>, health: &Health) {
    page.family("hookspan_build_info", "gauge", "The release that runs.");
    page.gauge("hookspan_build_info", &[("version", &health.version)], 1.0);
    page.family(
        "hookspan_events_total",
        "counter",
        "What happened to hooks, since the store was made.",
    );
    // After a dot, a counter's key contains a name: of a new event, or of a reason. Such counters are left out.
    for (key, count) in health.counters.iter().filter(|(key, _)| !key.contains('.')) {
        page.sum("hookspan_events_total", &[("event", key)], *count as f64);
    }
    // The names after this prefix are hookspan's own.
    let received = health.counters.iter();
    let received = received.filter_map(|(key, count)| Some((key.strip_prefix("otlp.")?, count)));
    page.family("hookspan_otlp_total", "counter", "What happened to OTLP that was received.");
    for (event, count) in received {
        page.sum("hookspan_otlp_total", &[("event", event)], *count as f64);
    }
    if let Some(arrival) = &health.arrival {
        let name = "hookspan_hook_arrival_seconds";
        page.family(
            name,
            "gauge",
            "Time from a hook's stamp until the collector had it, over the last day.",
        );
        for (quantile, us) in
            [("0.5", arrival.p50_us), ("0.99", arrival.p99_us), ("1", arrival.max_us)]
        {
            page.gauge(name, &[("quantile", quantile)], us as f64 / 1e6);
        }
    }
    for (name, help, value) in [
        ("hookspan_journal_bytes", "Size of the journal.", health.journal.bytes),
        ("hookspan_journal_unread_bytes", "Part of it not read yet.", health.journal.unread_bytes),
        ("hookspan_queue_batches", "Batches that wait for the writer.", health.journal.queue.0),
        ("hookspan_database_bytes", "Size of the database.", health.database_bytes),
        ("hookspan_wal_bytes", "Size of its write-ahead log.", health.wal_bytes),
        ("hookspan_search_bytes", "Size of the search index.", health.search_bytes),
        ("hookspan_search_lag", "Changes that cannot be found yet.", health.search_lag),
        ("hookspan_journal_stopped", "1 while hooks are lost.", health.journal.stopped.into()),
    ] {
        page.family(name, "gauge", help);
        page.gauge(name, &[], value as f64);
    }
    destinations(page, health);
}

fn destinations(page: &mut Page<'_>, health: &Health) {
    let all = &health.destinations;
    page.family("hookspan_export_up", "gauge", "1 while a destination takes spans.");
    for one in all {
        let up = f64::from(u8::from(one.state == "ok"));
        page.gauge("hookspan_export_up", &[("destination", &one.name)], up);
    }
    page.family("hookspan_export_backlog", "gauge", "Spans that wait.");
    for one in all {
        page.gauge("hookspan_export_backlog", &[("destination", &one.name)], one.queued as f64);
    }
    page.family("hookspan_export_spans_total", "counter", "Spans by outcome.");
    for one in all {
        let name = ("destination", one.name.as_str());
        let delivered = one.delivered as f64;
        page.sum("hookspan_export_spans_total", &[name, ("outcome", "delivered")], delivered);
        for (reason, count) in &one.lost {
            let labels = [name, ("outcome", reason.as_str())];
            page.sum("hookspan_export_spans_total", &labels, *count as f64);
        }
    }
}

#[cfg(test)]
mod tests;
