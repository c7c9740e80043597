//! Writes spans, turns, sessions and bindings as rows. Each row is a whole value and replaces an earlier one.

use hookspan_core::{SessionSummary, Span, SpanId, SpanKey, Status, Tokens, TurnSummary};
use hookspan_view::facet;
use hookspan_view::line::Kept;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, ToSql, named_params, params};

use super::files::Files;
use super::names::Names;
use super::reach::Reach;
use super::subjects::Subject;
use super::times::Times;
use crate::store::rows::{self, SPAN_COLUMNS, SPAN_TABLES};

/// Where a span is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) row: i64,
    /// `span.root`. `unsettled` is stored by it.
    pub(super) root: i64,
}

/// The state of a span's row before it is written.
#[derive(Debug)]
pub(super) enum Before {
    /// There was no row.
    New,
    /// The span was not final.
    Unsettled,
    /// The span was final. Holds the stored value.
    Settled(Box<Span>),
}

/// The tables of spans open for writing, with the statements that nearly every span needs.
pub(super) struct SpanRows<'a> {
    db: &'a Connection,
    insert: CachedStatement<'a>,
    unsettled: CachedStatement<'a>,
    finish: CachedStatement<'a>,
    queue: CachedStatement<'a>,
}

impl<'a> SpanRows<'a> {
    pub(super) fn open(db: &'a Connection) -> rusqlite::Result<Self> {
        // Without RETURNING, and with a separate UPDATE for existing rows. SQLite copies every changed page (in order
        // to undo the change) for an upsert of a row with several unique indexes, and for a statement that returns
        // values. Most spans are written only once.
        let insert = db.prepare_cached(
            "INSERT INTO span (id, rev, root, conversation, generation, trace, parent, kind, name,
                               plain_name, workspace, cursor_version, start_ns, end_ns, end_reason,
                               error_type, error_message, detail, label, subject_seq, class, flags,
                               wait_us, tool, file, added, removed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                     ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)
             ON CONFLICT (conversation, id) DO NOTHING",
        )?;
        Ok(Self {
            db,
            insert,
            unsettled: db
                .prepare_cached("INSERT OR IGNORE INTO unsettled (root, span) VALUES (?1, ?2)")?,
            finish: finish(db)?,
            queue: db.prepare_cached("INSERT INTO settled (seq, span) VALUES (?1, ?2)")?,
        })
    }

    /// Writes a span, but not whether it has settled. `unsettled` means that the stored span is known not to have
    /// settled.
    pub(super) fn write(
        &mut self,
        (names, files): (&mut Names, &mut Files),
        rev: u64,
        span: &Span,
        subject: &Subject<'_>,
        unsettled: bool,
    ) -> rusqlite::Result<(Place, Before)> {
        let db = self.db;
        let touch = files.touch(db, span)?;
        let (subject, subject_seq) = subject.columns();
        let kept = Kept::new(span, subject);
        let (error_type, error_message) = error_columns(&span.status);
        let detail = rows::span_detail(span)?;
        let (root, conversation) = (names.id(db, &span.root)?, names.id(db, &span.conversation)?);
        let values = params![
            span.id.0,
            rev.cast_signed(),
            root,
            conversation,
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
            kept.label,
            subject_seq,
            kept.kind as u8,
            kept.flags,
            kept.wait_us,
            facet::tool(span),
            touch.file,
            touch.added,
            touch.removed,
        ];
        if self.insert.execute(values)? > 0 {
            return Ok((Place { row: db.last_insert_rowid(), root }, Before::New));
        }
        let was = find(db, conversation, span.id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let before = match unsettled || is_unsettled(db, was)? {
            true => Before::Unsettled,
            false => Before::Settled(Box::new(stored(db, was.row)?)),
        };
        update(db, values)?;
        if was.root != root {
            // The span's conversation was bound to another session before.
            db.prepare_cached("UPDATE unsettled SET root = ?3 WHERE root = ?1 AND span = ?2")?
                .execute((was.root, was.row, root))?;
        }
        Ok((Place { root, ..was }, before))
    }

    /// Notes that a span runs, or may still change.
    pub(super) fn unsettled(&mut self, place: Place) -> rusqlite::Result<()> {
        self.unsettled.execute((place.root, place.row))?;
        Ok(())
    }

    /// Notes that a span is final. Returns false if it was already final or does not exist. Nothing is written then.
    pub(super) fn finish(&mut self, place: Place) -> rusqlite::Result<bool> {
        Ok(self.finish.execute((place.root, place.row))? > 0)
    }

    /// Puts a final span into the export queue.
    pub(super) fn queue(&mut self, seq: i64, place: Place) -> rusqlite::Result<()> {
        self.queue.execute((seq, place.row))?;
        Ok(())
    }
}

fn error_columns(status: &Status) -> (Option<&str>, Option<&str>) {
    match status {
        Status::Unset => (None, None),
        Status::Error { kind, message } => (Some(kind.as_str()), Some(message.as_str())),
    }
}

/// Overwrites the row of a span. The values are those of the INSERT in [`SpanRows::open`], in the same order.
fn update(db: &Connection, values: &[&dyn ToSql]) -> rusqlite::Result<()> {
    db.prepare_cached(
        "UPDATE span
         SET rev = ?2, root = ?3, generation = ?5, trace = ?6, parent = ?7, kind = ?8, name = ?9,
             plain_name = ?10, workspace = ?11, cursor_version = ?12, start_ns = ?13, end_ns = ?14,
             end_reason = ?15, error_type = ?16, error_message = ?17, detail = ?18,
             label = CASE WHEN ?20 IS NULL OR subject_seq IS NOT NULL THEN ?19 ELSE label END,
             subject_seq = CASE WHEN subject_seq IS NULL THEN NULL ELSE ?20 END,
             class = ?21, flags = ?22, wait_us = ?23, tool = ?24, file = ?25, added = ?26, removed = ?27
         WHERE conversation = ?4 AND id = ?1",
    )?
    .execute(values)?;
    Ok(())
}

/// Where a span is stored.
pub(super) fn place(
    db: &Connection,
    names: &mut Names,
    key: &SpanKey,
) -> rusqlite::Result<Option<Place>> {
    match names.find(db, &key.conversation)? {
        Some(conversation) => find(db, conversation, key.id),
        None => Ok(None),
    }
}

fn find(db: &Connection, conversation: i64, id: SpanId) -> rusqlite::Result<Option<Place>> {
    db.prepare_cached("SELECT row, root FROM span WHERE conversation = ?1 AND id = ?2")?
        .query_row((conversation, id.0), |row| Ok(Place { row: row.get(0)?, root: row.get(1)? }))
        .optional()
}

/// Whether a stored span may still change.
pub(super) fn is_unsettled(db: &Connection, place: Place) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM unsettled WHERE root = ?1 AND span = ?2")?
        .exists((place.root, place.row))
}

fn finish(db: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    db.prepare_cached("DELETE FROM unsettled WHERE root = ?1 AND span = ?2")
}

/// A span as it is stored.
pub(super) fn stored(db: &Connection, row: i64) -> rusqlite::Result<Span> {
    let sql = format!("SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES} WHERE s.row = ?1");
    Ok(db.prepare_cached(&sql)?.query_row([row], rows::span)?.1)
}

/// Removes a span that turned out to be part of another span. If it has a row in `turn`, that row is removed, too.
pub(super) fn withdraw(db: &Connection, place: Place, key: &SpanKey) -> rusqlite::Result<()> {
    finish(db)?.execute((place.root, place.row))?;
    db.prepare_cached("DELETE FROM settled WHERE span = ?1")?.execute([place.row])?;
    let own = "SELECT conversation FROM span WHERE row = ?1";
    db.prepare_cached(&format!("DELETE FROM turn WHERE root = ({own}) AND span = ?2"))?
        .execute((place.row, key.id.0))?;
    db.prepare_cached("DELETE FROM span WHERE row = ?1")?.execute([place.row])?;
    Ok(())
}

/// Writes a session.
pub(super) fn session(
    db: &Connection,
    names: &mut Names,
    rev: u64,
    session: &SessionSummary,
) -> rusqlite::Result<()> {
    let tokens = TokenColumns::of(session.tokens);
    let seen = session.repository.as_deref();
    db.prepare_cached(
        "INSERT OR REPLACE INTO session
             (root, rev, state, started_ns, last_ns, ended_ns, workspace, model, surface,
              cursor_version, first_prompt, last_error, generations, tool_calls, subagents, errors, errored_turns,
              active_ns, input, output, cache_read, cache_write, project, repository, from_branch, from_revision,
              branch, revision, commits, edits, unclear, tests_passed, tests_failed, tested_ns, tested_well, pull_request)
         VALUES (:root, :rev, :state, :started_ns, :last_ns, :ended_ns, :workspace, :model, :surface,
                 :cursor_version, :first_prompt, :last_error, :generations, :tool_calls, :subagents,
                 :errors, :errored_turns, :active_ns, :input, :output, :cache_read, :cache_write, :project,
                 :repository, :from_branch, :from_revision, :branch, :revision, :commits,
                 :edits, :unclear, :tests_passed, :tests_failed, :tested_ns, :tested_well, :pull_request)",
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
        ":project": session.workspace.as_deref().and_then(facet::project),
        ":input": tokens.input,
        ":output": tokens.output,
        ":cache_read": tokens.cache_read,
        ":cache_write": tokens.cache_write,
        ":repository": seen.and_then(|seen| seen.url.as_deref()),
        ":from_branch": seen.and_then(|seen| seen.from_branch.as_deref()),
        ":from_revision": seen.and_then(|seen| seen.from_commit.as_deref()),
        ":branch": seen.and_then(|seen| seen.branch.as_deref()),
        ":revision": seen.and_then(|seen| seen.commit.as_deref()),
        ":commits": seen.and_then(rows::commits),
        ":edits": rows::signed(session.work.edits),
        ":unclear": rows::signed(session.work.unclear),
        ":tests_passed": rows::signed(session.work.tests_passed),
        ":tests_failed": rows::signed(session.work.tests_failed),
        ":tested_ns": session.work.last_test.map(|run| run.at.0),
        ":tested_well": session.work.last_test.map(|run| run.passed),
        ":pull_request": session.work.pull_request,
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
    let seen = turn.repository.as_deref();
    db.prepare_cached(
        "INSERT OR REPLACE INTO turn
             (root, span, rev, generation, trace, number, started_ns, ended_ns, end_reason, prompt,
              model, status, tool_calls, errors, input, output, cache_read, cache_write, parts,
              repository, from_branch, from_revision, branch, revision, commits,
              edits, unclear, tests_passed, tests_failed, tested_ns, tested_well, pull_request)
         VALUES (:root, :span, :rev, :generation, :trace, :number, :started_ns, :ended_ns,
                 :end_reason, :prompt, :model, :status, :tool_calls, :errors, :input, :output,
                 :cache_read, :cache_write, :parts,
                 :repository, :from_branch, :from_revision, :branch, :revision, :commits,
                 :edits, :unclear, :tests_passed, :tests_failed, :tested_ns, :tested_well, :pull_request)",
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
        ":repository": seen.and_then(|seen| seen.url.as_deref()),
        ":from_branch": seen.and_then(|seen| seen.from_branch.as_deref()),
        ":from_revision": seen.and_then(|seen| seen.from_commit.as_deref()),
        ":branch": seen.and_then(|seen| seen.branch.as_deref()),
        ":revision": seen.and_then(|seen| seen.commit.as_deref()),
        ":commits": seen.and_then(rows::commits),
        ":edits": rows::signed(turn.work.edits),
        ":unclear": rows::signed(turn.work.unclear),
        ":tests_passed": rows::signed(turn.work.tests_passed),
        ":tests_failed": rows::signed(turn.work.tests_failed),
        ":tested_ns": turn.work.last_test.map(|run| run.at.0),
        ":tested_well": turn.work.last_test.map(|run| run.passed),
        ":pull_request": turn.work.pull_request,
    })?;
    Ok(())
}

/// Binds a conversation to `root`, together with everything that was written while its parent was unknown.
pub(super) fn bind(
    db: &Connection,
    (names, times): (&mut Names, &mut Times),
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
    times.touch_all(db, own)?;
    let both: [&dyn ToSql; 2] = [&own, &top];
    db.prepare_cached("UPDATE conversation SET root = ?2 WHERE root = ?1")?.execute(both)?;
    db.prepare_cached("UPDATE span SET root = ?2, rev = ?3 WHERE root = ?1")?.execute((
        own,
        top,
        rev.cast_signed(),
    ))?;
    db.prepare_cached("UPDATE unsettled SET root = ?2 WHERE root = ?1")?.execute(both)?;
    Reach::bind(db, own, top)?;
    db.prepare_cached("DELETE FROM session WHERE root = ?1")?.execute([own])?;
    db.prepare_cached("DELETE FROM turn WHERE root = ?1")?.execute([own])?;
    Ok(())
}

/// Notes that `root` need not be replayed at the next start.
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
        let column =
            |part: fn(&Tokens) -> Option<u64>| tokens.as_ref().and_then(part).map(rows::signed);
        Self {
            input: column(|tokens| tokens.input),
            output: column(|tokens| tokens.output),
            cache_read: column(|tokens| tokens.cache_read),
            cache_write: column(|tokens| tokens.cache_write),
        }
    }
}
