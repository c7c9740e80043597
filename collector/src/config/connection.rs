//! How to reach an OTLP receiver, and the checks of each part.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use super::mistake::Why;

/// How to reach a destination.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// Full URL; for HTTP with its path.
    pub endpoint: String,
    /// Wire protocol.
    pub protocol: Protocol,
    /// Extra headers, lower-case names.
    pub headers: Vec<(String, Secret)>,
    /// Whether requests are compressed.
    pub gzip: bool,
    /// Limit for one attempt.
    pub timeout: Duration,
    /// Additional certificates to trust, as PEM.
    pub certificate: Option<Vec<u8>>,
    /// The client's certificate and its key, as PEM.
    pub client: Option<(Vec<u8>, Secret)>,
}

/// A value that is never shown. Its `Debug` output is a row of dots.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("••••")
    }
}

/// Wire protocol of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Protobuf over HTTP.
    Http,
    /// gRPC.
    Grpc,
}

impl Protocol {
    /// The word in configuration.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http/protobuf",
            Self::Grpc => "grpc",
        }
    }
}

/// The time from which the sums of a metrics request count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Temporality {
    /// Since the last request.
    Delta,
    /// Since the collector started.
    Cumulative,
}

impl Temporality {
    /// The word in configuration.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Cumulative => "cumulative",
        }
    }
}

pub(super) fn parse_protocol(word: &str) -> Result<Protocol, Why> {
    match word.trim() {
        "http/protobuf" | "http" => Ok(Protocol::Http),
        "grpc" => Ok(Protocol::Grpc),
        "http/json" => Err(Why::HttpJson),
        other => Err(Why::unknown(other, "http/protobuf or grpc")),
    }
}

pub(super) fn parse_gzip(word: &str) -> Result<bool, Why> {
    match word.trim() {
        "gzip" => Ok(true),
        "none" => Ok(false),
        other => Err(Why::unknown(other, "gzip or none")),
    }
}

pub(super) fn timeout(ms: Option<u64>) -> Result<Duration, Why> {
    match ms.unwrap_or(10_000) {
        0 => Err(Why::NoTime),
        ms if ms > 600_000 => Err(Why::TooLong(ms)),
        ms => Ok(Duration::from_millis(ms)),
    }
}

/// Reads `55m`, `6h`, `7d`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, Why> {
    match humantime::parse_duration(text) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(Why::Duration(text.to_owned())),
    }
}

pub(super) fn check_endpoint(url: &str) -> Result<(), Why> {
    let parsed = reqwest::Url::parse(url).map_err(Why::Url)?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(Why::Scheme(parsed.scheme().to_owned()));
    }
    if parsed.host_str().is_none_or(str::is_empty) {
        return Err(Why::NoHost);
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(Why::Credentials);
    }
    Ok(())
}

/// Whether `url` points at this machine. Requests to this machine are not compressed and do not use a proxy.
#[must_use]
pub(crate) fn is_loopback(url: &str) -> bool {
    let Some(host) = reqwest::Url::parse(url).ok().and_then(|u| u.host_str().map(str::to_owned))
    else {
        return false;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
