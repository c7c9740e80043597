//! Copies the database while it is in use.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::open::{self, OpenError};

/// Number of pages copied in one step. Writers may write between two steps.
const PAGES: i32 = 1_024;
/// Wait between two attempts while a writer holds the lock.
const PAUSE: Duration = Duration::from_millis(20);

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    /// The database cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The copy cannot be written.
    #[error("cannot write {path}: {source}", path = .path.display())]
    Io {
        /// The copy.
        path: std::path::PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// SQLite refused.
    #[error("cannot copy to {path}: {source}", path = .path.display())]
    Sqlite {
        /// The copy.
        path: std::path::PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

/// Copies the database at `from` to a new file at `to`, readable by its owner only, and makes it durable. `progress` receives
/// the number of pages done and of all pages. An unfinished copy is removed.
///
/// # Errors
/// See [`BackupError`]; `to` must not exist.
pub(crate) fn copy(
    from: &Path,
    to: &Path,
    progress: impl FnMut(u64, u64),
) -> Result<(), BackupError> {
    let io = |source| BackupError::Io { path: to.to_owned(), source };
    // Create the file first: a file that SQLite creates could be readable by everybody.
    drop(new_private(to).map_err(io)?);
    let done = copy_into(from, to, progress);
    if done.is_err() {
        // The first error is returned. A failure to remove the incomplete copy is not reported.
        let _removed = fs::remove_file(to);
    }
    done
}

fn copy_into(
    from: &Path,
    to: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<(), BackupError> {
    let io = |source| BackupError::Io { path: to.to_owned(), source };
    let sqlite = |source| BackupError::Sqlite { path: to.to_owned(), source };
    let source = open::reader(from)?;
    let mut target = Connection::open(to).map_err(sqlite)?;
    let backup = Backup::new(&source, &mut target).map_err(sqlite)?;
    loop {
        let step = backup.step(PAGES).map_err(sqlite)?;
        let now = backup.progress();
        let pages = |count: i32| u64::try_from(count).unwrap_or(0);
        progress(pages(now.pagecount - now.remaining), pages(now.pagecount));
        match step {
            StepResult::Done => break,
            StepResult::Busy | StepResult::Locked => std::thread::sleep(PAUSE),
            _ => {}
        }
    }
    drop(backup);
    // The copy must be a single file. A log beside it would be forgotten when somebody copies it further.
    target.pragma_update(None, "journal_mode", "DELETE").map_err(sqlite)?;
    target.close().map_err(|(_, error)| sqlite(error))?;
    fs::File::open(to).and_then(|file| file.sync_all()).map_err(io)?;
    if cfg!(unix) {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::File::open(folder.unwrap_or(Path::new(".")));
        folder.and_then(|folder| folder.sync_all()).map_err(io)?;
    }
    Ok(())
}

fn new_private(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::write::Store;

    #[test]
    fn a_copy_is_one_private_file_with_every_committed_row_and_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("hookspan.db"), folder.path().join("copy.db"));
        let mut store = Store::open(&from).unwrap();
        // This row is only in the write-ahead log. A plain copy of the file would not contain it.
        store.run(|db| db.execute_batch("INSERT INTO name (text) VALUES ('x')")).unwrap();
        let mut last = (0, 0);
        copy(&from, &to, |done, of| last = (done, of)).unwrap();
        assert!(last.0 > 0 && last.0 == last.1, "{last:?}");
        let copied = Connection::open(&to).unwrap();
        let names: i64 =
            copied.query_row("SELECT count(*) FROM name", [], |row| row.get(0)).unwrap();
        assert_eq!(names, 1);
        let names = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
        assert_eq!(names.filter(|name| name.to_string_lossy().starts_with("copy.db")).count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let again = copy(&from, &to, |_, _| {}).unwrap_err();
        assert!(matches!(again, BackupError::Io { .. }), "{again}");
        assert!(to.exists());
    }

    #[test]
    fn without_a_database_no_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy.db");
        copy(&folder.path().join("none.db"), &to, |_, _| {}).unwrap_err();
        assert!(!to.exists());
    }
}
