//! Limits the number of connections. If all slots are taken, a new connection replaces the oldest one that has sent no request
//! yet or waits for its next request.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Maximum number of connections at a time, even if there are many descriptors, because each may take some ten KiB.
const CONNECTIONS_MAX: usize = 256;
/// One in this many descriptors is for connections. The others are for the journal, the database and destinations.
const DESCRIPTOR_SHARE: usize = 4;
/// The same for senders of OTLP.
const SENDERS_MAX: usize = 64;
const SENDER_SHARE: usize = 16;
/// Minimum: one browser opens six.
const CONNECTIONS_MIN: usize = 16;

/// See the module.
#[derive(Debug)]
pub(in super::super) struct Slots {
    max: usize,
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    held: BTreeMap<u64, Held>,
    /// Number of connections that were replaced or refused.
    dropped: u64,
}

#[derive(Debug)]
struct Held {
    task: Option<AbortHandle>,
    /// Requests being answered.
    asking: Arc<AtomicU64>,
    /// Requests so far.
    asked: Arc<AtomicU64>,
}

/// A connection's slot. It is freed when its last copy is dropped.
#[derive(Clone, Debug)]
pub(super) struct Slot(Arc<Place>);

#[derive(Debug)]
struct Place {
    number: u64,
    slots: Weak<Slots>,
    asking: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.upgrade() {
            slots.state().held.remove(&self.number);
            slots.ended.notify_waiters();
        }
    }
}

impl Slots {
    /// Slots by the limit of descriptors.
    pub(in super::super) fn new() -> Arc<Self> {
        let max = descriptors().map_or(CONNECTIONS_MAX, |limit| limit / DESCRIPTOR_SHARE);
        Self::of(max.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX))
    }

    /// Slots for senders of OTLP. Each program needs one or two, so a few are enough.
    pub(in super::super) fn for_senders() -> Arc<Self> {
        let max = descriptors().map_or(SENDERS_MAX, |limit| limit / SENDER_SHARE);
        Self::of(max.clamp(CONNECTIONS_MIN, SENDERS_MAX))
    }

    fn of(max: usize) -> Arc<Self> {
        Arc::new(Self { max, state: Mutex::default(), ended: Notify::new() })
    }

    /// A slot for a new connection. `None` if every connection is answering a request.
    pub(super) fn take(self: &Arc<Self>) -> Option<Slot> {
        let mut state = self.state();
        if state.held.len() >= self.max {
            state.dropped += 1;
            if state.dropped.is_power_of_two() {
                let dropped = state.dropped;
                tracing::warn!(dropped, max = self.max, "dashboard.too_many_connections");
            }
            let (number, task) = state.idle()?;
            // The aborted task drops its connection later, but the slot is free at once.
            state.held.remove(&number);
            task.abort();
        }
        let number = state.next;
        state.next += 1;
        let (asking, asked) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let held = Held { task: None, asking: Arc::clone(&asking), asked: Arc::clone(&asked) };
        state.held.insert(number, held);
        Some(Slot(Arc::new(Place { number, slots: Arc::downgrade(self), asking, asked })))
    }

    /// Notes which task uses the slot.
    pub(super) fn hold(&self, slot: &Slot, task: AbortHandle) {
        if let Some(held) = self.state().held.get_mut(&slot.0.number) {
            held.task = Some(task);
        }
    }

    /// Waits until no connection is open.
    pub(super) async fn empty(&self) {
        loop {
            let ended = self.ended.notified();
            if self.state().held.is_empty() {
                return;
            }
            ended.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The connection to replace: the oldest one that has sent no request, otherwise the oldest one that is answering
    /// none.
    fn idle(&self) -> Option<(u64, AbortHandle)> {
        let idle = self.held.iter().filter(|(_, held)| held.asking.load(Ordering::Relaxed) == 0);
        let (number, held) =
            idle.min_by_key(|(number, held)| (held.asked.load(Ordering::Relaxed) > 0, **number))?;
        Some((*number, held.task.clone()?))
    }
}

impl Slot {
    /// A request has begun.
    pub(super) fn asks(&self) -> Asking {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        self.0.asking.fetch_add(1, Ordering::Relaxed);
        Asking(Arc::clone(&self.0.asking))
    }
}

/// A request that is being answered, until its answer is sent.
pub(super) struct Asking(Arc<AtomicU64>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Asking {
    /// Lives as long as the answer's body.
    pub(super) fn until_sent(self, answer: Response<Body>) -> Response<Body> {
        answer.map(|body| Body::new(Sent { body, _asking: self }))
    }
}

struct Sent {
    body: Body,
    _asking: Asking,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Maximum number of descriptors of this process.
#[cfg(unix)]
fn descriptors() -> Option<usize> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok())
}

#[cfg(not(unix))]
fn descriptors() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(slots: &Arc<Slots>) -> Option<(Slot, tokio::task::JoinHandle<()>)> {
        let slot = slots.take()?;
        let task = tokio::spawn(std::future::pending());
        slots.hold(&slot, task.abort_handle());
        Some((slot, task))
    }

    #[tokio::test]
    async fn who_asks_nothing_makes_room_and_who_is_answered_does_not() {
        let slots = Slots::of(3);
        let all: Vec<_> = (0..3).map(|_| connect(&slots).unwrap()).collect();
        drop(all[0].0.asks());
        let _answering = all[2].0.asks();
        // The second connection has never sent a request, so it goes first. Then the first one goes, which is idle.
        for gone in [1, 0] {
            // This value is never dropped, so the connection stays in the middle of its request.
            let new = core::mem::ManuallyDrop::new(connect(&slots).unwrap());
            core::mem::forget(new.0.asks());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            assert!(all[gone].1.is_finished(), "{gone}");
        }
        assert!(!all[2].1.is_finished() && connect(&slots).is_none());
    }

    #[tokio::test]
    async fn a_place_is_free_when_its_connection_ends() {
        let slots = Slots::of(1);
        let (slot, task) = connect(&slots).unwrap();
        let copy = slot.clone();
        drop(slot);
        assert_eq!(slots.state().held.len(), 1);
        drop(copy);
        task.abort();
        slots.empty().await;
        assert!(connect(&slots).is_some());
    }
}
