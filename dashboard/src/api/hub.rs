//! Listens once to the store's changes for all open streams. Rows are read and rendered once, no matter how many tabs
//! are open.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use hookspan_view::Source;
use hookspan_view::changes::Notice;
use hookspan_view::source::Position;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, watch};
use tokio::time::sleep;

use super::events::{health_event, notice_events, resync};
use crate::Clock;

/// Maximum number of open streams. A further one is refused.
const STREAMS_MAX: usize = 32;
/// Maximum number of notices that a slow client may be behind. Beyond that it must reload.
const QUEUE_MAX: usize = 256;
/// Maximum number of changes that are remembered for clients that reconnect.
const HISTORY_MAX: usize = 10_000;
/// Maximum number of sessions that a reconnecting client is told about.
pub(crate) const RESUME_MAX: usize = 500;
/// Minimum time between two batches of notices: ten batches per second.
const BATCH_EVERY: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct Hub {
    shared: Arc<Shared>,
    streams: Arc<Semaphore>,
    closing: watch::Receiver<bool>,
}

/// The channels that the hub listens to, and the source that it renders from.
pub(crate) struct Inputs {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) changes: broadcast::Sender<Notice>,
    pub(crate) closing: watch::Receiver<bool>,
    pub(crate) clock: Clock,
}

struct Shared {
    source: Arc<dyn Source>,
    changes: broadcast::Sender<Notice>,
    clock: Clock,
    sender: broadcast::Sender<Bytes>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    listening: bool,
    /// Revision of each change and its session, oldest first.
    history: VecDeque<(u64, Arc<str>)>,
}

/// One client's subscription to the stream.
pub(crate) struct Subscription {
    pub(crate) notices: broadcast::Receiver<Bytes>,
    pub(crate) closing: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl Hub {
    pub(crate) fn new(inputs: Inputs) -> Self {
        let Inputs { source, changes, closing, clock } = inputs;
        let (sender, _) = broadcast::channel(QUEUE_MAX);
        let shared = Shared { source, changes, clock, sender, state: Mutex::default() };
        let streams = Arc::new(Semaphore::new(STREAMS_MAX));
        Self { shared: Arc::new(shared), streams, closing }
    }

    /// Subscribes to the stream. `None` if the maximum number of streams is open.
    pub(crate) fn subscribe(&self) -> Option<Subscription> {
        let permit = Arc::clone(&self.streams).try_acquire_owned().ok()?;
        let notices = self.shared.sender.subscribe();
        if !core::mem::replace(&mut self.shared.state().listening, true) {
            let changes = self.shared.changes.subscribe();
            let shared = Arc::clone(&self.shared);
            tokio::spawn(listen(shared, changes, self.closing.clone()));
        }
        Some(Subscription { notices, closing: self.closing.clone(), _permit: permit })
    }

    /// Sessions changed after `rev`, if the history reaches back that far.
    pub(crate) fn remembered(&self, rev: u64) -> Option<Vec<Arc<str>>> {
        let state = self.shared.state();
        let (oldest, _) = state.history.front()?;
        if *oldest > rev.saturating_add(1) {
            return None;
        }
        let mut roots: Vec<_> = state
            .history
            .iter()
            .filter(|(at, _)| *at > rev)
            .map(|(_, root)| root.clone())
            .collect();
        roots.sort_unstable();
        roots.dedup();
        Some(roots)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, notice: &Notice) {
        let mut state = self.state();
        for (root, _) in &notice.sessions {
            if state.history.len() == HISTORY_MAX {
                state.history.pop_front();
            }
            state.history.push_back((notice.rev, root.as_str().into()));
        }
    }
}

async fn listen(
    shared: Arc<Shared>,
    mut changes: broadcast::Receiver<Notice>,
    mut closing: watch::Receiver<bool>,
) {
    loop {
        let notice = tokio::select! {
            notice = changes.recv() => notice,
            _ = closing.wait_for(|&closing| closing) => return,
        };
        match notice {
            Ok(notice) => publish(&shared, batch(&shared, notice, &mut changes)).await,
            Err(RecvError::Lagged(_)) => {
                shared.state().history.clear();
                send(&shared, resync("lag"));
            }
            Err(RecvError::Closed) => return,
        }
        // The first notice is sent at once. Notices of the next tenth of a second are sent together.
        sleep(BATCH_EVERY).await;
    }
}

/// Merges `first` and all other waiting notices into one.
fn batch(shared: &Shared, first: Notice, changes: &mut broadcast::Receiver<Notice>) -> Notice {
    let mut rev = first.rev;
    let mut sessions = BTreeMap::new();
    let mut add = |notice: Notice| {
        shared.remember(&notice);
        rev = rev.max(notice.rev);
        for (root, spans) in notice.sessions {
            *sessions.entry(root).or_insert(0) += spans;
        }
    };
    add(first);
    while let Ok(notice) = changes.try_recv() {
        add(notice);
    }
    Notice { rev, sessions: sessions.into_iter().collect() }
}

async fn publish(shared: &Arc<Shared>, notice: Notice) {
    if shared.sender.receiver_count() == 0 {
        return;
    }
    let (source, now_ns) = (Arc::clone(&shared.source), shared.clock.now_ns());
    let rendered = tokio::task::spawn_blocking(move || render(&*source, &notice, now_ns)).await;
    match rendered {
        Ok(Ok(bytes)) => send(shared, bytes),
        _ => send(shared, resync("lag")),
    }
}

fn render(source: &dyn Source, notice: &Notice, now_ns: i64) -> hookspan_view::Result<Bytes> {
    let epoch = source.position()?.epoch;
    let position = Position { epoch, rev: notice.rev };
    let mut text = notice_events(source, &position, &notice.sessions)?;
    text.push_str(&health_event(source, now_ns)?);
    Ok(Bytes::from(text))
}

fn send(shared: &Shared, bytes: Bytes) {
    // An error means that nobody is listening at the moment.
    if shared.sender.send(bytes).is_err() {
        tracing::trace!("no open stream");
    }
}
