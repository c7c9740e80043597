//! Frees space on a full disk, and gives space of deleted rows back to the file system.

use super::Store;
use crate::store::ballast;

/// Pages returned at a time.
const PAGES: u32 = 256;

impl Store {
    /// Frees space without losing data: first the ballast, then the write-ahead log, then empty pages. Errors are
    /// ignored, because the next attempt at the batch shows whether the space is enough.
    pub fn make_room(&mut self) {
        let freed = ballast::free(&self.path);
        let moved = self.truncate_log();
        let given_back = self.give_back(u32::MAX);
        tracing::warn!(freed, log_moved = ?moved.ok(), pages = given_back.unwrap_or(0), "the disk is full; made room");
    }

    /// Gives empty pages back to the file system, up to about `most`. Returns their number.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn give_back(&mut self, most: u32) -> rusqlite::Result<u32> {
        let empty = |db: &rusqlite::Connection| {
            db.query_row("PRAGMA freelist_count", [], |row| row.get::<_, u32>(0))
        };
        let before = empty(&self.db)?;
        let mut left = before;
        while left > 0 && before - left < most {
            // The pragma frees one page for each step of the statement.
            let mut statement = self.db.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            drop(rows);
            drop(statement);
            let now = empty(&self.db)?;
            if now >= left {
                break;
            }
            left = now;
        }
        Ok(before - left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_deleted_rows_are_given_back_to_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("x.db")).unwrap();
        let fill = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
                    INSERT INTO name (text) SELECT hex(randomblob(500)) || i FROM n";
        store.run(|db| db.execute_batch(fill)).unwrap();
        store.run(|db| db.execute_batch("DELETE FROM name")).unwrap();
        let empty = |store: &Store| {
            store.db.query_row("PRAGMA freelist_count", [], |row| row.get::<_, u32>(0)).unwrap()
        };
        let before = empty(&store);
        assert!(before > 600, "{before}");
        assert!(store.give_back(100).unwrap() >= 100);
        store.give_back(u32::MAX).unwrap();
        assert_eq!(empty(&store), 0);
    }

    #[test]
    fn room_is_made_of_the_ballast_and_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hookspan.db");
        let mut store = Store::open(&path).unwrap();
        ballast::keep(&path);
        store.run(|db| db.execute_batch("INSERT INTO name (text) VALUES ('x')")).unwrap();
        store.make_room();
        assert!(!ballast::path(&path).exists());
        assert_eq!(std::fs::metadata(folder.path().join("hookspan.db-wal")).unwrap().len(), 0);
    }
}
