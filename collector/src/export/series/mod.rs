//! Metrics for a destination that asks for them: what settled spans add up to, and hookspan's own state.
//!
//! Each destination has its own place in the queue of settled spans. A request is stored before its first attempt, and the place moves
//! when the request is done. Until then nothing further is built for a receiver that takes differences: what settles meanwhile is counted
//! by the next request, so an outage loses nothing and needs no room.

mod exponential;
mod fold;
mod request;
mod worker;

pub(super) use worker::spawn;

/// The request that counts `spans`, for the checks of its form.
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
