//! hookspan's own logs, traces and metrics. They are never mixed with agent spans, which are data and are sent by
//! [`crate::export`].
//!
//! Logs go to standard error. Traces and metrics are sent only with `OTEL_TRACES_EXPORTER=otlp` and
//! `OTEL_METRICS_EXPORTER=otlp`. The endpoint variables alone configure only a destination for agent spans, because a
//! user who wants agent spans does not necessarily want hookspan's own.

use std::collections::HashMap;
use std::io::IsTerminal as _;

use anyhow::{Context as _, bail};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    MetricExporter, SpanExporter, WithExportConfig as _, WithHttpConfig as _, WithTonicConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Runtime;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::config::Environment;
use crate::config::destination::{Connection, Protocol};
use crate::config::otlp_env::{Signal, Unreadable, connection_or_default};

/// Default filter of logs.
const DEFAULT_FILTER: &str = "warn,hookspan=info";

/// Libraries whose spans would describe the sending of spans, without end.
const FEEDBACK: [&str; 6] = ["hyper", "h2", "tonic", "reqwest", "tower", "opentelemetry"];

/// The exporters to stop at the end. Empty if the user did not ask for any.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
    /// Runtime for gRPC connections, because the exporters' own threads have no reactor.
    runtime: Option<Runtime>,
}

/// Starts logging, and traces and metrics if the environment asks for them. Call it once per process. Hooks are more important
/// than hookspan's own telemetry: if a certificate cannot be read or a client cannot be made, that signal is left out with a
/// warning.
///
/// # Errors
/// A variable of `HOOKSPAN_LOG` or `OTEL_*` that cannot be used, or logging that was started already.
pub(crate) fn init(env: &Environment) -> anyhow::Result<Telemetry> {
    crate::tls::install_crypto();
    let wanted = Wanted::read(env)?;
    let runtime = wanted.is_grpc().then(grpc_runtime).transpose()?;
    let inside = runtime.as_ref().map(|runtime| runtime.enter());
    let mut left_out = wanted.left_out;
    let traces = usable(wanted.traces.as_ref().map(tracer_provider), &mut left_out);
    let metrics = usable(wanted.metrics.as_ref().map(meter_provider), &mut left_out);
    drop(inside);
    let directives = env.var("HOOKSPAN_LOG").unwrap_or(DEFAULT_FILTER);
    let filter = EnvFilter::try_new(directives)
        .with_context(|| format!("HOOKSPAN_LOG: {directives:?} is not a filter"))?;
    let colours = std::io::stderr().is_terminal() && env.var("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .with_target(false)
        .with_filter(filter);
    let spans = traces.as_ref().map(|provider| {
        let quiet = FEEDBACK.map(|target| (target, LevelFilter::OFF));
        let filter = Targets::new().with_default(LevelFilter::INFO).with_targets(quiet);
        let tracer = provider.tracer("hookspan");
        tracing_opentelemetry::layer().with_tracer(tracer).with_filter(filter)
    });
    tracing_subscriber::registry()
        .with(log)
        .with(spans)
        .try_init()
        .context("logging was started twice")?;
    if let Some(provider) = &metrics {
        opentelemetry::global::set_meter_provider(provider.clone());
    }
    for problem in left_out {
        tracing::warn!(
            problem,
            "hookspan's own telemetry is not sent; correct that and restart the collector"
        );
    }
    Ok(Telemetry { traces, metrics, runtime })
}

impl Telemetry {
    /// Sends what is left and stops. Blocks for up to the exporters' own timeout. On a runtime, call it in
    /// `spawn_blocking`, because the exporters' threads need the runtime meanwhile.
    pub(crate) fn shutdown(self) {
        let stopped = [
            self.traces.map(|provider| provider.shutdown()),
            self.metrics.map(|provider| provider.shutdown()),
        ];
        for error in stopped.into_iter().flatten().filter_map(Result::err) {
            tracing::warn!(%error, "hookspan's own telemetry did not end cleanly");
        }
        if let Some(runtime) = self.runtime {
            runtime.shutdown_background();
        }
    }
}

/// The signals that could be started. The reasons for missing ones are added to `left_out`.
fn usable<T>(made: Option<anyhow::Result<T>>, left_out: &mut Vec<String>) -> Option<T> {
    made?.map_err(|error| left_out.push(format!("{error:#}"))).ok()
}

/// What the environment asks for.
#[derive(Debug, Default)]
struct Wanted {
    traces: Option<Connection>,
    metrics: Option<Connection>,
    /// Why a signal that the user asked for cannot be sent.
    left_out: Vec<String>,
}

impl Wanted {
    fn is_grpc(&self) -> bool {
        let wanted = [&self.traces, &self.metrics];
        wanted.into_iter().flatten().any(|connection| connection.protocol == Protocol::Grpc)
    }

    fn read(env: &Environment) -> anyhow::Result<Self> {
        match env.var("OTEL_SDK_DISABLED").map(str::to_ascii_lowercase).as_deref() {
            Some("true") => return Ok(Self::default()),
            None | Some("false") => {}
            Some(word) => bail!("OTEL_SDK_DISABLED: {word:?} is not true or false"),
        }
        let mut left_out = Vec::new();
        let mut connection = |key: &str, signal| match env.var(key).map(str::trim) {
            Some("otlp") => connection_or_default(env, signal)
                .map(|found| found.map_err(|Unreadable(problem)| left_out.push(problem)).ok())
                .map_err(anyhow::Error::from),
            None | Some("none" | "") => Ok(None),
            Some(word) => bail!("{key}: {word:?} is not supported; use otlp or none"),
        };
        let traces = connection("OTEL_TRACES_EXPORTER", Signal::Traces)?;
        let metrics = connection("OTEL_METRICS_EXPORTER", Signal::Metrics)?;
        Ok(Self { traces, metrics, left_out })
    }
}

fn grpc_runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("telemetry")
        .enable_all()
        .build()
}

fn resource() -> Resource {
    Resource::builder()
        .with_service_name("hookspan")
        .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

fn tracer_provider(connection: &Connection) -> anyhow::Result<SdkTracerProvider> {
    let exporter = match connection.protocol {
        Protocol::Http => SpanExporter::builder()
            .with_http()
            .with_http_client(http_client(connection)?)
            .with_headers(headers(connection))
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(&connection.endpoint)
            .with_timeout(connection.timeout)
            .build()?,
        Protocol::Grpc => SpanExporter::builder()
            .with_tonic()
            .with_tls_config(tls(connection))
            .with_metadata(metadata(connection)?)
            .with_endpoint(&connection.endpoint)
            .with_timeout(connection.timeout)
            .build()?,
    };
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build())
}

fn meter_provider(connection: &Connection) -> anyhow::Result<SdkMeterProvider> {
    let exporter = match connection.protocol {
        Protocol::Http => MetricExporter::builder()
            .with_http()
            .with_http_client(http_client(connection)?)
            .with_headers(headers(connection))
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(&connection.endpoint)
            .with_timeout(connection.timeout)
            .build()?,
        Protocol::Grpc => MetricExporter::builder()
            .with_tonic()
            .with_tls_config(tls(connection))
            .with_metadata(metadata(connection)?)
            .with_endpoint(&connection.endpoint)
            .with_timeout(connection.timeout)
            .build()?,
    };
    Ok(SdkMeterProvider::builder()
        .with_periodic_exporter(exporter)
        .with_resource(resource())
        .build())
}

/// The exporters run on their own threads, so they need the blocking client. The library does not read the certificate
/// variables, so they are applied here.
fn http_client(connection: &Connection) -> anyhow::Result<reqwest::blocking::Client> {
    let connection = connection.clone();
    // The blocking client makes its own runtime, which must not happen on a thread of another runtime.
    let build = move || -> reqwest::Result<reqwest::blocking::Client> {
        let mut builder = reqwest::blocking::Client::builder()
            .timeout(connection.timeout)
            .redirect(reqwest::redirect::Policy::none());
        if crate::config::destination::is_loopback(&connection.endpoint) {
            builder = builder.no_proxy();
        }
        if let Some(pem) = &connection.certificate {
            builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(pem)?);
        }
        if let Some((certificate, key)) = &connection.client {
            let pem = [certificate.as_slice(), b"\n", key.0.as_bytes()].concat();
            builder = builder.identity(reqwest::Identity::from_pem(&pem)?);
        }
        builder.build()
    };
    let built = std::thread::spawn(build).join();
    Ok(built.map_err(|_| anyhow::anyhow!("the HTTP client could not be made"))??)
}

fn headers(connection: &Connection) -> HashMap<String, String> {
    connection.headers.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect()
}

fn metadata(connection: &Connection) -> anyhow::Result<MetadataMap> {
    let mut map = MetadataMap::new();
    for (name, value) in &connection.headers {
        let key = AsciiMetadataKey::from_bytes(name.as_bytes())?;
        map.append(key, AsciiMetadataValue::try_from(value.0.as_str())?);
    }
    Ok(map)
}

fn tls(connection: &Connection) -> ClientTlsConfig {
    let mut tls = ClientTlsConfig::new().with_native_roots();
    if let Some(pem) = &connection.certificate {
        tls = tls.ca_certificate(Certificate::from_pem(pem));
    }
    if let Some((certificate, key)) = &connection.client {
        tls = tls.identity(Identity::from_pem(certificate, &key.0));
    }
    tls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(variables: &[(&str, &str)]) -> anyhow::Result<Wanted> {
        Wanted::read(&Environment::of(variables, "/"))
    }

    #[test]
    fn endpoints_alone_switch_nothing_on() {
        let wanted = wanted(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318")]).unwrap();
        assert!(wanted.traces.is_none() && wanted.metrics.is_none());
    }

    #[test]
    fn each_signal_is_switched_on_by_its_own_variable() {
        let traces = wanted(&[("OTEL_TRACES_EXPORTER", "otlp")]).unwrap();
        let endpoint = traces.traces.map(|connection| connection.endpoint);
        assert_eq!(endpoint.as_deref(), Some("http://localhost:4318/v1/traces"));
        assert!(traces.metrics.is_none());
        let metrics = wanted(&[
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4317"),
            ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"),
        ])
        .unwrap();
        let connection = metrics.metrics.unwrap();
        assert_eq!(
            (connection.endpoint.as_str(), connection.protocol),
            ("http://h:4317", Protocol::Grpc)
        );
    }

    #[test]
    fn disabled_wins() {
        let off = [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "otlp")];
        assert!(wanted(&off).unwrap().traces.is_none());
        let on = [("OTEL_SDK_DISABLED", "false"), ("OTEL_TRACES_EXPORTER", "otlp")];
        assert!(wanted(&on).unwrap().traces.is_some());
    }

    #[test]
    fn a_certificate_that_cannot_be_read_leaves_its_signal_out() {
        let none = "/nonexistent/ca.pem";
        let wanted = wanted(&[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", none),
        ])
        .unwrap();
        assert!(wanted.traces.is_none() && wanted.metrics.is_some());
        assert!(wanted.left_out[0].contains(none), "{:?}", wanted.left_out);
        let pem = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let mut left_out = Vec::new();
        let broken = Connection { certificate: Some(pem.to_vec()), ..wanted.metrics.unwrap() };
        assert!(usable(Some(http_client(&broken)), &mut left_out).is_none());
        assert_eq!(left_out.len(), 1);
    }

    #[test]
    fn what_cannot_be_used_is_refused_by_name() {
        let error = |variables| wanted(variables).unwrap_err().to_string();
        assert!(error(&[("OTEL_TRACES_EXPORTER", "zipkin")]).contains("OTEL_TRACES_EXPORTER"));
        assert!(error(&[("OTEL_SDK_DISABLED", "maybe")]).contains("OTEL_SDK_DISABLED"));
    }
}
