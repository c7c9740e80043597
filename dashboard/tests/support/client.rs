//! Asking a router without a socket.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use hookspan_dashboard::{Settings, router};
use http_body_util::BodyExt as _;
use tokio::sync::watch;
use tower::ServiceExt as _;

use super::{ListSource, OneDestination, story};

/// The token of all tests, and its SHA-256.
pub const TOKEN: &str = "correct-horse-battery-staple";
const TOKEN_SHA256: &str = "87cbebfeebc05f7c54ac9336c4b4bbec831227a641951a4bde7edd56020f8590";

/// The port in tests.
pub const PORT: u16 = 4329;

/// A dashboard and what is needed to change it.
pub struct World {
    /// What is asked.
    pub router: Router,
    /// What it reads.
    pub source: Arc<ListSource>,
    /// Sent true when the collector stops.
    pub closing: watch::Sender<bool>,
}

/// An answer that was read to its end.
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {:?}", self.body))
    }

    /// A header that must be there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap()
    }
}

impl World {
    /// A dashboard that wants the token.
    pub fn locked() -> Self {
        let mut sha256 = [0; 32];
        for (i, byte) in sha256.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&TOKEN_SHA256[2 * i..2 * i + 2], 16).unwrap();
        }
        Self::with(Some(sha256))
    }

    /// A dashboard that wants no token.
    pub fn open() -> Self {
        Self::with(None)
    }

    fn with(token_sha256: Option<[u8; 32]>) -> Self {
        let source = Arc::new(ListSource::new(story::library(1_795_824_000_000_000_000, 4)));
        let (closing, receiver) = watch::channel(false);
        let allow_hosts = vec!["dash.example:8443".to_owned()];
        let settings = Settings {
            token_sha256,
            port: PORT,
            allow_hosts,
            closing: receiver,
            clock: source.clock(),
            changes: source.changes(),
        };
        let router = router(source.clone(), Arc::new(OneDestination), settings).unwrap();
        Self { router, source, closing }
    }

    /// Asks with exactly these headers.
    pub async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap());
        request = request.uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// Posts as the owner would.
    pub async fn post(&self, target: &str, body: &serde_json::Value) -> Answer {
        let bearer = format!("Bearer {TOKEN}");
        let headers = [
            ("host", "127.0.0.1:4329"),
            ("authorization", &*bearer),
            ("content-type", "application/json"),
        ];
        self.send("POST", target, &headers, body.to_string()).await
    }

    /// Asks as the owner would.
    pub async fn get(&self, target: &str) -> Answer {
        let bearer = format!("Bearer {TOKEN}");
        let headers = [("host", "127.0.0.1:4329"), ("authorization", &bearer)];
        self.send("GET", target, &headers, Body::empty()).await
    }
}
