//! What the dashboard and the commands read: short, bounded, on read-only connections.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hookspan_core::{SessionSummary, Span, SpanId, Timestamp, Tokens, TraceId, TurnSummary};
use hookspan_dashboard::source::{
    ErrorGroup, LatencyRow, Position, SessionFilter, SessionSort, SpanFilter, Totals,
};
use rusqlite::{Connection, OptionalExtension as _, ToSql};

pub mod lines;

use super::codec;
use super::rows::{
    self, SESSION_COLUMNS, SESSION_TABLES, SPAN_COLUMNS, SPAN_TABLES, TURN_COLUMNS, TURN_TABLES,
    count,
};

/// Failures that are looked at for groups, newest first.
const ERRORS_MAX: i64 = 20_000;
/// Segments of one session; one ends after an hour without events.
const SEGMENTS_MAX: usize = 10_000;

/// Where the store stands.
///
/// # Errors
/// As SQLite fails.
pub fn position(db: &Connection) -> rusqlite::Result<Position> {
    let mut read = db.prepare_cached("SELECT value FROM state WHERE key = ?1")?;
    let mut state = |key: &str| read.query_row([key], |row| row.get::<_, String>(0)).optional();
    let rev = state("rev")?.and_then(|rev| rev.parse().ok()).unwrap_or(0);
    Ok(Position { epoch: state("epoch")?.unwrap_or_else(|| "0".to_owned()), rev })
}

/// Sessions that match, in the filter's order, strictly after `before`.
///
/// # Errors
/// As SQLite fails.
pub fn sessions(
    db: &Connection,
    filter: &SessionFilter,
    before: Option<&(i64, String)>,
    limit: usize,
) -> rusqlite::Result<Vec<SessionSummary>> {
    let key = sort_key(filter.sort);
    let spans = match filter.spans.is_empty() {
        true => "",
        false => {
            "AND EXISTS (SELECT 1 FROM span x WHERE x.root = s.root
                 AND (:class IS NULL OR x.class = :class)
                 AND (:tool IS NULL OR lower(x.name) = 'execute_tool ' || lower(:tool))
                 AND (:min IS NULL OR x.end_ns - x.start_ns >= :min))"
        }
    };
    let sql = format!(
        "SELECT {SESSION_COLUMNS} FROM {SESSION_TABLES}
         WHERE {key} <= :key AND ({key}, root.text) < (:key, :root)
           AND (:state IS NULL OR s.state = :state)
           AND (:project IS NULL OR instr(lower(s.workspace), lower(:project)) > 0)
           AND (:model IS NULL OR instr(lower(s.model), lower(:model)) > 0)
           AND (:text IS NULL OR instr(lower(s.first_prompt), lower(:text)) > 0
                OR instr(lower(s.workspace), lower(:text)) > 0 OR instr(root.text, :text) > 0)
           AND (NOT :errored OR s.errors > 0)
           AND (:from IS NULL OR s.last_ns >= :from) AND (:to IS NULL OR s.started_ns <= :to)
           {spans}
         ORDER BY {key} DESC, root.text DESC LIMIT :limit"
    );
    // Without a cursor the page starts after everything: no text sorts behind this one.
    let (last, root) = before.map_or((i64::MAX, "\u{10ffff}"), |(at, root)| (*at, root));
    let mut values: Vec<(&str, &dyn ToSql)> = vec![
        (":key", &last),
        (":root", &root),
        (":project", &filter.project),
        (":model", &filter.model),
        (":text", &filter.text),
        (":errored", &filter.errored),
        (":from", &filter.from_ns),
        (":to", &filter.to_ns),
    ];
    let (state, limit) = (filter.state.map(|state| state.as_str()), sql_limit(limit));
    let class = filter.spans.kind.map(|kind| kind as u8);
    values.extend([(":state", &state as &dyn ToSql), (":limit", &limit)]);
    if !filter.spans.is_empty() {
        let SpanFilter { tool, min_ns, .. } = &filter.spans;
        values.extend([(":class", &class as &dyn ToSql), (":tool", tool), (":min", min_ns)]);
    }
    db.prepare_cached(&sql)?.query_map(&*values, rows::session)?.collect()
}

/// The same number as [`SessionSort::key`] computes.
const fn sort_key(sort: SessionSort) -> &'static str {
    match sort {
        SessionSort::Last => "s.last_ns",
        SessionSort::Start => "s.started_ns",
        SessionSort::Active => "s.active_ns",
        SessionSort::Errors => "s.errors",
        SessionSort::Calls => "s.tool_calls",
        SessionSort::Tokens => "coalesce(s.input + s.output, 0)",
    }
}

/// Sessions written after `since`, newest activity first.
///
/// # Errors
/// As SQLite fails.
pub fn changed(db: &Connection, since: u64, limit: usize) -> rusqlite::Result<Vec<SessionSummary>> {
    let sql = format!(
        "SELECT {SESSION_COLUMNS} FROM {SESSION_TABLES} WHERE s.rev > ?1
         ORDER BY s.last_ns DESC, root.text DESC LIMIT ?2"
    );
    db.prepare_cached(&sql)?
        .query_map((rows::signed(since), sql_limit(limit)), rows::session)?
        .collect()
}

/// One session.
///
/// # Errors
/// As SQLite fails.
pub fn session(db: &Connection, root: &str) -> rusqlite::Result<Option<SessionSummary>> {
    let Some(id) = name(db, root)? else { return Ok(None) };
    let sql = format!("SELECT {SESSION_COLUMNS} FROM {SESSION_TABLES} WHERE s.root = ?1");
    db.prepare_cached(&sql)?.query_row([id], rows::session).optional()
}

/// Turns of a session in order.
///
/// # Errors
/// As SQLite fails.
pub fn turns(db: &Connection, root: &str) -> rusqlite::Result<Vec<TurnSummary>> {
    let Some(id) = name(db, root)? else { return Ok(Vec::new()) };
    let sql =
        format!("SELECT {TURN_COLUMNS} FROM {TURN_TABLES} WHERE t.root = ?1 ORDER BY t.number");
    db.prepare_cached(&sql)?.query_map([id], rows::turn)?.collect()
}

/// First prompts by turn span, for labels.
///
/// # Errors
/// As SQLite fails.
pub fn prompts(db: &Connection, root: &str) -> rusqlite::Result<BTreeMap<SpanId, String>> {
    let Some(id) = name(db, root)? else { return Ok(BTreeMap::new()) };
    db.prepare_cached("SELECT span, prompt FROM turn WHERE root = ?1 AND prompt IS NOT NULL")?
        .query_map([id], |row| Ok((SpanId(row.get(0)?), row.get(1)?)))?
        .collect()
}

/// Spans of a session by start, then row, at most `limit`.
///
/// # Errors
/// As SQLite fails.
pub fn spans(db: &Connection, root: &str, limit: usize) -> rusqlite::Result<Vec<(i64, Span)>> {
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
/// As SQLite fails.
pub fn span_count(db: &Connection, root: &str) -> rusqlite::Result<u64> {
    let Some(id) = name(db, root)? else { return Ok(0) };
    db.prepare_cached("SELECT count(*) FROM span WHERE root = ?1")?
        .query_row([id], |row| count(row, 0))
}

/// Start and row of each segment of a session. Their ids are derived, so they are looked up, not searched for.
fn segments(db: &Connection, root: &str) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut find = db.prepare_cached("SELECT start_ns, row FROM span WHERE id = ?1")?;
    let mut segments = Vec::new();
    for segment in 0..SEGMENTS_MAX {
        let id = SpanId::derive(root, "", "session", &segment.to_string());
        let found = find.query_row([id.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some(found) = found else { break };
        segments.push(found);
    }
    Ok(segments)
}

/// One span by id.
///
/// # Errors
/// As SQLite fails.
pub fn span(db: &Connection, id: SpanId) -> rusqlite::Result<Option<(i64, Span)>> {
    let sql = format!("SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES} WHERE s.id = ?1");
    db.prepare_cached(&sql)?.query_row([id.0], rows::span).optional()
}

/// One span by store row.
///
/// # Errors
/// As SQLite fails.
pub fn span_row(db: &Connection, row: i64) -> rusqlite::Result<Option<(i64, Span)>> {
    let sql = format!("SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES} WHERE s.row = ?1");
    db.prepare_cached(&sql)?.query_row([row], rows::span).optional()
}

/// Session and root span of a trace; its earliest span when it has no root.
///
/// # Errors
/// As SQLite fails.
pub fn trace(db: &Connection, trace: TraceId) -> rusqlite::Result<Option<(String, SpanId)>> {
    db.prepare_cached(
        "SELECT root.text, s.id FROM span s JOIN name root ON root.id = s.root
         WHERE s.trace = ?1 ORDER BY s.parent IS NOT NULL, s.start_ns LIMIT 1",
    )?
    .query_row([trace.0], |row| Ok((row.get(0)?, SpanId(row.get(1)?))))
    .optional()
}

/// The raw body of a hook.
///
/// # Errors
/// As SQLite fails, or when the stored body is damaged.
pub fn body(db: &Connection, seq: u64) -> rusqlite::Result<Option<Vec<u8>>> {
    db.prepare_cached("SELECT codec, len, xxh64, body FROM payload WHERE seq = ?1")?
        .query_row([rows::signed(seq)], |row| {
            let bytes = row.get_ref(3)?.as_blob()?;
            codec::unpack(row.get(0)?, count(row, 1)?, row.get(2)?, bytes).map_err(|damage| {
                rusqlite::Error::FromSqlConversionFailure(
                    3,
                    rusqlite::types::Type::Blob,
                    Box::new(damage),
                )
            })
        })
        .optional()
}

/// What each destination did with a span: `sent`, `waiting`, `lost`, or `open` while it may still change.
///
/// # Errors
/// As SQLite fails.
pub fn exports(db: &Connection, row: i64) -> rusqlite::Result<Vec<(String, String)>> {
    db.prepare_cached(
        "SELECT p.destination,
                CASE WHEN s.settled_seq IS NULL THEN 'open'
                     WHEN s.settled_seq > p.acked_seq THEN 'waiting'
                     WHEN EXISTS (SELECT 1 FROM export_loss l WHERE l.destination = p.destination
                                  AND l.count > l.last_seq - l.first_seq
                                  AND s.settled_seq BETWEEN l.first_seq AND l.last_seq) THEN 'lost'
                     ELSE 'sent' END
         FROM span s, export_position p WHERE s.row = ?1 AND p.state <> 'off' ORDER BY p.destination",
    )?
    .query_map([row], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// Sums over turns that started at or after `from_ns`.
///
/// # Errors
/// As SQLite fails.
pub fn totals(db: &Connection, from_ns: i64) -> rusqlite::Result<Totals> {
    // Sessions without activity since then have no such turn: the index on them spares most of the table.
    db.prepare_cached(
        "SELECT count(*), total(t.ended_ns - t.started_ns), total(t.errors),
                sum(t.input), total(t.output), total(t.cache_read), total(t.cache_write)
         FROM session s CROSS JOIN turn t ON t.root = s.root
         WHERE s.last_ns >= ?1 AND t.started_ns >= ?1",
    )?
    .query_row([from_ns], |row| {
        let whole = |index| Ok::<u64, rusqlite::Error>(row.get::<_, f64>(index)? as u64);
        let tokens = match row.get::<_, Option<i64>>(3)? {
            None => None,
            Some(input) => Some(Tokens {
                input: u64::try_from(input).unwrap_or(0),
                output: whole(4)?,
                cache_read: whole(5)?,
                cache_write: whole(6)?,
            }),
        };
        let active_ns = row.get::<_, f64>(1)? as i64;
        Ok(Totals { turns: count(row, 0)?, active_ns, errors: whole(2)?, tokens })
    })
}

/// Failures by what they are called and what went wrong, most frequent first.
///
/// # Errors
/// As SQLite fails.
pub fn errors(db: &Connection, limit: usize) -> rusqlite::Result<Vec<ErrorGroup>> {
    db.prepare_cached(
        "WITH failed AS (
             SELECT s.name AS name, coalesce(nullif(s.error_message, ''), s.error_type) AS message,
                    s.root AS root, s.id AS id, s.start_ns AS at
             FROM span s WHERE s.error_type IS NOT NULL ORDER BY s.start_ns DESC LIMIT ?2)
         SELECT f.name, f.message, count(*), count(DISTINCT f.root), min(f.at), max(f.at), f.id, root.text
         FROM failed f JOIN name root ON root.id = f.root
         GROUP BY f.name, f.message ORDER BY count(*) DESC, max(f.at) DESC LIMIT ?1",
    )?
    // With max() in the list, SQLite takes the other columns from the row that holds the maximum: the newest sample.
    .query_map((sql_limit(limit), ERRORS_MAX), |row| {
        let name: String = row.get(0)?;
        let shown = name.strip_prefix("execute_tool ").unwrap_or(&name);
        Ok(ErrorGroup {
            fingerprint: format!("{shown}: {}", row.get_ref(1)?.as_str()?),
            count: count(row, 2)?,
            sessions: count(row, 3)?,
            first: Timestamp(row.get(4)?),
            last: Timestamp(row.get(5)?),
            sample: SpanId(row.get(6)?),
            sample_root: row.get(7)?,
            sample_name: name,
        })
    })?
    .collect()
}

/// Percentiles per name of `dimension` over `days`, most calls first. A damaged sketch is left out: `rebuild` makes it whole.
///
/// # Errors
/// As SQLite fails.
pub fn latency(
    db: &Connection,
    dimension: &str,
    days: (i64, i64),
) -> rusqlite::Result<Vec<LatencyRow>> {
    let mut statement = db.prepare_cached(
        "SELECT name, count, errors, sketch FROM histogram
         WHERE day BETWEEN ?1 AND ?2 AND dimension = ?3",
    )?;
    let mut found = statement.query((days.0, days.1, dimension))?;
    let mut sums: BTreeMap<String, (u64, u64, Histogram<u64>)> = BTreeMap::new();
    let mut deserializer = Deserializer::new();
    while let Some(row) = found.next()? {
        let mut bytes = row.get_ref(3)?.as_blob()?;
        let Ok(sketch) = deserializer.deserialize::<u64, _>(&mut bytes) else { continue };
        let (calls, failed) = (count(row, 1)?, count(row, 2)?);
        match sums.get_mut(row.get_ref(0)?.as_str()?) {
            Some((sum, errors, all)) => {
                *sum += calls;
                *errors += failed;
                // Sketches are written with one range, so that they always add.
                if all.add(&sketch).is_err() {
                    continue;
                }
            }
            None => drop(sums.insert(row.get(0)?, (calls, failed, sketch))),
        }
    }
    let mut rows: Vec<_> = sums.into_iter().map(latency_row).collect();
    rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    Ok(rows)
}

fn latency_row((name, (count, errors, all)): (String, (u64, u64, Histogram<u64>))) -> LatencyRow {
    LatencyRow {
        name,
        count,
        errors,
        p50_us: all.value_at_quantile(0.5),
        p90_us: all.value_at_quantile(0.9),
        p95_us: all.value_at_quantile(0.95),
        p99_us: all.value_at_quantile(0.99),
        max_us: all.max(),
    }
}

/// Counters by name.
///
/// # Errors
/// As SQLite fails.
pub fn counters(db: &Connection) -> rusqlite::Result<Vec<(String, u64)>> {
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
