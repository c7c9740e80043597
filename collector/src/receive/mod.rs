//! Receives OTLP from other programs of this computer, over HTTP and gRPC on one port.
//!
//! ```text
//! connection ──http──▶ body ──wire──▶ decode ──Keep──▶ engine ──commit──▶ answer
//! ```
//!
//! Off unless `[receive]` switches it on. A request is answered after its commit, so what was accepted is never lost; what was
//! not accepted is sent again by its sender. Every size is bounded before memory is spent on it, and every refusal counts.

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

/// Maximum size of a request as it is sent, and inflated.
const BODY_MAX_BYTES: usize = 4 << 20;
const INFLATED_MAX_BYTES: usize = 8 << 20;
/// Maximum number of requests whose bodies are being read.
const READING_MAX: usize = 8;
/// Maximum number of requests that are being decoded and stored.
const STORING_MAX: usize = 2;
/// How often counts of refused requests are stored, and traces are tried again whose session is not known yet.
const EVERY: Duration = Duration::from_secs(5);

/// Stores what was received, durably. Called on a thread for blocking work.
pub(crate) trait Keep: Send + Sync {
    /// Stores a request completely or not at all.
    ///
    /// # Errors
    /// [`NotKept`]: the sender must send it again.
    fn keep(&self, incoming: Incoming) -> Result<Taken, NotKept>;
}

/// The database refused, or the collector is about to end.
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
    /// Senders on a port show a token that `door` admits.
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

    /// Its routes.
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        http::router(Arc::clone(self))
    }

    /// Stores the counts of refused requests, and joins traces that waited for their session. Ends when the collector closes.
    pub(crate) async fn tend(self: Arc<Self>, mut closing: watch::Receiver<bool>) {
        // The first round finds what an earlier run left.
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

    /// Whether a trace still waits for its session.
    fn keep_counts(&self, counts: std::collections::BTreeMap<&'static str, u64>) -> bool {
        let kept = self.keep.keep(Incoming { counts: counts.clone(), ..Incoming::default() });
        if kept.is_err() {
            self.counts.give_back(&counts);
        }
        kept.map_or(true, |taken| taken.unjoined)
    }
}
