//! The search index: a separate database file that follows the store. It is derived and may be deleted at any time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hookspan_core::SpanId;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _};

use super::damage::is_suspected;
use super::open::OpenError;
use crate::dirs;

/// `PRAGMA application_id` of a search index: "HkSx".
const APPLICATION_ID: i32 = 0x486b_5378;
/// Raised with the schema: an index of another version is made again.
const SCHEMA_VERSION: i32 = 2;

/// Texts are stored as shown. The index needs no positions, because a phrase is verified in the text itself.
const SCHEMA: &str = "
CREATE TABLE doc (
    id    INTEGER PRIMARY KEY,
    root  TEXT    NOT NULL,
    span  BLOB    NOT NULL,
    hook  INTEGER NOT NULL,
    field TEXT    NOT NULL,
    text  TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX doc_span ON doc (span, hook, field);
CREATE INDEX doc_root ON doc (root);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(text, content='doc', content_rowid='id', detail=none, tokenize='unicode61', prefix='2');
CREATE VIRTUAL TABLE grams USING fts5(text, content='doc', content_rowid='id', detail=none, tokenize='trigram');
";

/// `meta` key: the file still contains words of deleted texts.
const UNCLEAN: &str = "unclean";

/// One text of one span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doc {
    /// Row in the index. Newer texts have greater numbers.
    pub id: i64,
    /// Root conversation.
    pub root: String,
    /// Span.
    pub span: SpanId,
    /// Name of the text.
    pub field: String,
    /// The text, redacted and cut.
    pub text: String,
}

/// The index, opened by its one writer.
#[derive(Debug)]
pub(crate) struct Index {
    db: Connection,
}

impl Index {
    /// Opens the index at `path`. A damaged, foreign or outdated index is replaced by a new one. An index that merely
    /// cannot be opened now (no descriptor left, a lock) is kept.
    ///
    /// # Errors
    /// The file system or SQLite refuses.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        match Self::open_existing(path) {
            Err(error) if is_useless(&error) => {}
            opened => return opened,
        }
        remove(path).map_err(|source| OpenError::Io { path: path.into(), source })?;
        Self::open_existing(path)
    }

    fn open_existing(path: &Path) -> Result<Self, OpenError> {
        dirs::ensure_private(path).map_err(|source| OpenError::Io { path: path.into(), source })?;
        let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).map_err(sqlite)?;
        Self::prepare(&db).map_err(sqlite)?;
        Ok(Self { db })
    }

    fn prepare(db: &Connection) -> rusqlite::Result<()> {
        db.busy_timeout(Duration::from_secs(2))?;
        let _mode: String =
            db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        // The index can be built again, so a power cut may lose its last changes.
        for (name, value) in [
            ("synchronous", 1),
            ("secure_delete", 1),
            ("trusted_schema", 0),
            ("cache_size", -8_192),
            ("journal_size_limit", 16 << 20),
            ("mmap_size", 0),
        ] {
            db.pragma_update(None, name, value)?;
        }
        let pragma = |name| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        match (pragma("application_id")?, pragma("user_version")?) {
            (APPLICATION_ID, SCHEMA_VERSION) => Ok(()),
            (0, 0) => db.execute_batch(&format!(
                "BEGIN IMMEDIATE; {SCHEMA}
                 PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )),
            _ => Err(rusqlite::Error::InvalidQuery),
        }
    }

    /// Opens the index again after an error that makes the connection unreliable.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn reopen(&mut self, path: &Path) -> Result<(), OpenError> {
        *self = Self::open(path)?;
        Ok(())
    }

    /// A value stored under a key.
    ///
    /// # Errors
    /// Returns SQLite's error if the index cannot be read or written.
    pub(crate) fn meta(&self, key: &str) -> rusqlite::Result<Option<String>> {
        meta(&self.db, key)
    }

    /// Runs `work` in one transaction.
    ///
    /// # Errors
    ///
    /// Returns the error of `work` or SQLite. Then nothing is changed.
    pub(crate) fn batch<T>(
        &mut self,
        work: impl FnOnce(&Batch<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let open = self.db.transaction()?;
        let value = work(&Batch { db: &open })?;
        open.commit()?;
        Ok(value)
    }

    /// Deletes these sessions completely, also from the file's free space.
    ///
    /// # Errors
    /// Returns SQLite's error if the index cannot be read or written.
    pub(crate) fn delete(&mut self, roots: &[String]) -> rusqlite::Result<u64> {
        let deleted = self.remove(roots)?;
        self.clean()?;
        Ok(deleted)
    }

    /// Deletes these sessions. Their words stay in the file until [`Self::clean`] is called, which takes time in
    /// proportion to the size of the index.
    ///
    /// # Errors
    /// Returns SQLite's error if the index cannot be read or written.
    pub(crate) fn remove(&mut self, roots: &[String]) -> rusqlite::Result<u64> {
        self.batch(|batch| {
            let mut deleted = 0;
            for root in roots {
                deleted += batch.delete_root(root)?;
            }
            if deleted > 0 {
                batch.set_meta(UNCLEAN, "1")?;
            }
            Ok(deleted)
        })
    }

    /// Removes deleted texts from the file's free space, including those that an earlier process deleted.
    ///
    /// # Errors
    /// Returns SQLite's error if the index cannot be read or written.
    pub(crate) fn clean(&mut self) -> rusqlite::Result<()> {
        if self.meta(UNCLEAN)?.is_some() {
            // Terms of deleted texts lie in older segments of the index until these are merged.
            self.db.execute_batch(
                "INSERT INTO words (words) VALUES ('optimize');
                 INSERT INTO grams (grams) VALUES ('optimize');",
            )?;
            self.db.execute("DELETE FROM meta WHERE key = ?1", [UNCLEAN])?;
        }
        self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }

    /// Roots that have texts in the index.
    ///
    /// # Errors
    /// Returns SQLite's error if the index cannot be read or written.
    pub(crate) fn roots(&self) -> rusqlite::Result<Vec<String>> {
        // Reads only the first row of each root in the index. So the time does not depend on the number of texts.
        let mut next = self.db.prepare_cached("SELECT min(root) FROM doc WHERE root > ?1")?;
        let mut roots: Vec<String> = Vec::new();
        while let Some(root) =
            next.query_row([roots.last().map_or("", |root| root)], |row| row.get(0))?
        {
            roots.push(root);
        }
        Ok(roots)
    }
}

/// Texts being written.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    db: &'a Connection,
}

impl Batch<'_> {
    /// Whether this text is in the index. Hooks never change, so it need not be read again.
    ///
    /// # Errors
    /// Returns SQLite's error if the index cannot be read or written.
    pub(crate) fn has(&self, span: SpanId, hook: u64, field: &str) -> rusqlite::Result<bool> {
        self.db
            .prepare_cached("SELECT 1 FROM doc WHERE span = ?1 AND hook = ?2 AND field = ?3")?
            .exists((span.0, hook.cast_signed(), field))
    }

    /// Adds a text.
    ///
    /// # Errors
    /// Returns SQLite's error if the index cannot be read or written.
    pub(crate) fn add(
        &self,
        root: &str,
        span: SpanId,
        hook: u64,
        field: &str,
        text: &str,
    ) -> rusqlite::Result<()> {
        self.db
            .prepare_cached(
                "INSERT INTO doc (root, span, hook, field, text) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute((root, span.0, hook.cast_signed(), field, text))?;
        let id = self.db.last_insert_rowid();
        for table in ["words", "grams"] {
            let sql = format!("INSERT INTO {table} (rowid, text) VALUES (?1, ?2)");
            self.db.prepare_cached(&sql)?.execute((id, text))?;
        }
        Ok(())
    }

    /// Moves the texts of `span` to another root, because a child was bound.
    ///
    /// # Errors
    /// Returns SQLite's error if the index cannot be read or written.
    pub(crate) fn set_root(&self, span: SpanId, root: &str) -> rusqlite::Result<()> {
        self.db
            .prepare_cached("UPDATE doc SET root = ?2 WHERE span = ?1 AND root <> ?2")?
            .execute((span.0, root))?;
        Ok(())
    }

    /// Stores a value under a key.
    ///
    /// # Errors
    /// Returns SQLite's error if the index cannot be read or written.
    pub(crate) fn set_meta(&self, key: &str, value: &str) -> rusqlite::Result<()> {
        self.db
            .prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?
            .execute((key, value))?;
        Ok(())
    }

    /// Adds to a number stored under a key.
    ///
    /// # Errors
    /// Returns SQLite's error if the index cannot be read or written.
    pub(crate) fn count(&self, key: &str, by: u64) -> rusqlite::Result<()> {
        if by > 0 {
            let sum = meta(self.db, key)?.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            self.set_meta(key, &sum.saturating_add(by).to_string())?;
        }
        Ok(())
    }

    fn delete_root(&self, root: &str) -> rusqlite::Result<u64> {
        for table in ["words", "grams"] {
            let sql = format!(
                "INSERT INTO {table} ({table}, rowid, text)
                 SELECT 'delete', id, text FROM doc WHERE root = ?1"
            );
            self.db.prepare_cached(&sql)?.execute([root])?;
        }
        Ok(self.db.prepare_cached("DELETE FROM doc WHERE root = ?1")?.execute([root])? as u64)
    }
}

/// Opens the index for reading; `None` if there is none.
///
/// # Errors
/// Returns SQLite's error if the index cannot be read or written.
pub(crate) fn reader(path: &Path) -> rusqlite::Result<Option<Connection>> {
    if !path.exists() {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(Duration::from_secs(2))?;
    db.pragma_update(None, "query_only", 1)?;
    db.pragma_update(None, "cache_size", -8_192)?;
    let version: i32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(Some(db).filter(|_| version == SCHEMA_VERSION))
}

/// A value stored under a key, on any connection.
///
/// # Errors
/// Returns SQLite's error if the index cannot be read or written.
pub(crate) fn meta(db: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    db.prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()
}

/// One of the two indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// Whole words.
    Words,
    /// The first two letters of words, for words that are too short for [`Self::Grams`].
    Beginnings,
    /// All sequences of three letters.
    Grams,
}

impl Table {
    const fn name(self) -> &'static str {
        match self {
            Self::Words | Self::Beginnings => "words",
            Self::Grams => "grams",
        }
    }
}

/// Texts that contain all `tokens`, newest first, below `before`, at most `limit`. Tokens are quoted here, so nothing
/// in them is read as an operator.
///
/// # Errors
/// Returns SQLite's error if the index cannot be read or written.
pub(crate) fn find(
    db: &Connection,
    table: Table,
    tokens: &[String],
    before: i64,
    limit: usize,
) -> rusqlite::Result<Vec<Doc>> {
    let name = table.name();
    let sql = format!(
        "SELECT doc.id, doc.root, doc.span, doc.field, doc.text FROM
             (SELECT rowid FROM {name} WHERE {name} MATCH ?1 AND rowid < ?2
              ORDER BY rowid DESC LIMIT ?3) hit
         JOIN doc ON doc.id = hit.rowid ORDER BY doc.id DESC"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.prepare_cached(&sql)?
        .query_map((expression(table, tokens), before, limit), |row| {
            Ok(Doc {
                id: row.get(0)?,
                root: row.get(1)?,
                span: SpanId(row.get(2)?),
                field: row.get(3)?,
                text: row.get(4)?,
            })
        })?
        .collect()
}

/// Number of texts that contain all `tokens`, counted up to `most`.
///
/// # Errors
/// Returns SQLite's error if the index cannot be read or written.
pub(crate) fn count(
    db: &Connection,
    table: Table,
    tokens: &[String],
    most: u64,
) -> rusqlite::Result<u64> {
    let name = table.name();
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {name} WHERE {name} MATCH ?1 LIMIT ?2)");
    db.prepare_cached(&sql)?
        .query_row((expression(table, tokens), most.cast_signed()), |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
}

fn expression(table: Table, tokens: &[String]) -> String {
    let star = |token: &str| table == Table::Beginnings && token.chars().count() == 2;
    let quoted: Vec<String> = tokens
        .iter()
        .map(|token| {
            let end = if star(token) { "*" } else { "" };
            format!("\"{}\"{end}", token.replace('"', "\"\""))
        })
        .collect();
    quoted.join(" AND ")
}

/// The files of an index.
#[must_use]
pub(crate) fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    })
}

/// Whether an index can never be used: it is damaged, foreign, or of another version.
fn is_useless(error: &OpenError) -> bool {
    let OpenError::Sqlite { source, .. } = error else { return false };
    let is_foreign = source.sqlite_error_code() == Some(ErrorCode::Unknown);
    is_suspected(source) || is_foreign || matches!(source, rusqlite::Error::InvalidQuery)
}

/// Removes an index.
///
/// # Errors
/// A file cannot be removed.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    for file in files(path) {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
