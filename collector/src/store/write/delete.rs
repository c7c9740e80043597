//! Deleting sessions: everything that is stored of them, and nothing of it left in a file.

use std::collections::BTreeSet;

use hookspan_core::Timestamp;
use hookspan_view::source::Deleted;
use rusqlite::{Connection, OptionalExtension as _};

use super::checkpoints::Checkpoints;
use super::times::Times;
use super::{Committed, Store, Transaction};
use crate::store::rows::{self, SPAN_COLUMNS, SPAN_TABLES};

impl Store {
    /// Notes that a collector starts, and since when none had run.
    ///
    /// # Errors
    /// As SQLite fails.
    pub fn starts(&mut self, now: Timestamp) -> rusqlite::Result<()> {
        let alive = self.state("alive_ns")?.and_then(|text| text.parse::<i64>().ok());
        self.transaction(|open| {
            if let Some(alive) = alive.filter(|alive| *alive < now.0) {
                open.store
                    .db
                    .prepare_cached("INSERT OR REPLACE INTO gap (from_ns, to_ns) VALUES (?1, ?2)")?
                    .execute((alive, now.0))?;
            }
            open.set_state("alive_ns", &now.0.to_string())
        })?;
        Ok(())
    }

    /// Notes that the collector is still there.
    ///
    /// # Errors
    /// As SQLite fails.
    pub fn is_alive(&mut self, now: Timestamp) -> rusqlite::Result<()> {
        self.transaction(|open| open.set_state("alive_ns", &now.0.to_string()))?;
        Ok(())
    }

    /// Deletes the sessions with these roots in one transaction: raw hooks, spans, turns, what they count for, and requests
    /// to destinations that hold them. The bytes are overwritten, but stay in the write-ahead log until
    /// [`Store::truncate_log`].
    ///
    /// # Errors
    /// As SQLite fails; then nothing is deleted.
    pub fn delete(&mut self, roots: &[String]) -> rusqlite::Result<(Deleted, Committed)> {
        let done = self.transaction(|open| {
            let mut sum = Deleted::default();
            for root in roots {
                sum.sessions += u64::from(delete_session(open, root, &mut sum)?);
                open.committed.sessions.entry(root.clone()).or_default();
            }
            Ok(sum)
        })?;
        self.names.clear();
        self.subjects.clear();
        self.ending.clear();
        Ok(done)
    }

    /// Moves the whole write-ahead log into the database and cuts it to nothing. False while a reader is in the way.
    ///
    /// # Errors
    /// As SQLite fails.
    pub fn truncate_log(&self) -> rusqlite::Result<bool> {
        let _alone = self.checkpoints.as_ref().map(Checkpoints::pause);
        self.db
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0))
    }
}

/// Deletes one session. False when there is nothing of it.
fn delete_session(
    open: &mut Transaction<'_>,
    root: &str,
    sum: &mut Deleted,
) -> rusqlite::Result<bool> {
    let Store { db, sketches, .. } = &mut *open.store;
    let Some(id) = name(db, root)? else { return Ok(false) };
    let spans = spans(db, id)?;
    let settled = spans.iter().filter(|(_, span)| span.settled);
    sketches.remove(db, settled.clone().map(|(_, span)| span))?;
    Times::remove(db, settled.map(|(_, span)| span))?;
    for (row, span) in &spans {
        // A request that holds the span is built again without it, and so is all that its destination has stored: what was
        // built is known by its last place in the queue alone.
        let holds = "destination IN
            (SELECT destination FROM export_batch WHERE (SELECT seq FROM settled WHERE span = ?1)
             BETWEEN first_seq AND last_seq)";
        for change in
            ["UPDATE export_position SET built_seq = acked_seq", "DELETE FROM export_batch"]
        {
            db.prepare_cached(&format!("{change} WHERE {holds}"))?.execute([row])?;
        }
        db.prepare_cached("DELETE FROM settled WHERE span = ?1")?.execute([row])?;
        db.prepare_cached("DELETE FROM settled_before WHERE id = ?1")?.execute([span.id.0])?;
    }
    let conversations = conversations(db, id)?;
    for conversation in &conversations {
        // A pack is keyed by one of its hooks, and all of those are this conversation's.
        db.prepare_cached(
            "DELETE FROM payload WHERE seq IN (SELECT seq FROM raw_hook WHERE conversation = ?1)",
        )?
        .execute([conversation])?;
        let delete = "DELETE FROM raw_hook WHERE conversation = ?1";
        sum.hooks += db.prepare_cached(delete)?.execute([conversation])? as u64;
    }
    sum.spans += db.prepare_cached("DELETE FROM span WHERE root = ?1")?.execute([id])? as u64;
    for table in ["unsettled", "turn", "session", "reach", "conversation"] {
        db.execute(&format!("DELETE FROM {table} WHERE root = ?1"), [id])?;
    }
    for conversation in &conversations {
        // Not deleted: whether anything still refers to a row would be looked for in all of the raw log.
        db.prepare_cached("UPDATE name SET text = 'deleted:' || id WHERE id = ?1")?
            .execute([conversation])?;
    }
    Ok(!spans.is_empty() || sum.hooks > 0)
}

fn name(db: &Connection, text: &str) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("SELECT id FROM name WHERE text = ?1")?
        .query_row([text], |row| row.get(0))
        .optional()
}

fn spans(db: &Connection, root: i64) -> rusqlite::Result<Vec<(i64, hookspan_core::Span)>> {
    let sql = format!("SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES} WHERE s.root = ?1");
    db.prepare_cached(&sql)?.query_map([root], rows::span)?.collect()
}

/// The root's own conversation, those bound to it, and whatever a span of it came from.
fn conversations(db: &Connection, root: i64) -> rusqlite::Result<BTreeSet<i64>> {
    db.prepare_cached(
        "SELECT ?1 UNION SELECT id FROM conversation WHERE root = ?1
         UNION SELECT conversation FROM span WHERE root = ?1",
    )?
    .query_map([root], |row| row.get(0))?
    .collect()
}
