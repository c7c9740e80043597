//! Receives OTLP from other programs of this computer, over HTTP and gRPC on one port.
//!
//! ```text
//! connection ──http──▶ body ──wire──▶ decode ──Keep──▶ engine ──commit──▶ answer
//! ```
//!
//! It is off unless `[receive]` switches it on. A request is answered after its commit, so accepted items are never
//! lost. The sender sends a request again that was not accepted. Every size is checked before memory is used for it,
//! and every refusal is counted.

mod agents;
mod attributes;
mod body;
mod counts;
mod decode;
mod http;
mod refusal;
mod wire;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::sync::{Semaphore, watch};

use crate::access::Door;
use crate::redaction::Redaction;
use crate::store::received::{Incoming, Taken};
use counts::Counts;

/// Maximum size of a request as it is sent.
const BODY_MAX_BYTES: usize = 4 << 20;
/// Maximum size of a request after decompression.
const INFLATED_MAX_BYTES: usize = 8 << 20;
/// Maximum number of requests whose bodies are being read.
const READING_MAX: usize = 8;
/// Maximum number of requests that are being decoded and stored.
const STORING_MAX: usize = 2;
/// Interval at which counts of refused requests are stored, and at which traces without a session are tried again.
const EVERY: Duration = Duration::from_secs(5);

/// Stores what was received, durably. Called on a thread for blocking work.
pub(crate) trait Keep: Send + Sync {
    /// Stores a request completely or not at all.
    ///
    /// # Errors
    /// [`NotKept`]: the sender must send the request again.
    fn keep(&self, incoming: Incoming) -> Result<Taken, NotKept>;
}

/// The database did not accept the write, or the collector is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotKept;

/// What all requests share.
pub(crate) struct Receiver {
    door: Arc<Door>,
    keep: Box<dyn Keep>,
    redaction: Redaction,
    counts: Counts,
    reading: Semaphore,
    storing: Semaphore,
}

impl Receiver {
    /// Creates a receiver. On a TCP port, a sender needs a token that `door` admits.
    pub(crate) fn new(door: Arc<Door>, keep: Box<dyn Keep>, redaction: Redaction) -> Arc<Self> {
        Arc::new(Self {
            door,
            keep,
            redaction,
            counts: Counts::default(),
            reading: Semaphore::new(READING_MAX),
            storing: Semaphore::new(STORING_MAX),
        })
    }

    /// The HTTP routes.
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        http::router(Arc::clone(self))
    }

    /// Every few seconds, stores the counts of refused requests, and joins traces whose session has become known. Ends
    /// when the collector closes.
    pub(crate) async fn tend(self: Arc<Self>, mut closing: watch::Receiver<bool>) {
        // In the first round, traces of an earlier run may wait.
        let mut waits = true;
        loop {
            let closed =
                tokio::time::timeout(EVERY, closing.wait_for(|&closing| closing)).await.is_ok();
            let counts = self.counts.take();
            if !counts.is_empty() || waits {
                let receiver = Arc::clone(&self);
                let kept = tokio::task::spawn_blocking(move || receiver.keep_counts(counts)).await;
                waits = kept.unwrap_or(true);
            }
            if closed {
                return;
            }
        }
    }

    /// Stores counts. Returns whether a trace still waits for its session.
    fn keep_counts(&self, counts: std::collections::BTreeMap<&'static str, u64>) -> bool {
        let kept = self.keep.keep(Incoming { counts: counts.clone(), ..Incoming::default() });
        if kept.is_err() {
            self.counts.give_back(&counts);
        }
        kept.map_or(true, |taken| taken.unjoined)
    }
}
