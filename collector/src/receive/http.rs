//! Handles one request: checks the sender and the headers, reads the body, stores its rows and answers.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, header};
use axum::routing::any;
use http_body_util::{BodyExt as _, Full};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message as _;

use super::Receiver;
use super::body;
use super::decode::{self, Decoded, ITEMS_MAX, Signal};
use super::refusal::Refusal;
use super::wire::Encoding;
use crate::access::BySocket;

/// The paths: OTLP over HTTP, and the methods of the gRPC services.
const PATHS: [(&str, Signal); 6] = [
    ("/v1/traces", Signal::Traces),
    ("/v1/metrics", Signal::Metrics),
    ("/v1/logs", Signal::Logs),
    ("/opentelemetry.proto.collector.trace.v1.TraceService/Export", Signal::Traces),
    ("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", Signal::Metrics),
    ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", Signal::Logs),
];

pub(super) fn router(receiver: Arc<Receiver>) -> Router {
    let mut router = Router::new();
    for (path, signal) in PATHS {
        let take = move |State(receiver): State<Arc<Receiver>>, request: Request| async move {
            answer(&receiver, Some(signal), request).await
        };
        router = router.route(path, any(take));
    }
    let nowhere = async |State(receiver): State<Arc<Receiver>>, request: Request| {
        answer(&receiver, None, request).await
    };
    router.fallback(nowhere).with_state(receiver)
}

/// How a request is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Http(Encoding),
    Grpc,
}

async fn answer(
    receiver: &Arc<Receiver>,
    signal: Option<Signal>,
    request: Request,
) -> Response<Body> {
    receiver.counts.add("otlp.requests", 1);
    let (parts, body) = request.into_parts();
    let form = form(&parts.headers);
    match take(receiver, signal, &parts, form, body).await {
        Ok((signal, told)) => told.answer(signal, form.unwrap_or(Form::Grpc)),
        Err(refusal) => {
            receiver.counts.add(refusal.counter(), 1);
            match form {
                Some(Form::Grpc) => refusal.grpc(),
                Some(Form::Http(encoding)) => refusal.http(encoding),
                // A request without a type most likely comes from a person with curl.
                None => refusal.http(Encoding::Json),
            }
        }
    }
}

fn form(headers: &HeaderMap) -> Option<Form> {
    let media = only(headers, &header::CONTENT_TYPE)?.split(';').next()?.trim();
    match media.to_ascii_lowercase().as_str() {
        "application/x-protobuf" => Some(Form::Http(Encoding::Protobuf)),
        "application/json" => Some(Form::Http(Encoding::Json)),
        "application/grpc" | "application/grpc+proto" => Some(Form::Grpc),
        _ => None,
    }
}

/// A header that occurs once.
fn only<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() { None } else { first.to_str().ok() }
}

async fn take(
    receiver: &Arc<Receiver>,
    signal: Option<Signal>,
    parts: &Parts,
    form: Option<Form>,
    body: Body,
) -> Result<(Signal, Told), Refusal> {
    // Browsers add these headers. Requests of web pages are refused, so that no page can guess tokens.
    let by_page = ["origin", "sec-fetch-site"].iter().any(|name| parts.headers.contains_key(*name));
    if by_page {
        return Err(Refusal::Browser);
    }
    // Only its owner can open a Unix socket, so no token is needed there.
    let by_socket = parts.extensions.get::<BySocket>().is_some();
    let shown = only(&parts.headers, &header::AUTHORIZATION).unwrap_or_default();
    if !by_socket && !receiver.door.admits_sender(shown) {
        return Err(Refusal::Token);
    }
    let signal = signal.ok_or(Refusal::Path)?;
    if parts.method != Method::POST {
        return Err(Refusal::Method);
    }
    let form = form.ok_or(Refusal::Type)?;
    let packed = packed(&parts.headers, form)?;
    let body = {
        let _place = receiver.reading.try_acquire().map_err(|_| Refusal::Busy)?;
        body::read(&parts.headers, body).await?
    };
    let place = receiver.storing.acquire().await.map_err(|_| Refusal::Busy)?;
    let storing = Arc::clone(receiver);
    let stored = tokio::task::spawn_blocking(move || store(&storing, signal, form, packed, body));
    let stored = stored.await.unwrap_or(Err(Refusal::Busy));
    drop(place);
    stored.map(|told| (signal, told))
}

/// Whether the body is compressed. Over gRPC, whether messages may be compressed: each message says whether it is.
fn packed(headers: &HeaderMap, form: Form) -> Result<bool, Refusal> {
    let name = match form {
        Form::Http(_) => header::CONTENT_ENCODING,
        Form::Grpc => header::HeaderName::from_static("grpc-encoding"),
    };
    if !headers.contains_key(&name) {
        return Ok(false);
    }
    match only(headers, &name) {
        Some("gzip") => Ok(true),
        Some("identity") => Ok(false),
        _ => Err(Refusal::Compression),
    }
}

/// The result of an accepted request: numbers of items that were not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    invalid: u64,
    too_many: u64,
    /// Items beyond a limit of the store, such as spans of a day.
    refused: u64,
}

fn store(
    receiver: &Receiver,
    signal: Signal,
    form: Form,
    packed: bool,
    body: Bytes,
) -> Result<Told, Refusal> {
    let (packed, body) = match form {
        Form::Http(_) => (packed, body),
        Form::Grpc => match body::unframe(&body)? {
            (true, _) if !packed => return Err(Refusal::Compression),
            unframed => unframed,
        },
    };
    let plain = if packed { body::inflate(&body)? } else { body::within(body)? };
    let encoding =
        if form == Form::Http(Encoding::Json) { Encoding::Json } else { Encoding::Protobuf };
    let decoded = decode::decode(signal, encoding, &plain, &receiver.redaction);
    let Decoded { mut incoming, invalid, too_many } = decoded.map_err(|_| Refusal::Malformed)?;
    drop(plain);
    for (key, by) in [("otlp.refused.invalid", invalid), ("otlp.refused.items", too_many)] {
        if by > 0 {
            *incoming.counts.entry(key).or_default() += by;
        }
    }
    let waiting = receiver.counts.take();
    for (key, by) in &waiting {
        *incoming.counts.entry(key).or_default() += by;
    }
    match receiver.keep.keep(incoming) {
        Ok(taken) => Ok(Told { invalid, too_many, refused: taken.refused }),
        Err(_) => {
            receiver.counts.give_back(&waiting);
            Err(Refusal::Busy)
        }
    }
}

impl Told {
    /// The number of items that are not stored, and why.
    fn rejected(self) -> Option<(i64, String)> {
        let Self { invalid, too_many, refused } = self;
        let parts = [
            (invalid, "are not valid".to_owned()),
            (too_many, format!("are beyond the {ITEMS_MAX} items of one request")),
            (refused, "are beyond a limit of [receive] in hookspan's configuration".to_owned()),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = parts.map(|(count, why)| format!("{count} {why}")).collect();
        let sum = invalid.saturating_add(too_many).saturating_add(refused);
        (sum > 0).then(|| (i64::try_from(sum).unwrap_or(i64::MAX), words.join("; ")))
    }

    fn answer(self, signal: Signal, form: Form) -> Response<Body> {
        let rejected = self.rejected();
        match form {
            Form::Http(Encoding::Json) => {
                ok("application/json", Body::from(json(signal, rejected)))
            }
            Form::Http(Encoding::Protobuf) => {
                ok("application/x-protobuf", Body::from(protobuf(signal, rejected)))
            }
            Form::Grpc => {
                let message = protobuf(signal, rejected);
                let mut frame = vec![0];
                frame.extend((message.len() as u32).to_be_bytes());
                frame.extend(message);
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
                let body = Full::new(Bytes::from(frame))
                    .with_trailers(async { Some(Ok::<_, std::convert::Infallible>(trailers)) });
                let mut answer = ok("application/grpc", Body::new(body));
                let known = HeaderValue::from_static("gzip,identity");
                answer.headers_mut().insert("grpc-accept-encoding", known);
                answer
            }
        }
    }
}

fn ok(media: &'static str, body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    answer
}

fn protobuf(signal: Signal, rejected: Option<(i64, String)>) -> Vec<u8> {
    match signal {
        Signal::Traces => {
            let partial_success = rejected.map(|(rejected_spans, error_message)| {
                ExportTracePartialSuccess { rejected_spans, error_message }
            });
            ExportTraceServiceResponse { partial_success }.encode_to_vec()
        }
        Signal::Metrics => {
            let partial_success = rejected.map(|(rejected_data_points, error_message)| {
                ExportMetricsPartialSuccess { rejected_data_points, error_message }
            });
            ExportMetricsServiceResponse { partial_success }.encode_to_vec()
        }
        Signal::Logs => {
            let partial_success = rejected.map(|(rejected_log_records, error_message)| {
                ExportLogsPartialSuccess { rejected_log_records, error_message }
            });
            ExportLogsServiceResponse { partial_success }.encode_to_vec()
        }
    }
}

/// 64-bit integers are texts in OTLP/JSON.
fn json(signal: Signal, rejected: Option<(i64, String)>) -> String {
    let Some((count, message)) = rejected else { return "{}".to_owned() };
    let name = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Metrics => "rejectedDataPoints",
        Signal::Logs => "rejectedLogRecords",
    };
    let partial = serde_json::json!({ name: count.to_string(), "errorMessage": message });
    serde_json::json!({ "partialSuccess": partial }).to_string()
}
