//! Why a request is not stored, and how each protocol says so.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use prost::Message as _;
use tonic::Code;
use tonic_types::{ErrorDetails, StatusExt as _};

use super::decode::ITEMS_MAX;
use super::wire::Encoding;
use super::{BODY_MAX_BYTES, INFLATED_MAX_BYTES};

/// The delay after which a sender may try again.
const AGAIN: Duration = Duration::from_secs(1);

/// Why a request is refused. No part of a refused request is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No token, or a wrong one.
    Token,
    /// A web page in a browser sends the request.
    Browser,
    /// Nothing is received at this path.
    Path,
    /// A method other than POST.
    Method,
    /// A content type that is not OTLP's.
    Type,
    /// A compression other than gzip.
    Compression,
    /// More bytes than the limit.
    TooLarge,
    /// The body did not arrive in time.
    Slow,
    /// The body is not what its headers say.
    Malformed,
    /// Too many requests at a time, or the database is busy.
    Busy,
}

impl Refusal {
    /// The name of the counter of such refusals.
    pub(super) const fn counter(self) -> &'static str {
        match self {
            Self::Token => "otlp.refused.token",
            Self::Browser => "otlp.refused.browser",
            Self::Path => "otlp.refused.path",
            Self::Method => "otlp.refused.method",
            Self::Type => "otlp.refused.content_type",
            Self::Compression => "otlp.refused.compression",
            Self::TooLarge => "otlp.refused.too_large",
            Self::Slow => "otlp.refused.slow",
            Self::Malformed => "otlp.refused.malformed",
            Self::Busy => "otlp.refused.busy",
        }
    }

    fn words(self) -> String {
        match self {
            Self::Token => "send `Authorization: Bearer TOKEN`; `hookspan token create NAME --receive` prints a token".to_owned(),
            Self::Browser => "telemetry of web pages is not received".to_owned(),
            Self::Path => "OTLP is received at /v1/traces, /v1/metrics and /v1/logs, and over gRPC".to_owned(),
            Self::Method => "OTLP is sent with POST".to_owned(),
            Self::Type => {
                "the content type must be application/x-protobuf or application/json".to_owned()
            }
            Self::Compression => "the only compression is gzip".to_owned(),
            Self::TooLarge => format!(
                "a request may have {} MiB, {} MiB before compression, and {ITEMS_MAX} items: send smaller batches",
                BODY_MAX_BYTES >> 20,
                INFLATED_MAX_BYTES >> 20
            ),
            Self::Slow => "the body did not arrive in time".to_owned(),
            Self::Malformed => "the body is not an OTLP request of this kind".to_owned(),
            Self::Busy => "too much at once: send it again in a second".to_owned(),
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Browser => StatusCode::FORBIDDEN,
            Self::Path => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Type | Self::Compression => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    const fn code(self) -> Code {
        match self {
            Self::Token => Code::Unauthenticated,
            Self::Browser => Code::PermissionDenied,
            Self::Path | Self::Method | Self::Compression => Code::Unimplemented,
            Self::Type | Self::Malformed => Code::InvalidArgument,
            // Without RetryInfo, a sender does not send the same request again.
            Self::TooLarge => Code::ResourceExhausted,
            Self::Slow => Code::DeadlineExceeded,
            Self::Busy => Code::Unavailable,
        }
    }

    /// The answer over HTTP: `google.rpc.Status` in the encoding of the request.
    pub(super) fn http(self, encoding: Encoding) -> Response<Body> {
        let (code, message) = (self.code() as i32, self.words());
        let (media, body) = match encoding {
            Encoding::Json => {
                let body = serde_json::json!({ "code": code, "message": message });
                ("application/json", body.to_string().into_bytes())
            }
            Encoding::Protobuf => {
                let status = tonic_types::Status { code, message, details: Vec::new() };
                ("application/x-protobuf", status.encode_to_vec())
            }
        };
        let mut answer = Response::new(Body::from(body));
        *answer.status_mut() = self.status();
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        let more = match self {
            Self::Busy => Some((header::RETRY_AFTER, HeaderValue::from(AGAIN.as_secs()))),
            Self::Token => Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            Self::Method => Some((header::ALLOW, HeaderValue::from_static("POST"))),
            _ => None,
        };
        headers.extend(more);
        answer
    }

    /// The answer over gRPC.
    pub(super) fn grpc(self) -> Response<Body> {
        let status = match self {
            Self::Busy => {
                let details = ErrorDetails::with_retry_info(Some(AGAIN));
                tonic::Status::with_error_details(self.code(), self.words(), details)
            }
            _ => tonic::Status::new(self.code(), self.words()),
        };
        let mut answer = status.into_http::<Body>();
        let known = HeaderValue::from_static("gzip,identity");
        answer.headers_mut().insert("grpc-accept-encoding", known);
        answer
    }
}
