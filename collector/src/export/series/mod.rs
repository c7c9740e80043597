//! Metrics for a destination that is configured to get them: sums and histograms over settled spans, and hookspan's own
//! state.
//!
//! Each destination has its own position in the queue of settled spans. A request is stored before its first attempt,
//! and the position moves when the request is done. For a receiver of differences, no further request is built until
//! then. Spans that settle in the meantime are counted by the next request. So during an outage no span is lost, and
//! only one request is stored.

mod exponential;
mod fold;
mod request;
mod worker;

pub(super) use worker::spawn;

/// A request that counts `spans`, for tests of its format.
#[cfg(test)]
pub(super) fn sample<'a>(
    encoding: &super::otlp::Encoding,
    spans: impl IntoIterator<Item = &'a hookspan_core::Span>,
) -> opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest {
    use crate::config::destination::Temporality;
    let mut series = fold::Series::default();
    for span in spans {
        series.add(span, fold::Rules { encoding, is_sent: true });
    }
    let (start, end) = (hookspan_core::Timestamp(1), hookspan_core::Timestamp(2));
    let period = request::Period { temporality: Temporality::Delta, start, end };
    let own = request::Own::default();
    request::request(encoding.machine("i"), &series, &own, &own, period).0
}

/// Name, unit and attribute of hookspan's own metrics, for the checks of dashboards.
#[cfg(test)]
pub(super) fn own() -> impl Iterator<Item = (&'static str, &'static str, Option<&'static str>)> {
    request::OWN.into_iter().map(|(name, unit, _, attribute)| (name, unit, attribute))
}
