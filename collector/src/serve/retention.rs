//! Applies `[retention]`: a thread deletes old sessions in small steps, so that hooks can be committed between them.

use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use hookspan_view::source::Deleted;

use super::erase::{EraseError, Eraser};
use crate::clock;
use crate::config::Retention;
use crate::store::{prune, salvage};

/// How often the thread checks, and how long it pauses between two steps.
const EVERY: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(2);

/// The running thread.
pub(super) struct Pruner {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Pruner {
    /// Starts the thread; `None` if everything is kept.
    ///
    /// # Errors
    /// The system's error if no thread can be started.
    pub(super) fn start(eraser: Eraser, keep: Retention) -> std::io::Result<Option<Self>> {
        if keep == Retention::default() {
            return Ok(None);
        }
        let (stop, stopped) = bounded(0);
        let run = move || run(&eraser, keep, &stopped);
        let thread = std::thread::Builder::new().name("retention".into()).spawn(run)?;
        Ok(Some(Self { stop, thread }))
    }

    /// Ends the thread, either now or after its current step. The engine refuses a further step.
    pub(super) fn stop(self) {
        let Self { stop, thread } = self;
        drop(stop);
        if thread.is_finished() && thread.join().is_err() {
            tracing::error!("the retention thread had failed");
        }
    }
}

fn run(eraser: &Eraser, keep: Retention, stopped: &Receiver<()>) {
    let mut wait = PAUSE;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
        wait = EVERY;
        if let Err(error) = round(eraser, keep, stopped) {
            tracing::warn!(%error, "retention could not delete; trying again");
        }
    }
}

/// Deletes everything that is due now, and finally overwrites it in the journal.
fn round(eraser: &Eraser, keep: Retention, stopped: &Receiver<()>) -> Result<(), EraseError> {
    let now = clock::now().0;
    if keep.max_age_ns > 0 {
        let before = now.saturating_sub(keep.max_age_ns);
        for aside in salvage::older_than(&eraser.dir, before) {
            salvage::remove(&aside)?;
            tracing::info!(bytes = aside.bytes(), "retention: deleted a damaged database");
        }
    }
    let journal = eraser.lengths()?;
    let mut all = Deleted::default();
    loop {
        let due = eraser.readers.with(|db| prune::due(db, keep, now))?;
        if due.is_empty() {
            break;
        }
        let deleted = eraser.delete_stored(&due)?;
        tracing::info!(sessions = deleted.sessions, hooks = deleted.hooks, "retention: deleted");
        if deleted.hooks == 0 && deleted.sessions == 0 {
            // The selected conversation has become part of a session in the meantime.
            break;
        }
        all.sessions += deleted.sessions;
        all.hooks += deleted.hooks;
        if !matches!(stopped.recv_timeout(PAUSE), Err(RecvTimeoutError::Timeout)) {
            break;
        }
    }
    if all == Deleted::default() {
        return Ok(());
    }
    eraser.note(&all, "by [retention]");
    eraser.scrub(&journal)
}
