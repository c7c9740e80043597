//! Moving the write-ahead log into the database beside the writer, who would otherwise wait for the disk twice.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use rusqlite::Connection;

use crate::store::open::{self, OpenError};

/// Hooks between two rounds: some 6 MiB of log.
const EVERY: u64 = 2_000;
/// Pages of log at which the writer joins in. As long as it writes, the log never is in the database as a whole, and only
/// then is it begun anew: without this it would grow for as long as hooks come.
const WRITER_JOINS_AT: i64 = 16_384;

/// The thread that checkpoints. It ends with this.
pub(super) struct Checkpoints {
    /// Held by whoever checkpoints: SQLite answers a second one with BUSY at once.
    db: Arc<Mutex<Connection>>,
    bell: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// A round failed: the next one is the writer's, who knows what to do about it.
    failed: Arc<AtomicBool>,
    written: u64,
}

impl Checkpoints {
    /// Starts it for the database at `path`, which `writer` writes.
    pub(super) fn start(path: &Path, writer: &Connection) -> Result<Self, OpenError> {
        let sqlite = |source| OpenError::Sqlite { path: path.to_path_buf(), source };
        let db = Arc::new(Mutex::new(open::writer(path)?));
        let failed = Arc::new(AtomicBool::new(false));
        let (bell, rung) = bounded(1);
        let own = (Arc::clone(&db), Arc::clone(&failed));
        let thread = thread::Builder::new().name("checkpoint".into());
        // Without a thread the writer does it all, as before.
        let thread = thread.spawn(move || run(&own.0, &own.1, &rung)).ok();
        if thread.is_some() {
            writer.pragma_update(None, "wal_autocheckpoint", WRITER_JOINS_AT).map_err(sqlite)?;
        }
        Ok(Self { db, bell: Some(bell), thread, failed, written: 0 })
    }

    /// So many hooks more were committed. False when the writer has to do the next round itself.
    pub(super) fn note(&mut self, hooks: u64) -> bool {
        self.written += hooks;
        if self.written < EVERY {
            return true;
        }
        self.written = 0;
        if self.failed.swap(false, Ordering::Relaxed) {
            return false;
        }
        if let Some(bell) = &self.bell
            && let Err(TrySendError::Disconnected(())) = bell.try_send(())
        {
            tracing::debug!("nobody checkpoints beside the writer");
        }
        true
    }

    /// Keeps the thread from checkpointing until the guard goes.
    pub(super) fn pause(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.bell = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::warn!("the checkpoint thread panicked");
        }
    }
}

fn run(db: &Mutex<Connection>, failed: &AtomicBool, rung: &Receiver<()>) {
    for () in rung {
        let db = db.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = passive(&db) {
            tracing::debug!(%error, "the write-ahead log waits for the writer");
            failed.store(true, Ordering::Relaxed);
        }
    }
}

/// Moves the write-ahead log into the database as far as readers let it. True when all of it is there.
pub(super) fn passive(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        let (busy, log, done): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(busy == 0 && log == done)
    })
}
