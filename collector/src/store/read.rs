//! Queries for the dashboard and the commands. They are short, bounded, and run on read-only connections.

use std::collections::BTreeMap;

use hookspan_core::price::Usage;
use hookspan_core::{SessionSummary, SpanId, Tokens, TurnSummary};
use hookspan_view::source::{Gap, LineFilter, Position, SessionFilter, SessionSort, Totals};
use rusqlite::{Connection, OptionalExtension as _, Rows, ToSql};

mod counted;
mod files;
pub(crate) mod lines;
mod periods;
mod spans;
mod spent;
mod words;
mod work;

pub(crate) use counted::{heat_of, latency_between, latency_of, spent_of};
pub(crate) use files::{files, touches};
pub(crate) use periods::{arrival, heat, latency, older};
pub(crate) use spans::{
    changed_spans, exports, last_settled, settled_after, span, span_count, span_of, span_row,
    spans, trace,
};
pub(crate) use spent::spent;
pub(crate) use work::work;

use self::words::Words;
use super::rows::{self, SESSION_COLUMNS, SESSION_TABLES, TURN_COLUMNS, TURN_TABLES, count};

/// The store's revision and its newest places.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn position(db: &Connection) -> rusqlite::Result<Position> {
    let mut read = db.prepare_cached("SELECT value FROM state WHERE key = ?1")?;
    let mut state = |key: &str| read.query_row([key], |row| row.get::<_, String>(0)).optional();
    let rev = state("rev")?.and_then(|rev| rev.parse().ok()).unwrap_or(0);
    Ok(Position { epoch: state("epoch")?.unwrap_or_else(|| "0".to_owned()), rev })
}

/// Sessions that match, in the filter's order, strictly after `before`.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn sessions(
    db: &Connection,
    filter: &SessionFilter,
    before: Option<&(i64, String)>,
    limit: usize,
) -> rusqlite::Result<Vec<SessionSummary>> {
    let key = sort_key(filter.sort);
    let (side, order) = if filter.ascending { (">", "ASC") } else { ("<", "DESC") };
    let LineFilter { session, tool, kind, failed, min_ns, from_ns, to_ns, .. } = &filter.spans;
    let words = Words::of(&filter.spans);
    let (of_session, of_model) = (words::of_session("s"), words::OF_A_TURN.replace("{v}", "s"));
    let of_spans = kind.is_some() || tool.is_some() || min_ns.is_some();
    let spans = if of_spans { with_spans() } else { String::new() };
    // A separate condition, so that the index on the last activity skips all earlier sessions.
    let recent = if from_ns.is_some() { "AND s.last_ns >= :from" } else { "" };
    let sql = format!(
        "SELECT {SESSION_COLUMNS} FROM {SESSION_TABLES}
         WHERE {key} {side}= :key AND ({key}, root.text) {side} (:key, :root)
           AND (:completions OR s.surface <> 'tab')
           AND (:state IS NULL OR s.state = :state)
           AND (:session IS NULL OR root.text = :session)
           AND {of_session} AND {of_model}
           AND (:text IS NULL OR instr(lower(s.first_prompt), lower(:text)) > 0
                OR instr(lower(s.workspace), lower(:text)) > 0 OR instr(root.text, :text) > 0)
           AND (NOT :failed OR s.errors > 0)
           {recent} AND (:to IS NULL OR s.started_ns <= :to)
           {spans}
         ORDER BY {key} {order}, root.text {order} LIMIT :limit"
    );
    // Without a cursor the page starts at the end of the order: no text sorts after this one, and none before the empty one.
    let first = if filter.ascending { (i64::MIN, "") } else { (i64::MAX, "\u{10ffff}") };
    let (last, root) = before.map_or(first, |(at, root)| (*at, root));
    let mut values: Vec<(&str, &dyn ToSql)> = vec![
        (":key", &last),
        (":root", &root),
        (":session", session),
        (":text", &filter.text),
        (":failed", failed),
        (":completions", &filter.completions),
        (":to", to_ns),
    ];
    if from_ns.is_some() {
        values.push((":from", from_ns));
    }
    values.extend(words.values());
    let (state, limit) = (filter.state.map(|state| state.as_str()), sql_limit(limit));
    let class = kind.map(|kind| kind as u8);
    values.extend([(":state", &state as &dyn ToSql), (":limit", &limit)]);
    if of_spans {
        values.extend([(":class", &class as &dyn ToSql), (":tool", tool), (":min", min_ns)]);
    }
    db.prepare_cached(&sql)?.query_map(&*values, rows::session)?.collect()
}

/// Sessions with a matching span. For settled spans, the longest span per tool and kind is compared. The few others are
/// compared one by one.
fn with_spans() -> String {
    let (length, failed) = (rows::length_ns("x"), rows::is_failure("x"));
    format!(
        "AND (EXISTS (SELECT 1 FROM reach r WHERE r.root = s.root
         AND (:class IS NULL OR r.class = :class)
         AND (:tool IS NULL OR r.tool = lower(:tool))
         AND (NOT :failed OR r.failed)
         AND (:min IS NULL OR iif(:failed, r.failed_ns, r.longest_ns) >= :min))
       OR EXISTS (SELECT 1 FROM unsettled u JOIN span x ON x.row = u.span
         WHERE u.root = s.root
         AND (:class IS NULL OR x.class = :class)
         AND (:tool IS NULL OR x.tool = :tool COLLATE NOCASE)
         AND (NOT :failed OR {failed})
         AND (:min IS NULL OR {length} >= :min)))"
    )
}

/// The same number that [`SessionSort::key`] computes.
const fn sort_key(sort: SessionSort) -> &'static str {
    match sort {
        SessionSort::Last => "s.last_ns",
        SessionSort::Start => "s.started_ns",
        SessionSort::Active => "s.active_ns",
        SessionSort::Errors => "s.errors",
        SessionSort::Calls => "s.tool_calls",
        SessionSort::Tokens => "coalesce(s.input, 0) + coalesce(s.output, 0)",
    }
}

/// Sessions written after `since`, newest activity first.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn changed(
    db: &Connection,
    since: u64,
    limit: usize,
) -> rusqlite::Result<Vec<SessionSummary>> {
    let sql = format!(
        "SELECT {SESSION_COLUMNS} FROM {SESSION_TABLES} WHERE s.rev > ?1 AND s.surface <> 'tab'
         ORDER BY s.last_ns DESC, root.text DESC LIMIT ?2"
    );
    db.prepare_cached(&sql)?
        .query_map((rows::signed(since), sql_limit(limit)), rows::session)?
        .collect()
}

/// One session.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn session(db: &Connection, root: &str) -> rusqlite::Result<Option<SessionSummary>> {
    let Some(id) = name(db, root)? else { return Ok(None) };
    let sql = format!("SELECT {SESSION_COLUMNS} FROM {SESSION_TABLES} WHERE s.root = ?1");
    db.prepare_cached(&sql)?.query_row([id], rows::session).optional()
}

/// Turns of a session in order.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn turns(db: &Connection, root: &str) -> rusqlite::Result<Vec<TurnSummary>> {
    let Some(id) = name(db, root)? else { return Ok(Vec::new()) };
    let sql =
        format!("SELECT {TURN_COLUMNS} FROM {TURN_TABLES} WHERE t.root = ?1 ORDER BY t.number");
    db.prepare_cached(&sql)?.query_map([id], rows::turn)?.collect()
}

/// The first prompt of each turn, by turn span, for labels.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn prompts(db: &Connection, root: &str) -> rusqlite::Result<BTreeMap<SpanId, String>> {
    let Some(id) = name(db, root)? else { return Ok(BTreeMap::new()) };
    db.prepare_cached("SELECT span, prompt FROM turn WHERE root = ?1 AND prompt IS NOT NULL")?
        .query_map([id], |row| Ok((SpanId(row.get(0)?), row.get(1)?)))?
        .collect()
}

/// Identifies the last opening of the store: a text that differs each time, the store's revision at that time, and its
/// last place in the export queue at that time.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn opened(db: &Connection) -> rusqlite::Result<Option<(String, u64, i64)>> {
    let text = db
        .prepare_cached("SELECT value FROM state WHERE key = 'opened'")?
        .query_row([], |row| row.get::<_, String>(0))
        .optional()?;
    Ok(text.and_then(|text| {
        let mut numbers = text.split(' ').skip(1).map(str::parse::<i64>);
        let (rev, settled) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some((text, rev.cast_unsigned(), settled))
    }))
}

/// Sums over turns that started at or after `from_ns`.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn totals(db: &Connection, from_ns: i64) -> rusqlite::Result<Totals> {
    // A session without activity since `from_ns` has no such turn. So the index on the last activity can be used to
    // skip most sessions.
    db.prepare_cached(
        "SELECT count(*), total(t.ended_ns - t.started_ns), total(t.errors),
                sum(t.input), sum(t.output), sum(t.cache_read), sum(t.cache_write)
         FROM session s CROSS JOIN turn t ON t.root = s.root
         WHERE s.last_ns >= ?1 AND t.started_ns >= ?1",
    )?
    .query_row([from_ns], |row| {
        let whole = |index| Ok::<u64, rusqlite::Error>(row.get::<_, f64>(index)? as u64);
        let said = |index| {
            let sum: Option<i64> = row.get(index)?;
            Ok::<Option<u64>, rusqlite::Error>(sum.map(|sum| u64::try_from(sum).unwrap_or(0)))
        };
        let tokens = Tokens {
            input: said(3)?,
            output: said(4)?,
            cache_read: said(5)?,
            cache_write: said(6)?,
        };
        let tokens = tokens.said();
        let active_ns = row.get::<_, f64>(1)? as i64;
        Ok(Totals { turns: count(row, 0)?, active_ns, errors: whole(2)?, tokens })
    })
}

/// Tokens by model over the turns that started at or after `from_ns`, split by kind of token.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn usage(
    db: &Connection,
    from_ns: i64,
) -> rusqlite::Result<Vec<(Option<String>, Usage)>> {
    let mut statement = db.prepare_cached(
        "SELECT t.model, t.input, t.output, t.cache_read, t.cache_write
         FROM session s CROSS JOIN turn t ON t.root = s.root
         WHERE s.last_ns >= ?1 AND t.started_ns >= ?1 AND coalesce(t.input, t.output) IS NOT NULL",
    )?;
    by_model(statement.query([from_ns])?)
}

/// Tokens by model over the turns of a session.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn usage_of(
    db: &Connection,
    root: &str,
) -> rusqlite::Result<Vec<(Option<String>, Usage)>> {
    let Some(id) = name(db, root)? else { return Ok(Vec::new()) };
    let mut statement = db.prepare_cached(
        "SELECT model, input, output, cache_read, cache_write FROM turn
         WHERE root = ?1 AND coalesce(input, output) IS NOT NULL",
    )?;
    by_model(statement.query([id])?)
}

/// Adds up rows of model, input, output and both cache counts, split by kind of token.
fn by_model(mut rows: Rows<'_>) -> rusqlite::Result<Vec<(Option<String>, Usage)>> {
    let mut sums: BTreeMap<Option<String>, Usage> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let said = |index| {
            let count: Option<i64> = row.get(index)?;
            Ok::<Option<u64>, rusqlite::Error>(count.map(|count| count.max(0).cast_unsigned()))
        };
        let tokens = Tokens {
            input: said(1)?,
            output: said(2)?,
            cache_read: said(3)?,
            cache_write: said(4)?,
        };
        let used = Usage::from(tokens);
        let sum = sums.entry(row.get(0)?).or_default();
        sum.input = sum.input.saturating_add(used.input);
        sum.output = sum.output.saturating_add(used.output);
        sum.cache_read = sum.cache_read.saturating_add(used.cache_read);
        sum.cache_write = sum.cache_write.saturating_add(used.cache_write);
    }
    Ok(sums.into_iter().collect())
}

/// Periods after `from_ns` in which hooks arrived and no collector ran, newest first.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn gaps(db: &Connection, from_ns: i64, limit: usize) -> rusqlite::Result<Vec<Gap>> {
    // Ids begin with the time of receipt, so the index on ids can be used to count hooks.
    let mut count_between =
        db.prepare_cached("SELECT count(*) FROM raw_hook WHERE id >= ?1 AND id < ?2")?;
    let mut statement = db.prepare_cached(
        "SELECT from_ns, to_ns FROM gap WHERE to_ns >= ?1 ORDER BY from_ns DESC LIMIT 1000",
    )?;
    let mut found = statement.query([from_ns])?;
    let mut gaps = Vec::new();
    while let Some(row) = found.next()? {
        let (from_ns, to_ns): (i64, i64) = (row.get(0)?, row.get(1)?);
        let edge = |ns: i64| ns.to_be_bytes();
        let hooks = count_between.query_row((edge(from_ns), edge(to_ns)), |row| count(row, 0))?;
        if hooks > 0 {
            gaps.push(Gap { from_ns, to_ns, hooks });
        }
        if gaps.len() == limit {
            break;
        }
    }
    Ok(gaps)
}

/// Counters by name.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn counters(db: &Connection) -> rusqlite::Result<Vec<(String, u64)>> {
    db.prepare_cached("SELECT key, value FROM counter ORDER BY key")?
        .query_map([], |row| Ok((row.get(0)?, count(row, 1)?)))?
        .collect()
}

fn name(db: &Connection, text: &str) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("SELECT id FROM name WHERE text = ?1")?
        .query_row([text], |row| row.get(0))
        .optional()
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
