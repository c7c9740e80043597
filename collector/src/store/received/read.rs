//! Reads received telemetry: that of one session, or all that belongs to no session.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use hookspan_core::{SpanId, SpanKind, TraceId};
use hookspan_view::received::{AllReceived, Joined, Received, ToldUsage, choose, place};
use rusqlite::{Connection, OptionalExtension as _, Params, Row};

use super::{LOG_RECORD, join};
use crate::store::rows::count;

/// Ids of the conversations of the session whose root is `?1`.
const OWN: &str = "SELECT n.text FROM name n WHERE n.id = ?1
     UNION SELECT n.text FROM conversation c JOIN name n ON n.id = c.id WHERE c.root = ?1";

/// Rows whose session is not known, or is not stored.
const APART: &str = "(session IS NULL OR NOT EXISTS (
     SELECT 1 FROM name n LEFT JOIN conversation c ON c.id = n.id
     JOIN session s ON s.root = coalesce(c.root, n.id) WHERE n.text = received_span.session))";

/// A span may name a call. Number of turns that are searched for this call, beginning with the turn in which the span
/// started.
const TURNS_MAX: i64 = 3;

/// The telemetry of a session: at most `limit` spans, the earliest first.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn of_session(
    db: &Connection,
    root: &str,
    limit: usize,
) -> rusqlite::Result<AllReceived> {
    let id: Option<i64> = db
        .prepare_cached("SELECT id FROM name WHERE text = ?1")?
        .query_row([root], |row| row.get(0))
        .optional()?;
    let Some(id) = id else { return Ok(AllReceived::default()) };
    let clause = format!("session IN ({OWN})");
    let total = total(db, &clause, [id])?;
    let usage = choose(usage(db, id)?);
    if total == 0 {
        return Ok(AllReceived { usage, ..AllReceived::default() });
    }
    let order = "ORDER BY start_ns, row";
    let spans = spans(db, &format!("{clause} {order} LIMIT ?2"), (id, limit_of(limit)))?;
    let mut calls = Calls { db, root: id, known: HashMap::default() };
    let mut named: HashMap<(TraceId, SpanId), Named, RandomState> = HashMap::default();
    let mut plain = Vec::with_capacity(spans.len());
    for (span, own) in spans {
        named.insert((span.trace, span.id), own);
        plain.push(span);
    }
    let mut failed = None;
    let placed = place(plain, |span| {
        let own = named.get(&(span.trace, span.id));
        calls.above(span, own).unwrap_or_else(|error| {
            failed.get_or_insert(error);
            None
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(AllReceived { spans: placed, total, usage }),
    }
}

/// The telemetry that belongs to no stored session: at most `limit` spans, the newest first.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn apart(db: &Connection, limit: usize) -> rusqlite::Result<AllReceived> {
    let total = total(db, APART, [])?;
    let newest = format!("{APART} ORDER BY received_ns DESC, row DESC LIMIT ?1");
    let spans = spans(db, &newest, [limit_of(limit)])?;
    let spans = place(spans.into_iter().map(|(span, _)| span).collect(), |_| None);
    Ok(AllReceived { spans, total, usage: Vec::new() })
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn total(db: &Connection, clause: &str, values: impl Params) -> rusqlite::Result<u64> {
    db.prepare_cached(&format!("SELECT count(*) FROM received_span WHERE {clause}"))?
        .query_row(values, |row| count(row, 0))
}

/// Texts of a row that serve only to find the call above it.
struct Named {
    conversation: Option<String>,
    tool: Option<String>,
}

fn spans(
    db: &Connection,
    clause: &str,
    values: impl Params,
) -> rusqlite::Result<Vec<(Received, Named)>> {
    let columns = "trace, id, parent, kind, name, service, start_ns, end_ns, status, message, attributes, cut, joined,
                   call, model, input, output, session, tool";
    db.prepare_cached(&format!("SELECT {columns} FROM received_span WHERE {clause}"))?
        .query_map(values, span)?
        .collect()
}

fn span(row: &Row<'_>) -> rusqlite::Result<(Received, Named)> {
    let id = |index| Ok::<_, rusqlite::Error>(row.get::<_, Option<[u8; 8]>>(index)?.map(SpanId));
    let joined = match row.get::<_, Option<i64>>(12)? {
        Some(join::TRACEPARENT) => Some(Joined::Traceparent),
        Some(join::SESSION_ID) => Some(Joined::SessionId),
        Some(join::INFERRED) => Some(Joined::Inferred),
        _ => None,
    };
    let tokens =
        |index| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(index)?.map(i64::cast_unsigned));
    let span = Received {
        trace: TraceId(row.get(0)?),
        id: SpanId(row.get(1)?),
        parent: id(2)?,
        is_record: row.get::<_, u8>(3)? == LOG_RECORD,
        name: row.get(4)?,
        service: row.get(5)?,
        start_ns: row.get(6)?,
        end_ns: row.get(7)?,
        failed: row.get::<_, u8>(8)? == 2,
        message: row.get(9)?,
        attributes: row.get(10)?,
        cut: row.get(11)?,
        joined,
        call: id(13)?,
        model: row.get(14)?,
        input: tokens(15)?,
        output: tokens(16)?,
    };
    Ok((span, Named { conversation: row.get(17)?, tool: row.get(18)? }))
}

/// Finds the spans of hookspan that received spans name: as parent, or by the id of a tool call.
struct Calls<'a> {
    db: &'a Connection,
    root: i64,
    /// Results of earlier searches, by the call's id as the agent sends it.
    known: HashMap<String, Option<SpanId>, RandomState>,
}

impl Calls<'_> {
    fn above(&mut self, span: &Received, own: Option<&Named>) -> rusqlite::Result<Option<SpanId>> {
        if let Some(parent) = span.parent
            && self.has(parent)?
        {
            return Ok(Some(parent));
        }
        let Some((conversation, tool)) =
            own.and_then(|own| own.conversation.as_ref().zip(own.tool.as_ref()))
        else {
            return Ok(None);
        };
        if let Some(known) = self.known.get(tool) {
            return Ok(*known);
        }
        let found = self.call(conversation, tool, span.start_ns)?;
        self.known.insert(tool.clone(), found);
        Ok(found)
    }

    fn has(&self, id: SpanId) -> rusqlite::Result<bool> {
        join::has(self.db, self.root, &id.0)
    }

    /// The span of a tool call. The span's id is derived from the conversation, the turn and the call's id.
    fn call(
        &self,
        conversation: &str,
        tool: &str,
        start_ns: i64,
    ) -> rusqlite::Result<Option<SpanId>> {
        let turns = "SELECT generation FROM turn WHERE root = ?1 AND started_ns <= ?2
                     ORDER BY started_ns DESC LIMIT ?3";
        let turns: Vec<String> = self
            .db
            .prepare_cached(turns)?
            .query_map((self.root, start_ns, TURNS_MAX), |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for generation in turns {
            let id = SpanId::derive(conversation, &generation, SpanKind::Tool.as_str(), tool);
            if self.has(id)? {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

/// Tokens and cost by program, model and source.
fn usage(db: &Connection, root: i64) -> rusqlite::Result<Vec<ToldUsage>> {
    let sums = "sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost)";
    let sql = format!(
        "SELECT service, nullif(model, ''), 0, {sums}, NULL FROM received_usage WHERE session IN ({OWN}) GROUP BY 1, 2
         UNION ALL
         SELECT service, model, iif(kind = {LOG_RECORD}, 1, 2), {sums}, count(*) FROM received_span
         WHERE session IN ({OWN}) AND (input IS NOT NULL OR output IS NOT NULL OR cost IS NOT NULL)
         GROUP BY 1, 2, 3 ORDER BY 1, 3, 2"
    );
    let told = |row: &Row<'_>| {
        let tokens = |index| {
            Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(index)?.map(i64::cast_unsigned))
        };
        Ok(ToldUsage {
            service: row.get(0)?,
            model: row.get(1)?,
            source: match row.get(2)? {
                0 => "counter",
                1 => "record",
                _ => "span",
            },
            input: tokens(3)?,
            output: tokens(4)?,
            cache_read: tokens(5)?,
            cache_write: tokens(6)?,
            cost: row.get(7)?,
            requests: tokens(8)?,
        })
    };
    db.prepare_cached(&sql)?.query_map([root], told)?.collect()
}
