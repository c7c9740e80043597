//! The name table, with a cache of recent ids.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use rusqlite::{Connection, OptionalExtension as _};

/// Maximum number of cached names: enough for all conversations of some weeks. A full cache is cleared.
const MOST: usize = 20_000;

/// Ids by text. The texts come from payloads. To forge texts that collide, somebody would have to know this process's
/// hash seed, and each lookup would then cost [`MOST`] comparisons at most.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashMap<Arc<str>, i64, RandomState>,
}

impl Names {
    /// The id of `text`. A new text gets a new id.
    pub(super) fn id(&mut self, db: &Connection, text: &str) -> rusqlite::Result<i64> {
        if let Some(id) = self.find(db, text)? {
            return Ok(id);
        }
        db.prepare_cached("INSERT INTO name (text) VALUES (?1)")?.execute([text])?;
        let id = db.last_insert_rowid();
        self.keep(text, id);
        Ok(id)
    }

    /// The id of `text`, if it has one.
    pub(super) fn find(&mut self, db: &Connection, text: &str) -> rusqlite::Result<Option<i64>> {
        if let Some(id) = self.known.get(text) {
            return Ok(Some(*id));
        }
        let id = db
            .prepare_cached("SELECT id FROM name WHERE text = ?1")?
            .query_row([text], |row| row.get(0))
            .optional()?;
        if let Some(id) = id {
            self.keep(text, id);
        }
        Ok(id)
    }

    /// Clears the cache: ids from a rolled back transaction do not exist.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    fn keep(&mut self, text: &str, id: i64) {
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(text.into(), id);
    }
}
