//! Opening the database: version checks, migrations, pragmas, and the small pool of readers.

mod error;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

pub(crate) use self::error::{
    OpenError, causes, is_doubtful, is_locked, is_moved_below, is_suspected_below,
    is_unreadable_below,
};
use super::damage::{Suspicion, is_suspected};
use crate::dirs;

/// `PRAGMA application_id` of a hookspan database: "HkSp".
pub(crate) const APPLICATION_ID: i32 = 0x486b_5370;

/// One entry per schema version, in order; applied ones are never edited.
const MIGRATIONS: [&str; 18] = [
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0001_init.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0002_lines.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0003_gaps.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0004_parts.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0005_periods.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0006_reach.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0007_packs.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0008_keys.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0009_outbox.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0010_unowned.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0011_figures.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0012_unknown.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0013_repository.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0014_work.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0015_points.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0016_files.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0017_marks.sql")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/0018_received.sql")),
];

/// The schema this program writes.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "a handful")]
pub(crate) const SCHEMA_VERSION: i32 = MIGRATIONS.len() as i32;

/// Version of the rules by which this program derives sessions and spans from hooks. Raise it if a change derives other
/// rows from the same hooks. `status` and `doctor` then recognise a store that older rules derived. A migration that
/// empties the derived tables need not raise it, because these tables are then derived again.
pub(crate) const RULES: u32 = 4;

/// `synchronous`: a commit waits until it is on the disk.
pub(super) const FULL: i64 = 2;
/// `synchronous`: after a power cut, a commit is either complete or missing. Only a checkpoint waits for the disk.
pub(super) const NORMAL: i64 = 1;

/// Readers kept open between reads.
const POOL: usize = 4;

/// Opens the database for its one writer. Creates it with mode 0600, brings its schema up to date, and makes commits
/// durable.
///
/// # Errors
/// See [`OpenError`].
pub(crate) fn writer(path: &Path) -> Result<Connection, OpenError> {
    library(rusqlite::version_number(), rusqlite::version())?;
    dirs::ensure_private(path).map_err(|source| OpenError::Io { path: path.into(), source })?;
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    db.busy_timeout(Duration::from_secs(2)).map_err(sqlite)?;
    let version = version(&db, path)?;
    if version == 0 {
        db.pragma_update(None, "page_size", 4_096).map_err(sqlite)?;
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(sqlite)?;
    }
    durable(&db, path)?;
    // Without this option, SQLite may plan a statement again for each new parameter value.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(sqlite)?;
    migrate(&mut db, version).map_err(sqlite)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

/// Opens the database for reading only, without checking what it is.
pub(super) fn plain_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(Duration::from_secs(2))?;
    Ok(db)
}

/// Opens the database for reading only.
///
/// # Errors
///
/// See [`OpenError`]; [`OpenError::Missing`] if there is no database yet.
pub(crate) fn reader(path: &Path) -> Result<Connection, OpenError> {
    if !path.exists() {
        return Err(OpenError::Missing(path.into()));
    }
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    for_reading(plain_reader(path).map_err(sqlite)?, path)
}

/// Opens the database for reading only and creates nothing beside it: no log, no shared memory, no lock. The caller
/// must know from [`crate::dirs::Lock::is_held`] that no process writes to it.
///
/// # Errors
/// See [`reader`].
pub(crate) fn still_reader(path: &Path) -> Result<Connection, OpenError> {
    if !path.exists() {
        return Err(OpenError::Missing(path.into()));
    }
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    for_reading(still(path).map_err(sqlite)?, path)
}

/// If a killed collector left a log, SQLite must keep the log's index in the memory of this process. It does so only
/// for a connection that excludes all others. Without a log, the file is complete.
#[cfg(unix)]
pub(super) fn still(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        let db = Connection::open_with_flags_and_vfs(path, flags, "unix-none")?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        db.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
        return Ok(db);
    }
    use std::os::unix::ffi::OsStrExt as _;
    let name = percent_encoding::percent_encode(path.as_os_str().as_bytes(), URI_PATH);
    let uri = format!("file:{name}?immutable=1");
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

/// On other systems SQLite cannot open a file without locks.
#[cfg(not(unix))]
pub(super) fn still(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

/// Characters that need no escape in the path of an SQLite URI.
#[cfg(unix)]
const URI_PATH: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');

fn for_reading(db: Connection, path: &Path) -> Result<Connection, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    db.busy_timeout(Duration::from_secs(2)).map_err(sqlite)?;
    match version(&db, path)? {
        0 => return Err(OpenError::Missing(path.into())),
        found if found < SCHEMA_VERSION => {
            return Err(OpenError::Older { path: path.into(), found });
        }
        _ => {}
    }
    for (pragma, value) in [("query_only", 1), ("trusted_schema", 0), ("mmap_size", 0)] {
        db.pragma_update(None, pragma, value).map_err(sqlite)?;
    }
    db.pragma_update(None, "cache_size", -4_096).map_err(sqlite)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

/// A few read-only connections, opened when first needed. Each is lent for one short read at a time.
#[derive(Debug)]
pub struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    suspicion: Suspicion,
}

impl Readers {
    /// Readers of the database at `path`. This opens nothing yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), idle: Mutex::new(Vec::new()), suspicion: Suspicion::default() }
    }

    /// Also reports reads that meet damage. The writer never notices damage in rows that it does not write.
    #[must_use]
    pub fn reporting(self, suspicion: &Suspicion) -> Self {
        Self { suspicion: suspicion.clone(), ..self }
    }

    /// Runs `read` in one read transaction, so that everything it reads is from one moment. `read` should take less
    /// than 250 ms: as long as it runs, the write-ahead log cannot be reused.
    ///
    /// # Errors
    ///
    /// The database cannot be opened, or `read` returns an error.
    pub fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, OpenError> {
        let done = self.read(read);
        if let Err(OpenError::Suspected { source, .. } | OpenError::Sqlite { source, .. }) = &done {
            self.suspicion.report(source);
        }
        done
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, OpenError> {
        let sqlite = |source| OpenError::Sqlite { path: self.path.clone(), source };
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let db = match idle {
            Some(db) => db,
            None => reader(&self.path)?,
        };
        let snapshot = db.unchecked_transaction().map_err(sqlite)?;
        let result = read(&snapshot);
        drop(snapshot);
        // After a failed read, a connection's cached pages cannot be trusted.
        if !result.as_ref().is_err_and(is_doubtful)
            && let Ok(mut idle) = self.idle.lock()
            && idle.len() < POOL
        {
            idle.push(db);
        }
        result.map_err(sqlite)
    }
}

/// Two releases of SQLite can lose committed rows; see <https://sqlite.org/wal.html>.
fn library(number: i32, name: &str) -> Result<(), OpenError> {
    if number < 3_051_003 || number == 3_052_000 {
        return Err(OpenError::Library(name.to_owned()));
    }
    Ok(())
}

fn version(db: &Connection, path: &Path) -> Result<i32, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    // All checks read the same snapshot, because another process may be creating the file.
    let _snapshot = db.unchecked_transaction().map_err(sqlite)?;
    let pragma = |name| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (found, application) = match (pragma("user_version"), pragma("application_id")) {
        (Ok(found), Ok(application)) => (found, application),
        (Err(source), _) | (_, Err(source)) if is_suspected(&source) => {
            return Err(OpenError::Suspected { path: path.into(), source });
        }
        (Err(error), _) | (_, Err(error)) => return Err(sqlite(error)),
    };
    let tables = "SELECT count(*) FROM sqlite_schema";
    match (application, found) {
        (APPLICATION_ID, found) if found > SCHEMA_VERSION => {
            Err(OpenError::Newer { path: path.into(), found })
        }
        (APPLICATION_ID, found) => Ok(found),
        (0, 0) if db.query_row(tables, [], |row| row.get::<_, i64>(0)).map_err(sqlite)? == 0 => {
            Ok(0)
        }
        _ => Err(OpenError::Foreign(path.into())),
    }
}

/// Sets the pragmas that durability and privacy depend on, and reads back those that SQLite may silently refuse.
fn durable(db: &Connection, path: &Path) -> Result<(), OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    let mode: String = db
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(sqlite)?;
    if mode != "wal" {
        return Err(OpenError::Pragma("journal_mode = WAL", path.into()));
    }
    let settings: [(&'static str, i64, &'static str); 10] = [
        ("synchronous", FULL, "synchronous = FULL"),
        // Checking foreign keys would take a tenth of a hook's cost. The checks are not needed: rows refer to rows of
        // the same transaction, and deletions name every table.
        ("foreign_keys", 0, "foreign_keys = OFF"),
        // Cache sizes, in KiB and in pages. Most pages are written once and not read again; one transaction may change as many
        // pages as 16 MiB hold.
        ("cache_size", -4_096, "cache_size"),
        ("cache_spill", 4_096, "cache_spill"),
        ("temp_store", 2, "temp_store = MEMORY"),
        // A page that changes with every batch is then copied into the database once per 16 MiB of log, and not once
        // per batch.
        ("wal_autocheckpoint", 4_096, "wal_autocheckpoint"),
        ("journal_size_limit", 64 << 20, "journal_size_limit"),
        ("secure_delete", 1, "secure_delete = ON"),
        ("trusted_schema", 0, "trusted_schema = OFF"),
        ("fullfsync", i64::from(cfg!(target_os = "macos")), "fullfsync"),
    ];
    for (name, value, text) in settings {
        db.pragma_update(None, name, value).map_err(sqlite)?;
        let now: i64 = db.pragma_query_value(None, name, |row| row.get(0)).map_err(sqlite)?;
        if now != value {
            return Err(OpenError::Pragma(text, path.into()));
        }
    }
    db.pragma_update(None, "mmap_size", 0).map_err(sqlite)
}

/// An old database is migrated step by step. A new one is created in a single transaction, so another process sees
/// either no database or a current one, never an old schema.
fn migrate(db: &mut Connection, from: i32) -> rusqlite::Result<()> {
    let mut version = usize::try_from(from).unwrap_or(0);
    while version < MIGRATIONS.len() {
        let until = if version == 0 { MIGRATIONS.len() } else { version + 1 };
        let step = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for sql in MIGRATIONS.get(version..until).unwrap_or_default() {
            step.execute_batch(sql)?;
        }
        step.pragma_update(None, "application_id", APPLICATION_ID)?;
        step.pragma_update(None, "user_version", i32::try_from(until).unwrap_or(i32::MAX))?;
        step.commit()?;
        version = until;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
