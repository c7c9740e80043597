//! Tests a destination: name, connection, TLS, and an export without spans. Nothing is stored.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use serde::Serialize;

use super::cause::Cause;
use super::client::{self, CONNECT_TIMEOUT, Client};
use super::outcome::{self, Outcome, Refusal, Trouble};
use super::sniff;
use crate::clock;
use crate::config::destination::{Connection, Destination, Protocol, Signal, is_loopback};

/// One step on the way to a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Step {
    /// `configuration`, `name`, `connection`, `tls`, `export` or `metrics`.
    pub step: &'static str,
    /// Whether it works.
    pub ok: bool,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub advice: Option<String>,
    /// How long it took, milliseconds.
    pub took_ms: u64,
}

/// Tries `destination`. Blocks for up to half a minute, and must not run on an async thread.
///
/// The test ends with the first failing step. For HTTP, the system settings may name a proxy. In that case, only the
/// result of the export counts.
#[must_use]
pub(crate) fn probe(destination: &Destination) -> Vec<Step> {
    crate::tls::install_crypto();
    let mut probe = Probe { destination, steps: Vec::new(), started: clock::instant() };
    if let Some(problem) = &destination.unready {
        let advice = Some("Correct that, then restart the collector.".to_owned());
        probe.step("configuration", false, problem.clone(), advice);
        return probe.steps;
    }
    let reached = probe.reach();
    let connection = &destination.connection;
    let may_have_proxy =
        connection.protocol == Protocol::Http && !is_loopback(&connection.endpoint);
    if reached {
        probe.export();
    } else if may_have_proxy {
        probe.export_through_proxy();
    }
    if let Some(metrics) = &destination.metrics
        && probe.steps.iter().all(|step| step.ok)
    {
        let outcome = probe.send(Signal::Metrics, &metrics.connection);
        probe.judge_metrics(outcome);
    }
    probe.steps
}

struct Probe<'a> {
    destination: &'a Destination,
    steps: Vec<Step>,
    started: std::time::Instant,
}

impl Probe<'_> {
    /// Checks name, connection and TLS. Returns whether all of them work.
    fn reach(&mut self) -> bool {
        let Ok(url) = reqwest::Url::parse(&self.destination.connection.endpoint) else {
            return false;
        };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().unwrap_or(443);
        let Some(addresses) = self.resolve(&host, port) else { return false };
        let Some(socket) = self.connect(&addresses) else { return false };
        url.scheme() != "https" || self.handshake(socket, host)
    }

    fn resolve(&mut self, host: &str, port: u16) -> Option<Vec<SocketAddr>> {
        match (host, port).to_socket_addrs().map(Iterator::collect::<Vec<_>>) {
            Ok(addresses) if !addresses.is_empty() => {
                let list: Vec<String> =
                    addresses.iter().take(4).map(|address| address.ip().to_string()).collect();
                self.step("name", true, format!("{host} is {}", list.join(", ")), None);
                Some(addresses)
            }
            found => {
                let why = found.err().map_or_else(String::new, |error| format!(": {error}"));
                self.fail("name", &Cause::Dns, format!("{host} has no address{why}"));
                None
            }
        }
    }

    fn connect(&mut self, addresses: &[SocketAddr]) -> Option<TcpStream> {
        let mut last = None;
        for address in addresses {
            match TcpStream::connect_timeout(address, CONNECT_TIMEOUT) {
                Ok(socket) => {
                    self.step("connection", true, format!("{address} accepts connections"), None);
                    return Some(socket);
                }
                Err(error) => last = Some((address, error)),
            }
        }
        let (address, error) = last?;
        let cause = match error.kind() {
            io::ErrorKind::TimedOut => Cause::Timeout,
            _ => Cause::Refused,
        };
        self.fail("connection", &cause, format!("{address}: {error}"));
        None
    }

    fn handshake(&mut self, mut socket: TcpStream, host: String) -> bool {
        let connection = &self.destination.connection;
        let protocols: &[&[u8]] = match connection.protocol {
            Protocol::Http => &[b"h2", b"http/1.1"],
            Protocol::Grpc => &[b"h2"],
        };
        let tls = client::client_config(connection, protocols)
            .map_err(|error| error.to_string())
            .and_then(|config| {
                let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
                ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())
            });
        let mut tls = match tls {
            Ok(tls) => tls,
            Err(problem) => {
                self.step("tls", false, problem, None);
                return false;
            }
        };
        let shaken = socket
            .set_read_timeout(Some(CONNECT_TIMEOUT))
            .and_then(|()| socket.set_write_timeout(Some(CONNECT_TIMEOUT)))
            .and_then(|()| shake(&mut tls, &mut socket));
        if let Err(error) = shaken {
            self.judge("tls", outcome::from_transport(&error));
            return false;
        }
        let version = match tls.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
            _ => "TLS 1.3",
        };
        let speaks_h2 = tls.alpn_protocol() == Some(b"h2");
        if connection.protocol == Protocol::Grpc && !speaks_h2 {
            self.fail(
                "tls",
                &Cause::NotHttp2,
                format!("{version}, but the server offers no HTTP/2"),
            );
            return false;
        }
        self.step("tls", true, format!("{version}, the certificate is trusted"), None);
        true
    }

    fn export(&mut self) {
        let outcome = self.send(self.destination.signal, &self.destination.connection);
        self.judge("export", outcome);
    }

    /// Tests an export through a proxy. If the export succeeds, failed steps of the direct connection count as passed.
    fn export_through_proxy(&mut self) {
        let outcome = self.send(self.destination.signal, &self.destination.connection);
        if matches!(outcome, Outcome::Ok | Outcome::Partial { .. }) {
            for step in self.steps.iter_mut().filter(|step| !step.ok) {
                step.ok = true;
                step.what.push_str(" (not on the direct way; a proxy stands in between)");
                step.advice = None;
            }
            self.judge("export", outcome);
        }
    }

    fn judge_metrics(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ok | Outcome::Partial { .. } => {
                let what = "the receiver accepted an empty export of metrics";
                self.step("metrics", true, what.to_owned(), None);
            }
            Outcome::Retry { trouble, .. } | Outcome::Permanent { trouble, .. } => {
                let advice = trouble.cause.metrics_advice(self.destination);
                self.step("metrics", false, trouble.detail, Some(advice));
            }
        }
    }

    /// Sends an export without content.
    fn send(&self, signal: Signal, connection: &Connection) -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let failed = |error: &dyn std::fmt::Display| Outcome::Permanent {
            class: Refusal::Config,
            trouble: Trouble::new(Cause::Broken, error.to_string()),
        };
        match runtime {
            Ok(runtime) => runtime.block_on(async {
                match Client::new(connection, signal) {
                    Ok(client) => client.send(Bytes::new()).await,
                    Err(error) => failed(&error),
                }
            }),
            Err(error) => failed(&error),
        }
    }

    fn judge(&mut self, step: &'static str, outcome: Outcome) {
        match outcome {
            Outcome::Ok | Outcome::Partial { .. } => {
                self.step(step, true, "an OTLP receiver accepted an empty export".to_owned(), None);
            }
            // MLflow rejects a request without spans. This answer means that the receiver works.
            Outcome::Permanent { class: Refusal::Rejected, trouble }
                if names_emptiness(&trouble) =>
            {
                let what = format!(
                    "an OTLP receiver answered; it takes no empty export ({})",
                    trouble.detail
                );
                self.step(step, true, what, None);
            }
            Outcome::Retry { trouble, .. } | Outcome::Permanent { trouble, .. } => {
                let closer = (trouble.cause == Cause::Broken)
                    .then(|| sniff::sniff(self.destination))
                    .flatten();
                self.fail(step, closer.as_ref().unwrap_or(&trouble.cause), trouble.detail);
            }
        }
    }

    fn fail(&mut self, step: &'static str, cause: &Cause, what: String) {
        let advice = Some(cause.advice(self.destination)).filter(|advice| !advice.is_empty());
        self.step(step, false, what, advice);
    }

    fn step(&mut self, step: &'static str, ok: bool, what: String, advice: Option<String>) {
        let now = clock::instant();
        let took = now.duration_since(std::mem::replace(&mut self.started, now));
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.steps.push(Step { step, ok, what, advice, took_ms });
    }
}

fn names_emptiness(trouble: &Trouble) -> bool {
    let text = trouble.detail.to_ascii_lowercase();
    ["no spans", "no resource", "empty"].iter().any(|words| text.contains(words))
}

/// Runs the handshake to its end, or until the time is over.
fn shake(tls: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<()> {
    let deadline = clock::instant() + CONNECT_TIMEOUT + Duration::from_secs(1);
    while tls.is_handshaking() {
        if clock::instant() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (read, _) = tls.complete_io(socket)?;
        if read == 0 && tls.is_handshaking() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the TLS handshake was cut off",
            ));
        }
    }
    Ok(())
}
