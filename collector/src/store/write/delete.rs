//! Deletes sessions and unowned hooks completely, so that no file contains anything of them.

use std::collections::BTreeSet;

use hookspan_core::Timestamp;
use hookspan_view::source::Deleted;
use rusqlite::{Connection, OptionalExtension as _};

use super::checkpoints::Checkpoints;
use super::novel::Forgotten;
use super::sketches::Counted;
use super::{Committed, GIVEN, Store, Transaction, files, raw};
use crate::store::export::ANSWER_DELETED;
use crate::store::marks;
use crate::store::prune::Selection;
use crate::store::received::age;
use crate::store::rows::{self, SPAN_COLUMNS, SPAN_TABLES};

impl Store {
    /// Records that a collector starts. The time since the previous collector ended is recorded as a gap.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
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

    /// Notes that the collector is still running.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn is_alive(&mut self, now: Timestamp) -> rusqlite::Result<()> {
        self.transaction(|open| open.set_state("alive_ns", &now.0.to_string()))?;
        Ok(())
    }

    /// Deletes the selection in one transaction: raw hooks, spans, turns, their share of all sums, names that only they
    /// used, and stored requests that contain them. The bytes are overwritten in the database, but stay in the
    /// write-ahead log until [`Store::truncate_log`]. A conversation that has become part of a session since the
    /// selection is kept.
    ///
    /// # Errors
    /// Returns SQLite's error. Then nothing is deleted.
    pub fn delete(&mut self, what: &Selection) -> rusqlite::Result<(Deleted, Committed)> {
        let novel = self.novel.clone();
        let done = self.transaction(|open| {
            let (mut sum, mut forgotten) = (Deleted::default(), Forgotten::default());
            for root in &what.sessions {
                sum.sessions += u64::from(delete_session(open, root, &mut sum, &mut forgotten)?);
                open.committed.sessions.entry(root.clone()).or_default();
            }
            for conversation in &what.conversations {
                if !has_session(&open.store.db, *conversation)? {
                    delete_conversation(open, *conversation, &mut sum, &mut forgotten)?;
                }
            }
            for hook in &what.hooks {
                delete_hook(open, *hook, &mut sum, &mut forgotten)?;
            }
            forgotten.settle(open)?;
            if sum.hooks > 0 {
                let given = open.store.marks.seq.to_string();
                open.set_state(GIVEN, &given)?;
            }
            Ok(sum)
        });
        if done.is_err() {
            self.novel = novel;
        }
        self.names.clear();
        self.files.clear();
        self.subjects.clear();
        self.ending.clear();
        done
    }

    /// Moves the whole write-ahead log into the database and truncates the log. Returns false if a reader prevents
    /// that.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn truncate_log(&self) -> rusqlite::Result<bool> {
        let _alone = self.checkpoints.as_ref().map(Checkpoints::pause);
        self.db
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0))
    }
}

/// Deletes one session. Returns false if nothing of it is stored.
fn delete_session(
    open: &mut Transaction<'_>,
    root: &str,
    sum: &mut Deleted,
    forgotten: &mut Forgotten,
) -> rusqlite::Result<bool> {
    let Store { db, sketches, times, .. } = &mut *open.store;
    let Some(id) = name(db, root)? else { return Ok(false) };
    times.touch_all(db, id)?;
    let spans = spans(db, id)?;
    let touched = files::of_session(db, id)?;
    let settled = spans.iter().map(|(_, span)| span).filter(|span| span.settled);
    for counted in settled.filter_map(Counted::of) {
        sketches.take_back(db, &counted)?;
    }
    clear_answers(db, id)?;
    clear_points(db)?;
    for (row, span) in &spans {
        // A stored request that contains the span is deleted and built again without the span. All stored requests of
        // the destination are deleted with it, because the export position records only the last number that was built.
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
    let hooks = sum.hooks;
    for conversation in conversations(db, id)? {
        delete_conversation(open, conversation, sum, forgotten)?;
    }
    let db = &open.store.db;
    sum.spans += db.prepare_cached("DELETE FROM span WHERE root = ?1")?.execute([id])? as u64;
    files::forget(db, &touched)?;
    sum.turns += db.prepare_cached("DELETE FROM turn WHERE root = ?1")?.execute([id])? as u64;
    let session = db.prepare_cached("DELETE FROM session WHERE root = ?1")?.execute([id])?;
    for table in ["unsettled", "reach", "conversation"] {
        db.execute(&format!("DELETE FROM {table} WHERE root = ?1"), [id])?;
    }
    Ok(session > 0 || !spans.is_empty() || sum.hooks > hooks)
}

/// Removes receivers' answers about spans of a session, because an answer may repeat a span's text. The last answer of
/// a destination may concern any span that was sent to it. A problem that was found before any attempt quotes nothing,
/// so it stays.
fn clear_answers(db: &Connection, root: i64) -> rusqlite::Result<()> {
    let own = "WITH own (first, last) AS (SELECT min(q.seq), max(q.seq) FROM settled q
                                         JOIN span s ON s.row = q.span WHERE s.root = ?1)";
    db.prepare_cached(&format!(
        "{own} UPDATE export_loss SET detail = '' WHERE detail <> ''
         AND first_seq <= (SELECT last FROM own) AND last_seq >= (SELECT first FROM own)"
    ))?
    .execute([root])?;
    db.prepare_cached(&format!(
        "{own} UPDATE export_position SET last_error = ?2
         WHERE last_error IS NOT NULL AND attempts > 0 AND built_seq >= (SELECT first FROM own)"
    ))?
    .execute((root, ANSWER_DELETED))
    .map(drop)
}

/// Removes stored requests with metrics and the receivers' last answers about them. The requests are then built again.
/// A request counts many sessions, may contain names of custom tools, and contains ids of spans.
fn clear_points(db: &Connection) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE export_points SET body = NULL WHERE body IS NOT NULL")?.execute([])?;
    db.prepare_cached(
        "UPDATE export_points SET last_error = ?1 WHERE last_error IS NOT NULL AND attempts > 0",
    )?
    .execute([ANSWER_DELETED])
    .map(drop)
}

/// Deletes the hooks of a conversation, and its name.
fn delete_conversation(
    open: &mut Transaction<'_>,
    id: i64,
    sum: &mut Deleted,
    forgotten: &mut Forgotten,
) -> rusqlite::Result<()> {
    forgotten.note(open.store, "h.conversation = ?1", [id])?;
    let db = &open.store.db;
    sum.bytes += bytes(db, "h.conversation = ?1", id)?;
    // All hooks of a pack belong to one conversation, so packs can be found by the conversation of one hook.
    db.prepare_cached(
        "DELETE FROM payload WHERE seq IN (SELECT seq FROM raw_hook WHERE conversation = ?1)",
    )?
    .execute([id])?;
    marks::forget(db, id)?;
    let delete = "DELETE FROM raw_hook WHERE conversation = ?1";
    sum.hooks += db.prepare_cached(delete)?.execute([id])? as u64;
    age::forget(db, id)?;
    // The row stays, because finding out whether anything still refers to it would mean searching the whole raw log.
    db.prepare_cached("UPDATE name SET text = 'deleted:' || id WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Deletes a hook that names no conversation.
fn delete_hook(
    open: &mut Transaction<'_>,
    seq: i64,
    sum: &mut Deleted,
    forgotten: &mut Forgotten,
) -> rusqlite::Result<()> {
    let db = &open.store.db;
    let pack = "SELECT coalesce(pack, seq), body_start IS NOT NULL FROM raw_hook
                WHERE seq = ?1 AND conversation IS NULL";
    let found: Option<(i64, bool)> = db
        .prepare_cached(pack)?
        .query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((key, shared)) = found else { return Ok(()) };
    if shared {
        raw::split(db, key)?;
    }
    forgotten.note(open.store, "h.seq = ?1", [seq])?;
    let db = &open.store.db;
    sum.bytes += bytes(db, "h.seq = ?1", seq)?;
    db.prepare_cached("DELETE FROM payload WHERE seq = ?1")?.execute([seq])?;
    sum.hooks += db.prepare_cached("DELETE FROM raw_hook WHERE seq = ?1")?.execute([seq])? as u64;
    Ok(())
}

/// Number of payload bytes of some hooks, as received.
fn bytes(db: &Connection, clause: &str, value: i64) -> rusqlite::Result<u64> {
    let sql = format!(
        "SELECT coalesce(sum(coalesce(h.body_len, p.len)), 0) FROM raw_hook h
         LEFT JOIN payload p ON p.seq = coalesce(h.pack, h.seq) WHERE {clause}"
    );
    db.prepare_cached(&sql)?.query_row([value], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
}

/// Whether a conversation belongs to a session now.
fn has_session(db: &Connection, id: i64) -> rusqlite::Result<bool> {
    db.prepare_cached(
        "SELECT 1 FROM session
         WHERE root = coalesce((SELECT root FROM conversation WHERE id = ?1), ?1)",
    )?
    .exists([id])
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

/// The root's conversation, the conversations bound to it, and the conversations that its spans come from.
fn conversations(db: &Connection, root: i64) -> rusqlite::Result<BTreeSet<i64>> {
    db.prepare_cached(
        "SELECT ?1 UNION SELECT id FROM conversation WHERE root = ?1
         UNION SELECT conversation FROM span WHERE root = ?1",
    )?
    .query_map([root], |row| row.get(0))?
    .collect()
}
