//! The instruments.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use super::outcome::{Outcome, Refusal};
use crate::store::export::{self as tables, DestinationRow};
use crate::store::open::Readers;

/// Seconds, in steps of 1, 2, 5.
const SECONDS: [f64; 18] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
    200.0, 500.0,
];

/// Counters of exporters. Counting has no effect without a metrics exporter.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    export_spans: Counter<u64>,
    export_requests: Counter<u64>,
    export_duration: Histogram<f64>,
}

impl Metrics {
    /// Instruments of the process's meter.
    #[must_use]
    pub(crate) fn new() -> Self {
        let meter = meter();
        Self {
            export_spans: meter.u64_counter("hookspan.export.spans").build(),
            export_requests: meter.u64_counter("hookspan.export.requests").build(),
            export_duration: meter
                .f64_histogram("hookspan.export.duration")
                .with_unit("s")
                .with_boundaries(SECONDS.to_vec())
                .build(),
        }
    }

    /// Counts one attempt.
    pub(crate) fn export_request(
        &self,
        destination: &str,
        outcome: &Outcome,
        spans: u64,
        took: Duration,
    ) {
        let word = match outcome {
            Outcome::Ok => "ok",
            Outcome::Partial { .. } => "partial",
            Outcome::Retry { .. } => "retry",
            Outcome::Permanent { class: Refusal::Auth, .. } => "auth",
            Outcome::Permanent { class: Refusal::Config, .. } => "config",
            Outcome::Permanent { class: Refusal::TooLarge, .. } => "too_large",
            Outcome::Permanent { class: Refusal::Faulty, .. } => "faulty",
            Outcome::Permanent { class: Refusal::Rejected, .. } => "rejected",
        };
        let destination = KeyValue::new("destination", destination.to_owned());
        let labels = [destination.clone(), KeyValue::new("outcome", word)];
        self.export_requests.add(1, &labels);
        self.export_spans.add(spans, &labels);
        self.export_duration.record(took.as_secs_f64(), &[destination]);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn meter() -> Meter {
    opentelemetry::global::meter("hookspan")
}

/// Reports numbers from the store: hooks, losses, backlogs, sizes. They are read only when a metrics exporter asks for
/// them.
pub(crate) fn observe(database: &Path) {
    let readers = Arc::new(Readers::new(database));
    let meter = meter();
    counter(&meter, &readers, "hookspan.hooks.received", "received");
    counter(&meter, &readers, "hookspan.hooks.duplicates", "duplicate");
    counter(&meter, &readers, "hookspan.hooks.malformed", "malformed");
    gauge(&meter, &readers, "hookspan.export.backlog", |row| row.queued);
    gauge(&meter, &readers, "hookspan.export.paused", |row| u64::from(row.state == "paused"));
    let file = database.to_path_buf();
    meter
        .u64_observable_gauge("hookspan.store.size")
        .with_unit("By")
        .with_callback(move |observer| {
            if let Ok(facts) = file.metadata() {
                observer.observe(facts.len(), &[]);
            }
        })
        .build();
}

fn counter(meter: &Meter, readers: &Arc<Readers>, name: &'static str, key: &'static str) {
    let readers = Arc::clone(readers);
    meter
        .u64_observable_counter(name)
        .with_callback(move |observer| {
            if let Ok(value) = readers.with(|db| tables::counter(db, key)) {
                observer.observe(value, &[]);
            }
        })
        .build();
}

fn gauge(
    meter: &Meter,
    readers: &Arc<Readers>,
    name: &'static str,
    value: fn(&DestinationRow) -> u64,
) {
    let readers = Arc::clone(readers);
    meter
        .u64_observable_gauge(name)
        .with_callback(move |observer| {
            for row in readers.with(tables::destinations).unwrap_or_default() {
                let label = KeyValue::new("destination", row.name.clone());
                observer.observe(value(&row), &[label]);
            }
        })
        .build();
}
