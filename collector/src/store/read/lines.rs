//! Reads spans as lines of the waterfall, from their columns alone.

use std::collections::HashMap;

use hookspan_core::{EndReason, Span, SpanId, SpanKind, Timestamp};
use hookspan_view::label::with_subject;
use hookspan_view::line::{Line, LineKind, Outcome};
use hookspan_view::source::LineFilter;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql};

use super::spans::{IN_SESSION, segments};
use super::words::{self, Words};
use super::{name, prompts, sql_limit};
use crate::store::rows::{self, SPAN_COLUMNS, SPAN_TABLES, signed};

const COLUMNS: &str = "s.row, s.id, s.parent, s.kind, s.start_ns, s.end_ns, s.end_reason, \
     s.error_type IS NOT NULL, s.label, s.subject_seq, s.class, s.flags, s.wait_us";

/// A line that is not complete yet.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The line; its parent is not set.
    pub line: Line,
    /// Parent, as an id.
    pub above: Option<SpanId>,
    /// The hook whose body completes the label. Set if the writer could not complete it.
    pub subject: Option<u64>,
    /// Whether the span is a turn. The parent of a turn is the session segment in which the turn started.
    is_turn: bool,
}

/// Lines of a session by start, then row, at most `limit`. With `since`, only lines written after it.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn of_session(
    db: &Connection,
    root: &str,
    since: Option<u64>,
    limit: usize,
) -> rusqlite::Result<Vec<Found>> {
    let Some(id) = name(db, root)? else { return Ok(Vec::new()) };
    let newer = if since.is_some() { "AND s.rev > ?3" } else { "AND ?3 IS NULL" };
    let sql = format!(
        "SELECT {COLUMNS} FROM span s WHERE s.root = ?1 {newer} ORDER BY s.start_ns, s.row LIMIT ?2"
    );
    let mut lines: Vec<Found> = db
        .prepare_cached(&sql)?
        .query_map((id, sql_limit(limit), since.map(signed)), found)?
        .collect::<rusqlite::Result<_>>()?;
    place(db, root, &mut lines)?;
    let prompts = prompts(db, root)?;
    for one in &mut lines {
        if one.is_turn
            && let Some(prompt) = prompts.get(&one.line.id)
        {
            one.line.label = with_subject(&one.line.label, prompt);
        }
    }
    Ok(lines)
}

/// Finds the row of each line's parent: among these lines, otherwise in the table.
fn place(db: &Connection, root: &str, lines: &mut [Found]) -> rusqlite::Result<()> {
    let rows: HashMap<SpanId, i64> = lines.iter().map(|one| (one.line.id, one.line.row)).collect();
    let segments = segments(db, root)?;
    let session = name(db, root)?;
    let sql = format!("SELECT s.row FROM span s WHERE {IN_SESSION} AND s.id = ?2");
    let mut find = db.prepare_cached(&sql)?;
    for one in lines {
        one.line.parent = match one.above {
            Some(above) => match rows.get(&above) {
                Some(row) => Some(*row),
                None => find.query_row((session, above.0), |row| row.get(0)).optional()?,
            },
            None if one.is_turn => {
                let started = segments.iter().rev().find(|(start, _)| *start <= one.line.start.0);
                started.or(segments.first()).map(|(_, row)| *row)
            }
            None => None,
        };
    }
    Ok(())
}

/// The newest lines of all sessions below `before`, newest row first, each with its root.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn latest(
    db: &Connection,
    before: Option<i64>,
    limit: usize,
) -> rusqlite::Result<Vec<(String, Found)>> {
    let sql = format!(
        "SELECT {COLUMNS}, root.text FROM span s JOIN name root ON root.id = s.root
         WHERE s.row < ?1 ORDER BY s.row DESC LIMIT ?2"
    );
    db.prepare_cached(&sql)?
        .query_map((before.unwrap_or(i64::MAX), sql_limit(limit)), with_root)?
        .collect()
}

/// A filter's conditions on a span `s`, its session `v` and the session's name `root`. A span belongs to the turn of
/// its trace. If a trace has several turns, it belongs to the last turn that began before the span.
pub(super) fn matches() -> String {
    format!("{} AND {MATCHES}", words::of_session("v"))
}

const MATCHES: &str = "(:model IS NULL OR coalesce((SELECT t.model FROM turn t
             WHERE t.root = s.root AND t.trace = s.trace
             ORDER BY t.started_ns <= s.start_ns DESC, t.started_ns DESC LIMIT 1), 'none') = :model COLLATE NOCASE)
           AND (:session IS NULL OR root.text = :session)
           AND (:class IS NULL OR s.class = :class)
           AND (:tool IS NULL OR s.tool = :tool COLLATE NOCASE)";

/// Lines that match, newest start first, strictly before `before` (start in nanoseconds and row), at most `limit`. If
/// the filter has no time, the newest day is searched first, and then further back until `limit` lines are found.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn matching(
    db: &Connection,
    filter: &LineFilter,
    before: Option<(i64, i64)>,
    limit: usize,
) -> rusqlite::Result<Vec<(String, Found)>> {
    // Failures have an index by start, so they need no limit in time.
    if filter.failed || filter.from_ns.is_some() {
        return within(db, filter, filter.from_ns.unwrap_or(i64::MIN), before, limit);
    }
    let newest = "SELECT coalesce(max(last_ns), 0) FROM session";
    let newest: i64 = db.prepare_cached(newest)?.query_row([], |row| row.get(0))?;
    let newest = before.map_or(newest, |(start, _)| start.min(newest));
    for days in [1, 8, 64] {
        let from = newest.saturating_sub(days * 86_400_000_000_000);
        let found = within(db, filter, from, before, limit)?;
        if found.len() >= limit {
            return Ok(found);
        }
    }
    within(db, filter, i64::MIN, before, limit)
}

/// Lines that match and started at `from` or later.
fn within(
    db: &Connection,
    filter: &LineFilter,
    from: i64,
    before: Option<(i64, i64)>,
    limit: usize,
) -> rusqlite::Result<Vec<(String, Found)>> {
    // There are few sessions, and their spans have an index by start. A session that ended before the period or began
    // after it has no span in it.
    let failed = rows::is_failure("s");
    let tables = match filter.failed {
        true => format!(
            "span s CROSS JOIN session v ON v.root = s.root CROSS JOIN name root ON root.id = s.root
         WHERE {failed}"
        ),
        false => "session v JOIN name root ON root.id = v.root CROSS JOIN span s ON s.root = v.root
         WHERE v.last_ns >= :from AND v.started_ns - 86400000000000 <= :to"
            .to_owned(),
    };
    let (length, words) = (rows::length_ns("s"), Words::of(filter));
    let matches = matches();
    let sql = format!(
        "SELECT {COLUMNS}, root.text FROM {tables}
           AND {matches}
           AND s.start_ns >= :from AND s.start_ns <= :to
           AND (s.start_ns, s.row) < (:before_ns, :before_row)
           AND (:min IS NULL OR {length} >= :min) AND (:max IS NULL OR {length} < :max)
         ORDER BY s.start_ns DESC, s.row DESC LIMIT :limit"
    );
    let (before_ns, before_row) = before.unwrap_or((i64::MAX, i64::MAX));
    let values: &[(&str, &dyn ToSql)] = &[
        (":from", &from),
        (":to", &filter.to_ns.unwrap_or(i64::MAX)),
        (":session", &filter.session),
        (":before_ns", &before_ns),
        (":before_row", &before_row),
        (":class", &filter.kind.map(|kind| kind as u8)),
        (":tool", &filter.tool),
        (":min", &filter.min_ns),
        (":max", &filter.max_ns),
        (":limit", &sql_limit(limit)),
    ];
    let values = [values, &words.values()].concat();
    db.prepare_cached(&sql)?.query_map(&*values, with_root)?.collect()
}

/// A failed span.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    /// Root conversation.
    pub root: String,
    /// Its line.
    pub found: Found,
    /// What went wrong, in words.
    pub message: String,
    /// The file that the call worked on. Set if the file's name in the label contains a space.
    pub path: Option<String>,
}

/// Failed spans that match, newest first, at most `limit`, each with its message.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn failures(
    db: &Connection,
    filter: &LineFilter,
    limit: usize,
) -> rusqlite::Result<Vec<Failed>> {
    const MESSAGE: usize = 14;
    const DETAIL: usize = 15;
    // Uses the index of failures, newest first, so no other row is read.
    let (failed, matches, words) = (rows::is_failure("s"), matches(), Words::of(filter));
    let sql = format!(
        "SELECT {COLUMNS}, root.text, coalesce(nullif(s.error_message, ''), s.error_type), s.detail
         FROM span s JOIN name root ON root.id = s.root LEFT JOIN session v ON v.root = s.root
         WHERE {failed} AND s.start_ns >= :from AND s.start_ns <= :to
           AND {matches}
         ORDER BY s.start_ns DESC LIMIT :limit"
    );
    let values: &[(&str, &dyn ToSql)] = &[
        (":from", &filter.from_ns.unwrap_or(i64::MIN)),
        (":to", &filter.to_ns.unwrap_or(i64::MAX)),
        (":session", &filter.session),
        (":class", &filter.kind.map(|kind| kind as u8)),
        (":tool", &filter.tool),
        (":limit", &sql_limit(limit)),
    ];
    let values = [values, &words.values()].concat();
    let read = |row: &Row<'_>| {
        let (root, found) = with_root(row)?;
        // The first space follows the tool's name.
        let spaced = found.line.label.matches(' ').count() > 1;
        let path = if spaced { rows::text_attribute(row, DETAIL, "file.path")? } else { None };
        Ok(Failed { root, found, message: row.get(MESSAGE)?, path })
    };
    db.prepare_cached(&sql)?.query_map(&*values, read)?.collect()
}

/// A span of the session `of` (or of the session to which `of` was bound), with its session, if `filter` accepts it.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn of_span(
    db: &Connection,
    of: &str,
    id: SpanId,
    filter: &LineFilter,
) -> rusqlite::Result<Option<(String, Found)>> {
    let Some(of) = name(db, of)? else { return Ok(None) };
    let (length, failed) = (rows::length_ns("s"), rows::is_failure("s"));
    let (matches, words) = (matches(), Words::of(filter));
    let sql = format!(
        "SELECT {COLUMNS}, root.text
         FROM span s JOIN name root ON root.id = s.root LEFT JOIN session v ON v.root = s.root
         WHERE {IN_SESSION} AND s.id = :id
           AND (:from IS NULL OR s.start_ns >= :from) AND (:to IS NULL OR s.start_ns <= :to)
           AND {matches}
           AND (NOT :failed OR {failed})
           AND (:min IS NULL OR {length} >= :min) AND (:max IS NULL OR {length} < :max)"
    );
    let values: &[(&str, &dyn ToSql)] = &[
        ("?1", &of),
        (":id", &id.0),
        (":from", &filter.from_ns),
        (":to", &filter.to_ns),
        (":session", &filter.session),
        (":class", &filter.kind.map(|kind| kind as u8)),
        (":tool", &filter.tool),
        (":failed", &filter.failed),
        (":min", &filter.min_ns),
        (":max", &filter.max_ns),
    ];
    let values = [values, &words.values()].concat();
    db.prepare_cached(&sql)?.query_row(&*values, with_root).optional()
}

/// Whole spans of a session that are shown as one of `kinds`, by start, at most `limit`.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn spans_of(
    db: &Connection,
    root: &str,
    kinds: &[LineKind],
    limit: usize,
) -> rusqlite::Result<Vec<(i64, Span)>> {
    let Some(id) = name(db, root)? else { return Ok(Vec::new()) };
    let classes: Vec<String> = kinds.iter().map(|kind| (*kind as u8).to_string()).collect();
    let sql = format!(
        "SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES}
         WHERE s.root = ?1 AND s.class IN ({}) ORDER BY s.start_ns, s.row LIMIT ?2",
        classes.join(",")
    );
    db.prepare_cached(&sql)?.query_map((id, sql_limit(limit)), rows::span)?.collect()
}

/// The newest call of a session that has not ended.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn open_call(db: &Connection, root: &str) -> rusqlite::Result<Option<Found>> {
    let Some(id) = name(db, root)? else { return Ok(None) };
    let sql = format!(
        "SELECT {COLUMNS} FROM unsettled u JOIN span s ON s.row = u.span
         WHERE u.root = ?1 AND s.kind = 'tool' AND s.end_ns IS NULL ORDER BY s.start_ns DESC LIMIT 1"
    );
    db.prepare_cached(&sql)?.query_row([id], found).optional()
}

fn with_root(row: &Row<'_>) -> rusqlite::Result<(String, Found)> {
    const ROOT: usize = 13;
    Ok((row.get(ROOT)?, found(row)?))
}

fn found(row: &Row<'_>) -> rusqlite::Result<Found> {
    let kind = SpanKind::parse(row.get_ref(3)?.as_str()?).unwrap_or(SpanKind::Tool);
    let reason = row.get_ref(6)?.as_str_or_null()?.and_then(EndReason::parse);
    let class = LineKind::ALL.get(usize::from(row.get::<_, u8>(10)?)).copied();
    let line = Line {
        row: row.get(0)?,
        id: SpanId(row.get(1)?),
        parent: None,
        kind: class.unwrap_or(LineKind::Tools),
        label: row.get(8)?,
        start: Timestamp(row.get(4)?),
        end: row.get::<_, Option<i64>>(5)?.map(Timestamp),
        outcome: Outcome::of(kind, row.get(7)?, reason),
        flags: row.get(11)?,
        wait_us: row.get(12)?,
    };
    Ok(Found {
        line,
        above: row.get::<_, Option<[u8; 8]>>(2)?.map(SpanId),
        subject: row.get::<_, Option<i64>>(9)?.map(i64::cast_unsigned),
        is_turn: kind == SpanKind::Generation,
    })
}
