//! Finds the session that a received trace belongs to. The strongest evidence wins: the trace is one that hookspan
//! made, then a session's id in the attributes, then time and working directory together. A trace without evidence has
//! no session.

use hookspan_view::line::LineKind;
use rusqlite::{Connection, OptionalExtension as _};

use crate::store::rows::{self, SPAN_COLUMNS, SPAN_TABLES};

/// Value of `joined`: hookspan made the trace, and `traceparent` passed it to the sender.
pub(super) const TRACEPARENT: i64 = 1;
/// Value of `joined`: an attribute names the session.
pub(super) const SESSION_ID: i64 = 2;
/// Value of `joined`: exactly one shell call ran all the time in that directory, see [`inferred`].
pub(super) const INFERRED: i64 = 3;

/// How long a trace without a session is tried again. The hooks that prove its session may still be in the journal.
const WAIT_NS: i64 = 15 * 60 * 1_000_000_000;
/// Maximum number of traces that one pass tries.
const TRACES_MAX: i64 = 64;
/// Maximum number of sessions that are searched for a call.
const SESSIONS_MAX: i64 = 50;
/// Maximum age of a call at the start of the trace. An older call is not found.
const CALL_MAX_NS: i64 = 6 * 3_600 * 1_000_000_000;

/// The session of a trace that hookspan made.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) root_id: i64,
    /// The root conversation.
    pub(super) root: String,
}

/// The session of a trace, if hookspan made the trace.
pub(super) fn home(db: &Connection, trace: &[u8; 16]) -> rusqlite::Result<Option<Home>> {
    db.prepare_cached(
        "SELECT s.root, n.text FROM span s JOIN name n ON n.id = s.root
         WHERE s.trace = ?1 AND s.parent IS NULL LIMIT 1",
    )?
    .query_row([trace], |row| Ok(Home { root_id: row.get(0)?, root: row.get(1)? }))
    .optional()
}

/// Whether a span that hookspan made has this id and belongs to the session with this root.
pub(super) fn has(db: &Connection, root: i64, id: &[u8; 8]) -> rusqlite::Result<bool> {
    db.prepare_cached(
        "SELECT 1 FROM conversation c JOIN span s ON s.conversation = c.id AND s.id = ?2 WHERE c.root = ?1
         UNION ALL SELECT 1 FROM span WHERE conversation = ?1 AND id = ?2",
    )?
    .exists((root, id))
}

/// The session that another row of the trace has, and how that is known.
pub(super) fn of_trace(
    db: &Connection,
    trace: &[u8; 16],
) -> rusqlite::Result<Option<(String, i64)>> {
    db.prepare_cached(
        "SELECT session, joined FROM received_span
         WHERE trace = ?1 AND session IS NOT NULL ORDER BY joined, row LIMIT 1",
    )?
    .query_row([trace], |row| Ok((row.get(0)?, row.get(1)?)))
    .optional()
}

/// Joins the rows of a trace that have no session.
pub(super) fn trace(db: &Connection, trace: &[u8; 16]) -> rusqlite::Result<()> {
    let alone = "SELECT 1 FROM received_span WHERE trace = ?1 AND session IS NULL";
    if !db.prepare_cached(alone)?.exists([trace])? {
        return Ok(());
    }
    let found = match (home(db, trace)?, of_trace(db, trace)?) {
        (Some(home), _) => Some((home.root, TRACEPARENT, None)),
        (None, Some((session, how))) => Some((session, how, None)),
        (None, None) => inferred(db, trace)?.map(|(root, call)| (root, INFERRED, Some(call))),
    };
    let Some((session, how, call)) = found else { return Ok(()) };
    db.prepare_cached(
        "UPDATE received_span SET session = ?2, joined = ?3, call = ?4 WHERE trace = ?1 AND session IS NULL",
    )?
    .execute((trace, session, how, call))
    .map(drop)
}

/// The only shell call that was open from the start to the end of the trace, in the trace's directory or a folder above
/// it. `None` if there are several such calls, or if the trace names no directory or more than one.
fn inferred(db: &Connection, trace: &[u8; 16]) -> rusqlite::Result<Option<(String, [u8; 8])>> {
    let of = "SELECT min(start_ns), max(end_ns), min(directory) FROM received_span WHERE trace = ?1
              HAVING count(DISTINCT directory) = 1";
    let found: Option<(i64, i64, String)> = db
        .prepare_cached(of)?
        .query_row([trace], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((start_ns, end_ns, directory)) = found else { return Ok(None) };
    // Shell calls that were open all that time. A session may be older than the trace: while a long call runs, no hook
    // arrives.
    let sql = format!(
        "SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES}
         WHERE s.root IN (SELECT root FROM session WHERE last_ns >= ?1 - ?3 AND started_ns <= ?2
                          ORDER BY last_ns DESC LIMIT ?4)
           AND s.start_ns BETWEEN ?1 - ?3 AND ?1 AND s.class = ?5 AND (s.end_ns IS NULL OR s.end_ns >= ?2)"
    );
    let shell = LineKind::Shell as i64;
    let mut calls = db.prepare_cached(&sql)?;
    let rows = calls.query_map((start_ns, end_ns, CALL_MAX_NS, SESSIONS_MAX, shell), rows::span)?;
    let mut found = None;
    for row in rows {
        let (_, call) = row?;
        let at = call.text("process.working_directory").or(call.workspace.as_deref());
        let is_near = at.is_some_and(|at| is_below(&directory, at));
        if is_near && found.replace((call.root.to_string(), call.id.0)).is_some() {
            // Two calls could have started it, so neither is chosen.
            return Ok(None);
        }
    }
    Ok(found)
}

/// Whether `directory` is `root` or lies below it.
fn is_below(directory: &str, root: &str) -> bool {
    let root = root.trim_end_matches('/');
    !root.is_empty()
        && directory.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Tries the recent traces without a session again.
///
/// # Errors
/// Returns SQLite's error if the database cannot be written.
pub(crate) fn again(db: &Connection, now_ns: i64) -> rusqlite::Result<()> {
    let waiting = "SELECT DISTINCT trace FROM received_span WHERE session IS NULL AND received_ns > ?1 LIMIT ?2";
    let traces: Vec<[u8; 16]> = db
        .prepare_cached(waiting)?
        .query_map((now_ns - WAIT_NS, TRACES_MAX), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    traces.iter().try_for_each(|one| trace(db, one))
}

/// Whether [`again`] would try anything.
pub(super) fn is_waiting(db: &Connection, now_ns: i64) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM received_span WHERE session IS NULL AND received_ns > ?1")?
        .exists([now_ns - WAIT_NS])
}
