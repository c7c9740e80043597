//! Checks that dashboards, alerts and gateways in `deploy/` use only names that hookspan sends.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use regex::Regex;

use super::conformance::{encoding, exported, fold, root, streams};
use crate::config::destination::ContentPolicy;
use crate::config::{OpenInference, Profile};
use crate::export::otlp::Encoding;
use crate::export::series;

/// Names in the exports of all streams.
struct Sent {
    /// Keys of spans, events and resources.
    keys: BTreeSet<String>,
    /// Metrics by name.
    metrics: BTreeSet<String>,
    /// Metrics as Prometheus names them.
    prometheus: BTreeSet<String>,
    /// Keys of metrics and their resource.
    labels: BTreeSet<String>,
}

fn sent() -> Sent {
    let full = Encoding {
        openinference: OpenInference::Full,
        langfuse: true,
        ..encoding(Profile::Genai141Strict, ContentPolicy::Full)
    };
    let mut keys = BTreeSet::new();
    for (_, span) in exported(&full) {
        let events = span.events.iter().flat_map(|event| &event.attributes);
        keys.extend(span.attributes.iter().chain(events).map(|pair| pair.key.clone()));
    }
    let names = |pairs: &[KeyValue]| pairs.iter().map(|pair| pair.key.clone()).collect::<Vec<_>>();
    let spans: Vec<_> = streams().iter().flat_map(|(_, hooks)| fold(hooks)).collect();
    let (mut metrics, mut prometheus, mut labels) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let resource = series::sample(&full, &spans).resource_metrics.remove(0);
    labels.extend(names(&resource.resource.unwrap().attributes));
    for metric in resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
        let (is_sum, points) = match metric.data.unwrap() {
            Data::ExponentialHistogram(all) => {
                (false, all.data_points.into_iter().map(|point| point.attributes).collect())
            }
            Data::Sum(all) => {
                (true, all.data_points.into_iter().map(|point| point.attributes).collect())
            }
            other => panic!("{other:?}"),
        };
        let points: Vec<Vec<KeyValue>> = points;
        labels.extend(points.iter().flat_map(|pairs| names(pairs)));
        prometheus.insert(translated(&metric.name, &metric.unit, is_sum));
        metrics.insert(metric.name);
    }
    for (name, unit, attribute) in series::own() {
        let is_sum = attribute.is_some() || name.ends_with("left_out");
        prometheus.insert(translated(name, unit, is_sum));
        labels.extend(attribute.map(str::to_owned));
        metrics.insert(name.to_owned());
    }
    Sent { keys, metrics, prometheus, labels }
}

/// The name that Prometheus's OTLP receiver gives a metric.
fn translated(name: &str, unit: &str, is_sum: bool) -> String {
    let unit = match (unit, is_sum) {
        ("s", _) => "_seconds",
        ("By", _) => "_bytes",
        ("1", false) => "_ratio",
        _ => "",
    };
    let total = if is_sum { "_total" } else { "" };
    format!("{}{unit}{total}", name.replace('.', "_"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join("deploy").join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The first group of every match.
fn found(pattern: &str, text: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).unwrap();
    pattern.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

fn all_in(what: &str, asked: &BTreeSet<String>, known: &BTreeSet<String>) {
    assert!(!asked.is_empty(), "{what}: nothing was found to check");
    let foreign: Vec<_> = asked.difference(known).collect();
    assert!(foreign.is_empty(), "{what}: hookspan sends no {foreign:?}; it sends {known:#?}");
}

#[test]
fn grafana_asks_for_what_is_sent() {
    let sent = sent();
    let labels: BTreeSet<String> = sent.labels.iter().map(|key| key.replace('.', "_")).collect();
    let known: BTreeSet<String> = labels.union(&sent.prometheus).cloned().collect();
    for path in ["grafana/dashboards/agents.json", "grafana/alerts/hookspan.yaml"] {
        let text = read(path);
        all_in(path, &found(r"\b((?:gen_ai|hookspan|mcp)_[a-z_]+)\b", &text), &known);
    }
    let dashboard = read("grafana/dashboards/agents.json");
    serde_json::from_str::<serde_json::Value>(&dashboard).unwrap();
    all_in("spans", &found(r"\bspan\.([a-z_.]+[a-z_])\b", &dashboard), &sent.keys);
    let asked = found(r"\b((?:gen_ai|hookspan|mcp)_[a-z_]+)\b", &dashboard);
    let shown = sent.prometheus.iter().filter(|name| asked.contains(*name)).count();
    assert!(shown >= 10, "the dashboard shows {shown} metrics");
}

#[test]
fn datadog_asks_for_what_is_sent() {
    let sent = sent();
    let mut tags = sent.labels.clone();
    // Datadog's name of a resource's host.
    tags.insert("host".to_owned());
    for path in ["datadog/dashboard.json", "datadog/monitors.json"] {
        let text = read(path);
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        let metrics = found(r"\b(?:sum|avg|max|min|p95):([a-z_.]+)\{", &text);
        all_in(path, &metrics, &sent.metrics);
        let mut asked = found(r"by \{([a-z_.]+)\}", &text);
        asked.extend(found(r"[{,]([a-z_]+\.[a-z_.]+):", &text));
        all_in(path, &asked, &tags);
    }
    let spans = found(r"@([a-z_]+\.[a-z_.]+[a-z])", &read("datadog/dashboard.json"));
    all_in("spans", &spans, &sent.keys);
}
