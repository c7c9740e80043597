//! Why a delivery failed, and what the user can change about it.

use crate::config::destination::{Connection, Destination, Protocol, Signal, is_loopback};

/// The cause of a failed delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The host name has no address.
    Dns,
    /// Nothing listens there.
    Refused,
    /// No answer in time.
    Timeout,
    /// The connection ended before the answer was complete.
    Broken,
    /// The server's certificate is not trusted.
    Certificate,
    /// The server did not accept the client in the TLS handshake.
    ClientCertificate,
    /// TLS was sent to a port that does not speak TLS.
    NotTls,
    /// Plain text was sent to a port that speaks TLS.
    WantsTls,
    /// The port answers, but not with HTTP/1.1.
    NotHttp1,
    /// The port answers, but not with HTTP/2.
    NotHttp2,
    /// The server redirects. Contains scheme, host and path of the target.
    Redirect(String),
    /// The answer is not that of an OTLP receiver.
    NotOtlp,
    /// The credentials are missing or wrong.
    Credentials,
    /// The server knows no such path or service.
    WrongPath,
    /// The server does not take protobuf.
    ContentType,
    /// The server cannot unpack gzip.
    Compression,
    /// The request is larger than the server accepts.
    TooLarge,
    /// The server is overloaded, or limits the rate.
    Busy,
    /// The server failed.
    Faulty,
    /// The server refuses the content of the request.
    Content,
}

impl Cause {
    /// Whether the cause is that the two sides speak different protocols. One such answer may be a coincidence; several
    /// in a row are not.
    #[must_use]
    pub(crate) const fn is_mix_up(&self) -> bool {
        matches!(self, Self::NotTls | Self::NotHttp1 | Self::NotHttp2 | Self::WantsTls)
    }

    /// What the user can do. Empty if nothing but another attempt can help.
    #[must_use]
    pub(crate) fn advice(&self, destination: &Destination) -> String {
        let connection = &destination.connection;
        let is_grpc = connection.protocol == Protocol::Grpc;
        match self {
            Self::Dns => format!("Check the host name in `endpoint`.{}", no_proxy(connection)),
            Self::Refused => format!(
                "Check that the receiver runs and listens on {}. hookspan tries again by itself.",
                destination.endpoint_host()
            ),
            Self::Timeout => format!(
                "Check the receiver. If it only needs longer, raise `timeout_ms`.{}",
                no_proxy(connection)
            ),
            Self::Broken => "Check that a receiver stands behind this port: a port forwarder without one closes \
                 connections like this."
                .to_owned(),
            Self::Certificate => "Name the server's certificate, or that of its issuer, as `certificate`, and use a \
                 host name that stands in the certificate."
                .to_owned(),
            Self::ClientCertificate => {
                "If the server asks for a client certificate, set `client_certificate` and `client_key`."
                    .to_owned()
            }
            Self::NotTls => format!(
                "The port does not speak TLS. Write http://{} as `endpoint`.",
                destination.endpoint_host()
            ),
            Self::WantsTls => format!(
                "The port speaks TLS. Write https://{} as `endpoint`.",
                destination.endpoint_host()
            ),
            Self::NotHttp1 | Self::NotHttp2 => other_protocol(is_grpc, connection),
            Self::Redirect(to) => redirected(to, connection),
            Self::NotOtlp => format!(
                "A web page or a proxy answered, not an OTLP receiver. Check host, port and path of `endpoint`; \
                 receivers usually listen on {}.",
                if is_grpc { "4317 for gRPC" } else { "4318 for HTTP" }
            ),
            Self::Credentials => credentials(destination),
            Self::WrongPath | Self::ContentType if destination.signal == Signal::Logs => {
                no_logs(destination)
            }
            Self::WrongPath if is_grpc => {
                "This gRPC server has no OTLP trace service. Check the port of `endpoint`; receivers usually listen on 4317."
                    .to_owned()
            }
            Self::WrongPath => wrong_path(destination),
            Self::ContentType => {
                "The receiver takes no OTLP as protobuf under this path. Check the path of `endpoint`."
                    .to_owned()
            }
            Self::Compression => "Set `compression = \"none\"`.".to_owned(),
            Self::TooLarge => "Raise the receiver's limit for requests.".to_owned(),
            Self::Busy => "Nothing to do: hookspan tries again by itself.".to_owned(),
            Self::Faulty => "Look at the receiver's log.".to_owned(),
            Self::Content => refused_content(destination),
        }
    }
}

impl Cause {
    /// Like [`Self::advice`], for a request with metrics.
    pub(super) fn metrics_advice(&self, destination: &Destination) -> String {
        match self {
            Self::WrongPath => format!(
                "The receiver takes no metrics there. Name the right address as `metrics_endpoint`, or set `metrics = false` \
                 for {}: its spans are sent anyway.",
                destination.name
            ),
            Self::Content => "Read the receiver's answer. If it wants the other kind of sums, set `metrics_temporality` to \
                 \"delta\" or \"cumulative\"."
                .to_owned(),
            _ => self.advice(destination),
        }
    }
}

/// A hint for networks in which only a proxy reaches other machines.
fn no_proxy(connection: &Connection) -> &'static str {
    if connection.protocol == Protocol::Grpc && !is_loopback(&connection.endpoint) {
        " If this network is left through a proxy, set `protocol = \"http/protobuf\"`: gRPC does not use HTTPS_PROXY."
    } else {
        ""
    }
}

fn no_logs(destination: &Destination) -> String {
    format!(
        "The receiver takes no logs there. Name the right address as `logs_endpoint`, or set `logs = false` for {}: its \
         spans are sent anyway.",
        destination.written_name()
    )
}

fn other_protocol(is_grpc: bool, connection: &Connection) -> String {
    let tls = if connection.endpoint.starts_with("https://") {
        ""
    } else {
        " If the port speaks TLS, write https:// in `endpoint`."
    };
    if is_grpc {
        format!(
            "The port does not speak gRPC. Set `protocol = \"http/protobuf\"`, or use the receiver's gRPC port, usually \
             4317.{tls}"
        )
    } else {
        format!(
            "The port does not speak HTTP/1.1. Set `protocol = \"grpc\"`, or use the receiver's HTTP port, usually 4318.{tls}"
        )
    }
}

fn redirected(to: &str, connection: &Connection) -> String {
    let secure = connection.endpoint.strip_prefix("http://").zip(to.strip_prefix("https://"));
    match secure {
        Some(_) => format!("Write the https address as `endpoint`, for example {to}"),
        None => "Check host and path of `endpoint`: this one leads elsewhere, for example to a login page. hookspan \
                 follows no redirects, because they would carry the credentials along."
            .to_owned(),
    }
}

fn credentials(destination: &Destination) -> String {
    let preset = destination.preset;
    if preset.required_headers().is_empty() {
        "Check the key in `headers`, for example headers = { authorization = \"Bearer env:TOKEN\" }, and what it may do."
            .to_owned()
    } else {
        let host = destination.endpoint_host();
        let region = preset.region_hint().map_or_else(String::new, |hint| {
            format!(" A key of another region is refused, too. This one is sent to {host}; {hint}.")
        });
        format!("Check the key and what it may do: {}.{region}", preset.header_hint())
    }
}

fn wrong_path(destination: &Destination) -> String {
    match destination.preset.endpoint(Protocol::Http) {
        Some(usual) => format!("Check the path of `endpoint`; this preset's usual one is {usual}"),
        None => "Check host and path of `endpoint`; most receivers take OTLP under /v1/traces."
            .to_owned(),
    }
}

fn refused_content(destination: &Destination) -> String {
    const EXPERIMENT: &str = "x-mlflow-experiment-id";
    let has_experiment = destination.connection.headers.iter().any(|(name, _)| name == EXPERIMENT);
    if destination.preset == crate::config::preset::Preset::Mlflow && !has_experiment {
        return format!("MLflow wants an experiment. Set headers = {{ {EXPERIMENT} = \"ID\" }}.");
    }
    let gzip = if destination.connection.gzip {
        " Some receivers cannot read gzip and call the request malformed: `compression = \"none\"` tries that."
    } else {
        ""
    };
    format!("Read the receiver's answer. If it names a missing header, set it in `headers`.{gzip}")
}
