//! Reads whole sessions: all spans and all hooks, for exports to a file.

use hookspan_core::{Span, Timestamp};
use rusqlite::{Connection, OptionalExtension as _};

use super::codec::Unpacker;
use super::rows;
use super::write::{self, HOOK_COLUMNS, HOOK_TABLES};

/// A session with the facts that an export to a file needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRow {
    /// Root conversation.
    pub root: String,
    /// Last event. Running spans end here in the export.
    pub last: Timestamp,
}

/// Sessions in the order of their start: all sessions, or those with a conversation whose id begins with `prefix`.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn sessions(db: &Connection, prefix: Option<&str>) -> rusqlite::Result<Vec<SessionRow>> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(SessionRow { root: row.get(0)?, last: Timestamp(row.get(1)?) })
    };
    let Some(prefix) = prefix else {
        return db
            .prepare(
                "SELECT root.text, s.last_ns FROM session s JOIN name root ON root.id = s.root
                 ORDER BY s.started_ns, root.text",
            )?
            .query_map([], read)?
            .collect();
    };
    db.prepare(
        "SELECT DISTINCT root.text, s.last_ns FROM session s JOIN name root ON root.id = s.root
         LEFT JOIN conversation c ON c.root = s.root LEFT JOIN name own ON own.id = c.id
         WHERE substr(root.text, 1, length(?1)) = ?1 OR own.text = ?1
         ORDER BY root.text <> ?1, s.started_ns, root.text LIMIT 3",
    )?
    .query_map([prefix], read)?
    .collect()
}

/// The session with the newest event.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn last_session(db: &Connection) -> rusqlite::Result<Option<SessionRow>> {
    db.query_row(
        "SELECT root.text, s.last_ns FROM session s JOIN name root ON root.id = s.root
         ORDER BY s.last_ns DESC LIMIT 1",
        [],
        |row| Ok(SessionRow { root: row.get(0)?, last: Timestamp(row.get(1)?) }),
    )
    .optional()
}

/// Calls `each` for the spans of a session by start and id. A rebuild does not change this order.
///
/// # Errors
///
/// Returns SQLite's error, or the error of `each`.
pub(crate) fn spans_of<E: From<rusqlite::Error>>(
    db: &Connection,
    root: &str,
    each: impl FnMut(Span) -> Result<(), E>,
) -> Result<(), E> {
    spans_where(db, root, "1", each)
}

/// Like [`spans_of`], without the spans that may still change.
///
/// # Errors
///
/// Returns SQLite's error, or the error of `each`.
pub(crate) fn settled_spans_of<E: From<rusqlite::Error>>(
    db: &Connection,
    root: &str,
    each: impl FnMut(Span) -> Result<(), E>,
) -> Result<(), E> {
    let open = "NOT EXISTS (SELECT 1 FROM unsettled u WHERE u.root = s.root AND u.span = s.row)";
    spans_where(db, root, open, each)
}

fn spans_where<E: From<rusqlite::Error>>(
    db: &Connection,
    root: &str,
    wanted: &str,
    mut each: impl FnMut(Span) -> Result<(), E>,
) -> Result<(), E> {
    let sql = format!(
        "SELECT {} FROM {} WHERE s.root = (SELECT id FROM name WHERE text = ?1) AND {wanted}
         ORDER BY s.start_ns, s.id",
        rows::SPAN_COLUMNS,
        rows::SPAN_TABLES
    );
    let mut statement = db.prepare_cached(&sql)?;
    let mut found = statement.query([root])?;
    while let Some(row) = found.next()? {
        each(rows::span(row)?.1)?;
    }
    Ok(())
}

/// Calls `each` for hooks in the order of the raw log: hooks of one session, or all hooks, including those without a
/// session. Evidence that the collector itself added is left out, because Cursor did not send it.
///
/// # Errors
///
/// Returns SQLite's error, or the error of `each`.
pub(crate) fn hooks_of<E: From<rusqlite::Error>>(
    db: &Connection,
    root: Option<&str>,
    mut each: impl FnMut(hookspan_core::Hook) -> Result<(), E>,
) -> Result<(), E> {
    let wanted = match root {
        None => "?1 IS NULL",
        Some(_) => {
            "h.conversation IN (SELECT c.id FROM conversation c
                WHERE c.root = (SELECT id FROM name WHERE text = ?1)
              UNION SELECT id FROM name WHERE text = ?1)"
        }
    };
    let sql = format!(
        "SELECT {HOOK_COLUMNS} FROM {HOOK_TABLES} WHERE h.source <> 2 AND {wanted} ORDER BY h.seq"
    );
    let mut statement = db.prepare(&sql)?;
    let mut found = statement.query([root])?;
    let mut unpacker = Unpacker::default();
    while let Some(row) = found.next()? {
        each(write::hook(row, &mut unpacker)?)?;
    }
    Ok(())
}
