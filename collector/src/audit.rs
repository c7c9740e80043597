//! The audit log: sign-ins, deletions, exports. `audit.json` is a bounded file that only the owner may read.
//!
//! A running collector and commands both write to it, so each change reads the file again while it holds the lock of the state
//! directory. An entry contains neither text of a session nor a session's id, because entries outlive deleted sessions.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::dirs::{Exclusive, StateDir, open_private, write_private};

/// Maximum number of entries. The oldest are removed and counted.
const ENTRIES_MAX: usize = 1_000;
/// Longest detail, characters.
const DETAIL_MAX: usize = 200;
/// Maximum size of the file, larger than everything that fits.
const MAX_BYTES: u64 = 4 << 20;
/// Minimum time between two writes of refusals, so that a stranger's attempts do not cause many writes.
const REFUSALS_EVERY: Duration = Duration::from_secs(60);

/// Why the audit log cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    /// The file was read, but its content is not what hookspan wrote.
    #[error("cannot read {}: it is damaged; move it away", .0.display())]
    Damaged(PathBuf),
    /// The file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A browser signed in.
    SignedIn,
    /// A browser was signed out.
    SignedOut,
    /// A token was made.
    TokenMade,
    /// A token got a new text.
    TokenRotated,
    /// A token ended.
    TokenEnded,
    /// Recorded data was deleted.
    Deleted,
    /// Sessions were written to a file.
    Exported,
    /// Stored spans were sent to a destination again.
    Replayed,
    /// A destination was added.
    DestinationAdded,
    /// A destination's content policy or address has changed.
    DestinationChanged,
    /// A destination was removed.
    DestinationRemoved,
}

impl What {
    /// The word in the file and on pages.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::SignedIn => "signed in",
            Self::SignedOut => "signed out",
            Self::TokenMade => "token made",
            Self::TokenRotated => "token rotated",
            Self::TokenEnded => "token ended",
            Self::Deleted => "deleted",
            Self::Exported => "file exported",
            Self::Replayed => "sent again",
            Self::DestinationAdded => "destination added",
            Self::DestinationChanged => "destination changed",
            Self::DestinationRemoved => "destination removed",
        }
    }
}

/// Kinds of refusals. Refusals are counted, not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refusal {
    /// A sign-in with a used, old or wrong code.
    SignIn,
    /// A request with an invalid token.
    Token,
    /// A connection from another account.
    Account,
}

impl Refusal {
    /// The word in the file and on pages.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::SignIn => "sign-in",
            Self::Token => "token",
            Self::Account => "another account",
        }
    }
}

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Log {
    /// The oldest first.
    pub entries: Vec<Entry>,
    /// Number of removed older entries.
    pub dropped: u64,
    /// Number of refusals by kind.
    pub refused: BTreeMap<String, Refused>,
    /// Destinations at the last start, with their content policy.
    pub destinations: BTreeMap<String, String>,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Time, seconds since the epoch.
    pub at_s: i64,
    /// A word of [`What`].
    pub what: String,
    /// Description, without any text of a session.
    pub detail: String,
}

/// Refusals of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    /// How many.
    pub count: u64,
    /// When the last one occurred, in seconds since the epoch.
    pub last_s: i64,
}

/// The file.
#[derive(Debug)]
pub(crate) struct AuditFile {
    dir: StateDir,
    waiting: Mutex<Waiting>,
}

/// Refusals that are not in the file yet.
#[derive(Debug, Default)]
struct Waiting {
    refused: BTreeMap<Refusal, Refused>,
    written: Option<Instant>,
}

impl AuditFile {
    /// The file of a state directory; it need not exist.
    #[must_use]
    pub(crate) fn new(dir: &StateDir) -> Self {
        Self { dir: dir.clone(), waiting: Mutex::default() }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`AuditError`] if the file cannot be read or written.
    pub(crate) fn add(&self, what: What, detail: &str) -> Result<(), AuditError> {
        self.change(|log| log.push(what, detail))
    }

    /// Like [`Self::add`], for the running collector: an error goes to its log.
    pub(crate) fn note(&self, what: What, detail: &str) {
        if let Err(error) = self.add(what, detail) {
            tracing::warn!(%error, what = what.as_str(), "audit.not_written");
        }
    }

    /// Counts a refusal. The file is written once a minute at most.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        let mut waiting = self.waiting();
        let one = waiting.refused.entry(refusal).or_default();
        one.count += 1;
        one.last_s = now_s();
        let is_due = waiting.written.is_none_or(|at| at.elapsed() >= REFUSALS_EVERY);
        if is_due {
            waiting.written = Some(clock::instant());
        }
        drop(waiting);
        if is_due && let Err(error) = self.change(|_| ()) {
            tracing::warn!(%error, "audit.not_written");
        }
    }

    /// Compares the destinations with those of the last start, and records the differences. A destination is given by
    /// its name and content policy.
    pub(crate) fn destinations(&self, now: &BTreeMap<String, String>) {
        if self.read().is_ok_and(|log| log.destinations == *now) {
            return;
        }
        let kept = self.change(|log| {
            let before = std::mem::replace(&mut log.destinations, now.clone());
            for (name, gets) in now {
                match before.get(name) {
                    None => log.push(What::DestinationAdded, &format!("{name}: {gets}")),
                    Some(old) if old != gets => {
                        log.push(What::DestinationChanged, &format!("{name}: {gets}"));
                    }
                    Some(_) => {}
                }
            }
            for name in before.keys().filter(|name| !now.contains_key(*name)) {
                log.push(What::DestinationRemoved, name);
            }
        });
        if let Err(error) = kept {
            tracing::warn!(%error, "audit.not_written");
        }
    }

    /// The stored log, with refusals that are not in the file yet.
    ///
    /// # Errors
    /// [`AuditError`] if the file cannot be read.
    pub(crate) fn read(&self) -> Result<Log, AuditError> {
        let mut log = self.load()?;
        log.add_refusals(&self.waiting().refused);
        Ok(log)
    }

    fn change(&self, change: impl FnOnce(&mut Log)) -> Result<(), AuditError> {
        let path = self.dir.audit();
        let failed = |error| AuditError::Write { path: path.clone(), error };
        let _held = Exclusive::wait(&self.dir).map_err(failed)?;
        let mut log = self.load()?;
        let mut waiting = self.waiting();
        log.add_refusals(&waiting.refused);
        change(&mut log);
        let text = serde_json::to_vec(&log).map_err(|error| failed(error.into()))?;
        write_private(&path, &text).map_err(failed)?;
        waiting.refused.clear();
        Ok(())
    }

    fn load(&self) -> Result<Log, AuditError> {
        let path = self.dir.audit();
        let failed = |error| AuditError::Read { path: path.clone(), error };
        let file = match open_private(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Log::default()),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
        serde_json::from_slice(&bytes).map_err(|_| AuditError::Damaged(path.clone()))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The refusals of the last minute are written before the collector ends.
impl Drop for AuditFile {
    fn drop(&mut self) {
        if !self.waiting().refused.is_empty() {
            drop(self.change(|_| ()));
        }
    }
}

impl Log {
    fn push(&mut self, what: What, detail: &str) {
        let detail = detail.chars().take(DETAIL_MAX).collect();
        self.entries.push(Entry { at_s: now_s(), what: what.as_str().to_owned(), detail });
        let over = self.entries.len().saturating_sub(ENTRIES_MAX);
        self.entries.drain(..over);
        self.dropped += over as u64;
    }

    fn add_refusals(&mut self, waiting: &BTreeMap<Refusal, Refused>) {
        for (refusal, more) in waiting {
            let known = self.refused.entry(refusal.as_str().to_owned()).or_default();
            known.count = known.count.saturating_add(more.count);
            known.last_s = known.last_s.max(more.last_s);
        }
    }
}

fn now_s() -> i64 {
    clock::now().0 / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> (tempfile::TempDir, StateDir) {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        (temp, dir)
    }

    #[test]
    fn entries_are_bounded_and_what_went_is_counted() {
        let (_temp, dir) = dir();
        let (collector, command) = (AuditFile::new(&dir), AuditFile::new(&dir));
        let full = Log {
            entries: (0..ENTRIES_MAX)
                .map(|n| Entry { at_s: 1, what: "deleted".into(), detail: n.to_string() })
                .collect(),
            ..Log::default()
        };
        write_private(&dir.audit(), &serde_json::to_vec(&full).unwrap()).unwrap();
        collector.add(What::SignedIn, "Firefox").unwrap();
        command.add(What::Exported, &"x".repeat(1_000)).unwrap();
        let log = collector.read().unwrap();
        assert_eq!((log.entries.len(), log.dropped), (ENTRIES_MAX, 2));
        assert_eq!(log.entries[0].detail, "2");
        assert_eq!(log.entries[ENTRIES_MAX - 1].detail.len(), DETAIL_MAX);
        assert!(dir.audit().metadata().unwrap().len() < 400_000);
        dir.verify().unwrap();
    }

    #[test]
    fn whoever_knocks_does_not_make_the_disk_busy() {
        let (_temp, dir) = dir();
        let audit = AuditFile::new(&dir);
        for _ in 0..500 {
            audit.refuse(Refusal::Token);
        }
        let in_file = AuditFile::new(&dir).read().unwrap().refused["token"].count;
        assert_eq!(in_file, 1, "one write for all within a minute");
        assert_eq!(audit.read().unwrap().refused["token"].count, 500);
        drop(audit);
        assert_eq!(AuditFile::new(&dir).read().unwrap().refused["token"].count, 500);
    }

    #[test]
    fn destinations_are_told_once_and_when_they_change() {
        let (_temp, dir) = dir();
        let audit = AuditFile::new(&dir);
        let set = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, gets)| ((*name).to_owned(), (*gets).to_owned()));
            audit.destinations(&pairs.collect());
            let log = audit.read().unwrap();
            log.entries.iter().map(|one| format!("{} {}", one.what, one.detail)).collect::<Vec<_>>()
        };
        assert_eq!(set(&[]).len(), 0);
        assert!(!dir.audit().exists(), "nothing to say, nothing written");
        assert_eq!(set(&[("a", "h:1, content off")]), ["destination added a: h:1, content off"]);
        assert_eq!(set(&[("a", "h:1, content off")]).len(), 1);
        let changed = set(&[("a", "h:1, content full"), ("b", "i:2, content off")]);
        assert_eq!(
            changed[1..],
            ["destination changed a: h:1, content full", "destination added b: i:2, content off"]
        );
        assert_eq!(set(&[("b", "i:2, content off")]).last().unwrap(), "destination removed a");
    }

    #[test]
    fn a_damaged_file_is_not_thrown_away() {
        let (_temp, dir) = dir();
        std::fs::write(dir.audit(), "{").unwrap();
        let audit = AuditFile::new(&dir);
        assert!(audit.add(What::Deleted, "").unwrap_err().to_string().contains("damaged"));
        assert_eq!(std::fs::read(dir.audit()).unwrap(), b"{");
    }
}
