//! Writes series and hookspan's own state as an OTLP request. A pure function.

use std::collections::BTreeMap;

use hookspan_core::Timestamp;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Exemplar as OtlpExemplar, ExponentialHistogram, Gauge,
    Metric as OtlpMetric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, exemplar, metric,
    number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::fold::{Attributes, Exemplar, OVERFLOW, Point, Series};
use crate::config::destination::Temporality;
use crate::export::strict;
use crate::export::value::key_value;

/// hookspan's own state and the state of one destination, at one time. Other destinations are left out, because a
/// receiver must not learn their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// Counters, which never decrease, by metric and by the value of its attribute.
    pub(super) sums: BTreeMap<(&'static str, String), u64>,
    /// Current values by metric.
    pub(super) gauges: BTreeMap<&'static str, u64>,
}

/// Name, unit, description and attribute of hookspan's own metrics.
pub(super) const OWN: [(&str, &str, &str, Option<&str>); 6] = [
    ("hookspan.export.backlog", "{span}", "Spans that wait for this destination.", None),
    (
        "hookspan.export.spans",
        "{span}",
        "Spans for this destination by outcome.",
        Some("hookspan.outcome"),
    ),
    ("hookspan.export.up", "1", "1 while this destination takes spans.", None),
    ("hookspan.hooks", "{hook}", "Hooks by what became of them.", Some("hookspan.hook.outcome")),
    ("hookspan.metrics.spans_left_out", "{span}", "Spans that no metric counts: too old.", None),
    ("hookspan.store.size", "By", "Size of the database.", None),
];

/// The period over which the sums of a request count, and their temporality.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    pub(super) temporality: Temporality,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

impl Period {
    fn temporality(self) -> i32 {
        match self.temporality {
            Temporality::Delta => AggregationTemporality::Delta as i32,
            Temporality::Cumulative => AggregationTemporality::Cumulative as i32,
        }
    }
}

/// Returns the request and its number of points. `before` contains hookspan's own sums at the start of the period.
pub(super) fn request(
    resource: Resource,
    series: &Series,
    own: &Own,
    before: &Own,
    period: Period,
) -> (ExportMetricsServiceRequest, u64) {
    let mut metrics: Vec<OtlpMetric> = Vec::new();
    for (metric, points) in &series.points {
        let (name, unit, description) = metric.words();
        if let Some(data) = data(points, period) {
            metrics.push(named(name, unit, description, data));
        }
    }
    for (name, unit, description, attribute) in OWN {
        if let Some(data) = own_data(name, attribute, own, before, period) {
            metrics.push(named(name, unit, description, data));
        }
    }
    let points = metrics.iter().map(points).sum();
    let scope = InstrumentationScope {
        name: "hookspan".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let schema_url = strict::SCHEMA_URL.to_owned();
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics, schema_url }];
    let resource_metrics = vec![ResourceMetrics {
        resource: Some(resource),
        scope_metrics,
        schema_url: String::new(),
    }];
    (ExportMetricsServiceRequest { resource_metrics }, points)
}

fn named(name: &str, unit: &str, description: &str, data: metric::Data) -> OtlpMetric {
    OtlpMetric {
        name: name.to_owned(),
        description: description.to_owned(),
        unit: unit.to_owned(),
        metadata: Vec::new(),
        data: Some(data),
    }
}

fn points(metric: &OtlpMetric) -> u64 {
    let count = match &metric.data {
        Some(metric::Data::ExponentialHistogram(all)) => all.data_points.len(),
        Some(metric::Data::Sum(all)) => all.data_points.len(),
        Some(metric::Data::Gauge(all)) => all.data_points.len(),
        _ => 0,
    };
    count as u64
}

fn data(points: &BTreeMap<Attributes, Point>, period: Period) -> Option<metric::Data> {
    let (mut histograms, mut sums) = (Vec::new(), Vec::new());
    for (attributes, point) in points {
        let attributes = pairs(attributes);
        match point {
            Point::Histogram(histogram, exemplars) => {
                let mut point = histogram.point();
                point.attributes = attributes;
                point.start_time_unix_nano = unsigned(period.start);
                point.time_unix_nano = unsigned(period.end);
                point.exemplars = exemplars.iter().map(otlp_exemplar).collect();
                histograms.push(point);
            }
            Point::Sum(sum) => {
                let value = number_data_point::Value::AsDouble(*sum);
                sums.push(number(attributes, value, period));
            }
        }
    }
    let aggregation_temporality = period.temporality();
    match (histograms.is_empty(), sums.is_empty()) {
        (false, _) => Some(metric::Data::ExponentialHistogram(ExponentialHistogram {
            data_points: histograms,
            aggregation_temporality,
        })),
        (true, false) => Some(metric::Data::Sum(Sum {
            data_points: sums,
            aggregation_temporality,
            is_monotonic: true,
        })),
        (true, true) => None,
    }
}

fn own_data(
    name: &str,
    attribute: Option<&str>,
    own: &Own,
    before: &Own,
    period: Period,
) -> Option<metric::Data> {
    if let Some(value) = own.gauges.get(name) {
        let value = number_data_point::Value::AsInt(signed(*value));
        let mut point = number(Vec::new(), value, period);
        point.start_time_unix_nano = 0;
        return Some(metric::Data::Gauge(Gauge { data_points: vec![point] }));
    }
    let sums = own.sums.iter().filter(|((metric, _), _)| *metric == name);
    let points = sums.filter_map(|(key, value)| {
        let since = before.sums.get(key).copied().unwrap_or(0);
        let more = value.saturating_sub(since);
        let attributes = attribute.map(|attribute| (attribute, key.1.as_str()));
        let attributes = attributes.map(|(key, text)| key_value(key, text_value(text)));
        let value = number_data_point::Value::AsInt(signed(more));
        (more > 0 || period.temporality == Temporality::Cumulative)
            .then(|| number(attributes.into_iter().collect(), value, period))
    });
    let data_points: Vec<NumberDataPoint> = points.collect();
    (!data_points.is_empty()).then(|| {
        metric::Data::Sum(Sum {
            data_points,
            aggregation_temporality: period.temporality(),
            is_monotonic: true,
        })
    })
}

fn number(
    attributes: Vec<KeyValue>,
    value: number_data_point::Value,
    period: Period,
) -> NumberDataPoint {
    NumberDataPoint {
        attributes,
        start_time_unix_nano: unsigned(period.start),
        time_unix_nano: unsigned(period.end),
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn pairs(attributes: &Attributes) -> Vec<KeyValue> {
    let pair = |(key, value): &(&str, String)| match *key {
        OVERFLOW => key_value(key, Value::BoolValue(true)),
        key => key_value(key, text_value(value)),
    };
    attributes.iter().map(pair).collect()
}

fn otlp_exemplar(exemplar: &Exemplar) -> OtlpExemplar {
    OtlpExemplar {
        filtered_attributes: Vec::new(),
        time_unix_nano: unsigned(exemplar.at),
        span_id: exemplar.span.0.to_vec(),
        trace_id: exemplar.trace.0.to_vec(),
        value: Some(exemplar::Value::AsDouble(exemplar.value)),
    }
}

fn text_value(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

fn unsigned(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
