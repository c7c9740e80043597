//! How to reach an OTLP receiver, and the checks of each part.

use std::fmt;
use std::time::Duration;

/// How to reach a destination.
#[derive(Clone, Debug)]
pub struct Connection {
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
    /// PEM of extra roots.
    pub certificate: Option<Vec<u8>>,
    /// PEM of the client's certificate and key.
    pub client: Option<(Vec<u8>, Secret)>,
}

/// A value that is never shown: its `Debug` is a row of dots.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("••••")
    }
}

/// Wire protocol of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Protobuf over HTTP.
    Http,
    /// gRPC.
    Grpc,
}

impl Protocol {
    /// The word in configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http/protobuf",
            Self::Grpc => "grpc",
        }
    }
}

pub(super) fn parse_protocol(word: &str) -> Result<Protocol, String> {
    match word.trim() {
        "http/protobuf" | "http" => Ok(Protocol::Http),
        "grpc" => Ok(Protocol::Grpc),
        "http/json" => Err("http/json is not supported; use http/protobuf or grpc".to_owned()),
        other => Err(format!("{other:?} is unknown; use http/protobuf or grpc")),
    }
}

pub(super) fn parse_gzip(word: &str) -> Result<bool, String> {
    match word.trim() {
        "gzip" => Ok(true),
        "none" => Ok(false),
        other => Err(format!("{other:?} is unknown; use gzip or none")),
    }
}

pub(super) fn timeout(ms: Option<u64>) -> Result<Duration, String> {
    match ms.unwrap_or(10_000) {
        0 => Err("0 would fail every request; leave it out for 10 s".to_owned()),
        ms if ms > 600_000 => Err(format!("{ms} ms is more than ten minutes")),
        ms => Ok(Duration::from_millis(ms)),
    }
}

pub(super) fn check_endpoint(url: &str) -> Result<(), String> {
    let parsed = reqwest::Url::parse(url).map_err(|e| format!("{e}: write http(s)://host:port"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!("scheme {:?} is unknown; use http or https", parsed.scheme()));
    }
    if parsed.host_str().is_none_or(str::is_empty) {
        return Err("has no host".to_owned());
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("holds a user or password; put it into headers as env:NAME".to_owned());
    }
    Ok(())
}

/// Whether `url` points at this machine: compression would only cost, and no proxy belongs in between.
#[must_use]
pub fn is_loopback(url: &str) -> bool {
    let Some(host) = reqwest::Url::parse(url).ok().and_then(|u| u.host_str().map(str::to_owned))
    else {
        return false;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
