//! Finds out whether a database is damaged or merely cannot be read.
//!
//! SQLite reports `SQLITE_CORRUPT` for both. On Linux and macOS, `unixRead` returns `SQLITE_IOERR_CORRUPTFS` if a read
//! fails with `EIO`, `ENXIO` or `ERANGE`, and `sqlite3VdbeExec` reports that error as `SQLITE_CORRUPT`. So an error
//! alone is only a suspicion. [`examine`] looks for proof: it reads every byte of the files, lets SQLite check the
//! database on a fresh connection, and reads every byte again. After a pause it does all of this once more. A database
//! counts as damaged only if every byte could be read and SQLite found faults both times.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, InterruptHandle};

use super::damage::is_suspected;
use super::open;

/// Bytes of one read. Small reads are more likely to meet the failures of a device that fails only some reads.
const PIECE: usize = 32 << 10;
/// Maximum number of faults that a check collects. One is enough; a few more help a person.
const FAULTS_MAX: u32 = 8;
/// Pause between the two rounds: time for a device to reset, or for memory to become free.
pub(crate) const WAIT: Duration = Duration::from_millis(300);

/// What an examination found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every byte was read, and SQLite finds nothing wrong.
    Sound,
    /// Something could not be read, so the state of the rest is unknown. Contains the reason as text.
    Unreadable(String),
    /// Every byte was read twice, and SQLite found faults twice. Contains the first faults in SQLite's words.
    Damaged(String),
}

/// Allows another thread to end an examination early.
#[derive(Debug, Default)]
pub(crate) struct Ending(Mutex<Ended>);

#[derive(Default)]
struct Ended {
    ended: bool,
    check: Option<InterruptHandle>,
}

impl std::fmt::Debug for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ended").field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl Ending {
    /// Ends the running examination and all later ones.
    pub(crate) fn end(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended = true;
        if let Some(check) = state.check.take() {
            check.interrupt();
        }
    }

    /// Whether it was ended.
    #[must_use]
    pub(crate) fn is_ended(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ended
    }

    fn check(&self, check: Option<InterruptHandle>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).check = check;
    }
}

/// Finds out whether the database at `path` is damaged. Other connections may be open and may write. `wait` is called between
/// the two rounds. The examination reads the whole database several times; [`Ending::end`] cuts it short.
pub(crate) fn examine(path: &Path, ending: &Ending, wait: impl FnOnce()) -> Verdict {
    match round(path, ending) {
        Verdict::Damaged(_) => {}
        other => return other,
    }
    wait();
    round(path, ending)
}

/// One round. Damage counts only if every byte could be read before and after SQLite's check.
fn round(path: &Path, ending: &Ending) -> Verdict {
    if let Err(error) = read_all(path, ending) {
        return Verdict::Unreadable(error.to_string());
    }
    match check(path, ending) {
        Verdict::Damaged(fault) => match read_all(path, ending) {
            Ok(()) => Verdict::Damaged(fault),
            Err(error) => Verdict::Unreadable(error.to_string()),
        },
        other => other,
    }
}

/// Lets SQLite check the database on a fresh connection. A fault that only reports a failed read does not count.
fn check(path: &Path, ending: &Ending) -> Verdict {
    let opened = match open::plain_reader(path) {
        Ok(db) => db,
        Err(error) => return verdict_of(&error),
    };
    ending.check(Some(opened.get_interrupt_handle()));
    // The quick check finds most damage early. It does not compare indexes with their tables.
    let verdict = match checked_with(&opened, "quick_check") {
        Verdict::Sound => checked_with(&opened, "integrity_check"),
        found => found,
    };
    ending.check(None);
    if ending.is_ended() { Verdict::Unreadable("the check was ended".to_owned()) } else { verdict }
}

fn checked_with(db: &Connection, pragma: &str) -> Verdict {
    let mut faults: Vec<String> = Vec::new();
    let found = db.prepare(&format!("PRAGMA {pragma}({FAULTS_MAX})")).and_then(|mut check| {
        let mut rows = check.query([])?;
        while let Some(row) = rows.next()? {
            let text: String = row.get(0)?;
            faults.extend(text.lines().filter(|line| *line != "ok").map(str::to_owned));
        }
        Ok(())
    });
    if let Some(fault) = faults.iter().find(|fault| is_failed_read(fault)) {
        return Verdict::Unreadable(fault.clone());
    }
    match (faults.into_iter().next(), found) {
        (Some(fault), _) => Verdict::Damaged(fault),
        (None, Err(error)) => verdict_of(&error),
        (None, Ok(())) => Verdict::Sound,
    }
}

fn verdict_of(error: &rusqlite::Error) -> Verdict {
    if is_suspected(error) {
        Verdict::Damaged(error.to_string())
    } else {
        Verdict::Unreadable(error.to_string())
    }
}

/// Whether a line of SQLite's check says that a page could not be read: "unable to get the page. error code=8458" (the
/// code's low byte is `SQLITE_IOERR` or `SQLITE_NOMEM`), "failed to get page 7".
fn is_failed_read(fault: &str) -> bool {
    const NOMEM: u32 = 7;
    const IOERR: u32 = 10;
    let code = fault.rsplit_once("error code=").and_then(|(_, code)| code.trim().parse().ok());
    code.is_some_and(|code: u32| matches!(code & 0xff, NOMEM | IOERR))
        || fault.contains("failed to get page")
}

/// Reads every byte of the database and of its write-ahead log. The log's index (`-shm`) is left out, because SQLite
/// builds it again.
fn read_all(path: &Path, ending: &Ending) -> io::Result<()> {
    let is_ended = || ending.is_ended();
    held_open(path, |file| read_file(file, path, &is_ended))?;
    read_log(path, &is_ended)
}

/// The same for a database that was moved aside. Closing its file drops the locks that this process has on it, so
/// nobody may still be writing to it.
///
/// # Errors
///
/// Returns the system's error with the position of the byte that could not be read, or an error if `is_ended` became
/// true.
pub(crate) fn read_apart(path: &Path, is_ended: &dyn Fn() -> bool) -> io::Result<()> {
    match File::open(path) {
        Ok(file) => read_file(&file, path, is_ended)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(named(path, &error)),
    }
    read_log(path, is_ended)
}

fn read_log(path: &Path, is_ended: &dyn Fn() -> bool) -> io::Result<()> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    match File::open(&log) {
        // Nobody locks the log itself.
        Ok(file) => read_file(&file, &log, is_ended),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(named(&log, &error)),
    }
}

fn read_file(file: &File, path: &Path, is_ended: &dyn Fn() -> bool) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    loop {
        if is_ended() {
            return Err(io::Error::other("the check was ended"));
        }
        match read_at(file, &mut piece, offset) {
            Ok(0) => return Ok(()),
            Ok(count) => offset += count as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let text = format!("byte {offset} of {}: {error}", name(path));
                return Err(io::Error::new(error.kind(), text));
            }
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", name(path)))
}

fn name(path: &Path) -> std::path::Display<'_> {
    Path::new(path.file_name().unwrap_or_default()).display()
}

/// Keeps the last examined database open until another one is examined. If a process closes any descriptor of a file, the
/// system drops all locks that the process has on that file, including those of SQLite's connections.
static HELD: Mutex<Option<File>> = Mutex::new(None);

fn held_open<T>(path: &Path, work: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = |error: io::Error| named(path, &error);
    let there = std::fs::metadata(path).map_err(failed)?;
    let is_same = match held.as_ref().map(File::metadata).transpose().map_err(failed)? {
        Some(open) => is_same_file(&open, &there),
        None => false,
    };
    if !is_same {
        // The previous database was moved aside, so no connection uses it.
        *held = Some(File::open(path).map_err(failed)?);
    }
    held.as_ref().map_or_else(|| Err(io::ErrorKind::NotFound.into()), work)
}

#[cfg(unix)]
fn is_same_file(one: &std::fs::Metadata, other: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// On other systems a lock belongs to one descriptor.
#[cfg(not(unix))]
fn is_same_file(_: &std::fs::Metadata, _: &std::fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

#[cfg(windows)]
fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, offset)
}

#[cfg(test)]
mod tests;
