//! A receiver that misbehaves on request: it receives OTLP over HTTP and gRPC on one port, and gives each request the
//! answer that the test has chosen.

use std::collections::VecDeque;
use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::Listener;
use http_body_util::{BodyExt as _, Full};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message as _;

use crate::config::destination::Signal;

/// What the sink says to a request.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Ok,
    Partial(i64),
    /// Status and `Retry-After`.
    Http(u16, Option<&'static str>),
    /// Status, content type, further header, body.
    Page(u16, &'static str, Option<(&'static str, &'static str)>, &'static str),
    /// A code and a message, in trailers.
    Grpc(tonic::Code, &'static str),
    /// A code and a message, in the headers of an answer without a body.
    GrpcAtOnce(tonic::Code, &'static str),
    /// A gRPC status whose details are not base64.
    GrpcBroken,
    /// A gRPC message that ends without a status.
    GrpcEndless,
    /// A body that never ends.
    Endless,
    /// Headers of this many bytes.
    Headers(usize),
    /// No answer, for longer than anybody waits.
    Hang,
}

impl Answer {
    /// A gRPC answer in the words of a server that limits the size of messages.
    pub(super) const GRPC_TOO_LARGE: Self = Self::Grpc(
        tonic::Code::ResourceExhausted,
        "grpc: received message larger than max (9 vs. 4)",
    );

    pub(super) const fn grpc(code: tonic::Code) -> Self {
        Self::Grpc(code, "no")
    }
}

type Rule = dyn Fn(&ExportTraceServiceRequest) -> Answer + Send + Sync;

/// The sink and what it saw.
#[derive(Clone)]
pub(super) struct Sink {
    pub(super) port: u16,
    inner: Arc<Inner>,
}

struct Inner {
    /// Answers to give in this order. After them, `rule` decides.
    next: Mutex<VecDeque<Answer>>,
    /// Answers to requests with metrics, in this order. After them, every request is accepted.
    next_metrics: Mutex<VecDeque<Answer>>,
    next_logs: Mutex<VecDeque<Answer>>,
    rule: Box<Rule>,
    seen: Mutex<Vec<Seen>>,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) at: Instant,
    /// The body, decompressed and without a gRPC frame.
    pub(super) body: Vec<u8>,
    pub(super) answer: Answer,
    pub(super) key: Option<String>,
    pub(super) gzip: bool,
    pub(super) signal: Signal,
}

impl Sink {
    /// A sink that gives `answers` in this order, and then accepts everything.
    pub(super) async fn answering(answers: &[Answer]) -> Self {
        Self::start(answers, |_| Answer::Ok).await
    }

    /// A sink that gives `answers` in this order, and then follows `rule`.
    pub(super) async fn start(
        answers: &[Answer],
        rule: impl Fn(&ExportTraceServiceRequest) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (inner, router) = Self::router(answers, rule);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, inner }
    }

    /// A sink at `port` (0: any) that says yes until the sender is used. Then it takes leave of open connections
    /// (GOAWAY over HTTP/2) and stops listening. The task ends when the last connection is closed.
    pub(super) async fn stoppable(
        port: u16,
    ) -> (Self, tokio::sync::oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (inner, router) = Self::router(&[], |_| Answer::Ok);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let leave = async { drop(stopped.await) };
        let served = tokio::spawn(async move {
            axum::serve(listener, router).with_graceful_shutdown(leave).await.unwrap();
        });
        (Self { port, inner }, stop, served)
    }

    /// A sink behind TLS that accepts everything.
    pub(super) async fn behind(tls: impl Listener<Addr = SocketAddr>) -> Self {
        let port = tls.local_addr().unwrap().port();
        let (inner, router) = Self::router(&[], |_| Answer::Ok);
        tokio::spawn(async move { axum::serve(tls, router).await });
        Self { port, inner }
    }

    fn router(
        answers: &[Answer],
        rule: impl Fn(&ExportTraceServiceRequest) -> Answer + Send + Sync + 'static,
    ) -> (Arc<Inner>, Router) {
        let inner = Arc::new(Inner {
            next: Mutex::new(answers.iter().cloned().collect()),
            next_metrics: Mutex::default(),
            next_logs: Mutex::default(),
            rule: Box::new(rule),
            seen: Mutex::new(Vec::new()),
        });
        let router = Router::new()
            .route("/v1/traces", post(answer))
            .route("/opentelemetry.proto.collector.trace.v1.TraceService/Export", post(answer))
            .route("/v1/metrics", post(answer))
            .route("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", post(answer))
            .route("/v1/logs", post(answer))
            .route("/opentelemetry.proto.collector.logs.v1.LogsService/Export", post(answer))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(Arc::clone(&inner));
        (inner, router)
    }

    /// Requests with spans.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen_of(Signal::Traces)
    }

    /// Requests with metrics.
    pub(in crate::export) fn metrics(&self) -> Vec<Seen> {
        self.seen_of(Signal::Metrics)
    }

    /// Requests with log records.
    pub(super) fn logs(&self) -> Vec<Seen> {
        self.seen_of(Signal::Logs)
    }

    fn seen_of(&self, signal: Signal) -> Vec<Seen> {
        let mut all = self.inner.seen.lock().unwrap().clone();
        all.retain(|seen| seen.signal == signal);
        all
    }

    /// Sets the answers to the next requests with log records.
    pub(super) fn answer_logs(&self, answers: &[Answer]) {
        self.inner.next_logs.lock().unwrap().extend(answers.iter().cloned());
    }

    /// Sets the answers to the next requests with metrics.
    pub(in crate::export) fn answer_metrics(&self, answers: &[Answer]) {
        self.inner.next_metrics.lock().unwrap().extend(answers.iter().cloned());
    }

    /// Names of the accepted spans, in the order of their arrival.
    pub(super) fn taken(&self) -> Vec<String> {
        self.seen()
            .iter()
            .filter(|seen| matches!(seen.answer, Answer::Ok | Answer::Partial(_)))
            .flat_map(|seen| names(&decode(&seen.body)))
            .collect()
    }
}

pub(super) fn decode(body: &[u8]) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest::decode(body).unwrap()
}

pub(super) fn names(request: &ExportTraceServiceRequest) -> Vec<String> {
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| &scope.spans).map(|span| span.name.clone()).collect()
}

async fn answer(
    State(inner): State<Arc<Inner>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let signal = match uri.path() {
        path if path.contains("etrics") => Signal::Metrics,
        path if path.contains("ogs") => Signal::Logs,
        _ => Signal::Traces,
    };
    let is_grpc = headers["content-type"] == "application/grpc";
    assert!(is_grpc || headers["content-type"] == "application/x-protobuf", "{headers:?}");
    let key = headers.get("x-key").map(|value| value.to_str().unwrap().to_owned());
    let encoding = if is_grpc { "grpc-encoding" } else { "content-encoding" };
    let gzip = headers.get(encoding).is_some_and(|word| word == "gzip");
    let body = match (is_grpc, gzip) {
        (true, gzip) => {
            assert_eq!(body[0], u8::from(gzip));
            if gzip { unpacked(&body[5..]) } else { body[5..].to_vec() }
        }
        (false, true) => unpacked(&body),
        (false, false) => body.to_vec(),
    };
    let next = |queue: &Mutex<VecDeque<Answer>>| queue.lock().unwrap().pop_front();
    let answer = match signal {
        Signal::Metrics => next(&inner.next_metrics).unwrap_or(Answer::Ok),
        Signal::Logs => next(&inner.next_logs).unwrap_or(Answer::Ok),
        Signal::Traces => next(&inner.next).unwrap_or_else(|| (inner.rule)(&decode(&body))),
    };
    let seen = Seen { at: Instant::now(), body, answer: answer.clone(), key, gzip, signal };
    inner.seen.lock().unwrap().push(seen);
    match answer {
        Answer::Ok => success(is_grpc, gzip, 0),
        Answer::Partial(rejected) => success(is_grpc, gzip, rejected),
        Answer::Hang => std::future::pending().await,
        Answer::Http(status, delay) => {
            let mut headers = HeaderMap::new();
            if let Some(delay) = delay {
                headers.insert("retry-after", delay.parse().unwrap());
            }
            (StatusCode::from_u16(status).unwrap(), headers, "no").into_response()
        }
        Answer::Page(status, kind, header, body) => page(status, kind, header, body),
        Answer::Grpc(code, message) => trailers(&[], &status(code, message)),
        Answer::GrpcAtOnce(code, message) => {
            (HeaderMap::from_iter(status(code, message)), grpc_type(), "").into_response()
        }
        Answer::GrpcBroken => {
            let mut status = status(tonic::Code::Unavailable, "no");
            let name = HeaderName::from_static("grpc-status-details-bin");
            status.push((name, HeaderValue::from_static("!!! no base64 !!!")));
            trailers(&[], &status)
        }
        Answer::GrpcEndless => (grpc_type(), vec![0_u8; 5]).into_response(),
        Answer::Endless => {
            let kind = if is_grpc { "application/grpc" } else { "application/x-protobuf" };
            let chunks = std::iter::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 8_192]));
            let body = Body::from_stream(futures_util::stream::iter(chunks));
            ([("content-type", kind)], body).into_response()
        }
        Answer::Headers(bytes) => {
            let value = HeaderValue::from_bytes(&vec![b'x'; bytes]).unwrap();
            let mut status = status(tonic::Code::Unavailable, "no");
            status.push((HeaderName::from_static("x-long"), value.clone()));
            let plain = (StatusCode::SERVICE_UNAVAILABLE, [("x-long", value)]);
            if is_grpc { trailers(&[], &status) } else { plain.into_response() }
        }
    }
}

fn page(
    status: u16,
    kind: &'static str,
    header: Option<(&'static str, &'static str)>,
    body: &'static str,
) -> Response {
    let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
    response.headers_mut().insert("content-type", kind.parse().unwrap());
    if let Some((name, value)) = header {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

/// Like grpc-go, the sink answers a gzip request with gzip, whether or not the client asked for gzip.
fn success(is_grpc: bool, gzip: bool, rejected: i64) -> Response {
    let part = ExportTracePartialSuccess {
        rejected_spans: rejected,
        error_message: "some were bad".to_owned(),
    };
    let message = ExportTraceServiceResponse { partial_success: (rejected > 0).then_some(part) };
    let message = message.encode_to_vec();
    if !is_grpc {
        return ([("content-type", "application/x-protobuf")], message).into_response();
    }
    let message = if gzip { packed(&message) } else { message };
    let mut frame = vec![u8::from(gzip)];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend(message);
    let mut response = trailers(&frame, &status(tonic::Code::Ok, ""));
    if gzip {
        response.headers_mut().insert("grpc-encoding", "gzip".parse().unwrap());
    }
    response
}

fn grpc_type() -> [(&'static str, &'static str); 1] {
    [("content-type", "application/grpc")]
}

fn status(code: tonic::Code, message: &'static str) -> Vec<(HeaderName, HeaderValue)> {
    vec![
        (HeaderName::from_static("grpc-status"), HeaderValue::from(code as i32)),
        (HeaderName::from_static("grpc-message"), HeaderValue::from_static(message)),
    ]
}

fn trailers(frame: &[u8], status: &[(HeaderName, HeaderValue)]) -> Response {
    let trailers = HeaderMap::from_iter(status.iter().cloned());
    let body = Full::new(Bytes::copy_from_slice(frame))
        .with_trailers(std::future::ready(Some(Ok(trailers))));
    (grpc_type(), Body::new(body)).into_response()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let level = flate2::Compression::fast();
    flate2::read::GzEncoder::new(bytes, level).read_to_end(&mut packed).unwrap();
    packed
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut unpacked).unwrap();
    unpacked
}

/// Waits until `condition` is true. If it is not true within ten seconds, shows `state` and fails.
#[track_caller]
pub(super) fn eventually(
    condition: impl Fn() -> bool,
    state: impl Fn() -> String,
) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !condition() {
            assert!(Instant::now() < deadline, "waited in vain at {caller}: {}", state());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
