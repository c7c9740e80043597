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
    /// Who waits for the next round, to hear whether all of the log is in the database after it.
    asked: Arc<Mutex<Vec<Sender<bool>>>>,
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
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let rounds =
            Rounds { db: Arc::clone(&db), failed: Arc::clone(&failed), asked: Arc::clone(&asked) };
        let thread = thread::Builder::new().name("checkpoint".into());
        // Without a thread the writer does it all, as before.
        let thread = thread.spawn(move || rounds.run(&rung)).ok();
        if thread.is_some() {
            writer.pragma_update(None, "wal_autocheckpoint", WRITER_JOINS_AT).map_err(sqlite)?;
        }
        Ok(Self { db, bell: Some(bell), asked, thread, failed, written: 0 })
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
        if !self.ring() {
            tracing::debug!("nobody checkpoints beside the writer");
        }
        true
    }

    /// Has `answer` told after the next round, which begins after this, whether all of the log is in the database. Gives it
    /// back when there is no thread.
    pub(super) fn ask(&self, answer: Sender<bool>) -> Option<Sender<bool>> {
        // First noted, then rung: a round takes up whoever is noted when it begins.
        waiting(&self.asked).push(answer);
        if self.thread.is_some() && self.ring() { None } else { waiting(&self.asked).pop() }
    }

    /// Has a round begin, if need be after the one that runs. False when there is no thread.
    fn ring(&self) -> bool {
        let rung = self.bell.as_ref().map(|bell| bell.try_send(()));
        matches!(rung, Some(Ok(()) | Err(TrySendError::Full(()))))
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

/// What the thread knows.
struct Rounds {
    db: Arc<Mutex<Connection>>,
    failed: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<Sender<bool>>>>,
}

impl Rounds {
    fn run(&self, rung: &Receiver<()>) {
        for () in rung {
            let db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
            let asked = std::mem::take(&mut *waiting(&self.asked));
            let whole = passive(&db).unwrap_or_else(|error| {
                tracing::debug!(%error, "the write-ahead log waits for the writer");
                self.failed.store(true, Ordering::Relaxed);
                false
            });
            for answer in asked {
                // Whoever asked may have gone.
                let _sent = answer.send(whole);
            }
        }
    }
}

fn waiting(asked: &Mutex<Vec<Sender<bool>>>) -> MutexGuard<'_, Vec<Sender<bool>>> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves the write-ahead log into the database as far as readers let it. True when all of it is there, which is all that was
/// committed before this began. The log is synced first; the database file is only when nobody wrote meanwhile, and until then
/// the log stays.
pub(super) fn passive(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        let (busy, log, done): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(busy == 0 && log == done)
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use hookspan_core::Hook;
    use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

    use super::*;
    use crate::store::write::{Preparer, Store};

    /// From now on `db` does everything but checkpoints.
    fn refuse_checkpoints(db: &mut Connection) {
        let refuse = |context: AuthContext<'_>| match context.action {
            AuthAction::Pragma { pragma_name: "wal_checkpoint", .. } => Authorization::Deny,
            _ => Authorization::Allow,
        };
        db.authorizer(Some(refuse)).unwrap();
    }

    #[test]
    fn what_the_thread_cannot_do_the_writer_meets_ahead_of_its_work() {
        let temp = tempfile::tempdir().unwrap();
        let mut store = Store::open(&temp.path().join("hookspan.db")).unwrap();
        store.checkpoint_beside().unwrap();
        let write = |store: &mut Store, id: u8| {
            store.written = EVERY;
            let one = Preparer::default().prepare([id; 16], 0, Hook::default());
            store.transaction(|open| open.hook(&one)).map(|(seq, _)| seq)
        };
        refuse_checkpoints(&mut store.checkpoints.as_ref().unwrap().pause());
        refuse_checkpoints(&mut store.db);
        assert_eq!(write(&mut store, 1), Ok(Some(1)), "the thread is rung for");
        let began = Instant::now();
        while !store.checkpoints.as_ref().unwrap().failed.load(Ordering::Relaxed) {
            assert!(began.elapsed() < Duration::from_secs(10), "the thread did not fail");
            thread::sleep(Duration::from_millis(1));
        }
        assert!(write(&mut store, 2).is_err(), "the writer does the thread's round");
        assert_eq!(write(&mut store, 2), Ok(Some(2)), "nothing of it was stored before");
        let count = |sql| store.db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM counter WHERE key = 'duplicate'"), 0);
        assert_eq!(count("SELECT value FROM counter WHERE key = 'received'"), 2);
    }

    #[test]
    fn whoever_asks_hears_whether_the_log_is_in_the_database() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("hookspan.db");
        let mut store = Store::open(&path).unwrap();
        let write = |store: &mut Store, id: u8| {
            let one = Preparer::default().prepare([id; 16], 0, Hook::default());
            store.transaction(|open| open.hook(&one)).unwrap();
        };
        let ask = |store: &Store| {
            let (answer, answered) = bounded(1);
            store.ask_checkpoint(answer);
            answered.recv_timeout(Duration::from_secs(10)).unwrap()
        };
        write(&mut store, 1);
        assert!(ask(&store), "the writer answers where there is no thread");
        store.checkpoint_beside().unwrap();
        write(&mut store, 2);
        assert!(ask(&store));
        let reader = open::reader(&path).unwrap();
        let look = reader.unchecked_transaction().unwrap();
        look.query_row("SELECT count(*) FROM raw_hook", [], |_| Ok(())).unwrap();
        write(&mut store, 3);
        assert!(!ask(&store), "a reader keeps what is newer than its look out of the database");
        drop(look);
        assert!(ask(&store));
        refuse_checkpoints(&mut store.checkpoints.as_ref().unwrap().pause());
        assert!(!ask(&store));
    }
}
