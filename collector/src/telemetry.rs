//! hookspan's own traces and metrics, off unless asked for.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram};

use crate::export::outcome::{Outcome, Refusal};

/// The instruments. Without an exporter they cost a call into nothing.
#[derive(Clone, Debug)]
pub struct Metrics {
    export_spans: Counter<u64>,
    export_requests: Counter<u64>,
    export_duration: Histogram<f64>,
}

impl Metrics {
    /// Instruments of the process's meter.
    #[must_use]
    pub fn new() -> Self {
        let meter = opentelemetry::global::meter("hookspan");
        Self {
            export_spans: meter.u64_counter("hookspan.export.spans").build(),
            export_requests: meter.u64_counter("hookspan.export.requests").build(),
            export_duration: meter.f64_histogram("hookspan.export.duration").with_unit("s").build(),
        }
    }

    /// Counts one attempt.
    pub fn export_request(&self, destination: &str, outcome: &Outcome, spans: u64, took: Duration) {
        let word = match outcome {
            Outcome::Ok => "ok",
            Outcome::Partial { .. } => "partial",
            Outcome::Retry { .. } => "retry",
            Outcome::Permanent { class: Refusal::Auth, .. } => "auth",
            Outcome::Permanent { class: Refusal::Config, .. } => "config",
            Outcome::Permanent { class: Refusal::TooLarge, .. } => "too_large",
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
