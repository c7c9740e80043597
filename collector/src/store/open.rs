//! Opening the database: version checks, migrations, pragmas, and the small pool of readers.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::damage::is_damage;

use crate::dirs;

/// `PRAGMA application_id` of a hookspan database: "HkSp".
pub const APPLICATION_ID: i32 = 0x486b_5370;

/// One entry per schema version, in order; applied ones are never edited.
const MIGRATIONS: [&str; 10] = [
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
];

/// The schema this program writes.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "a handful")]
pub const SCHEMA_VERSION: i32 = MIGRATIONS.len() as i32;

/// `synchronous`: a commit waits until it is on the disk.
pub(super) const FULL: i64 = 2;
/// `synchronous`: a commit is whole or not there after a power cut; a checkpoint waits for the disk.
pub(super) const NORMAL: i64 = 1;

/// Readers kept open between reads.
const POOL: usize = 4;

/// Why the database cannot be used. The text says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none yet.
    #[error("{}: no hooks have been collected here yet; start `hookspan serve`, or import a file", .0.display())]
    Missing(PathBuf),
    /// It was written by a newer hookspan.
    #[error(
        "{path} was written by a newer hookspan (schema {found}, this one knows {SCHEMA_VERSION}); install that \
         version or a later one. Hooks go on being collected in the journal meanwhile",
        path = .path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its `user_version`.
        found: i32,
    },
    /// It was written by an older hookspan, and a reader does not change it.
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
    /// It cannot be read.
    #[error(
        "{} is damaged; `hookspan serve` moves it aside and saves what can be read. Hooks go on being collected in the \
         journal meanwhile",
        .0.display()
    )]
    Damaged(PathBuf),
    /// It is a database of something else.
    #[error("{} is not a hookspan database; move it away, or use another --dir DIR", .0.display())]
    Foreign(PathBuf),
    /// The SQLite library is one that loses data.
    #[error("SQLite {0} is not safe to use here: 3.51.3 or later is needed, except 3.52.0")]
    Library(String),
    /// A pragma that durability rests on did not take.
    #[error("SQLite refused `{0}` on {path}; is the file system a local one?", path = .1.display())]
    Pragma(&'static str, PathBuf),
    /// The file system refused.
    #[error("cannot open {path}: {source}", path = .path.display())]
    Io {
        /// The database.
        path: PathBuf,
        /// What came back.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot open {path}: {source}", path = .path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// What came back.
        source: rusqlite::Error,
    },
}

/// Opens the database for the one writer: creates it 0600, brings its schema up to date, sets durability.
///
/// # Errors
/// See [`OpenError`].
pub fn writer(path: &Path) -> Result<Connection, OpenError> {
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
    // Else a statement in which a value is compared may be planned anew for each value.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(sqlite)?;
    migrate(&mut db, version).map_err(sqlite)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

/// Opens the database for reading only.
///
/// # Errors
/// See [`OpenError`]; [`OpenError::Missing`] when there is none yet.
pub fn reader(path: &Path) -> Result<Connection, OpenError> {
    if !path.exists() {
        return Err(OpenError::Missing(path.into()));
    }
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    for_reading(db, path)
}

/// Opens the database for reading only and changes nothing around it: no log, no shared memory, no lock. Right only while
/// nobody writes, which the caller knows from [`crate::dirs::Lock::is_held`].
///
/// # Errors
/// See [`reader`].
pub fn still_reader(path: &Path) -> Result<Connection, OpenError> {
    if !path.exists() {
        return Err(OpenError::Missing(path.into()));
    }
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    for_reading(still(path).map_err(sqlite)?, path)
}

/// A log that a killed collector left is read with its index in this process' memory, which SQLite does for a connection
/// that excludes all others. Without a log, the file is all there is.
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

/// Elsewhere SQLite has no way to open a file without locks.
#[cfg(not(unix))]
pub(super) fn still(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

/// What stands for itself in the path of an SQLite URI.
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

/// A few read-only connections, opened when first needed and lent for one short read at a time.
#[derive(Debug)]
pub struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// Readers of the database at `path`; opens nothing yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), idle: Mutex::new(Vec::new()) }
    }

    /// Runs `read` in one read transaction, so that everything it sees is of one moment. Keep it under 250 ms: a long
    /// reader keeps the write-ahead log from being reused.
    ///
    /// # Errors
    /// When the database cannot be opened, or as `read` fails.
    pub fn with<T>(
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
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < POOL
        {
            idle.push(db);
        }
        result.map_err(sqlite)
    }
}

impl OpenError {
    /// Whether it says that the file itself is damaged.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Sqlite { source, .. } => is_damage(source),
            _ => false,
        }
    }
}

/// Whether that is the cause of what a command ends with.
#[must_use]
pub fn is_damage_below(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let sqlite = cause.downcast_ref::<rusqlite::Error>().is_some_and(is_damage);
        sqlite || cause.downcast_ref::<OpenError>().is_some_and(OpenError::is_damage)
    })
}

/// Whether a command failed in a way in which it may when the files are renamed while it opens them.
#[must_use]
pub fn is_moved_below(error: &anyhow::Error) -> bool {
    let code = error.chain().find_map(|cause| match cause.downcast_ref::<OpenError>() {
        Some(OpenError::Sqlite { source, .. }) => source.sqlite_error_code(),
        Some(_) => None,
        None => cause.downcast_ref::<rusqlite::Error>()?.sqlite_error_code(),
    });
    matches!(code, Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen))
}

/// Two releases are known to lose committed rows; see <https://sqlite.org/wal.html>.
fn library(number: i32, name: &str) -> Result<(), OpenError> {
    if number < 3_051_003 || number == 3_052_000 {
        return Err(OpenError::Library(name.to_owned()));
    }
    Ok(())
}

fn version(db: &Connection, path: &Path) -> Result<i32, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    // One look: another process may be creating it.
    let _snapshot = db.unchecked_transaction().map_err(sqlite)?;
    let pragma = |name| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (found, application) = match (pragma("user_version"), pragma("application_id")) {
        (Ok(found), Ok(application)) => (found, application),
        (Err(error), _) | (_, Err(error)) if is_damage(&error) => {
            return Err(OpenError::Damaged(path.into()));
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

/// Sets what durability and privacy rest on, and reads back what SQLite may silently refuse.
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
        // Looking up what each row refers to is a tenth of what a hook costs. Nothing rests on it: rows refer to what the
        // same transaction has made, and what goes with a row is deleted by name.
        ("foreign_keys", 0, "foreign_keys = OFF"),
        // KiB, then pages: most are written once and not looked at again; a transaction may change as many as 16 MiB hold.
        ("cache_size", -4_096, "cache_size"),
        ("cache_spill", 4_096, "cache_spill"),
        ("temp_store", 2, "temp_store = MEMORY"),
        // A page that changes with every batch is copied into the database once per 16 MiB of log, not once per batch.
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

/// Step by step; a new database in one: whoever looks at it meanwhile sees none yet, and not one of an older release.
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
mod tests {
    use super::*;

    fn path() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("hookspan.db");
        (temp, path)
    }

    #[test]
    fn a_new_database_is_durable_private_and_marked_as_ours() {
        let (_temp, path) = path();
        let db = writer(&path).unwrap();
        let pragma = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(pragma("application_id"), i64::from(APPLICATION_ID));
        assert_eq!(pragma("user_version"), i64::from(SCHEMA_VERSION));
        assert_eq!(pragma("synchronous"), 2);
        assert_eq!(pragma("auto_vacuum"), 2);
        assert_eq!(pragma("secure_delete"), 1);
        #[cfg(unix)]
        for suffix in ["", "-wal", "-shm"] {
            use std::os::unix::fs::PermissionsExt as _;
            let file = PathBuf::from(format!("{}{suffix}", path.display()));
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{suffix}");
        }
        drop(db);
        writer(&path).unwrap();
    }

    #[test]
    fn a_newer_schema_is_refused_with_what_to_install() {
        let (_temp, path) = path();
        let db = writer(&path).unwrap();
        db.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
        drop(db);
        for error in [writer(&path).unwrap_err(), reader(&path).unwrap_err()] {
            let text = error.to_string();
            assert!(text.contains("newer hookspan") && text.contains("journal"), "{text}");
        }
        let db = Connection::open(&path).unwrap();
        let kept = db.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0)).unwrap();
        assert_eq!(kept, SCHEMA_VERSION + 1);
    }

    #[test]
    fn what_has_left_keeps_its_place_when_spans_are_folded_again() {
        let (_temp, path) = path();
        let before = Connection::open(&path).unwrap();
        MIGRATIONS.iter().take(7).for_each(|sql| before.execute_batch(sql).unwrap());
        before
            .execute_batch(
                "INSERT INTO name (text) VALUES ('c');
                 INSERT INTO span (id, rev, root, conversation, generation, trace, kind, name, plain_name,
                                   start_ns, detail, settled_seq)
                 VALUES (x'01', 1, 1, 1, '', x'02', 'tool', '', '', 0, '{}', 7),
                        (x'03', 1, 1, 1, '', x'02', 'tool', '', '', 0, '{}', NULL);
                 INSERT INTO state (key, value) VALUES ('folded_seq', '9'), ('rebuilding', '0');
                 PRAGMA user_version = 7;",
            )
            .unwrap();
        before.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        drop(before);
        let db = writer(&path).unwrap();
        let text = |sql| db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        let kept = "SELECT group_concat(hex(id) || ' ' || settled_seq) FROM settled_before";
        assert_eq!(text(kept), "01 7");
        assert_eq!(text("SELECT count(*) || '' FROM span"), "0");
        let state = "SELECT group_concat(key || ' ' || value) FROM state";
        assert_eq!(text(state), "folded_seq 0,rebuilding 1");
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let (_temp, path) = path();
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE other (x)").unwrap();
        assert!(matches!(writer(&path), Err(OpenError::Foreign(_))));
        std::fs::write(
            &path,
            "not a database, but long enough to be looked at by SQLite".repeat(9),
        )
        .unwrap();
        assert!(matches!(writer(&path), Err(OpenError::Damaged(_))));
    }

    /// Name, size and time of change of each file around the database.
    #[cfg(unix)]
    fn around(path: &Path) -> Vec<(std::ffi::OsString, u64, std::time::SystemTime)> {
        let look = |entry: std::io::Result<std::fs::DirEntry>| {
            let (name, meta) = entry.map(|entry| (entry.file_name(), entry.metadata())).unwrap();
            let meta = meta.unwrap();
            (name, meta.len(), meta.modified().unwrap())
        };
        let mut all: Vec<_> =
            std::fs::read_dir(path.parent().unwrap()).unwrap().map(look).collect();
        all.sort();
        all
    }

    #[test]
    #[cfg(unix)]
    fn a_still_reader_sees_the_log_and_leaves_every_file_as_it_was() {
        let (temp, path) = path();
        // A path that an URI would read otherwise.
        let folder = temp.path().join("a b?c#d%41");
        std::fs::create_dir(&folder).unwrap();
        let copy = folder.join("hookspan.db");
        let rows = |path: &Path| -> i64 {
            let db = still_reader(path).unwrap();
            db.query_row("SELECT count(*) FROM name", [], |row| row.get(0)).unwrap()
        };
        let db = writer(&path).unwrap();
        db.execute("INSERT INTO name (id, text) VALUES (1, 'a')", []).unwrap();
        // As a killed collector leaves it: what was committed last is in the log alone.
        for suffix in ["", "-wal"] {
            let from = format!("{}{suffix}", path.display());
            std::fs::copy(from, format!("{}{suffix}", copy.display())).unwrap();
        }
        let before = around(&copy);
        assert_eq!((before.len(), rows(&copy)), (2, 1));
        assert_eq!(around(&copy), before);
        // As one that has ended leaves it.
        drop(db);
        let before = around(&path);
        assert_eq!((before.len(), rows(&path)), (2, 1));
        assert_eq!(around(&path), before);
        let missing = still_reader(&folder.join("none.db"));
        assert!(matches!(missing, Err(OpenError::Missing(_))), "{missing:?}");
        assert!(still_reader(&path).unwrap().execute("DELETE FROM name", []).is_err());
    }

    #[test]
    fn readers_see_committed_rows_and_cannot_write() {
        let (_temp, path) = path();
        let readers = Readers::new(&path);
        assert!(matches!(readers.with(|_| Ok(())), Err(OpenError::Missing(_))));
        let db = writer(&path).unwrap();
        let count = |db: &Connection| {
            db.query_row("SELECT count(*) FROM name", [], |row| row.get::<_, i64>(0))
        };
        assert_eq!(readers.with(count).unwrap(), 0);
        db.execute("INSERT INTO name (text) VALUES ('x')", []).unwrap();
        assert_eq!(readers.with(count).unwrap(), 1);
        let write = readers.with(|db| db.execute("DELETE FROM name", []));
        assert!(write.is_err());
        assert_eq!(readers.with(count).unwrap(), 1);
    }

    #[test]
    fn library_versions_that_lose_rows_are_refused() {
        assert!(library(3_051_002, "3.51.2").is_err());
        assert!(library(3_051_003, "3.51.3").is_ok());
        assert!(library(3_052_000, "3.52.0").is_err());
        assert!(library(rusqlite::version_number(), "now").is_ok());
    }
}
