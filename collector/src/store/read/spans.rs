//! Reads spans of a session by id, by row, and in the order in which they settled.

use hookspan_core::{Span, SpanId, TraceId};
use rusqlite::{Connection, OptionalExtension as _};

use super::{name, sql_limit};
use crate::store::rows::{self, SETTLED_SPAN_COLUMNS, SPAN_COLUMNS, SPAN_TABLES, count};

/// Maximum number of changed spans that the search index reads at a time. It finds the others when they settle.
const CHANGED_MAX: u32 = 20_000;
/// Maximum number of segments of one session. A segment ends after an hour without events.
const SEGMENTS_MAX: usize = 10_000;

/// Spans of a session by start, then row, at most `limit`.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn spans(
    db: &Connection,
    root: &str,
    limit: usize,
) -> rusqlite::Result<Vec<(i64, Span)>> {
    let Some(id) = name(db, root)? else { return Ok(Vec::new()) };
    let sql = format!(
        "SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES}
         WHERE s.root = ?1 ORDER BY s.start_ns, s.row LIMIT ?2"
    );
    db.prepare_cached(&sql)?.query_map((id, sql_limit(limit)), rows::span)?.collect()
}

/// How many spans a session has.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn span_count(db: &Connection, root: &str) -> rusqlite::Result<u64> {
    let Some(id) = name(db, root)? else { return Ok(0) };
    db.prepare_cached("SELECT count(*) FROM span WHERE root = ?1")?
        .query_row([id], |row| count(row, 0))
}

/// Start and row of each segment of a session. The ids of segments are derived, so they can be computed and looked up.
pub(super) fn segments(db: &Connection, root: &str) -> rusqlite::Result<Vec<(i64, i64)>> {
    let Some(own) = name(db, root)? else { return Ok(Vec::new()) };
    let mut find =
        db.prepare_cached("SELECT start_ns, row FROM span WHERE conversation = ?1 AND id = ?2")?;
    let mut segments = Vec::new();
    for segment in 0..SEGMENTS_MAX {
        let id = SpanId::derive(root, "", "session", &segment.to_string());
        let found = find.query_row((own, id.0), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some(found) = found else { break };
        segments.push(found);
    }
    Ok(segments)
}

/// The conversations that contain spans of the session `?1`, or of the session to which it was bound since. There are
/// few of them, and span ids are stored by conversation.
pub(super) const IN_SESSION: &str =
    "s.conversation IN (SELECT ?1 UNION SELECT id FROM conversation WHERE root = ?1
     UNION SELECT all_of.id FROM conversation own JOIN conversation all_of ON all_of.root = own.root
     WHERE own.id = ?1)";

/// One span of a session by id.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn span_of(
    db: &Connection,
    root: &str,
    id: SpanId,
) -> rusqlite::Result<Option<(i64, Span)>> {
    let Some(root) = name(db, root)? else { return Ok(None) };
    let sql = format!("SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES} WHERE {IN_SESSION} AND s.id = ?2");
    db.prepare_cached(&sql)?.query_row((root, id.0), rows::span).optional()
}

/// One span by its id alone. Searches one conversation after the other, the newest first. If the session is known, use
/// [`span_of`], which searches only that session.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn span(db: &Connection, id: SpanId) -> rusqlite::Result<Option<(i64, Span)>> {
    let found = db
        .prepare_cached(
            "SELECT s.row FROM conversation c CROSS JOIN span s
             WHERE s.conversation = c.id AND s.id = ?1 ORDER BY c.id DESC LIMIT 1",
        )?
        .query_row([id.0], |row| row.get(0))
        .optional()?;
    match found {
        Some(row) => span_row(db, row),
        None => Ok(None),
    }
}

/// One span by store row.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn span_row(db: &Connection, row: i64) -> rusqlite::Result<Option<(i64, Span)>> {
    let sql = format!("SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES} WHERE s.row = ?1");
    db.prepare_cached(&sql)?.query_row([row], rows::span).optional()
}

/// Session and root span of a trace.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn trace(db: &Connection, trace: TraceId) -> rusqlite::Result<Option<(String, SpanId)>> {
    db.prepare_cached(
        "SELECT root.text, s.id FROM span s JOIN name root ON root.id = s.root
         WHERE s.trace = ?1 AND s.parent IS NULL ORDER BY s.start_ns LIMIT 1",
    )?
    .query_row([trace.0], |row| Ok((row.get(0)?, SpanId(row.get(1)?))))
    .optional()
}

/// What each destination did with a span: `sent`, `waiting` or `lost`; `open` while the span may still change.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn exports(db: &Connection, row: i64) -> rusqlite::Result<Vec<(String, String)>> {
    db.prepare_cached(
        "SELECT p.destination,
                CASE WHEN q.seq IS NULL THEN 'open'
                     WHEN q.seq > p.acked_seq THEN 'waiting'
                     WHEN EXISTS (SELECT 1 FROM export_loss l WHERE l.destination = p.destination
                                  AND l.count > l.last_seq - l.first_seq
                                  AND q.seq BETWEEN l.first_seq AND l.last_seq) THEN 'lost'
                     ELSE 'sent' END
         FROM span s LEFT JOIN settled q ON q.span = s.row CROSS JOIN export_position p
         WHERE s.row = ?1 AND p.state <> 'off' ORDER BY p.destination",
    )?
    .query_map([row], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// Spans in the order in which they settled, after `after`, at most `limit`.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn settled_after(
    db: &Connection,
    after: i64,
    limit: usize,
) -> rusqlite::Result<Vec<(i64, Span)>> {
    let sql = format!(
        "SELECT {SETTLED_SPAN_COLUMNS}, q.seq FROM settled q CROSS JOIN {SPAN_TABLES}
         WHERE q.seq > ?1 AND s.row = q.span ORDER BY q.seq LIMIT ?2"
    );
    db.prepare_cached(&sql)?
        .query_map((after, sql_limit(limit)), |row| Ok((row.get("seq")?, rows::span(row)?.1)))?
        .collect()
}

/// The last place given in the export queue.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn last_settled(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("SELECT coalesce(max(seq), 0) FROM settled")?.query_row([], |row| row.get(0))
}

/// Rows of spans written after `since` in sessions that changed since. In the first call (`since` 0), only spans that
/// have not settled.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn changed_spans(db: &Connection, since: u64) -> rusqlite::Result<Vec<i64>> {
    let rows = match since {
        0 => "SELECT s.row FROM unsettled u CROSS JOIN span s WHERE s.row = u.span AND s.rev > ?1",
        _ => {
            "SELECT s.row FROM session v CROSS JOIN span s
             WHERE v.rev > ?1 AND s.root = v.root AND s.rev > ?1"
        }
    };
    db.prepare_cached(&format!("{rows} LIMIT {CHANGED_MAX}"))?
        .query_map([rows::signed(since)], |row| row.get(0))?
        .collect()
}
