//! Which sessions are due to be deleted: too old, or the oldest of a database that is too large.

use rusqlite::Connection;

use crate::config::Retention;

/// Sessions deleted at a time: between two such steps hooks are committed.
pub const STEP: u32 = 20;

/// Roots of the sessions that are due, the oldest first, at most [`STEP`]. `now_ns` is the wall clock.
///
/// # Errors
/// As SQLite fails.
pub fn due(db: &Connection, keep: Retention, now_ns: i64) -> rusqlite::Result<Vec<String>> {
    let mut roots = Vec::new();
    if keep.max_age_ns > 0 {
        roots = older_than(db, now_ns.saturating_sub(keep.max_age_ns), STEP)?;
    }
    if roots.is_empty() && keep.max_bytes > 0 && used_bytes(db)? > keep.max_bytes {
        roots = older_than(db, i64::MAX, STEP)?;
    }
    Ok(roots)
}

/// Roots of sessions whose last event was before a time, the oldest first.
///
/// # Errors
/// As SQLite fails.
pub fn older_than(db: &Connection, before_ns: i64, limit: u32) -> rusqlite::Result<Vec<String>> {
    db.prepare_cached(
        "SELECT n.text FROM session s JOIN name n ON n.id = s.root
         WHERE s.last_ns < ?1 ORDER BY s.last_ns LIMIT ?2",
    )?
    .query_map((before_ns, limit), |row| row.get(0))?
    .collect()
}

/// Bytes of the database that hold something.
fn used_bytes(db: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name| {
        db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
    };
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    Ok(pages.saturating_mul(pragma("page_size")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sample;
    use crate::store::write::{Changes, Store};
    use hookspan_core::{Change, Timestamp};

    #[test]
    fn sessions_are_due_by_age_or_by_the_size_of_the_database_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("x.db")).unwrap();
        let mut changes = Changes::default();
        for (root, at) in [("new", 900), ("old", 100), ("older", 50)] {
            let mut session = sample::session(root);
            session.last_at = Timestamp(at);
            changes.push(Change::Session(Box::new(session)));
        }
        store.transaction(|open| open.changes(&changes)).unwrap();
        let keep = |max_age_ns, max_bytes| Retention { max_age_ns, max_bytes };
        store
            .run(|db| {
                assert_eq!(due(db, keep(0, 0), 1_000)?, [""; 0]);
                assert_eq!(due(db, keep(500, 0), 1_000)?, ["older", "old"]);
                assert_eq!(due(db, keep(5_000, 1), 1_000)?, ["older", "old", "new"]);
                assert_eq!(due(db, keep(0, 1 << 40), 1_000)?, [""; 0]);
                Ok(())
            })
            .unwrap();
    }
}
