//! The metrics settings of a destination: the endpoint, the interval, and the time from which sums count.

use std::collections::BTreeMap;
use std::time::Duration;

use super::address::other_endpoint;
use super::form::DestinationForm;
use super::{Connection, Environment, Signal, Temporality};
use crate::config::connection::parse_duration;
use crate::config::mistake::{Mistake, Why};

/// Default time between two requests with metrics: the default of OpenTelemetry's specification.
const METRICS_INTERVAL: Duration = Duration::from_secs(60);
/// Minimum time between two requests, so that a typing error such as `1ms` does not flood the receiver.
const METRICS_INTERVAL_MIN: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// How metrics are sent to a destination.
#[derive(Clone, Debug)]
pub(crate) struct MetricsExport {
    /// Where and how to connect.
    pub connection: Connection,
    /// The time from which sums count.
    pub temporality: Temporality,
    /// Time between two requests.
    pub interval: Duration,
}

impl DestinationForm {
    /// How metrics are sent. A `metrics_…` key without `metrics` is an error, because it would have no effect.
    pub(super) fn metrics(
        &self,
        env: &Environment,
        spans: &Connection,
        values: &BTreeMap<String, String>,
    ) -> Result<Option<MetricsExport>, Mistake> {
        if self.metrics != Some(true) {
            let key = match self {
                Self { metrics_endpoint: Some(_), .. } => "metrics_endpoint",
                Self { metrics_temporality: Some(_), .. } => "metrics_temporality",
                Self { metrics_interval: Some(_), .. } => "metrics_interval",
                _ => return Ok(None),
            };
            return if self.metrics.is_none() { Err(Why::NoMetrics.at(key)) } else { Ok(None) };
        }
        if !self.preset.takes_metrics() {
            return Err(Why::TracesOnly(self.preset.as_str()).at("metrics"));
        }
        let interval = match self.metrics_interval.as_deref() {
            None => METRICS_INTERVAL,
            Some(text) => match parse_duration(text) {
                Ok(interval) if (METRICS_INTERVAL_MIN..=DAY).contains(&interval) => interval,
                _ => return Err(Why::Interval(text.to_owned()).at("metrics_interval")),
            },
        };
        let given = ("metrics_endpoint", self.metrics_endpoint.as_deref());
        let endpoint = other_endpoint(Signal::Metrics, given, spans, values)?;
        let temporality = match self.metrics_temporality {
            Some(temporality) => temporality,
            None => self.preset.temporality().map_or_else(|| temporality_from_env(env), Ok)?,
        };
        let connection = Connection { endpoint, ..spans.clone() };
        Ok(Some(MetricsExport { connection, temporality, interval }))
    }
}

/// The temporality that OpenTelemetry's environment variable asks for.
fn temporality_from_env(env: &Environment) -> Result<Temporality, Mistake> {
    const KEY: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
    let word = env.var(KEY).map(str::trim).unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "" | "cumulative" => Ok(Temporality::Cumulative),
        // "lowmemory" asks for differences of counters and histograms. hookspan sends no other kinds.
        "delta" | "lowmemory" => Ok(Temporality::Delta),
        _ => Err(Why::unknown(word, "cumulative, delta or lowmemory").at(KEY)),
    }
}
