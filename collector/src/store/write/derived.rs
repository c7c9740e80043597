//! Spans, turns, sessions and bindings as rows: whole values, upserted.

use hookspan_core::{SessionSummary, Span, SpanId, Status, Tokens, TurnSummary};
use hookspan_dashboard::line::Kept;
use rusqlite::{Connection, OptionalExtension as _, ToSql, named_params, params};

use super::names::Names;
use super::reach::Reach;
use super::subjects::Subject;
use crate::store::rows::{self, SPAN_COLUMNS, SPAN_TABLES};

/// Writes a span. `Some(seq)` is its place in the export queue when it has one.
pub(super) fn span(
    db: &Connection,
    names: &mut Names,
    rev: u64,
    span: &Span,
    subject: &Subject<'_>,
    offered: Option<i64>,
) -> rusqlite::Result<Option<i64>> {
    let (subject, subject_seq) = match *subject {
        Subject::Known(subject) => (subject, None),
        Subject::In(hook) => (None, Some(hook.cast_signed())),
    };
    let kept = Kept::new(span, subject);
    let (error_type, error_message) = match &span.status {
        Status::Unset => (None, None),
        Status::Error { kind, message } => (Some(kind.as_str()), Some(message.as_str())),
    };
    let detail = rows::span_detail(span)?;
    let values = params![
        span.id.0,
        rev.cast_signed(),
        names.id(db, &span.root)?,
        names.id(db, &span.conversation)?,
        span.generation,
        span.trace.0,
        span.parent.map(|parent| parent.0),
        span.kind.as_str(),
        span.name,
        span.plain_name.as_ref(),
        span.workspace,
        span.cursor_version,
        span.start.0,
        span.end.map(|end| end.at.0),
        span.end.map(|end| end.reason.as_str()),
        error_type,
        error_message,
        detail,
        offered,
        kept.label,
        subject_seq,
        kept.kind as u8,
        kept.flags,
        kept.wait_us,
    ];
    // Two statements, and no RETURNING: an upsert of a row with several unique indexes, or one that returns, copies every
    // page that it changes, to be able to take it back. Most spans come once.
    let inserted = db
        .prepare_cached(
            "INSERT INTO span (id, rev, root, conversation, generation, trace, parent, kind, name,
                               plain_name, workspace, cursor_version, start_ns, end_ns, end_reason,
                               error_type, error_message, detail, settled_seq, label, subject_seq,
                               class, flags, wait_us)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                     ?18, ?19, ?20, ?21, ?22, ?23, ?24)
             ON CONFLICT (id) DO NOTHING",
        )?
        .execute(values)?;
    if inserted > 0 {
        return Ok(offered);
    }
    db.prepare_cached(
        "UPDATE span
         SET rev = ?2, root = ?3, conversation = ?4, generation = ?5, trace = ?6, parent = ?7,
             kind = ?8, name = ?9, plain_name = ?10, workspace = ?11, cursor_version = ?12,
             start_ns = ?13, end_ns = ?14, end_reason = ?15, error_type = ?16, error_message = ?17,
             detail = ?18, settled_seq = coalesce(settled_seq, ?19),
             label = CASE WHEN ?21 IS NULL OR subject_seq IS NOT NULL THEN ?20 ELSE label END,
             subject_seq = CASE WHEN subject_seq IS NULL THEN NULL ELSE ?21 END,
             class = ?22, flags = ?23, wait_us = ?24
         WHERE id = ?1",
    )?
    .execute(values)?;
    db.prepare_cached("SELECT settled_seq FROM span WHERE id = ?1")?
        .query_row([span.id.0], |row| row.get(0))
}

/// Gives a stored span its place in the export queue. False when it has one, or is not there: then nothing was written.
pub(super) fn settle(db: &Connection, id: SpanId, settled_seq: i64) -> rusqlite::Result<bool> {
    let sql = "UPDATE span SET settled_seq = ?2 WHERE id = ?1 AND settled_seq IS NULL";
    Ok(db.prepare_cached(sql)?.execute((id.0, settled_seq))? > 0)
}

/// A span as it is stored.
pub(super) fn stored(db: &Connection, id: SpanId) -> rusqlite::Result<Option<Span>> {
    let sql = format!("SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES} WHERE s.id = ?1");
    let found = db.prepare_cached(&sql)?.query_row([id.0], rows::span).optional()?;
    Ok(found.map(|(_, span)| span))
}

/// Removes a span that turned out to be part of another one.
pub(super) fn withdraw(db: &Connection, id: SpanId) -> rusqlite::Result<usize> {
    db.prepare_cached("DELETE FROM span WHERE id = ?1")?.execute([id.0])
}

/// Writes a session.
pub(super) fn session(
    db: &Connection,
    names: &mut Names,
    rev: u64,
    session: &SessionSummary,
) -> rusqlite::Result<()> {
    let tokens = TokenColumns::of(session.tokens);
    db.prepare_cached(
        "INSERT OR REPLACE INTO session
             (root, rev, state, started_ns, last_ns, ended_ns, workspace, model, surface,
              cursor_version, first_prompt, last_error, generations, tool_calls, subagents, errors,
              errored_turns, active_ns, input, output, cache_read, cache_write)
         VALUES (:root, :rev, :state, :started_ns, :last_ns, :ended_ns, :workspace, :model, :surface,
                 :cursor_version, :first_prompt, :last_error, :generations, :tool_calls, :subagents,
                 :errors, :errored_turns, :active_ns, :input, :output, :cache_read, :cache_write)",
    )?
    .execute(named_params! {
        ":root": names.id(db, &session.root)?,
        ":rev": rev.cast_signed(),
        ":state": session.state.as_str(),
        ":started_ns": session.started_at.0,
        ":last_ns": session.last_at.0,
        ":ended_ns": session.ended_at.map(|at| at.0),
        ":workspace": session.workspace,
        ":model": session.model,
        ":surface": session.surface,
        ":cursor_version": session.cursor_version,
        ":first_prompt": session.first_prompt,
        ":last_error": session.last_error,
        ":generations": rows::signed(session.generations),
        ":tool_calls": rows::signed(session.tool_calls),
        ":subagents": rows::signed(session.subagents),
        ":errors": rows::signed(session.errors),
        ":errored_turns": rows::signed(session.errored_turns),
        ":active_ns": session.active_ns,
        ":input": tokens.input,
        ":output": tokens.output,
        ":cache_read": tokens.cache_read,
        ":cache_write": tokens.cache_write,
    })?;
    Ok(())
}

/// Writes a turn.
pub(super) fn turn(
    db: &Connection,
    names: &mut Names,
    rev: u64,
    turn: &TurnSummary,
) -> rusqlite::Result<()> {
    let tokens = TokenColumns::of(turn.tokens);
    db.prepare_cached(
        "INSERT OR REPLACE INTO turn
             (root, span, rev, generation, trace, number, started_ns, ended_ns, end_reason, prompt,
              model, status, tool_calls, errors, input, output, cache_read, cache_write, parts)
         VALUES (:root, :span, :rev, :generation, :trace, :number, :started_ns, :ended_ns,
                 :end_reason, :prompt, :model, :status, :tool_calls, :errors, :input, :output,
                 :cache_read, :cache_write, :parts)",
    )?
    .execute(named_params! {
        ":root": names.id(db, &turn.root)?,
        ":span": turn.span.0,
        ":rev": rev.cast_signed(),
        ":generation": turn.generation,
        ":trace": turn.trace.0,
        ":number": rows::signed(turn.index),
        ":started_ns": turn.started_at.0,
        ":ended_ns": turn.ended_at.map(|at| at.0),
        ":end_reason": turn.end_reason.map(|reason| reason.as_str()),
        ":prompt": turn.prompt,
        ":model": turn.model,
        ":status": turn.status,
        ":tool_calls": rows::signed(turn.tool_calls),
        ":errors": rows::signed(turn.errors),
        ":input": tokens.input,
        ":output": tokens.output,
        ":cache_read": tokens.cache_read,
        ":cache_write": tokens.cache_write,
        ":parts": rows::turn_parts(&turn.parts)?,
    })?;
    Ok(())
}

/// Puts a conversation under `root`, with whatever was written while it stood alone.
pub(super) fn bind(
    db: &Connection,
    names: &mut Names,
    rev: u64,
    conversation: &str,
    root: &str,
) -> rusqlite::Result<()> {
    let (own, top) = (names.id(db, conversation)?, names.id(db, root)?);
    db.prepare_cached(
        "INSERT INTO conversation (id, root) VALUES (?1, ?2)
         ON CONFLICT (id) DO UPDATE SET root = excluded.root, held = 1",
    )?
    .execute((own, top))?;
    if own == top {
        return Ok(());
    }
    let both: [&dyn ToSql; 2] = [&own, &top];
    db.prepare_cached("UPDATE conversation SET root = ?2 WHERE root = ?1")?.execute(both)?;
    db.prepare_cached("UPDATE span SET root = ?2, rev = ?3 WHERE root = ?1")?.execute((
        own,
        top,
        rev.cast_signed(),
    ))?;
    Reach::bind(db, own, top)?;
    db.prepare_cached("DELETE FROM session WHERE root = ?1")?.execute([own])?;
    db.prepare_cached("DELETE FROM turn WHERE root = ?1")?.execute([own])?;
    Ok(())
}

/// Notes that nothing of `root` needs replaying at start.
pub(super) fn forget(db: &Connection, names: &mut Names, root: &str) -> rusqlite::Result<()> {
    let root = names.id(db, root)?;
    db.prepare_cached("UPDATE conversation SET held = 0 WHERE root = ?1")?.execute([root])?;
    Ok(())
}

struct TokenColumns {
    input: Option<i64>,
    output: Option<i64>,
    cache_read: Option<i64>,
    cache_write: Option<i64>,
}

impl TokenColumns {
    fn of(tokens: Option<Tokens>) -> Self {
        let column = |part: fn(&Tokens) -> u64| tokens.as_ref().map(|all| rows::signed(part(all)));
        Self {
            input: column(|tokens| tokens.input),
            output: column(|tokens| tokens.output),
            cache_read: column(|tokens| tokens.cache_read),
            cache_write: column(|tokens| tokens.cache_write),
        }
    }
}
