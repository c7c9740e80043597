//! Reads the progress of imports.

use rusqlite::{Connection, OptionalExtension as _};

use super::write::ImportCounts;

/// One import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Result of its lines so far.
    pub counts: ImportCounts,
    /// Whether it is finished.
    pub done: bool,
    /// Why it could not be finished.
    pub error: Option<String>,
}

/// The import `id`, if the collector has begun with it.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn run(db: &Connection, id: &str) -> rusqlite::Result<Option<Run>> {
    db.prepare_cached(
        "SELECT new, duplicate, malformed, done, error FROM import_run WHERE id = ?1",
    )?
    .query_row([id], |row| {
        let count = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
        let counts = ImportCounts { new: count(0)?, duplicate: count(1)?, malformed: count(2)? };
        Ok(Run { counts, done: row.get(3)?, error: row.get(4)? })
    })
    .optional()
}

/// How many lines of the import `id` are in the raw log. Known only for the import that the collector worked on last.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn lines_done(db: &Connection, id: &str) -> rusqlite::Result<u64> {
    let mark: Option<String> = db
        .prepare_cached("SELECT value FROM state WHERE key = 'import'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let lines = mark.as_deref().and_then(|mark| {
        let (run, lines) = mark.split_once(' ')?;
        if run == id { lines.parse().ok() } else { None }
    });
    Ok(lines.unwrap_or(0))
}
