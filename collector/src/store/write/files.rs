//! The files that calls read, change or delete: a table of names, with a cache of recent ids.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use hookspan_core::Span;
use hookspan_view::facet::{self, File};
use rusqlite::{Connection, OptionalExtension as _};

/// Maximum cached files. A full cache is cleared.
const MOST: usize = 8_192;

/// Ids by project and path.
#[derive(Debug, Default)]
pub(super) struct Files {
    known: HashMap<(String, String), i64, RandomState>,
}

/// What a span did to a file: the values of its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) file: Option<i64>,
    pub(super) added: Option<i64>,
    pub(super) removed: Option<i64>,
}

impl Files {
    /// What `span` did to a file, if it is a call that reads, changes or deletes one. A new file gets a new id.
    pub(super) fn touch(&mut self, db: &Connection, span: &Span) -> rusqlite::Result<Touch> {
        let Some(File { project, path }) = facet::file(span) else { return Ok(Touch::default()) };
        let lines = |key| span.number(key).map(|lines| lines as i64);
        Ok(Touch {
            file: Some(self.id(db, project.unwrap_or_default(), path)?),
            added: lines("hookspan.edit.lines_added"),
            removed: lines("hookspan.edit.lines_removed"),
        })
    }

    fn id(&mut self, db: &Connection, project: String, path: String) -> rusqlite::Result<i64> {
        let key = (project, path);
        if let Some(id) = self.known.get(&key) {
            return Ok(*id);
        }
        let (project, path) = (key.0.as_str(), key.1.as_str());
        let found = db
            .prepare_cached("SELECT id FROM file WHERE project = ?1 AND path = ?2")?
            .query_row((project, path), |row| row.get(0))
            .optional()?;
        let id = match found {
            Some(id) => id,
            None => {
                db.prepare_cached("INSERT INTO file (project, path) VALUES (?1, ?2)")?
                    .execute((project, path))?;
                db.last_insert_rowid()
            }
        };
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(key, id);
        Ok(id)
    }

    /// Clears the cache: ids from a rolled back transaction do not exist.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }
}

/// Removes the names of files that no span touches any more, of those that `ids` names.
pub(super) fn forget(db: &Connection, ids: &[i64]) -> rusqlite::Result<()> {
    let mut unused = db.prepare_cached(
        "DELETE FROM file WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM span WHERE file = ?1)",
    )?;
    ids.iter().try_for_each(|id| unused.execute([id]).map(drop))
}

/// The files that the spans of a session touch.
pub(super) fn of_session(db: &Connection, root: i64) -> rusqlite::Result<Vec<i64>> {
    db.prepare_cached("SELECT DISTINCT file FROM span WHERE root = ?1 AND file IS NOT NULL")?
        .query_map([root], |row| row.get(0))?
        .collect()
}
