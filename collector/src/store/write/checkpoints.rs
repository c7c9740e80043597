//! A thread that moves the write-ahead log into the database (a checkpoint). So the writer waits only for its own
//! commits and not for checkpoints.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::store::open::{self, OpenError};

/// Number of hooks between two checkpoints. They fill about 6 MiB of SQLite's write-ahead log.
const EVERY: u64 = 2_000;
/// At this many pages of log (64 MiB), the writer makes the next checkpoint itself, unless one is running. SQLite can
/// reuse the log only when all of it is in the database, and a busy writer always adds more. Without this limit, the
/// log would grow as long as hooks arrive.
const WRITER_JOINS_AT: i32 = 16_384;
/// At this many pages of log (80 MiB), the writer waits for the running checkpoint. Otherwise, on a slow disk, the log
/// would continue to grow.
const WRITER_WAITS_AT: i32 = 20_480;

/// The checkpointing thread. It ends when this value is dropped.
pub(super) struct Checkpoints {
    /// Locked during a checkpoint, because SQLite would refuse a second one at once.
    db: Arc<Mutex<Connection>>,
    bell: Option<Sender<()>>,
    /// Receivers of the next checkpoint's result: whether all of the log is in the database.
    asked: Arc<Mutex<Vec<Sender<bool>>>>,
    thread: Option<JoinHandle<()>>,
    /// A checkpoint failed. The writer makes the next one itself, because it can handle the error.
    failed: Arc<AtomicBool>,
    /// Pages in the log after the writer's last commit.
    pages: Arc<AtomicI32>,
    written: u64,
}

impl Checkpoints {
    /// Starts the thread for the database at `path`, which `writer` writes.
    pub(super) fn start(path: &Path, writer: &mut Connection) -> Result<Self, OpenError> {
        let sqlite = |source| OpenError::Sqlite { path: path.to_path_buf(), source };
        let db = Arc::new(Mutex::new(open::writer(path)?));
        let failed = Arc::new(AtomicBool::new(false));
        let (bell, rung) = bounded(1);
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let rounds =
            Rounds { db: Arc::clone(&db), failed: Arc::clone(&failed), asked: Arc::clone(&asked) };
        let thread = thread::Builder::new().name("checkpoint".into());
        // If no thread can be started, the writer makes every checkpoint.
        let thread = thread.spawn(move || rounds.run(&rung)).ok();
        let pages = Arc::new(AtomicI32::new(0));
        if thread.is_some() {
            // This hook replaces SQLite's own checkpoints.
            let pages = Arc::clone(&pages);
            let note = move |_: &mut Wal, now| {
                pages.store(now, Ordering::Relaxed);
                Ok(())
            };
            writer.wal_hook(Some(note)).map_err(sqlite)?;
        }
        Ok(Self { db, bell: Some(bell), asked, thread, failed, pages, written: 0 })
    }

    /// Notes that more hooks were committed. Returns false if the writer must make the next checkpoint itself.
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
            tracing::debug!("there is no checkpoint thread; the writer makes the checkpoint");
        }
        true
    }

    /// If the log is so long that the writer must make the next checkpoint, prevents other checkpoints until the guard
    /// is dropped.
    pub(super) fn join(&self) -> Option<MutexGuard<'_, Connection>> {
        match self.pages.load(Ordering::Relaxed) {
            ..WRITER_JOINS_AT => None,
            WRITER_JOINS_AT..WRITER_WAITS_AT => self.db.try_lock().ok(),
            _ => Some(self.pause()),
        }
    }

    /// Answers whether all of the log is in the database, after a checkpoint that begins after this call. If there is
    /// no thread, returns `answer` unused.
    pub(super) fn ask(&self, answer: Sender<bool>) -> Option<Sender<bool>> {
        // The receiver is noted before ringing: a checkpoint answers the receivers that are noted when it begins.
        waiting(&self.asked).push(answer);
        if self.thread.is_some() && self.ring() { None } else { waiting(&self.asked).pop() }
    }

    /// Requests a checkpoint. If one is running, another one follows. Returns false if there is no thread.
    fn ring(&self) -> bool {
        let rung = self.bell.as_ref().map(|bell| bell.try_send(()));
        matches!(rung, Some(Ok(()) | Err(TrySendError::Full(()))))
    }

    /// Prevents checkpoints until the guard is dropped.
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

/// State of the thread.
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
                // The receiver may have gone.
                let _sent = answer.send(whole);
            }
        }
    }
}

fn waiting(asked: &Mutex<Vec<Sender<bool>>>) -> MutexGuard<'_, Vec<Sender<bool>>> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a checkpoint as far as readers allow. Returns true if everything committed before the call is in the database
/// file. SQLite syncs the log first. It syncs the database file only if nothing was committed in the meantime. Until
/// then the log stays.
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

    /// Stops `db` from making checkpoints by itself.
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
    fn the_writer_waits_for_a_running_checkpoint_only_where_the_log_is_too_long() {
        let temp = tempfile::tempdir().unwrap();
        let mut store = Store::open(&temp.path().join("hookspan.db")).unwrap();
        store.checkpoint_beside().unwrap();
        let one = Preparer::default().prepare([1; 16], 0, Hook::default());
        store.transaction(|open| open.hook(&one)).unwrap();
        let checkpoints = store.checkpoints.as_ref().unwrap();
        assert!(checkpoints.pages.load(Ordering::Relaxed) > 0, "a commit says how long the log is");
        assert!(checkpoints.join().is_none(), "the log is short");
        let running = checkpoints.pause();
        checkpoints.pages.store(WRITER_JOINS_AT, Ordering::Relaxed);
        assert!(checkpoints.join().is_none(), "a checkpoint is running");
        checkpoints.pages.store(WRITER_WAITS_AT, Ordering::Relaxed);
        thread::scope(|scope| {
            let (joined, has_joined) = bounded(1);
            scope.spawn(move || joined.send(checkpoints.join().is_some()));
            assert!(has_joined.recv_timeout(Duration::from_millis(100)).is_err());
            drop(running);
            assert_eq!(has_joined.recv_timeout(Duration::from_secs(10)), Ok(true));
        });
        checkpoints.pages.store(WRITER_JOINS_AT, Ordering::Relaxed);
        assert!(checkpoints.join().is_some(), "no checkpoint is running");
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
