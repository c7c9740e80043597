//! Stars, tags and notes of sessions, and saved filters.
//!
//! People write them, so they are not derived from hooks. Each change is one small transaction on its own connection.
//! So a page need not wait for the engine's queue, and a command works without a collector. SQLite's lock keeps these
//! transactions apart from those of the engine.

use std::collections::HashMap;
use std::path::Path;

use hookspan_view::source::{
    FilterPage, MarkChange, Marked, SAVED_MAX, SavedFilter, SessionMarks, TAGS_MAX,
};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::open::{self, OpenError};
use super::rows;

/// Changes the marks of a session: makes all of `changes`, or none.
///
/// # Errors
/// Returns [`OpenError`] if the database cannot be opened or written, or if another connection holds the lock for too
/// long.
pub(crate) fn change(path: &Path, root: &str, changes: &[MarkChange]) -> Result<Marked, OpenError> {
    write(path, |db| {
        let own = "SELECT s.root FROM session s JOIN name n ON n.id = s.root WHERE n.text = ?1";
        let Some(id) = db.query_row(own, [root], |row| row.get::<_, i64>(0)).optional()? else {
            return Ok((Marked::NoSession, false));
        };
        for change in changes {
            apply(db, id, change)?;
        }
        let tags = "SELECT count(*) FROM tag WHERE root = ?1";
        if db.query_row(tags, [id], |row| rows::count(row, 0))? > TAGS_MAX as u64 {
            return Ok((Marked::TooManyTags, false));
        }
        Ok((Marked::Done(of(db, root)?), true))
    })
}

fn apply(db: &Connection, root: i64, change: &MarkChange) -> rusqlite::Result<()> {
    let marked = "INSERT INTO mark (root, starred, note) VALUES (?1, 0, '') ON CONFLICT DO NOTHING";
    db.execute(marked, [root])?;
    match change {
        MarkChange::Star(starred) => {
            db.execute("UPDATE mark SET starred = ?2 WHERE root = ?1", (root, starred))
        }
        MarkChange::Note(note) => {
            db.execute("UPDATE mark SET note = ?2 WHERE root = ?1", (root, note))
        }
        MarkChange::Tag(tag) => db.execute(
            "INSERT INTO tag (root, tag) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            (root, tag),
        ),
        MarkChange::Untag(tag) => {
            db.execute("DELETE FROM tag WHERE root = ?1 AND tag = ?2", (root, tag))
        }
    }?;
    db.execute("DELETE FROM mark WHERE root = ?1 AND NOT starred AND note = ''", [root]).map(drop)
}

/// The marks of a session.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn of(db: &Connection, root: &str) -> rusqlite::Result<SessionMarks> {
    let marks = "SELECT starred, note FROM mark WHERE root = (SELECT id FROM name WHERE text = ?1)";
    let found = db
        .prepare_cached(marks)?
        .query_row([root], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (starred, note) = found.unwrap_or_default();
    let tags =
        "SELECT tag FROM tag WHERE root = (SELECT id FROM name WHERE text = ?1) ORDER BY tag";
    let tags =
        db.prepare_cached(tags)?.query_map([root], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(SessionMarks { starred, tags, note })
}

/// The marks of sessions that have any.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn all_of(
    db: &Connection,
    roots: &[&str],
) -> rusqlite::Result<HashMap<String, SessionMarks>> {
    let mut found = HashMap::new();
    for root in roots {
        let marks = of(db, root)?;
        if marks != SessionMarks::default() {
            found.insert((*root).to_owned(), marks);
        }
    }
    Ok(found)
}

/// Removes the marks of a conversation that is deleted.
///
/// # Errors
/// Returns SQLite's error if the database cannot be written.
pub(super) fn forget(db: &Connection, root: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM mark WHERE root = ?1")?.execute([root])?;
    db.prepare_cached("DELETE FROM tag WHERE root = ?1")?.execute([root]).map(drop)
}

/// All saved filters, sorted by page and name. A filter of a page that this program does not know is left out.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn filters(db: &Connection) -> rusqlite::Result<Vec<SavedFilter>> {
    let mut statement =
        db.prepare_cached("SELECT page, name, query FROM saved_filter ORDER BY page, name")?;
    let mut rows = statement.query([])?;
    let mut filters = Vec::new();
    while let Some(row) = rows.next()? {
        let word: String = row.get(0)?;
        if let Some(page) = FilterPage::ALL.into_iter().find(|page| page.as_str() == word) {
            filters.push(SavedFilter { page, name: row.get(1)?, query: row.get(2)? });
        }
    }
    Ok(filters)
}

/// Saves a filter. It replaces a filter with the same name. Returns false if the page already has [`SAVED_MAX`]
/// filters.
///
/// # Errors
/// See [`change`].
pub(crate) fn save(path: &Path, filter: &SavedFilter) -> Result<bool, OpenError> {
    let page = filter.page.as_str();
    write(path, |db| {
        db.execute(
            "INSERT INTO saved_filter (page, name, query) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET name = excluded.name, query = excluded.query",
            (page, &filter.name, &filter.query),
        )?;
        let count = "SELECT count(*) FROM saved_filter WHERE page = ?1";
        let fits = db.query_row(count, [page], |row| rows::count(row, 0))? <= SAVED_MAX as u64;
        Ok((fits, fits))
    })
}

/// Removes a saved filter. Returns false if no filter has this name.
///
/// # Errors
/// See [`change`].
pub(crate) fn remove(path: &Path, page: FilterPage, name: &str) -> Result<bool, OpenError> {
    write(path, |db| {
        let gone = "DELETE FROM saved_filter WHERE page = ?1 AND name = ?2";
        Ok((db.execute(gone, (page.as_str(), name))? > 0, true))
    })
}

/// Runs `work` in a transaction, and commits the transaction if `work` returns true.
fn write<T>(
    path: &Path,
    work: impl FnOnce(&Connection) -> rusqlite::Result<(T, bool)>,
) -> Result<T, OpenError> {
    let mut db = open::writer(path)?;
    let run = || {
        let open = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (answer, keep) = work(&open)?;
        if keep { open.commit() } else { open.rollback() }?;
        Ok(answer)
    };
    run().map_err(|source| OpenError::Sqlite { path: path.into(), source })
}

#[cfg(test)]
mod tests;
