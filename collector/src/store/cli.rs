//! Queries that only commands need.

use rusqlite::{Connection, OptionalExtension as _};

use super::open::RULES;

/// How far the journal has been committed, as [`crate::journal::Position`] writes it.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn journal_position(db: &Connection) -> rusqlite::Result<Option<String>> {
    db.query_row("SELECT value FROM state WHERE key = 'journal'", [], |row| row.get(0)).optional()
}

/// Whether the derived tables were made by older rules than this program's. The same hooks might now give other
/// sessions and spans.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn has_older_rules(db: &Connection) -> rusqlite::Result<bool> {
    let rules = db
        .query_row("SELECT value FROM state WHERE key = 'rules'", [], |row| row.get::<_, String>(0))
        .optional()?;
    let rules: u32 = rules.and_then(|rules| rules.parse().ok()).unwrap_or(0);
    let derived = db.prepare("SELECT 1 FROM span LIMIT 1")?.exists([])?;
    Ok(derived && rules < RULES)
}

/// How many of these records are committed.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn committed(db: &Connection, ids: &[[u8; 16]]) -> rusqlite::Result<u64> {
    let mut find = db.prepare("SELECT 1 FROM raw_hook WHERE id = ?1")?;
    let mut count = 0;
    for id in ids {
        count += u64::from(find.exists([id])?);
    }
    Ok(count)
}

/// Root conversations whose id begins with `prefix`, at most `limit`.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn roots(db: &Connection, prefix: &str, limit: u32) -> rusqlite::Result<Vec<String>> {
    db.prepare(
        "SELECT name.text FROM session JOIN name ON name.id = session.root
         WHERE substr(name.text, 1, length(?1)) = ?1 ORDER BY session.last_ns DESC LIMIT ?2",
    )?
    .query_map((prefix, limit), |row| row.get(0))?
    .collect()
}

/// The session with the latest event.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn last_root(db: &Connection) -> rusqlite::Result<Option<String>> {
    db.query_row(
        "SELECT name.text FROM session JOIN name ON name.id = session.root
         ORDER BY session.last_ns DESC LIMIT 1",
        [],
        |row| row.get(0),
    )
    .optional()
}

/// When the latest hook was received, nanoseconds since the epoch.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn last_hook_ns(db: &Connection) -> rusqlite::Result<Option<i64>> {
    db.query_row("SELECT observed_ns FROM raw_hook ORDER BY seq DESC LIMIT 1", [], |row| row.get(0))
        .optional()
}

/// How many hooks are stored.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn hooks(db: &Connection) -> rusqlite::Result<u64> {
    db.query_row("SELECT count(*) FROM raw_hook", [], |row| super::rows::count(row, 0))
}

/// The first fault that SQLite's quick check finds; `None` if it finds none.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn quick_check(db: &Connection) -> rusqlite::Result<Option<String>> {
    let found: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((found != "ok").then_some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::open;

    #[test]
    fn sessions_are_found_by_the_beginning_of_their_id_taken_literally() {
        let folder = tempfile::tempdir().unwrap();
        let db = open::writer(&folder.path().join("x.db")).unwrap();
        for (id, text) in [(1, "abc"), (2, "abd"), (3, "x%_")] {
            db.execute("INSERT INTO name (id, text) VALUES (?1, ?2)", (id, text)).unwrap();
            db.execute(
                "INSERT INTO session (root, rev, state, started_ns, last_ns, surface, generations,
                 tool_calls, subagents, errors, errored_turns, active_ns)
                 VALUES (?1, 1, 'done', 0, ?1, 'ide', 0, 0, 0, 0, 0, 0)",
                [id],
            )
            .unwrap();
        }
        assert_eq!(roots(&db, "ab", 9).unwrap(), ["abd", "abc"]);
        assert_eq!(roots(&db, "x%", 9).unwrap(), ["x%_"]);
        assert_eq!(roots(&db, "%", 9).unwrap(), [""; 0]);
        assert_eq!(last_root(&db).unwrap().as_deref(), Some("x%_"));
        assert_eq!(quick_check(&db).unwrap(), None);
        assert_eq!(committed(&db, &[[0; 16]]).unwrap(), 0);
        assert_eq!((journal_position(&db).unwrap(), last_hook_ns(&db).unwrap()), (None, None));
    }
}
