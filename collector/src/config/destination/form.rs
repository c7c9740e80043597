//! One `[[destination]]` table as written, and the [`Destination`] that results from it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::address::{Unfilled, authority, check_link, fill, with_path};
use super::{
    Backfill, Connection, ContentPolicy, Destination, Environment, PathPolicy, Protocol, Secret,
    Signal, Temporality, is_loopback,
};
use crate::config::connection::{
    check_endpoint, parse_duration, parse_gzip, parse_protocol, timeout,
};
use crate::config::mistake::{Mistake, Why};
use crate::config::preset::Preset;
use crate::config::reference::{Missing, check_headers, client_pem, header_value, read_pem};
use crate::config::{OpenInference, Profile, Semconv, person};

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
    /// `genai-1.41-strict`, `genai-1.41` or `genai-0.1`. Default: the value in `[semconv]`.
    pub semconv: Option<String>,
    /// `kind`, `full` or `off`. Default: the value in `[semconv]`.
    pub openinference: Option<String>,
    /// `gzip` or `none`. Default: `gzip`, except for addresses of this machine.
    pub compression: Option<String>,
    /// Milliseconds for one attempt.
    pub timeout_ms: Option<u64>,
    /// `none`, `24h` or `all`.
    pub backfill: Option<Backfill>,
    /// `55m`, `6h`, `7d`.
    pub max_span_age: Option<String>,
    /// Spans that may wait while the destination fails.
    pub backlog_max_spans: Option<u64>,
    /// PEM file with additional certificates to trust.
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
    /// `env:NAME` or `file:PATH` of the text that identifies the person. Only its hash is sent.
    pub user: Option<String>,
    /// `env:NAME` or `file:PATH` of the key of that hash.
    pub user_key: Option<String>,
    /// Whether metrics are sent, too.
    pub metrics: Option<bool>,
    /// URL for metrics over HTTP. Required only if the endpoint does not end in `/v1/traces`.
    pub metrics_endpoint: Option<String>,
    /// `delta` or `cumulative`.
    pub metrics_temporality: Option<Temporality>,
    /// `60s`.
    pub metrics_interval: Option<String>,
    /// Whether prompts and answers are sent as log records, too.
    pub logs: Option<bool>,
    /// URL for log records over HTTP. Required only if the endpoint does not end in `/v1/traces`.
    pub logs_endpoint: Option<String>,
    /// Template of a link to a span.
    pub link: Option<String>,
    /// Values for the placeholders of endpoint and link (`site`, `zone`, `ui`, `team`, `env`, `dataset` ...).
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

impl DestinationForm {
    /// Fills in the preset's values, reads the references and checks every value.
    ///
    /// # Errors
    ///
    /// Names the key of the first value that cannot be used.
    pub(crate) fn build(
        &self,
        env: &Environment,
        defaults: Semconv,
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
            signal: Signal::Traces,
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
            by_policy: Vec::new(),
        })
    }

    fn asked(&self) -> person::Asked<'_> {
        let (user, key) = (self.user.as_deref(), self.user_key.as_deref());
        person::Asked { attributes: &self.attributes, user, key }
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

    /// Which content may be sent, and whether secrets are redacted first.
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

    /// Phoenix shows text only under OpenInference's names. So for Phoenix, the strict profile sends these names by
    /// default.
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
    pub(in crate::config) fn endpoint_template(&self) -> Result<Option<&str>, Mistake> {
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

fn check_name(name: &str) -> Result<(), Mistake> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(fine) {
        return Err(Why::Name.at("name"));
    }
    Ok(())
}
