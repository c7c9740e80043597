//! One attempt: bytes to a server, its answer as an [`Outcome`].

use std::io::Write as _;
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes};
use http::uri::PathAndQuery;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::outcome::{self, Outcome};
use crate::clock;
use crate::config::destination::{Connection, Protocol, is_loopback};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_MAX_BYTES: usize = 4 * 1_024 * 1_024;
const GRPC_METHOD: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// A connection to a destination; connects when first used.
#[derive(Debug)]
pub(super) enum Client {
    Http(HttpClient),
    Grpc(GrpcClient),
}

/// Why a destination's settings do not make a client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ClientError(String);

impl Client {
    /// A client for `connection`. Must run inside the runtime that will use it.
    pub(super) fn new(connection: &Connection) -> Result<Self, ClientError> {
        let failed = |error: &dyn std::error::Error| ClientError(error.to_string());
        Ok(match connection.protocol {
            Protocol::Http => Self::Http(HttpClient::new(connection).map_err(|e| failed(&e))?),
            Protocol::Grpc => Self::Grpc(GrpcClient::new(connection).map_err(|e| failed(&*e))?),
        })
    }

    /// Bytes a request may have before compression.
    pub(super) const fn request_max_bytes(&self) -> usize {
        match self {
            Self::Http(_) => 4 * 1_024 * 1_024,
            // Servers take 4 MiB; what is left is for the envelope and for a span that counts differently there.
            Self::Grpc(_) => 3 * 1_024 * 1_024,
        }
    }

    pub(super) async fn send(&self, body: Bytes) -> Outcome {
        match self {
            Self::Http(client) => client.send(body).await,
            Self::Grpc(client) => client.send(body).await,
        }
    }
}

#[derive(Debug)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    url: String,
    headers: reqwest::header::HeaderMap,
    gzip: bool,
}

impl HttpClient {
    fn new(connection: &Connection) -> Result<Self, reqwest::Error> {
        // A redirect would carry the headers, and so the key, to another place; and a proxy has no business in front of
        // this machine's own ports.
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(connection.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("hookspan/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&connection.endpoint) {
            builder = builder.no_proxy();
        }
        if let Some(pem) = &connection.certificate {
            builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(pem)?);
        }
        if let Some((certificate, key)) = &connection.client {
            let mut pem = certificate.clone();
            pem.push(b'\n');
            pem.extend_from_slice(key.0.as_bytes());
            builder = builder.identity(reqwest::Identity::from_pem(&pem)?);
        }
        let mut headers = reqwest::header::HeaderMap::new();
        for (name, value) in &connection.headers {
            if let (Ok(name), Ok(mut value)) = (
                reqwest::header::HeaderName::from_bytes(name.as_bytes()),
                reqwest::header::HeaderValue::from_str(&value.0),
            ) {
                value.set_sensitive(true);
                headers.append(name, value);
            }
        }
        let url = connection.endpoint.clone();
        Ok(Self { client: builder.build()?, url, headers, gzip: connection.gzip })
    }

    async fn send(&self, body: Bytes) -> Outcome {
        let mut request = self
            .client
            .post(&self.url)
            .headers(self.headers.clone())
            .header("content-type", "application/x-protobuf");
        request = if self.gzip {
            match gzip(&body) {
                Ok(packed) => request.header("content-encoding", "gzip").body(packed),
                Err(error) => return outcome::from_transport(&error),
            }
        } else {
            request.body(body)
        };
        match request.send().await {
            Ok(response) => read(response).await,
            Err(error) => outcome::from_transport(&error.without_url()),
        }
    }
}

async fn read(mut response: reqwest::Response) -> Outcome {
    let status = response.status().as_u16();
    let retry_after = response.headers().get("retry-after").and_then(|v| v.to_str().ok());
    let retry_after = retry_after.map(str::to_owned);
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= RESPONSE_MAX_BYTES => {
                body.extend_from_slice(&chunk);
            }
            // What comes beyond the limit is nothing a receiver has to say.
            Ok(Some(_)) | Ok(None) => break,
            // The server may or may not have kept the batch; the same bytes again are harmless.
            Err(error) => return outcome::from_transport(&error.without_url()),
        }
    }
    outcome::from_http(status, retry_after.as_deref(), &body, clock::now())
}

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(
        Vec::with_capacity(body.len() / 4),
        flate2::Compression::fast(),
    );
    encoder.write_all(body)?;
    encoder.finish()
}

#[derive(Debug)]
pub(super) struct GrpcClient {
    channel: Channel,
    headers: MetadataMap,
    gzip: bool,
    timeout: Duration,
}

impl GrpcClient {
    fn new(connection: &Connection) -> Result<Self, Box<dyn std::error::Error>> {
        let mut endpoint = Endpoint::from_shared(connection.endpoint.clone())?
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("hookspan/", env!("CARGO_PKG_VERSION")))?;
        if connection.endpoint.starts_with("https://") {
            let mut tls = ClientTlsConfig::new().with_native_roots();
            if let Some(pem) = &connection.certificate {
                tls = tls.ca_certificate(Certificate::from_pem(pem));
            }
            if let Some((certificate, key)) = &connection.client {
                tls = tls.identity(Identity::from_pem(certificate, &key.0));
            }
            endpoint = endpoint.tls_config(tls)?;
        }
        let mut headers = MetadataMap::new();
        for (name, value) in &connection.headers {
            let key = AsciiMetadataKey::from_bytes(name.as_bytes())?;
            headers.append(key, AsciiMetadataValue::try_from(value.0.as_str())?);
        }
        Ok(Self {
            channel: endpoint.connect_lazy(),
            headers,
            gzip: connection.gzip,
            timeout: connection.timeout,
        })
    }

    async fn send(&self, body: Bytes) -> Outcome {
        match tokio::time::timeout(self.timeout, self.call(body)).await {
            Ok(Ok(response)) => outcome::from_response(response.into_inner()),
            Ok(Err(status)) => outcome::from_grpc(&status),
            Err(_) => Outcome::Retry {
                after: None,
                detail: format!("no answer within {} ms", self.timeout.as_millis()),
            },
        }
    }

    async fn call(
        &self,
        body: Bytes,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client = client.max_decoding_message_size(RESPONSE_MAX_BYTES);
        if self.gzip {
            client = client.send_compressed(tonic::codec::CompressionEncoding::Gzip);
        }
        client.ready().await.map_err(|error| tonic::Status::from_error(Box::new(error)))?;
        let mut request = tonic::Request::new(body);
        *request.metadata_mut() = self.headers.clone();
        client.unary(request, PathAndQuery::from_static(GRPC_METHOD), RawCodec).await
    }
}

/// Sends bytes that are encoded already, so that a retry is the same to the last byte and costs no second encoding.
#[derive(Clone, Copy, Debug)]
struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = ExportTraceServiceResponse;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self::Encoder {
        *self
    }

    fn decoder(&mut self) -> Self::Decoder {
        *self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = tonic::Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Self::Error> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = ExportTraceServiceResponse;
    type Error = tonic::Status;

    fn decode(&mut self, input: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Self::Error> {
        let bytes = input.copy_to_bytes(input.remaining());
        // As over HTTP: it said OK, and whatever it sent along does not undo that.
        Ok(Some(ExportTraceServiceResponse::decode(bytes).unwrap_or_default()))
    }
}
