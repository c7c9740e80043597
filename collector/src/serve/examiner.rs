//! Finds out whether the database is really damaged when SQLite reports damage, because a failed read looks the same.
//!
//! A separate thread examines the database while others use it. Only proven damage ends the threads that use the
//! database, so that it can be moved aside. A database that cannot be read is shown as trouble, and examined again
//! after a wait.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, select};
use tokio::sync::watch;

use crate::clock;
use crate::engine::Restart;
use crate::store::examine::{self, Ending, Verdict};

/// Wait between two examinations: the first one and the maximum.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// An examination reads the whole database, so the wait after it is at least this many times its duration.
const REST: u32 = 20;

/// The running thread.
#[derive(Debug)]
pub(super) struct Examiner {
    ending: Arc<Ending>,
    problem: watch::Receiver<Option<Arc<str>>>,
    /// Closed when the thread must end.
    _stop: Sender<()>,
}

impl Examiner {
    /// Starts the examiner of the database at `path`. The examiner works when `heard` reports a suspicion, and sets `restart`
    /// once damage is proven.
    ///
    /// # Errors
    /// Returns the system's error if no thread can be started.
    pub(super) fn start(
        path: PathBuf,
        heard: Receiver<()>,
        restart: watch::Sender<Option<Restart>>,
    ) -> std::io::Result<Self> {
        let ending = Arc::new(Ending::default());
        let (told, problem) = watch::channel(None);
        let (stop, stopped) = bounded(0);
        let thread = Thread { path, heard, stopped, ending: Arc::clone(&ending), restart, told };
        std::thread::Builder::new().name("examiner".into()).spawn(move || thread.run())?;
        Ok(Self { ending, problem, _stop: stop })
    }

    /// While the database cannot be read: the reason.
    pub(super) fn problem(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.problem.clone()
    }

    /// Ends the thread without waiting for its current read.
    pub(super) fn stop(self) {
        self.ending.end();
    }
}

struct Thread {
    path: PathBuf,
    heard: Receiver<()>,
    stopped: Receiver<()>,
    ending: Arc<Ending>,
    restart: watch::Sender<Option<Restart>>,
    told: watch::Sender<Option<Arc<str>>>,
}

impl Thread {
    fn run(self) {
        let mut wait = FIRST_WAIT;
        // Damage was reported since the last examination.
        let mut pending = false;
        loop {
            if !pending {
                select! {
                    recv(self.heard) -> heard => if heard.is_err() { return },
                    recv(self.stopped) -> _ => return,
                }
            }
            let began = clock::instant();
            let verdict = examine::examine(&self.path, &self.ending, || {
                let _stopped = self.stopped.recv_timeout(examine::WAIT);
            });
            if self.ending.is_ended() {
                return;
            }
            let readable = match verdict {
                Verdict::Damaged(fault) => {
                    tracing::error!(fault, "hookspan.db is damaged");
                    self.restart.send_replace(Some(Restart::Damaged));
                    return;
                }
                Verdict::Unreadable(problem) => {
                    self.tell(Some(&problem));
                    false
                }
                Verdict::Sound => {
                    tracing::warn!(
                        "SQLite reported damage, but hookspan.db is sound: only a read had failed"
                    );
                    self.tell(None);
                    true
                }
            };
            let pause = wait.max(began.elapsed().saturating_mul(REST));
            if !matches!(self.stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
                return;
            }
            pending = !readable || self.heard.try_recv().is_ok();
            wait = if pending { (wait * 2).min(LONGEST_WAIT) } else { FIRST_WAIT };
        }
    }

    fn tell(&self, problem: Option<&str>) {
        let text: Option<Arc<str>> = problem.map(|problem| {
            format!(
                "hookspan.db cannot be read: {problem}. It stays as it is and is tried again; check the disk. Hooks that the \
                 database does not take wait in the journal"
            )
            .into()
        });
        self.told.send_if_modified(|told| {
            let changed = *told != text;
            if changed && let Some(text) = &text {
                tracing::error!("{text}");
            }
            *told = text;
            changed
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::damage::Suspicion;
    use crate::store::write::Store;

    struct Running {
        temp: tempfile::TempDir,
        examiner: Examiner,
        restart: watch::Receiver<Option<Restart>>,
        suspicion: Suspicion,
    }

    impl Running {
        fn start(change: impl FnOnce(&std::path::Path)) -> Self {
            let temp = tempfile::tempdir().unwrap();
            let path = temp.path().join("hookspan.db");
            drop(Store::open(&path).unwrap());
            change(&path);
            let (suspicion, heard) = Suspicion::heard();
            let (restart, restarted) = watch::channel(None);
            let examiner = Examiner::start(path, heard, restart).unwrap();
            Self { temp, examiner, restart: restarted, suspicion }
        }

        fn suspect(&self) {
            let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            self.suspicion.report(&rusqlite::Error::SqliteFailure(error, None));
        }
    }

    fn eventually(what: &str, is: impl Fn() -> bool) {
        let began = clock::instant();
        while !is() {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn damage_is_proven_before_the_database_is_moved() {
        let running = Running::start(|path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes[4_096..].fill(0xa5);
            std::fs::write(path, bytes).unwrap();
        });
        assert_eq!(*running.restart.borrow(), None, "nobody has met it");
        running.suspect();
        eventually("proven", || *running.restart.borrow() == Some(Restart::Damaged));
        assert_eq!(*running.examiner.problem().borrow(), None);
    }

    #[test]
    fn a_sound_database_that_was_suspected_stays() {
        let running = Running::start(|_| {});
        for _ in 0..2 {
            running.suspect();
            // The second report is received only after the first verdict.
            eventually("heard", || running.suspicion.is_heard());
        }
        assert_eq!(*running.restart.borrow(), None);
    }

    #[test]
    fn a_database_that_cannot_be_read_is_told_and_tried_again() {
        let running = Running::start(|path| {
            std::fs::rename(path, path.with_extension("away")).unwrap();
            // A database that can be opened and fails when it is read.
            std::fs::create_dir(path).unwrap();
        });
        running.suspect();
        let problem = running.examiner.problem();
        eventually("told", || problem.borrow().is_some());
        let text = problem.borrow().clone().unwrap();
        assert!(
            text.contains("cannot be read: byte 0 of") && text.contains("check the disk"),
            "{text}"
        );
        let path = running.temp.path().join("hookspan.db");
        std::fs::remove_dir(&path).unwrap();
        std::fs::rename(path.with_extension("away"), path).unwrap();
        eventually("over", || problem.borrow().is_none());
        assert_eq!(*running.restart.borrow(), None);
    }
}
