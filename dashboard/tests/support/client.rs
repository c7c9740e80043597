//! Sends requests to a router without a socket.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use hookspan_dashboard::{Access, Door, Settings, Vault, VaultError, router};
use http_body_util::BodyExt as _;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tower::ServiceExt as _;

use super::{ListSource, OneDestination, story};

/// The credential of the owner's commands in all tests.
pub const TOKEN: &str = "correct-horse-battery-staple";

/// The address in tests.
pub const ADDRESS: &str = "127.0.0.1:4329";

/// Stores access in memory.
#[derive(Default)]
pub struct MemoryVault {
    access: Mutex<Arc<Access>>,
    drawn: AtomicU64,
}

impl Vault for MemoryVault {
    fn read(&self) -> Result<Arc<Access>, VaultError> {
        Ok(Arc::clone(&self.access.lock().unwrap()))
    }

    fn change(&self, change: &mut dyn FnMut(&mut Access)) -> Result<(), VaultError> {
        let mut access = self.access.lock().unwrap();
        // Simulates a file: the stored value is parsed from text again.
        let mut new: Access =
            serde_json::from_str(&serde_json::to_string(&**access).unwrap()).unwrap();
        change(&mut new);
        *access = Arc::new(new);
        Ok(())
    }

    fn random(&self) -> Result<[u8; 32], VaultError> {
        // Each draw differs from the others, and all runs are the same.
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        Ok(Sha256::digest(drawn.to_le_bytes()).into())
    }
}

/// A dashboard and what is needed to change it.
pub struct World {
    /// The router under test.
    pub router: Router,
    /// The data that the router reads.
    pub source: Arc<ListSource>,
    /// The door. `None` if no sign-in is required.
    pub door: Option<Arc<Door>>,
    /// The stored access.
    pub vault: Arc<MemoryVault>,
    /// Sent true when the collector stops.
    pub closing: watch::Sender<bool>,
}

/// An answer that was read to its end.
#[derive(Debug)]
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
    /// A dashboard that requires signing in.
    pub fn locked() -> Self {
        Self::with(true, Arc::default())
    }

    /// A dashboard that requires no sign-in.
    pub fn open() -> Self {
        Self::with(false, Arc::default())
    }

    /// The same dashboard after a restart. Only what was stored is still known.
    pub fn restarted(&self) -> Self {
        Self::with(self.door.is_some(), Arc::clone(&self.vault))
    }

    fn with(locked: bool, vault: Arc<MemoryVault>) -> Self {
        let source = Arc::new(ListSource::new(story::library(1_795_824_000_000_000_000, 4)));
        let (closing, receiver) = watch::channel(false);
        let allow_hosts = vec!["dash.example:8443".to_owned()];
        let door = locked.then(|| {
            let (vault, clock) = (Arc::clone(&vault) as Arc<dyn Vault>, source.clock());
            Arc::new(Door::new(vault, clock, TOKEN).unwrap())
        });
        let settings = Settings {
            door: door.clone(),
            address: Some(ADDRESS.parse().unwrap()),
            allow_hosts,
            closing: receiver,
            clock: source.clock(),
            changes: source.changes(),
        };
        let router = router(source.clone(), Arc::new(OneDestination), settings).unwrap();
        Self { router, source, door, vault, closing }
    }

    /// Sends a request with exactly these headers.
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

    /// Sends a POST as a command of the owner.
    pub async fn post(&self, target: &str, body: &serde_json::Value) -> Answer {
        let bearer = format!("Bearer {TOKEN}");
        let headers = [
            ("host", "127.0.0.1:4329"),
            ("authorization", &*bearer),
            ("content-type", "application/json"),
        ];
        self.send("POST", target, &headers, body.to_string()).await
    }

    /// Sends a GET as a command of the owner.
    pub async fn get(&self, target: &str) -> Answer {
        let bearer = format!("Bearer {TOKEN}");
        let headers = [("host", "127.0.0.1:4329"), ("authorization", &bearer)];
        self.send("GET", target, &headers, Body::empty()).await
    }
}
