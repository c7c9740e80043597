//! Converts core values to rows and back. A list of columns, the tables it comes from, and the function that reads it
//! belong together; always use them together.
//!
//! ```text
//! SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES} WHERE s.root = ?1 ORDER BY s.start_ns, s.row
//! ```

mod detail;

use std::borrow::Cow;
use std::sync::Arc;

use hookspan_core::outcome::{TestRun, Work};
use hookspan_core::repository::Repository;
use hookspan_core::{
    End, EndReason, ErrorType, Parts, SessionState, SessionSummary, Span, SpanId, SpanKind, Status,
    Timestamp, Tokens, TraceId, TurnSummary, Value,
};
use hookspan_view::line::flag::{ASKS_PERSON, UNKNOWN_LENGTH};
use rusqlite::Row;
use rusqlite::types::Type;

/// The columns of [`span`], with an expression that tells whether the span is settled.
macro_rules! span_columns {
    ($is_settled:literal) => {
        concat!(
            "s.row, s.id, s.trace, s.parent, s.kind, s.name, s.plain_name, \
             root.text, own.text, s.generation, s.workspace, s.cursor_version, s.start_ns, s.end_ns, \
             s.end_reason, s.error_type, s.error_message, s.detail, ",
            $is_settled
        )
    };
}

/// Columns that [`span`] reads, from [`SPAN_TABLES`].
pub(crate) const SPAN_COLUMNS: &str = span_columns!(
    "NOT EXISTS (SELECT 1 FROM unsettled u WHERE u.root = s.root AND u.span = s.row)"
);

/// The same for spans that are known to be settled.
pub(crate) const SETTLED_SPAN_COLUMNS: &str = span_columns!("1");

/// Where [`SPAN_COLUMNS`] come from.
pub(crate) const SPAN_TABLES: &str =
    "span s JOIN name root ON root.id = s.root JOIN name own ON own.id = s.conversation";

/// Columns that [`session`] reads, from [`SESSION_TABLES`].
pub(crate) const SESSION_COLUMNS: &str = "root.text, s.state, s.started_ns, s.last_ns, s.ended_ns, \
     s.workspace, s.model, s.surface, s.cursor_version, s.first_prompt, s.last_error, \
     s.generations, s.tool_calls, s.subagents, s.errors, s.errored_turns, s.active_ns, s.input, \
     s.output, s.cache_read, s.cache_write, s.repository, s.from_branch, s.from_revision, \
     s.branch, s.revision, s.commits, s.edits, s.unclear, s.tests_passed, s.tests_failed, \
     s.tested_ns, s.tested_well, s.pull_request";

/// Where [`SESSION_COLUMNS`] come from.
pub(crate) const SESSION_TABLES: &str = "session s JOIN name root ON root.id = s.root";

/// Columns that [`turn`] reads, from [`TURN_TABLES`].
pub(crate) const TURN_COLUMNS: &str = "root.text, t.generation, t.span, t.trace, t.number, t.started_ns, \
     t.ended_ns, t.end_reason, t.prompt, t.model, t.status, t.tool_calls, t.errors, t.input, \
     t.output, t.cache_read, t.cache_write, t.parts, t.repository, t.from_branch, \
     t.from_revision, t.branch, t.revision, t.commits, t.edits, t.unclear, t.tests_passed, \
     t.tests_failed, t.tested_ns, t.tested_well, t.pull_request";

/// Where [`TURN_COLUMNS`] come from.
pub(crate) const TURN_TABLES: &str = "turn t JOIN name root ON root.id = t.root";

/// SQL for the length of a span in the table `of`, in nanoseconds. NULL while the span runs, and if no hook reports its
/// end.
pub(super) fn length_ns(of: &str) -> String {
    format!("iif({of}.flags & {UNKNOWN_LENGTH}, NULL, {of}.end_ns - {of}.start_ns)")
}

/// SQL for the time of work of a span in the table `of`, in nanoseconds. NULL as for [`length_ns`], and for a call that
/// asks a person.
pub(super) fn work_ns(of: &str) -> String {
    format!("iif({of}.flags & {ASKS_PERSON}, NULL, {})", length_ns(of))
}

/// SQL for whether a span in the table `of` counts as an error, as [`hookspan_core::Status::counts`] has it. It implies
/// that `error_type` is set, so that the index of failures serves it.
pub(super) fn is_failure(of: &str) -> String {
    format!(
        "({of}.error_type IS NOT NULL AND NOT ({of}.kind = 'tool' AND {of}.error_type = 'subagent_error'))"
    )
}

/// A span and its store row.
///
/// # Errors
/// When a column does not hold what this program writes.
pub(crate) fn span(row: &Row<'_>) -> rusqlite::Result<(i64, Span)> {
    let end = match (row.get::<_, Option<i64>>(13)?, word(row, 14, EndReason::parse)?) {
        (Some(at), Some(reason)) => Some(End { at: Timestamp(at), reason }),
        _ => None,
    };
    let status = match word(row, 15, ErrorType::parse)? {
        Some(kind) => Status::Error { kind, message: row.get(16)? },
        None => Status::Unset,
    };
    let text = row.get_ref(17)?.as_str()?;
    let detail = detail::decode(text).map_err(|error| damaged(17, Box::new(error)))?;
    let span = Span {
        id: SpanId(row.get(1)?),
        trace: TraceId(row.get(2)?),
        parent: row.get::<_, Option<[u8; 8]>>(3)?.map(SpanId),
        links: detail.links,
        kind: known(4, word(row, 4, SpanKind::parse)?)?,
        name: row.get(5)?,
        plain_name: Cow::Owned(row.get(6)?),
        root: row.get(7)?,
        conversation: row.get(8)?,
        generation: row.get(9)?,
        workspace: row.get(10)?,
        cursor_version: row.get(11)?,
        start: Timestamp(row.get(12)?),
        end,
        status,
        attributes: detail.attributes,
        events: detail.events,
        contents: detail.contents,
        settled: row.get(18)?,
    };
    Ok((row.get(0)?, span))
}

/// A session.
///
/// # Errors
/// When a column does not hold what this program writes.
pub(crate) fn session(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    let surface = match row.get_ref(7)?.as_str()? {
        "ide" => "ide",
        "cli" => "cli",
        _ => "unknown",
    };
    Ok(SessionSummary {
        root: row.get(0)?,
        state: known(1, word(row, 1, SessionState::parse)?)?,
        started_at: Timestamp(row.get(2)?),
        last_at: Timestamp(row.get(3)?),
        ended_at: row.get::<_, Option<i64>>(4)?.map(Timestamp),
        workspace: row.get(5)?,
        model: row.get(6)?,
        surface,
        cursor_version: row.get(8)?,
        first_prompt: row.get(9)?,
        last_error: row.get(10)?,
        generations: count(row, 11)?,
        tool_calls: count(row, 12)?,
        subagents: count(row, 13)?,
        errors: count(row, 14)?,
        errored_turns: count(row, 15)?,
        active_ns: row.get(16)?,
        tokens: tokens(row, 17)?,
        repository: repository(row, 21)?,
        work: work(row, 27)?,
    })
}

/// A turn.
///
/// # Errors
/// When a column does not hold what this program writes.
pub(crate) fn turn(row: &Row<'_>) -> rusqlite::Result<TurnSummary> {
    let parts = parts(row, 17)?;
    Ok(TurnSummary {
        root: row.get(0)?,
        generation: row.get(1)?,
        span: SpanId(row.get(2)?),
        trace: TraceId(row.get(3)?),
        index: count(row, 4)?,
        started_at: Timestamp(row.get(5)?),
        ended_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
        end_reason: word(row, 7, EndReason::parse)?,
        prompt: row.get(8)?,
        model: row.get::<_, Option<Arc<str>>>(9)?,
        status: row.get(10)?,
        tool_calls: count(row, 11)?,
        errors: count(row, 12)?,
        tokens: tokens(row, 13)?,
        parts,
        repository: repository(row, 18)?,
        work: work(row, 24)?,
    })
}

/// A text attribute in the `detail` column of a span.
pub(super) fn text_attribute(
    row: &Row<'_>,
    index: usize,
    key: &str,
) -> rusqlite::Result<Option<String>> {
    let detail = detail::decode(row.get_ref(index)?.as_str()?)
        .map_err(|error| damaged(index, Box::new(error)))?;
    let found = detail.attributes.into_iter().find(|attribute| attribute.key == key);
    Ok(found.and_then(|attribute| match attribute.value {
        Value::Str(text) => Some(text.to_string()),
        _ => None,
    }))
}

/// Reads the `parts` column of a turn, which [`turn_parts`] writes.
pub(super) fn parts(row: &Row<'_>, index: usize) -> rusqlite::Result<Parts> {
    detail::decode_parts(row.get_ref(index)?.as_str()?)
        .map_err(|error| damaged(index, Box::new(error)))
}

/// The `detail` column of a span.
pub(super) fn span_detail(span: &Span) -> rusqlite::Result<String> {
    detail::encode(span).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// The `parts` column of a turn.
pub(super) fn turn_parts(parts: &Parts) -> rusqlite::Result<String> {
    detail::encode_parts(parts)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// SQLite's integers are signed. A count that does not fit is no longer meaningful.
pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count column.
pub(super) fn count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(index)?).unwrap_or(0))
}

fn tokens(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Tokens>> {
    let said = |index| {
        let count: Option<i64> = row.get(index)?;
        Ok::<Option<u64>, rusqlite::Error>(count.map(|count| u64::try_from(count).unwrap_or(0)))
    };
    let tokens = Tokens {
        input: said(first)?,
        output: said(first + 1)?,
        cache_read: said(first + 2)?,
        cache_write: said(first + 3)?,
    };
    Ok(tokens.said())
}

/// The six columns from `first` on.
fn repository(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Box<Repository>>> {
    let commits: Option<String> = row.get(first + 5)?;
    let commits = commits.unwrap_or_default();
    let found = Repository {
        url: row.get(first)?,
        from_branch: row.get(first + 1)?,
        from_commit: row.get(first + 2)?,
        branch: row.get(first + 3)?,
        commit: row.get(first + 4)?,
        commits: commits.split_whitespace().map(Arc::from).collect(),
    };
    Ok((found != Repository::default()).then(|| Box::new(found)))
}

/// The seven columns that start at `first`.
fn work(row: &Row<'_>, first: usize) -> rusqlite::Result<Work> {
    let tested: Option<i64> = row.get(first + 4)?;
    let passed = row.get::<_, Option<bool>>(first + 5)?.unwrap_or_default();
    Ok(Work {
        edits: count(row, first)?,
        unclear: count(row, first + 1)?,
        tests_passed: count(row, first + 2)?,
        tests_failed: count(row, first + 3)?,
        last_test: tested.map(|at| TestRun { at: Timestamp(at), passed }),
        pull_request: row.get(first + 6)?,
    })
}

/// The `commits` column.
pub(super) fn commits(repository: &Repository) -> Option<String> {
    (!repository.commits.is_empty()).then(|| repository.commits.join(" "))
}

/// A word of a closed list; `None` for NULL, and an error for any other word.
fn word<T>(
    row: &Row<'_>,
    index: usize,
    parse: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let Some(text) = row.get_ref(index)?.as_str_or_null()? else { return Ok(None) };
    known(index, parse(text)).map(Some)
}

fn known<T>(index: usize, value: Option<T>) -> rusqlite::Result<T> {
    value.ok_or_else(|| damaged(index, "not a word this version knows".into()))
}

fn damaged(index: usize, why: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, why)
}
