//! Known settings of each backend: endpoint, protocol, headers, limits, link.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Environment;
use super::connection::{Protocol, Secret, Temporality};

/// A backend whose settings are known. A preset supplies only values that are not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Preset {
    /// Any OTLP receiver.
    #[default]
    Otlp,
    Jaeger,
    Tempo,
    DatadogAgent,
    Datadog,
    DatadogLlmobs,
    Honeycomb,
    Langfuse,
    Phoenix,
    Mlflow,
    GrafanaCloud,
}

impl Preset {
    /// The word in the configuration.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Otlp => "otlp",
            Self::Jaeger => "jaeger",
            Self::Tempo => "tempo",
            Self::DatadogAgent => "datadog-agent",
            Self::Datadog => "datadog",
            Self::DatadogLlmobs => "datadog-llmobs",
            Self::Honeycomb => "honeycomb",
            Self::Langfuse => "langfuse",
            Self::Phoenix => "phoenix",
            Self::Mlflow => "mlflow",
            Self::GrafanaCloud => "grafana-cloud",
        }
    }

    /// The protocol to use if none is configured. If the port or the path of the endpoint is usual for one protocol,
    /// returns that protocol.
    #[must_use]
    pub(crate) fn protocol(self, endpoint: Option<&str>) -> Protocol {
        let grpc_by_default = matches!(self, Self::Jaeger | Self::Tempo | Self::Honeycomb);
        match endpoint {
            Some(url) if url.contains("/v1/traces") || url.contains(":4318") => Protocol::Http,
            Some(url) if url.contains(":4317") && !self.http_only() => Protocol::Grpc,
            _ if grpc_by_default => Protocol::Grpc,
            _ => Protocol::Http,
        }
    }

    /// Whether the backend does not accept gRPC.
    #[must_use]
    pub(crate) const fn http_only(self) -> bool {
        matches!(
            self,
            Self::Datadog
                | Self::DatadogLlmobs
                | Self::Langfuse
                | Self::Mlflow
                | Self::GrafanaCloud
                | Self::DatadogAgent
        )
    }

    /// Whether the backend's list of traces shows the input and output of each root span.
    #[must_use]
    pub(crate) const fn shows_the_root(self) -> bool {
        matches!(self, Self::Langfuse | Self::Phoenix | Self::Mlflow | Self::DatadogLlmobs)
    }

    /// Whether the backend accepts OTLP metrics at the same address as traces.
    #[must_use]
    pub(crate) const fn takes_metrics(self) -> bool {
        match self {
            Self::Otlp
            | Self::DatadogAgent
            | Self::Datadog
            | Self::Honeycomb
            | Self::GrafanaCloud => true,
            Self::Jaeger
            | Self::Tempo
            | Self::DatadogLlmobs
            | Self::Langfuse
            | Self::Phoenix
            | Self::Mlflow => false,
        }
    }

    /// Whether the backend accepts OTLP logs at the same address as traces.
    #[must_use]
    pub(crate) const fn takes_logs(self) -> bool {
        // Each of them documents an endpoint for logs wherever it documents one for metrics.
        self.takes_metrics()
    }

    /// The temporality that the backend requires for sums. `None` if the backend accepts both.
    #[must_use]
    pub(crate) const fn temporality(self) -> Option<Temporality> {
        match self {
            // The agent drops the first point of cumulative sums, and the direct intake refuses them.
            Self::DatadogAgent | Self::Datadog => Some(Temporality::Delta),
            // Grafana Cloud stores metrics in the form of Prometheus. It converts differences or drops them.
            Self::GrafanaCloud => Some(Temporality::Cumulative),
            _ => None,
        }
    }

    /// The default endpoint, with `{placeholders}`.
    #[must_use]
    pub(crate) const fn endpoint(self, protocol: Protocol) -> Option<&'static str> {
        let http = matches!(protocol, Protocol::Http);
        Some(match self {
            Self::Otlp => return None,
            Self::Jaeger | Self::Tempo if http => "http://127.0.0.1:4318/v1/traces",
            Self::Jaeger | Self::Tempo => "http://127.0.0.1:4317",
            Self::DatadogAgent => "http://127.0.0.1:4318/v1/traces",
            Self::Datadog | Self::DatadogLlmobs => "https://otlp.{site}/v1/traces",
            Self::Honeycomb if http => "https://api.honeycomb.io/v1/traces",
            Self::Honeycomb => "https://api.honeycomb.io:443",
            Self::Langfuse => "{base}/api/public/otel/v1/traces",
            Self::Phoenix if http => "http://127.0.0.1:6006/v1/traces",
            Self::Phoenix => "http://127.0.0.1:4317",
            Self::Mlflow => "http://127.0.0.1:5000/v1/traces",
            Self::GrafanaCloud => "https://otlp-gateway-{zone}.grafana.net/otlp/v1/traces",
        })
    }

    /// Headers of the preset: constants, and keys from the environment variables that the vendor documents.
    #[must_use]
    pub(crate) fn headers(self, env: &Environment) -> Vec<(String, Secret)> {
        let get = |key: &str| env.var(key);
        let mut headers = Vec::new();
        let mut push = |name: &str, value: String| headers.push((name.to_owned(), Secret(value)));
        match self {
            Self::Datadog | Self::DatadogLlmobs => {
                if let Some(key) = get("DD_API_KEY") {
                    push("dd-api-key", key.to_owned());
                }
                if self == Self::DatadogLlmobs {
                    push("dd-otlp-source", "llmobs".to_owned());
                }
            }
            Self::Honeycomb => {
                if let Some(key) = get("HONEYCOMB_API_KEY") {
                    push("x-honeycomb-team", key.to_owned());
                }
            }
            Self::Langfuse => {
                if let (Some(public), Some(secret)) =
                    (get("LANGFUSE_PUBLIC_KEY"), get("LANGFUSE_SECRET_KEY"))
                {
                    push("authorization", basic(public, secret));
                }
                push("x-langfuse-ingestion-version", "4".to_owned());
            }
            _ => {}
        }
        headers
    }

    /// Headers that the backend requires.
    #[must_use]
    pub(crate) const fn required_headers(self) -> &'static [&'static str] {
        match self {
            Self::Datadog | Self::DatadogLlmobs => &["dd-api-key"],
            Self::Honeycomb => &["x-honeycomb-team"],
            Self::Langfuse | Self::GrafanaCloud => &["authorization"],
            _ => &[],
        }
    }

    /// Advice on how to set a required header.
    #[must_use]
    pub(crate) const fn header_hint(self) -> &'static str {
        match self {
            Self::Datadog | Self::DatadogLlmobs => {
                "set DD_API_KEY or headers.dd-api-key = \"env:NAME\""
            }
            Self::Honeycomb => "set HONEYCOMB_API_KEY or headers.x-honeycomb-team = \"env:NAME\"",
            Self::Langfuse => "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY",
            _ => "write headers.authorization = \"Basic env:NAME\"",
        }
    }

    /// Advice on how to choose another region, if a key is valid in one region only.
    #[must_use]
    pub(crate) const fn region_hint(self) -> Option<&'static str> {
        Some(match self {
            Self::Datadog | Self::DatadogLlmobs => {
                "your site is in the address of Datadog's pages: set DD_SITE or values = { site = \"datadoghq.eu\" }"
            }
            Self::Honeycomb => "for the EU set endpoint = \"https://api.eu1.honeycomb.io\"",
            Self::Langfuse => {
                "set LANGFUSE_BASE_URL or values = { base = \"https://us.cloud.langfuse.com\" }"
            }
            Self::GrafanaCloud => {
                "the zone is in the stack's OpenTelemetry page: values = { zone = \"prod-eu-west-2\" }"
            }
            _ => return None,
        })
    }

    /// Maximum number of bytes of content in an attribute at `full`. Tempo silently cuts at 2,048 bytes, which breaks
    /// JSON. Datadog's agent documents 5,000 characters.
    #[must_use]
    pub(crate) const fn content_max_bytes(self) -> usize {
        match self {
            Self::Tempo | Self::GrafanaCloud => 2_048,
            Self::DatadogAgent | Self::Datadog | Self::DatadogLlmobs => 5_000,
            _ => 32 * 1_024,
        }
    }

    /// Template of a link to a span.
    #[must_use]
    pub(crate) const fn link(self) -> Option<&'static str> {
        Some(match self {
            Self::Jaeger => "{ui}/trace/{trace_id}?uiFind={span_id}",
            Self::DatadogAgent | Self::Datadog | Self::DatadogLlmobs => {
                "https://app.{site}/apm/trace/{trace_id}"
            }
            Self::Honeycomb => {
                "https://ui.honeycomb.io/{team}/environments/{env}/datasets/{dataset}/trace?trace_id={trace_id}&span={span_id}&trace_start_ts={start_s}&trace_end_ts={end_s}"
            }
            Self::Langfuse => "{base}/project/{project}/traces/{trace_id}",
            Self::Phoenix => "{ui}/redirects/traces/{trace_id}",
            Self::Mlflow => "{ui}/#/experiments/{exp}/traces?selectedEvaluationId=tr-{trace_id}",
            // Grafana expects JSON in the query parameter `panes`, so the text is percent-encoded.
            Self::Tempo | Self::GrafanaCloud => {
                "{grafana}/explore?schemaVersion=1&panes=%7B%22a%22%3A%7B%22datasource%22%3A%22{uid}%22%2C%22queries%22%3A%5B%7B%22refId%22%3A%22A%22%2C%22queryType%22%3A%22traceql%22%2C%22query%22%3A%22{trace_id}%22%7D%5D%2C%22range%22%3A%7B%22from%22%3A%22{start_ms}%22%2C%22to%22%3A%22{end_ms}%22%7D%7D%7D"
            }
            Self::Otlp => return None,
        })
    }

    /// Values for placeholders: the given ones, and the preset's own for the rest.
    #[must_use]
    pub(crate) fn values(
        self,
        env: &Environment,
        given: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        let mut set = |key: &str, value: &str| values.insert(key.to_owned(), value.to_owned());
        match self {
            Self::Jaeger => drop(set("ui", "http://127.0.0.1:16686")),
            Self::Phoenix => drop(set("ui", "http://127.0.0.1:6006")),
            Self::Mlflow => drop(set("ui", "http://127.0.0.1:5000")),
            Self::Langfuse => {
                let base = env.var("LANGFUSE_BASE_URL").or_else(|| env.var("LANGFUSE_HOST"));
                let base = base.unwrap_or("https://cloud.langfuse.com");
                set("base", base.trim_end_matches('/'));
            }
            Self::Datadog | Self::DatadogLlmobs => {
                set("site", env.var("DD_SITE").unwrap_or("datadoghq.com"));
            }
            _ => {}
        }
        values.extend(given.iter().map(|(key, value)| (key.clone(), value.clone())));
        values
    }
}

/// `Basic base64(user:password)`, by the same encoder that HTTP clients use.
fn basic(user: &str, password: &str) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {encoded}")
}
