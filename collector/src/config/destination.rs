//! Where spans are sent: `[[destination]]` in the file, presets, and the `OTEL_EXPORTER_OTLP_*` variables.
//!
//! Everything is decided here once, at the start. A wrong value is an error with file, line and the destination's name.
//! If a variable is not set or a file cannot be read, only that destination is unready: it is paused, and the others
//! run. The environment is passed in as a value, so nothing here depends on the process.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

pub(crate) use super::connection::{Connection, Protocol, Secret, Temporality, is_loopback};
use super::connection::{check_endpoint, parse_gzip, parse_protocol, timeout};
use super::mistake::{Mistake, Why};
use super::otlp_env::{self, Signal};
use super::person;
use super::preset::Preset;
use super::reference::{Missing, PLAIN_HEADERS, check_headers, client_pem, header_value, read_pem};
use super::{Config, Environment, OpenInference, Profile};

/// A destination, ready to use.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// Name in the configuration. It is also the key of the destination's position in the store.
    pub name: String,
    /// Preset it was filled from.
    pub preset: Preset,
    /// Where and how to connect.
    pub connection: Connection,
    /// What may leave, and in which form.
    pub content: ContentPolicy,
    /// Whether secrets are redacted. Below `full` they always are.
    pub redact: bool,
    /// How paths are sent.
    pub paths: PathPolicy,
    /// Attribute names of the GenAI conventions.
    pub semconv: Profile,
    /// How much of the OpenInference view is added.
    pub openinference: OpenInference,
    /// Maximum number of bytes of content in an attribute at policy `full`.
    pub content_max_bytes: usize,
    /// Where a new destination starts.
    pub backfill: Backfill,
    /// Older spans are counted as lost and not sent, even if the destination never accepted one. `None`: spans of any
    /// age are sent.
    pub max_span_age: Option<Duration>,
    /// Maximum number of spans that wait while the destination fails. Beyond it, the oldest are counted as lost.
    pub backlog_max_spans: u64,
    /// Share of conversations that are sent, 0 to 1. Whole sessions are selected by a hash of their id.
    pub sample: f64,
    /// How metrics are sent; `None`: they are not.
    pub metrics: Option<MetricsExport>,
    /// Resource attributes of this destination alone: a team, a hashed person.
    pub attributes: BTreeMap<String, String>,
    /// Link to a span in the destination's own pages. Placeholders such as `{trace_id}` are not replaced yet.
    pub link: Option<String>,
    /// Why the destination cannot be used now: a variable is not set, or a file cannot be read. It is then paused, and
    /// the other destinations run.
    pub unready: Option<String>,
}

/// What may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ContentPolicy {
    /// No content, no paths, no names of programs, hosts or tools of MCP servers.
    Off,
    /// Names and sizes, no content.
    #[default]
    Metadata,
    /// Prompts, answers, arguments and results too.
    Full,
}

impl ContentPolicy {
    /// The word in configuration.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Metadata => "metadata",
            Self::Full => "full",
        }
    }
}

/// How metrics are sent to a destination.
#[derive(Clone, Debug)]
pub(crate) struct MetricsExport {
    /// Where and how to connect.
    pub connection: Connection,
    /// What sums count from.
    pub temporality: Temporality,
    /// Time between two requests.
    pub interval: Duration,
}

/// How paths are sent at `metadata` and `full`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PathPolicy {
    /// Relative to the workspace; outside it the last part only.
    #[default]
    Relative,
    /// As they are.
    Full,
    /// As a hash, so that equal paths stay recognisable.
    Hash,
    /// Not at all.
    Off,
}

/// Where a new destination starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Backfill {
    /// With spans that settle from now on.
    #[default]
    #[serde(rename = "none")]
    None,
    /// With spans that ended in the last 24 hours.
    #[serde(rename = "24h")]
    Day,
    /// With all stored spans.
    #[serde(rename = "all")]
    All,
}

impl Backfill {
    /// The word in configuration.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Day => "24h",
            Self::All => "all",
        }
    }

    /// The default of [`Destination::backlog_max_spans`]. For a destination that gets the whole history there is no
    /// maximum. Its first outage must not drop that history, and the store keeps the spans anyway.
    const fn backlog_max_spans(self) -> u64 {
        match self {
            Self::All => u64::MAX,
            Self::None | Self::Day => DEFAULT_BACKLOG_SPANS,
        }
    }
}

/// Why a destination cannot be used. The text names the place in the file, the destination and the key, and says what
/// would be right.
#[derive(Debug, thiserror::Error)]
#[error("{place}destination {name:?}: {problem}")]
pub(crate) struct DestinationError {
    /// `FILE:LINE:COLUMN: `; empty if the destination comes from the environment.
    pub place: String,
    /// The destination.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

/// `[[destination]]` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DestinationForm {
    /// Name; unique.
    pub name: String,
    /// The preset that supplies values which are not set.
    #[serde(default)]
    pub preset: Preset,
    /// URL.
    pub endpoint: Option<String>,
    /// `http/protobuf` or `grpc`.
    pub protocol: Option<String>,
    /// Header name to `env:NAME`, `file:PATH`, or one word and such a reference (`Bearer env:TOKEN`).
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// `off`, `metadata` or `full`.
    pub content: Option<ContentPolicy>,
    /// `relative`, `full`, `hash` or `off`.
    pub paths: Option<PathPolicy>,
    /// Whether secrets are redacted. `false` requires `content = "full"`.
    pub redact: Option<bool>,
    /// Whether content may be sent to another machine without TLS.
    pub allow_plain_http: Option<bool>,
    /// `genai-1.41-strict`, `genai-1.41` or `genai-0.1`; unset: as `[semconv]` says.
    pub semconv: Option<String>,
    /// `kind`, `full` or `off`; unset: as `[semconv]` says.
    pub openinference: Option<String>,
    /// `gzip` or `none`; unset: gzip except to loopback.
    pub compression: Option<String>,
    /// Milliseconds for one attempt.
    pub timeout_ms: Option<u64>,
    /// `none`, `24h` or `all`.
    pub backfill: Option<Backfill>,
    /// `55m`, `6h`, `7d`.
    pub max_span_age: Option<String>,
    /// Spans that may wait while the destination fails.
    pub backlog_max_spans: Option<u64>,
    /// PEM file of extra roots.
    pub certificate: Option<String>,
    /// PEM file of the client's certificate.
    pub client_certificate: Option<String>,
    /// PEM file of the client's key.
    pub client_key: Option<String>,
    /// 0 to 1.
    pub sample: Option<f64>,
    /// Resource attributes, such as a team's name.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    /// `env:NAME` or `file:PATH` of what names the person; sent as a hash only.
    pub user: Option<String>,
    /// `env:NAME` or `file:PATH` of the hash's key.
    pub user_key: Option<String>,
    /// Whether metrics are sent, too.
    pub metrics: Option<bool>,
    /// URL for metrics over HTTP, where the endpoint's does not tell.
    pub metrics_endpoint: Option<String>,
    /// `delta` or `cumulative`.
    pub metrics_temporality: Option<Temporality>,
    /// `60s`.
    pub metrics_interval: Option<String>,
    /// Template of a link to a span.
    pub link: Option<String>,
    /// Values for the placeholders of endpoint and link (`site`, `zone`, `ui`, `team`, `env`, `dataset` ...).
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

/// Placeholders that stay in a link until the span is known.
const SPAN_PLACEHOLDERS: [&str; 7] =
    ["trace_id", "span_id", "conversation_id", "start_ms", "end_ms", "start_s", "end_s"];

const DEFAULT_BACKLOG_SPANS: u64 = 100_000;

/// Time between two requests of metrics, the specification's default.
const METRICS_INTERVAL: Duration = Duration::from_secs(60);
/// Shorter ones would cost more requests than they tell.
const METRICS_INTERVAL_MIN: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

impl DestinationForm {
    /// Fills in the preset's values, reads the references and checks every value.
    ///
    /// # Errors
    ///
    /// The first value that cannot be used, named by its key.
    pub(crate) fn build(
        &self,
        env: &Environment,
        defaults: super::Semconv,
    ) -> Result<Destination, Mistake> {
        check_name(&self.name)?;
        let values = self.preset.values(env, &self.values);
        let protocol = self.protocol()?;
        if protocol == Protocol::Grpc && self.preset.http_only() {
            return Err(Why::HttpOnly(self.preset.as_str()).at("protocol"));
        }
        let endpoint = self.filled_endpoint(protocol, &values)?;
        let mut missing = Missing::default();
        let headers = self.all_headers(env, &mut missing)?;
        let gzip = self.gzip(&endpoint)?;
        let backfill = self.backfill.unwrap_or_default();
        let sample = self.share()?;
        let (content, redact) = self.content(env, &endpoint)?;
        let semconv = self.profile(defaults.profile)?;
        let certificate = read_pem("certificate", self.certificate.as_deref());
        let client = client_pem(self.client_certificate.as_deref(), self.client_key.as_deref());
        let connection = Connection {
            endpoint,
            protocol,
            headers,
            gzip,
            timeout: timeout(self.timeout_ms).map_err(|why| why.at("timeout_ms"))?,
            certificate: missing.take(certificate)?.flatten(),
            client: missing.take(client)?.flatten(),
        };
        Ok(Destination {
            name: self.name.clone(),
            preset: self.preset,
            metrics: self.metrics(env, &connection, &values)?,
            attributes: person::attributes(self.asked(), env, &mut missing)?,
            connection,
            content,
            redact,
            paths: self.paths.unwrap_or_default(),
            semconv,
            openinference: self.openinference(semconv, defaults.openinference)?,
            content_max_bytes: self.preset.content_max_bytes(),
            backfill,
            max_span_age: self
                .max_span_age
                .as_deref()
                .map(|text| parse_duration(text).map_err(|why| why.at("max_span_age")))
                .transpose()?,
            backlog_max_spans: self.backlog_max_spans.unwrap_or(backfill.backlog_max_spans()),
            sample,
            link: self.filled_link(&values)?,
            unready: missing.words(),
        })
    }

    fn asked(&self) -> person::Asked<'_> {
        let (user, key) = (self.user.as_deref(), self.user_key.as_deref());
        person::Asked { attributes: &self.attributes, user, key }
    }

    /// How metrics are sent. Other metrics keys without `metrics = true` are a mistake: nothing would be sent.
    fn metrics(
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
        let endpoint = match self.metrics_endpoint.as_deref() {
            Some(template) => {
                let endpoint = fill(template, values).map_err(|Unfilled(key)| {
                    Why::EndpointPlaceholder(key).at("metrics_endpoint")
                })?;
                check_endpoint(&endpoint).map_err(|why| why.at("metrics_endpoint"))?;
                with_path(endpoint, spans.protocol, "/v1/metrics")
            }
            None if spans.protocol == Protocol::Grpc => spans.endpoint.clone(),
            None => match spans.endpoint.strip_suffix("/v1/traces") {
                Some(base) => format!("{base}/v1/metrics"),
                None => return Err(Why::MetricsEndpoint.at("metrics_endpoint")),
            },
        };
        let temporality = match self.metrics_temporality {
            Some(temporality) => temporality,
            None => self.preset.temporality().map_or_else(|| temporality_from_env(env), Ok)?,
        };
        let connection = Connection { endpoint, ..spans.clone() };
        Ok(Some(MetricsExport { connection, temporality, interval }))
    }

    /// The URL that spans are sent to.
    fn filled_endpoint(
        &self,
        protocol: Protocol,
        values: &BTreeMap<String, String>,
    ) -> Result<String, Mistake> {
        let template = self.endpoint_template()?.ok_or(Why::NoEndpoint.at("endpoint"))?;
        let endpoint = fill(template, values)
            .map_err(|Unfilled(key)| Why::EndpointPlaceholder(key).at("endpoint"))?;
        check_endpoint(&endpoint).map_err(|why| why.at("endpoint"))?;
        Ok(with_path(endpoint, protocol, "/v1/traces"))
    }

    fn gzip(&self, endpoint: &str) -> Result<bool, Mistake> {
        match self.compression.as_deref() {
            None => Ok(!is_loopback(endpoint)),
            Some(word) => parse_gzip(word).map_err(|why| why.at("compression")),
        }
    }

    fn share(&self) -> Result<f64, Mistake> {
        let sample = self.sample.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&sample) {
            return Err(Why::Share(sample).at("sample"));
        }
        Ok(sample)
    }

    /// What may leave, and whether secrets are redacted first.
    fn content(&self, env: &Environment, endpoint: &str) -> Result<(ContentPolicy, bool), Mistake> {
        let content = match self.content {
            Some(policy) => policy,
            None => content_from_env(env)?,
        };
        let redact = self.redact.unwrap_or(true);
        if !redact && content != ContentPolicy::Full {
            return Err(Why::RedactBelowFull.at("redact"));
        }
        let is_allowed = self.allow_plain_http.unwrap_or(false);
        if content == ContentPolicy::Full && !is_allowed {
            check_transport(endpoint)?;
        }
        Ok((content, redact))
    }

    fn profile(&self, default: Profile) -> Result<Profile, Mistake> {
        match self.semconv.as_deref() {
            None => Ok(default),
            Some("genai-1.41") => Ok(Profile::Genai141),
            Some("genai-0.1") => Ok(Profile::Genai01),
            Some("genai-1.41-strict") => Ok(Profile::Genai141Strict),
            Some(word) => {
                let known = "genai-1.41-strict, genai-1.41 or genai-0.1";
                Err(Why::unknown(word, known).at("semconv"))
            }
        }
    }

    /// Phoenix shows text only under OpenInference's names, so the strict profile sends them.
    fn openinference(
        &self,
        profile: Profile,
        default: OpenInference,
    ) -> Result<OpenInference, Mistake> {
        let strict = profile == Profile::Genai141Strict;
        match self.openinference.as_deref() {
            None if strict && self.preset == Preset::Phoenix => Ok(OpenInference::Full),
            None => Ok(default),
            Some("kind") => Ok(OpenInference::Kind),
            Some("full") => Ok(OpenInference::Full),
            Some("off") => Ok(OpenInference::Off),
            Some(word) => Err(Why::unknown(word, "kind, full or off").at("openinference")),
        }
    }

    fn filled_link(&self, values: &BTreeMap<String, String>) -> Result<Option<String>, Mistake> {
        match self.link.as_deref().or_else(|| self.preset.link()) {
            Some(template) => check_link(template, values, self.link.is_some()),
            None => Ok(None),
        }
    }

    fn protocol(&self) -> Result<Protocol, Mistake> {
        match &self.protocol {
            Some(word) => parse_protocol(word).map_err(|why| why.at("protocol")),
            None => Ok(self.preset.protocol(self.endpoint.as_deref())),
        }
    }

    /// The endpoint with `{placeholders}`: the written one, else the preset's.
    pub(super) fn endpoint_template(&self) -> Result<Option<&str>, Mistake> {
        let protocol = self.protocol()?;
        Ok(self.endpoint.as_deref().or_else(|| self.preset.endpoint(protocol)))
    }

    /// The preset's headers, replaced or completed by the written ones.
    fn all_headers(
        &self,
        env: &Environment,
        missing: &mut Missing,
    ) -> Result<Vec<(String, Secret)>, Mistake> {
        let mut headers = self.preset.headers(env);
        let mut absent = Vec::new();
        for (name, value) in &self.headers {
            let name = name.to_ascii_lowercase();
            let value = header_value(&name, value, env);
            headers.retain(|(other, _)| *other != name);
            match missing.take(value)? {
                Some(value) => headers.push((name, value)),
                None => absent.push(name),
            }
        }
        for name in self.preset.required_headers() {
            let is_there = headers.iter().any(|(have, _)| have == name);
            if !is_there && !absent.iter().any(|have| have == name) {
                let hint = self.preset.header_hint();
                missing.note(Why::HeaderMissing(hint).at(format!("headers.{name}")));
            }
        }
        check_headers(&headers)?;
        Ok(headers)
    }
}

impl Destination {
    /// Host and port, without path, user or query: all that pages and logs may show of an endpoint.
    #[must_use]
    pub(crate) fn endpoint_host(&self) -> String {
        authority(&self.connection.endpoint).to_owned()
    }

    /// The destination's address and what it gets, in words for the audit log.
    #[must_use]
    pub(crate) fn gets(&self) -> String {
        let paths = match self.paths {
            PathPolicy::Relative => "relative",
            PathPolicy::Full => "full",
            PathPolicy::Hash => "hash",
            PathPolicy::Off => "off",
        };
        let secrets = if self.redact { "" } else { ", secrets left in" };
        let (host, content) = (self.endpoint_host(), self.content.as_str());
        let metrics = if self.metrics.is_some() { ", and metrics" } else { "" };
        let user =
            if self.attributes.contains_key(person::USER) { ", and whose it is" } else { "" };
        format!("{host}, content {content}, paths {paths}{secrets}{metrics}{user}")
    }

    /// Identifies the receiver. The text changes if spans would go somewhere else. It does not depend on secrets, so a
    /// new key for the same account changes nothing.
    #[must_use]
    pub(crate) fn identity(&self) -> String {
        let Connection { endpoint, protocol, headers, .. } = &self.connection;
        let mut parts = vec![endpoint.as_str(), protocol.as_str()];
        for (name, value) in headers {
            parts.push(name);
            if PLAIN_HEADERS.contains(&name.as_str()) {
                parts.push(&value.0);
            }
        }
        let digest = Sha256::digest(parts.join("\n"));
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// All destinations: those in the file, and `env` if the environment names an endpoint. A destination called `env` in the file
/// replaces it. Destinations that are unusable for now are included, see [`Destination::unready`].
///
/// # Errors
/// The first destination whose settings are wrong.
pub(crate) fn all(
    config: &Config,
    env: &Environment,
) -> Result<Vec<Destination>, DestinationError> {
    let mut all: Vec<Destination> = Vec::new();
    for (index, table) in config.destinations.iter().enumerate() {
        let name = table.get("name").and_then(toml::Value::as_str).unwrap_or_default().to_owned();
        let failed = |problem: String| {
            let place = config.places.get(index).map_or_else(String::new, |at| at.of(&problem));
            DestinationError { place, name: name.clone(), problem }
        };
        let form: DestinationForm = table
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| failed(error.message().to_owned()))?;
        if all.iter().any(|other| other.name == name) {
            return Err(failed(Why::Taken.at("name").to_string()));
        }
        let mut destination =
            form.build(env, config.semconv).map_err(|mistake| failed(mistake.to_string()))?;
        if let (Some(problem), Some(at)) = (&mut destination.unready, config.places.get(index)) {
            problem.insert_str(0, &at.of(problem));
        }
        all.push(destination);
    }
    if let Some(destination) = from_env(env, config.semconv)?
        && all.iter().all(|other| other.name != destination.name)
    {
        all.push(destination);
    }
    Ok(all)
}

/// The destination that `OTEL_EXPORTER_OTLP_*` describes, named `env`; `None` when no endpoint is set.
///
/// # Errors
/// A variable whose value cannot be used, by its name.
pub(crate) fn from_env(
    env: &Environment,
    defaults: super::Semconv,
) -> Result<Option<Destination>, DestinationError> {
    let failed = |mistake: Mistake| DestinationError {
        place: String::new(),
        name: "env".to_owned(),
        problem: mistake.to_string(),
    };
    let mut missing = Missing::default();
    let connection = otlp_env::connection(env, Signal::Traces, &mut missing).map_err(failed)?;
    let Some(connection) = connection else { return Ok(None) };
    let form = DestinationForm {
        name: "env".to_owned(),
        endpoint: Some(connection.endpoint.clone()),
        ..DestinationForm::default()
    };
    let destination = form.build(env, defaults).map_err(failed)?;
    Ok(Some(Destination { connection, unready: missing.words(), ..destination }))
}

/// Refuses to send prompts, answers and results over a network in plain text.
fn check_transport(endpoint: &str) -> Result<(), Mistake> {
    let is_plain = reqwest::Url::parse(endpoint).is_ok_and(|url| url.scheme() == "http");
    if !is_plain || is_loopback(endpoint) {
        return Ok(());
    }
    Err(Why::FullWithoutTls(authority(endpoint).to_owned()).at("content"))
}

fn content_from_env(env: &Environment) -> Result<ContentPolicy, Mistake> {
    const KEY: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    let word = env.var(KEY).map(str::trim).unwrap_or_default();
    match word.to_ascii_uppercase().as_str() {
        "TRUE" | "SPAN_ONLY" | "SPAN_AND_EVENT" => Ok(ContentPolicy::Full),
        "" | "FALSE" | "NO_CONTENT" | "EVENT_ONLY" => Ok(ContentPolicy::Metadata),
        _ => Err(Why::unknown(word, "true or false").at(KEY)),
    }
}

/// The temporality that the specification's variable asks for.
fn temporality_from_env(env: &Environment) -> Result<Temporality, Mistake> {
    const KEY: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
    let word = env.var(KEY).map(str::trim).unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "" | "cumulative" => Ok(Temporality::Cumulative),
        // "lowmemory" wants differences of what hookspan sends: counters and histograms.
        "delta" | "lowmemory" => Ok(Temporality::Delta),
        _ => Err(Why::unknown(word, "cumulative, delta or lowmemory").at(KEY)),
    }
}

fn check_name(name: &str) -> Result<(), Mistake> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(fine) {
        return Err(Why::Name.at("name"));
    }
    Ok(())
}

/// Reads `55m`, `6h`, `7d`.
fn parse_duration(text: &str) -> Result<Duration, Why> {
    match humantime::parse_duration(text) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(Why::Duration(text.to_owned())),
    }
}

/// Adds `path` if only a host and port were written.
fn with_path(endpoint: String, protocol: Protocol, path: &str) -> String {
    let bare = endpoint.splitn(4, '/').nth(3).unwrap_or_default().is_empty();
    if protocol == Protocol::Http && bare {
        format!("{}{path}", endpoint.trim_end_matches('/'))
    } else {
        endpoint
    }
}

fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest).rsplit('@').next().unwrap_or(rest)
}

/// A placeholder without a value.
pub(super) struct Unfilled(pub(super) String);

/// Replaces the `{placeholders}` of `template` by `values`. Returns an error for the first unknown one.
pub(super) fn fill(template: &str, values: &BTreeMap<String, String>) -> Result<String, Unfilled> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}').map(|at| open + at) else { break };
        let key = &rest[open + 1..close];
        out.push_str(&rest[..open]);
        if SPAN_PLACEHOLDERS.contains(&key) {
            out.push_str(&rest[open..=close]);
        } else {
            out.push_str(values.get(key).ok_or_else(|| Unfilled(key.to_owned()))?);
        }
        rest = &rest[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Checks a link. It is usable only if everything except the span is known. A link that the user wrote must be valid.
fn check_link(
    template: &str,
    values: &BTreeMap<String, String>,
    explicit: bool,
) -> Result<Option<String>, Mistake> {
    match fill(template, values) {
        Ok(link) if link.starts_with("http://") || link.starts_with("https://") => Ok(Some(link)),
        Ok(_) => Err(Why::LinkScheme.at("link")),
        Err(Unfilled(key)) if explicit => Err(Why::LinkPlaceholder(key).at("link")),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests;
