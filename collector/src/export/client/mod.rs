//! One attempt: sends bytes to a server and returns its answer as an [`Outcome`].

mod grpc;
mod http;
mod tls;

use std::io::{Read as _, Write as _};
use std::time::Duration;

use bytes::Bytes;

use super::outcome::Outcome;
use crate::config::destination::{Connection, Protocol, Signal};

pub(super) use tls::client_config;

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of bytes read of an answer. A receiver answers with a few dozen bytes, so a longer answer is not from
/// a receiver.
const ANSWER_MAX_BYTES: usize = 64 * 1_024;

const USER_AGENT: &str = concat!("hookspan/", env!("CARGO_PKG_VERSION"));

/// A connection to a destination. It connects on first use.
#[derive(Debug)]
pub(super) enum Client {
    Http(http::HttpClient),
    Grpc(grpc::GrpcClient),
}

/// Why no client can be made from a destination's settings.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ClientError(pub(super) String);

impl Client {
    /// A client for `signal`. Must run inside the runtime that will use it. The path of an HTTP endpoint is part of
    /// `connection`.
    ///
    /// # Errors
    /// A certificate or a key cannot be used.
    pub(super) fn new(connection: &Connection, signal: Signal) -> Result<Self, ClientError> {
        let method = match signal {
            Signal::Traces => grpc::TRACES,
            Signal::Metrics => grpc::METRICS,
            Signal::Logs => grpc::LOGS,
        };
        Ok(match connection.protocol {
            Protocol::Http => Self::Http(http::HttpClient::new(connection)?),
            Protocol::Grpc => Self::Grpc(grpc::GrpcClient::new(connection, method)?),
        })
    }

    pub(super) async fn send(&self, body: Bytes) -> Outcome {
        match self {
            Self::Http(client) => client.send(body).await,
            Self::Grpc(client) => client.send(body).await,
        }
    }
}

/// Maximum size of a request before compression.
pub(super) const fn request_max_bytes(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Http => 4 * 1_024 * 1_024,
        // Servers accept 4 MiB. The difference is room for the envelope, and for servers that count sizes differently.
        Protocol::Grpc => 3 * 1_024 * 1_024,
    }
}

fn failed(error: impl std::fmt::Display) -> ClientError {
    ClientError(error.to_string())
}

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(
        Vec::with_capacity(body.len() / 4),
        flate2::Compression::fast(),
    );
    encoder.write_all(body)?;
    encoder.finish()
}

/// Decompresses at most [`ANSWER_MAX_BYTES`] of `body`.
fn gunzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(body)
        .take(ANSWER_MAX_BYTES as u64)
        .read_to_end(&mut unpacked)?;
    Ok(unpacked)
}
