//! OTLP over gRPC: one unary call, framed here.
//!
//! tonic provides the connection. Its generated client is not used, because that client does not distinguish the
//! server's answer from a failure of the connection. It reports a broken connection as the status `Unknown`, like a
//! refusal, and a web page as `Internal`. It panics if a status has details that are not base64. This module returns
//! either a gRPC answer or a failure of the connection.

use base64::Engine as _;
use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use tonic::body::Body;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint, Identity};
use tower::{Service as _, ServiceExt as _};

use super::{
    ANSWER_MAX_BYTES, CONNECT_TIMEOUT, ClientError, USER_AGENT, failed, gunzip, gzip, tls,
};
use crate::clock;
use crate::config::destination::Connection;
use crate::export::cause::Cause;
use crate::export::outcome::{self, HttpAnswer, Outcome, Refusal, Trouble};

pub(super) const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
pub(super) const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

pub(super) const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// Bytes before each message: a flag and a length of four bytes.
const PREFIX_BYTES: usize = 5;

#[derive(Debug)]
pub(in crate::export) struct GrpcClient {
    channel: Channel,
    method: &'static str,
    headers: http::HeaderMap,
    gzip: bool,
    timeout: std::time::Duration,
}

impl GrpcClient {
    pub(super) fn new(connection: &Connection, method: &'static str) -> Result<Self, ClientError> {
        let mut headers = MetadataMap::new();
        for (name, value) in &connection.headers {
            let key = AsciiMetadataKey::from_bytes(name.as_bytes()).map_err(failed)?;
            headers.append(key, AsciiMetadataValue::try_from(value.0.as_str()).map_err(failed)?);
        }
        Ok(Self {
            channel: endpoint(connection)?.connect_lazy(),
            method,
            headers: headers.into_headers(),
            gzip: connection.gzip,
            timeout: connection.timeout,
        })
    }

    pub(super) async fn send(&self, body: Bytes) -> Outcome {
        match tokio::time::timeout(self.timeout, self.call(&body)).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => outcome::from_transport(&*error),
            Err(_) => {
                let detail = format!("no answer within {} ms", self.timeout.as_millis());
                Outcome::Retry { after: None, trouble: Trouble::new(Cause::Timeout, detail) }
            }
        }
    }

    async fn call(&self, body: &[u8]) -> Result<Outcome, Box<dyn std::error::Error + Send + Sync>> {
        let request = self.request(body)?;
        let mut channel = self.channel.clone();
        let response = channel.ready().await?.call(request).await?;
        Answer::read(response).await.map(Answer::outcome).map_err(Into::into)
    }

    fn request(
        &self,
        body: &[u8],
    ) -> Result<http::Request<Body>, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = http::Request::post(self.method)
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            .header("grpc-accept-encoding", "gzip,identity");
        if self.gzip {
            request = request.header("grpc-encoding", "gzip");
        }
        let mut request = request.body(Body::new(Full::new(self.frame(body)?)))?;
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }

    fn frame(&self, body: &[u8]) -> std::io::Result<Bytes> {
        let packed = if self.gzip { Some(gzip(body)?) } else { None };
        let message = packed.as_deref().unwrap_or(body);
        let length = u32::try_from(message.len()).map_err(std::io::Error::other)?;
        let mut frame = BytesMut::with_capacity(PREFIX_BYTES + message.len());
        frame.put_u8(u8::from(self.gzip));
        frame.put_u32(length);
        frame.put_slice(message);
        Ok(frame.freeze())
    }
}

fn endpoint(connection: &Connection) -> Result<Endpoint, ClientError> {
    let endpoint = Endpoint::from_shared(connection.endpoint.clone())
        .map_err(failed)?
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(USER_AGENT)
        .map_err(failed)?;
    if !connection.endpoint.starts_with("https://") {
        return Ok(endpoint);
    }
    let mut config = ClientTlsConfig::new();
    if let Some((certificate, key)) = &connection.client {
        config = config.identity(Identity::from_pem(certificate, &key.0));
    }
    match &connection.certificate {
        Some(pem) => endpoint.tls_config_with_verifier(config, tls::verifier(pem)?),
        None => endpoint.tls_config(config.with_native_roots()),
    }
    .map_err(failed)
}

/// The received message.
struct Answer {
    head: http::response::Parts,
    body: Vec<u8>,
    /// The message was longer than the limit.
    is_cut: bool,
    status: Option<tonic::Status>,
}

impl Answer {
    async fn read(response: http::Response<Body>) -> Result<Self, tonic::Status> {
        let (head, mut body) = response.into_parts();
        let status = status(&head.headers);
        let mut answer = Self { head, body: Vec::new(), is_cut: false, status };
        while answer.status.is_none()
            && !answer.is_cut
            && let Some(frame) = body.frame().await
        {
            match frame?.into_data() {
                Ok(chunk) => answer.take(&chunk),
                Err(frame) => answer.status = frame.trailers_ref().and_then(self::status),
            }
        }
        Ok(answer)
    }

    fn take(&mut self, chunk: &[u8]) {
        let room = ANSWER_MAX_BYTES - self.body.len();
        self.is_cut = chunk.len() > room;
        self.body.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
    }

    fn outcome(self) -> Outcome {
        let is_grpc = self.header("content-type").starts_with("application/grpc");
        match &self.status {
            Some(status) if status.code() == tonic::Code::Ok => self.message(),
            Some(status) => outcome::from_grpc(status),
            None if self.head.status.is_success() && is_grpc && !self.is_cut => Outcome::Retry {
                after: None,
                trouble: Trouble::new(Cause::Broken, "the answer ended without a gRPC status"),
            },
            None => self.foreign(),
        }
    }

    /// Reads the message of an answer with status OK. The message may say that some spans were refused.
    fn message(&self) -> Outcome {
        let Some((prefix, rest)) = self.body.split_at_checked(PREFIX_BYTES) else {
            return outcome::from_message(&[]);
        };
        let [flag, length @ ..] = prefix else { return outcome::from_message(&[]) };
        let length = length.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
        let message = rest.get(..length).unwrap_or(rest);
        match (flag, gunzip(message)) {
            (1, Ok(unpacked)) => outcome::from_message(&unpacked),
            _ => outcome::from_message(message),
        }
    }

    /// Judges an answer without a gRPC status. Such an answer does not come from a gRPC server, no matter what it
    /// contains.
    fn foreign(self) -> Outcome {
        let answer = HttpAnswer {
            status: self.head.status.as_u16(),
            retry_after: Some(self.header("retry-after")).filter(|text| !text.is_empty()),
            content_type: self.header("content-type"),
            location: Some(self.header("location")).filter(|text| !text.is_empty()),
            body: self.body,
            is_cut: self.is_cut,
        };
        let not_grpc = |detail: &str| Outcome::Permanent {
            class: Refusal::Config,
            trouble: Trouble::new(Cause::NotOtlp, outcome::shorten(detail)),
        };
        match outcome::from_http(&answer, clock::now()) {
            Outcome::Ok | Outcome::Partial { .. } => {
                not_grpc(&format!("HTTP {}, but no gRPC answer came", answer.status))
            }
            Outcome::Permanent { class: Refusal::Rejected, trouble } => not_grpc(&trouble.detail),
            Outcome::Permanent { class: Refusal::Faulty, trouble } => {
                Outcome::Retry { after: None, trouble }
            }
            outcome => outcome,
        }
    }

    fn header(&self, name: &str) -> String {
        let value = self.head.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    }
}

/// The gRPC status in headers or trailers, if there is one. Unreadable parts are left out.
fn status(headers: &http::HeaderMap) -> Option<tonic::Status> {
    let code = headers.get("grpc-status")?.to_str().ok().and_then(|text| text.parse().ok());
    let code = code.map_or(tonic::Code::Unknown, |code: i32| tonic::Code::from(code));
    let bytes = |name: &str| headers.get(name).map_or(&[][..], http::HeaderValue::as_bytes);
    let message = percent_encoding::percent_decode(bytes("grpc-message")).decode_utf8_lossy();
    let details = bytes("grpc-status-details-bin");
    let details = details.split(|byte| *byte == b'=').next().unwrap_or_default();
    let details = base64::engine::general_purpose::STANDARD_NO_PAD.decode(details);
    Some(tonic::Status::with_details(code, message, details.unwrap_or_default().into()))
}
