//! A receiver that misbehaves on request: OTLP over HTTP and gRPC on one port, each request answered as told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message as _;

/// What the sink says to a request.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Ok,
    Partial(i64),
    /// Status and `Retry-After`.
    Http(u16, Option<&'static str>),
    Grpc(tonic::Code),
    /// Nothing, for longer than anybody waits.
    Hang,
}

type Rule = dyn Fn(&ExportTraceServiceRequest) -> Answer + Send + Sync;

/// The sink and what it saw.
#[derive(Clone)]
pub(super) struct Sink {
    pub(super) port: u16,
    inner: Arc<Inner>,
}

struct Inner {
    /// Answers in order; then `rule` decides.
    next: Mutex<VecDeque<Answer>>,
    rule: Box<Rule>,
    seen: Mutex<Vec<Seen>>,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) at: Instant,
    pub(super) body: Vec<u8>,
    pub(super) answer: Answer,
    pub(super) key: Option<String>,
}

impl Sink {
    /// A sink that gives `answers` in order, then says yes.
    pub(super) async fn answering(answers: &[Answer]) -> Self {
        Self::start(answers, |_| Answer::Ok).await
    }

    /// A sink that gives `answers` in order and then does as `rule` says.
    pub(super) async fn start(
        answers: &[Answer],
        rule: impl Fn(&ExportTraceServiceRequest) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let inner = Arc::new(Inner {
            next: Mutex::new(answers.iter().cloned().collect()),
            rule: Box::new(rule),
            seen: Mutex::new(Vec::new()),
        });
        let grpc = TraceServiceServer::new(Grpc(Arc::clone(&inner)));
        let router = Router::new()
            .route("/v1/traces", post(http))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(Arc::clone(&inner))
            .route_service("/opentelemetry.proto.collector.trace.v1.TraceService/Export", grpc);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, inner }
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.inner.seen.lock().unwrap().clone()
    }

    /// Names of the spans that were taken, in order of arrival.
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

impl Inner {
    fn answer(&self, body: Vec<u8>, key: Option<String>) -> Answer {
        let planned = self.next.lock().unwrap().pop_front();
        let answer = planned.unwrap_or_else(|| (self.rule)(&decode(&body)));
        let seen = Seen { at: Instant::now(), body, answer: answer.clone(), key };
        self.seen.lock().unwrap().push(seen);
        answer
    }
}

fn response(rejected: i64) -> ExportTraceServiceResponse {
    let part = ExportTracePartialSuccess {
        rejected_spans: rejected,
        error_message: "some were bad".to_owned(),
    };
    ExportTraceServiceResponse { partial_success: (rejected > 0).then_some(part) }
}

async fn http(State(inner): State<Arc<Inner>>, headers: HeaderMap, body: Bytes) -> Response {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let key = headers.get("x-key").map(|value| value.to_str().unwrap().to_owned());
    match inner.answer(body.to_vec(), key) {
        Answer::Ok => response(0).encode_to_vec().into_response(),
        Answer::Partial(rejected) => response(rejected).encode_to_vec().into_response(),
        Answer::Hang => std::future::pending().await,
        Answer::Grpc(code) => panic!("{code:?} was planned for an HTTP request"),
        Answer::Http(status, delay) => {
            let mut headers = HeaderMap::new();
            if let Some(delay) = delay {
                headers.insert("retry-after", delay.parse().unwrap());
            }
            (StatusCode::from_u16(status).unwrap(), headers, "no").into_response()
        }
    }
}

struct Grpc(Arc<Inner>);

#[tonic::async_trait]
impl TraceService for Grpc {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        let key = request.metadata().get("x-key").map(|value| value.to_str().unwrap().to_owned());
        match self.0.answer(request.into_inner().encode_to_vec(), key) {
            Answer::Ok => Ok(tonic::Response::new(response(0))),
            Answer::Partial(rejected) => Ok(tonic::Response::new(response(rejected))),
            Answer::Hang => std::future::pending().await,
            Answer::Grpc(code) => Err(tonic::Status::new(code, "no")),
            Answer::Http(status, _) => panic!("{status} was planned for a gRPC request"),
        }
    }
}

/// Waits until `condition` holds; shows `state` when it does not within ten seconds.
#[track_caller]
pub(super) fn eventually(
    condition: impl Fn() -> bool,
    state: impl Fn() -> String,
) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(Instant::now() < deadline, "waited in vain at {caller}: {}", state());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
