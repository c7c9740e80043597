//! `OTEL_EXPORTER_OTLP_*`: one connection per signal, as the OpenTelemetry specification says.

use super::Environment;
use super::connection::{
    Connection, Protocol, Secret, check_endpoint, is_loopback, parse_gzip, parse_protocol, timeout,
};
use super::mistake::{Mistake, Why};
use super::reference::{Missing, check_headers, client_pem, read_pem};

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
    /// Log records.
    Logs,
}

impl Signal {
    const fn word(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
            Self::Logs => "LOGS",
        }
    }

    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
            Self::Logs => "/v1/logs",
        }
    }
}

/// The connection that the environment describes for `signal`. `None` if no endpoint is set. A file that cannot be read
/// is recorded in `missing`.
///
/// # Errors Names the first variable whose value cannot be used.
pub(super) fn connection(
    env: &Environment,
    signal: Signal,
    missing: &mut Missing,
) -> Result<Option<Connection>, Mistake> {
    Reader { env, signal }.connection(None, missing)
}

/// Error text for an unreadable file that an environment variable names.
#[derive(Debug)]
pub(crate) struct Unreadable(pub String);

/// Like `connection`. If no endpoint is set, uses the specification's default endpoint on this machine. A file that
/// cannot be read does not count as an error of the variable that names it.
///
/// # Errors Names the first variable whose value cannot be used.
pub(crate) fn connection_or_default(
    env: &Environment,
    signal: Signal,
) -> Result<Result<Connection, Unreadable>, Mistake> {
    let reader = Reader { env, signal };
    let fallback = match reader.protocol()? {
        Protocol::Http => "http://localhost:4318",
        Protocol::Grpc => "http://localhost:4317",
    };
    let mut missing = Missing::default();
    let connection = reader.connection(Some(fallback), &mut missing)?;
    match missing.words() {
        Some(problem) => Ok(Err(Unreadable(problem))),
        None => connection.map(Ok).ok_or_else(|| Why::NoHost.at("OTEL_EXPORTER_OTLP_ENDPOINT")),
    }
}

struct Reader<'a> {
    env: &'a Environment,
    signal: Signal,
}

impl Reader<'_> {
    fn connection(
        &self,
        fallback: Option<&str>,
        missing: &mut Missing,
    ) -> Result<Option<Connection>, Mistake> {
        let own = self.get(&format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", self.signal.word()));
        let is_general = own.is_none();
        let found = own.or_else(|| self.get("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let fallback = || fallback.map(|url| ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), url));
        let Some((key, raw)) = found.or_else(fallback) else { return Ok(None) };
        let protocol = self.protocol()?;
        let endpoint = self.endpoint(raw, protocol, is_general)?;
        check_endpoint(&endpoint).map_err(|why| why.at(key))?;
        let headers = match self.either("HEADERS") {
            Some((key, text)) => parse_headers(text).map_err(|why| why.at(key))?,
            None => Vec::new(),
        };
        check_headers(&headers)?;
        let gzip = match self.either("COMPRESSION") {
            Some((key, word)) => parse_gzip(word).map_err(|why| why.at(key))?,
            None => !is_loopback(&endpoint),
        };
        let timeout_ms = match self.either("TIMEOUT") {
            Some((key, text)) => {
                Some(text.parse().map_err(|_| Why::Milliseconds(text.to_owned()).at(key))?)
            }
            None => None,
        };
        let file = |suffix| self.either(suffix).map(|(_, path)| path);
        Ok(Some(Connection {
            endpoint,
            protocol,
            headers,
            gzip,
            timeout: timeout(timeout_ms).map_err(|why| why.at("OTEL_EXPORTER_OTLP_TIMEOUT"))?,
            certificate: missing
                .take(read_pem("OTEL_EXPORTER_OTLP_CERTIFICATE", file("CERTIFICATE")))?
                .flatten(),
            client: missing
                .take(client_pem(file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")))?
                .flatten(),
        }))
    }

    fn protocol(&self) -> Result<Protocol, Mistake> {
        match self.either("PROTOCOL") {
            Some((key, word)) => parse_protocol(word).map_err(|why| why.at(key)),
            None => Ok(Protocol::Http),
        }
    }

    /// A variable that is set and not empty. The specification treats an empty variable as unset.
    fn get(&self, key: &str) -> Option<(String, &str)> {
        let value = self.env.var(key)?.trim();
        (!value.is_empty()).then(|| (key.to_owned(), value))
    }

    /// The variable of this signal, otherwise the variable for all signals.
    fn either(&self, suffix: &str) -> Option<(String, &str)> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{suffix}", self.signal.word());
        self.get(&own).or_else(|| self.get(&format!("OTEL_EXPORTER_OTLP_{suffix}")))
    }

    fn endpoint(&self, raw: &str, protocol: Protocol, is_general: bool) -> Result<String, Mistake> {
        let insecure = match self.either("INSECURE") {
            None => false,
            Some((_, word)) if word.eq_ignore_ascii_case("true") => true,
            Some((_, word)) if word.eq_ignore_ascii_case("false") => false,
            Some((key, word)) => return Err(Why::Boolean(word.to_owned()).at(key)),
        };
        Ok(match protocol {
            Protocol::Grpc if raw.contains("://") => raw.to_owned(),
            Protocol::Grpc => format!("{}://{raw}", if insecure { "http" } else { "https" }),
            Protocol::Http if is_general => {
                format!("{}{}", raw.trim_end_matches('/'), self.signal.path())
            }
            Protocol::Http => raw.to_owned(),
        })
    }
}

/// `key=value,key=value`, both percent-encoded.
fn parse_headers(text: &str) -> Result<Vec<(String, Secret)>, Why> {
    text.split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').ok_or(Why::HeaderForm)?;
            let key = percent_decode(key.trim()).to_ascii_lowercase();
            Ok((key, Secret(percent_decode(value.trim()))))
        })
        .collect()
}

/// Percent-decodes a value in the W3C baggage format. Invalid escapes stay as they are.
fn percent_decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}
