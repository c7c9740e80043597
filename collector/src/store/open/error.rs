//! Why the database cannot be opened or read, and what to do after an error of SQLite.

use std::path::PathBuf;

use rusqlite::ErrorCode;

use super::SCHEMA_VERSION;
use crate::store::damage::is_suspected;

/// Why the database cannot be used. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no database yet.
    #[error("{}: no hooks have been collected here yet; start `hookspan serve`, or import a file", .0.display())]
    Missing(PathBuf),
    /// The database was written by a newer hookspan.
    #[error(
        "{path} was written by a newer hookspan (schema {found}, this one knows {SCHEMA_VERSION}); install that \
         version or a later one. Meanwhile the journal keeps hooks",
        path = .path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its `user_version`.
        found: i32,
    },
    /// The database was written by an older hookspan. A reader does not migrate it.
    #[error(
        "{path} was last used by an older hookspan (schema {found}, this one reads {SCHEMA_VERSION}): run `hookspan serve` \
         or `hookspan rebuild` once, which brings it up to date",
        path = .path.display()
    )]
    Older {
        /// The database.
        path: PathBuf,
        /// Its `user_version`.
        found: i32,
    },
    /// The database is damaged or cannot be read. SQLite reports both in the same way; [`crate::store::examine`]
    /// distinguishes them.
    #[error(
        "{path} is damaged or cannot be read: {source}. `hookspan serve` finds out which: it moves a damaged database aside and \
         saves what can be read, and waits for one that cannot be read. The journal keeps hooks meanwhile",
        path = .path.display()
    )]
    Suspected {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The file is another program's database.
    #[error("{} is not a hookspan database; move it away, or use another --dir DIR", .0.display())]
    Foreign(PathBuf),
    /// This release of the SQLite library can lose data.
    #[error("SQLite {0} is not safe to use here: 3.51.3 or later is needed, except 3.52.0")]
    Library(String),
    /// SQLite refused a pragma that durability depends on.
    #[error("SQLite refused `{0}` on {path}; is the file system a local one?", path = .1.display())]
    Pragma(&'static str, PathBuf),
    /// The file system refused.
    #[error("cannot open {path}: {source}", path = .path.display())]
    Io {
        /// The database.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot open {path}: {source}{advice}", path = .path.display(), advice = advice(source))]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

/// Which operation failed below SQLite, and what to do. SQLite itself says "disk I/O error" for all of them.
fn advice(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ffi::{
        SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC, SQLITE_IOERR_LOCK, SQLITE_IOERR_RDLOCK,
        SQLITE_IOERR_READ, SQLITE_IOERR_SHMLOCK, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN,
        SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_UNLOCK, SQLITE_IOERR_WRITE,
    };
    match error.sqlite_error().map_or(0, |error| error.extended_code) {
        // 9p, virtiofs, NFS.
        SQLITE_IOERR_SHMOPEN | SQLITE_IOERR_SHMSIZE | SQLITE_IOERR_SHMMAP
        | SQLITE_IOERR_SHMLOCK => {
            ". This file system gives programs no shared memory, which the database needs: put the state directory on a local \
             one with --dir DIR. Hooks wait in the journal meanwhile"
        }
        SQLITE_IOERR_FSYNC | SQLITE_IOERR_DIR_FSYNC => {
            ". The file system does not sync files, or the disk fails: if it is a network folder, put the state directory on a \
             local file system with --dir DIR, else look at the system's log. Hooks wait in the journal meanwhile"
        }
        SQLITE_IOERR_LOCK | SQLITE_IOERR_UNLOCK | SQLITE_IOERR_RDLOCK => {
            ". This file system does not lock files, which the database needs: put the state directory on a local one with \
             --dir DIR. Hooks wait in the journal meanwhile"
        }
        SQLITE_IOERR_READ => {
            ". The disk or the file system cannot read the file; the system's log says why. Until then, hooks wait in the journal"
        }
        SQLITE_IOERR_WRITE | SQLITE_IOERR_TRUNCATE => {
            ". The disk or the file system does not take what is written: look at its free room and at the system's log. Hooks \
             wait in the journal meanwhile"
        }
        _ => "",
    }
}

impl OpenError {
    /// Whether SQLite reports damage, see [`crate::store::damage`].
    #[must_use]
    pub fn is_suspected(&self) -> bool {
        match self {
            Self::Suspected { .. } => true,
            Self::Sqlite { source, .. } => is_suspected(source),
            _ => false,
        }
    }

    /// Whether a retry may succeed: a lock, or a file that cannot be read or opened now.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Suspected { .. } | Self::Io { .. } => true,
            Self::Sqlite { source, .. } => is_locked(source) || is_doubtful(source),
            _ => false,
        }
    }
}

/// Whether another program holds a lock.
#[must_use]
pub(crate) fn is_locked(error: &rusqlite::Error) -> bool {
    let locked = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
    error.sqlite_error_code().is_some_and(|code| locked.contains(&code))
}

/// Whether the connection must be opened again after `error`, because its cached state may be wrong.
#[must_use]
pub(crate) fn is_doubtful(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
        )
    )
}

/// Whether a command failed because SQLite reports damage.
#[must_use]
pub(crate) fn is_suspected_below(error: &anyhow::Error) -> bool {
    is_below(error, is_suspected, OpenError::is_suspected)
}

/// Whether a command failed because the database cannot be read, either now or at all.
#[must_use]
pub(crate) fn is_unreadable_below(error: &anyhow::Error) -> bool {
    is_below(error, |error| is_locked(error) || is_doubtful(error), OpenError::is_passing)
}

/// An error and its causes as text. SQLite's error number is left out, because it repeats the text before it.
pub(crate) fn causes(error: &anyhow::Error) -> impl Iterator<Item = String> + '_ {
    let worded = error.chain().filter(|cause| !cause.is::<rusqlite::ffi::Error>());
    worded.map(ToString::to_string)
}

fn is_below(
    error: &anyhow::Error,
    sqlite: impl Fn(&rusqlite::Error) -> bool,
    open: impl Fn(&OpenError) -> bool,
) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref().is_some_and(&sqlite) || cause.downcast_ref().is_some_and(&open)
    })
}

/// Whether a command may have failed because the files were renamed while it opened them.
#[must_use]
pub(crate) fn is_moved_below(error: &anyhow::Error) -> bool {
    let code = error.chain().find_map(|cause| match cause.downcast_ref::<OpenError>() {
        Some(OpenError::Sqlite { source, .. }) => source.sqlite_error_code(),
        Some(_) => None,
        None => cause.downcast_ref::<rusqlite::Error>()?.sqlite_error_code(),
    });
    matches!(code, Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen))
}
