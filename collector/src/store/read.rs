//! What the dashboard and the commands read: short, bounded, on read-only connections.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hookspan_core::price::Usage;
use hookspan_core::{Parts, SessionSummary, Span, SpanId, Tokens, TraceId, TurnSummary};
use hookspan_dashboard::source::{
    Arrival, DayTime, Gap, HeatCell, LatencyRow, Position, SessionFilter, SessionSort, SpanFilter,
    Totals,
};
use rusqlite::{Connection, OptionalExtension as _, Row, Rows, ToSql};

pub mod lines;

use super::rows::{
    self, SESSION_COLUMNS, SESSION_TABLES, SPAN_COLUMNS, SPAN_TABLES, TURN_COLUMNS, TURN_TABLES,
    count,
};
use super::write::{BLOCK_DAYS, DAY_HOURS, heat_read};

/// Changed spans of one look of the search index; what is left settles, and is found then.
const CHANGED_MAX: u32 = 20_000;
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
    // Settled spans by what the longest of each tool and kind took; the few others one by one.
    let spans = match filter.spans.is_empty() {
        true => "",
        false => {
            "AND (EXISTS (SELECT 1 FROM reach r WHERE r.root = s.root
                  AND (:class IS NULL OR r.class = :class)
                  AND (:tool IS NULL
                    OR substr(r.tool || ' ', 1, length(:tool) + 1) = lower(:tool) || ' ')
                  AND (:min IS NULL OR r.longest_ns >= :min))
                OR EXISTS (SELECT 1 FROM unsettled u JOIN span x ON x.row = u.span
                  WHERE u.root = s.root
                  AND (:class IS NULL OR x.class = :class)
                  AND (:tool IS NULL OR lower(substr(x.plain_name || ' ', 1, length(:tool) + 14))
                    = 'execute_tool ' || lower(:tool) || ' ')
                  AND (:min IS NULL OR x.end_ns - x.start_ns >= :min)))"
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

/// In which conversations spans of the session `?1` are, or of the one that it was bound to since: those are few, and ids are
/// kept by conversation.
const IN_SESSION: &str =
    "s.conversation IN (SELECT ?1 UNION SELECT id FROM conversation WHERE root = ?1
     UNION SELECT all_of.id FROM conversation own JOIN conversation all_of ON all_of.root = own.root
     WHERE own.id = ?1)";

/// One span of a session by id.
///
/// # Errors
/// As SQLite fails.
pub fn span_of(db: &Connection, root: &str, id: SpanId) -> rusqlite::Result<Option<(i64, Span)>> {
    let Some(root) = name(db, root)? else { return Ok(None) };
    let sql = format!("SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES} WHERE {IN_SESSION} AND s.id = ?2");
    db.prepare_cached(&sql)?.query_row((root, id.0), rows::span).optional()
}

/// One span by id alone. Looked for in one conversation after the other, the newest first; where the session is known,
/// [`span_of`] looks in that alone.
///
/// # Errors
/// As SQLite fails.
pub fn span(db: &Connection, id: SpanId) -> rusqlite::Result<Option<(i64, Span)>> {
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
/// As SQLite fails.
pub fn span_row(db: &Connection, row: i64) -> rusqlite::Result<Option<(i64, Span)>> {
    let sql = format!("SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES} WHERE s.row = ?1");
    db.prepare_cached(&sql)?.query_row([row], rows::span).optional()
}

/// Session and root span of a trace.
///
/// # Errors
/// As SQLite fails.
pub fn trace(db: &Connection, trace: TraceId) -> rusqlite::Result<Option<(String, SpanId)>> {
    db.prepare_cached(
        "SELECT root.text, s.id FROM span s JOIN name root ON root.id = s.root
         WHERE s.trace = ?1 AND s.parent IS NULL ORDER BY s.start_ns LIMIT 1",
    )?
    .query_row([trace.0], |row| Ok((row.get(0)?, SpanId(row.get(1)?))))
    .optional()
}

/// When the store was opened last, as a text that differs each time; its revision then, and its last place in the export
/// queue.
///
/// # Errors
/// As SQLite fails.
pub fn opened(db: &Connection) -> rusqlite::Result<Option<(String, u64, i64)>> {
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

/// What each destination did with a span: `sent`, `waiting`, `lost`, or `open` while it may still change.
///
/// # Errors
/// As SQLite fails.
pub fn exports(db: &Connection, row: i64) -> rusqlite::Result<Vec<(String, String)>> {
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

/// Tokens by model over the turns that started at or after `from_ns`, each sorted by how it is priced.
///
/// # Errors
/// As SQLite fails.
pub fn usage(db: &Connection, from_ns: i64) -> rusqlite::Result<Vec<(Option<String>, Usage)>> {
    let mut statement = db.prepare_cached(
        "SELECT t.model, t.input, t.output, t.cache_read, t.cache_write
         FROM session s CROSS JOIN turn t ON t.root = s.root
         WHERE s.last_ns >= ?1 AND t.started_ns >= ?1 AND t.input IS NOT NULL",
    )?;
    by_model(statement.query([from_ns])?)
}

/// Tokens by model over the turns of a session.
///
/// # Errors
/// As SQLite fails.
pub fn usage_of(db: &Connection, root: &str) -> rusqlite::Result<Vec<(Option<String>, Usage)>> {
    let Some(id) = name(db, root)? else { return Ok(Vec::new()) };
    let mut statement = db.prepare_cached(
        "SELECT model, input, output, cache_read, cache_write FROM turn
         WHERE root = ?1 AND input IS NOT NULL",
    )?;
    by_model(statement.query([id])?)
}

/// Rows of model, input, output and both cache parts, each sorted by how it is priced, then added up.
fn by_model(mut rows: Rows<'_>) -> rusqlite::Result<Vec<(Option<String>, Usage)>> {
    let mut sums: BTreeMap<Option<String>, Usage> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let whole =
            |index| Ok::<u64, rusqlite::Error>(row.get::<_, i64>(index)?.max(0).cast_unsigned());
        let tokens = Tokens {
            input: whole(1)?,
            output: whole(2)?,
            cache_read: whole(3)?,
            cache_write: whole(4)?,
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

/// Spans in the order in which they settled, after `after`, at most `limit`.
///
/// # Errors
/// As SQLite fails.
pub fn settled_after(
    db: &Connection,
    after: i64,
    limit: usize,
) -> rusqlite::Result<Vec<(i64, Span)>> {
    let sql = format!(
        "SELECT {SPAN_COLUMNS}, q.seq FROM settled q CROSS JOIN {SPAN_TABLES}
         WHERE q.seq > ?1 AND s.row = q.span ORDER BY q.seq LIMIT ?2"
    );
    db.prepare_cached(&sql)?
        .query_map((after, sql_limit(limit)), |row| Ok((row.get("seq")?, rows::span(row)?.1)))?
        .collect()
}

/// The last place given in the order of settling.
///
/// # Errors
/// As SQLite fails.
pub fn last_settled(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("SELECT coalesce(max(seq), 0) FROM settled")?.query_row([], |row| row.get(0))
}

/// Rows of spans written after `since` in sessions that changed since. At the first time (0) only of those that have not
/// settled.
///
/// # Errors
/// As SQLite fails.
pub fn changed_spans(db: &Connection, since: u64) -> rusqlite::Result<Vec<i64>> {
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

/// How often which durations happened, of one name of `dimension` or of all, over `hours`; with `daily`, by UTC day.
///
/// # Errors
/// As SQLite fails.
pub fn heat(
    db: &Connection,
    dimension: &str,
    name: Option<&str>,
    hours: (i64, i64),
    daily: bool,
) -> rusqlite::Result<Vec<HeatCell>> {
    let mut statement = db.prepare_cached(
        "SELECT hour, counts FROM heat
         WHERE dimension = ?1 AND name = ?2 AND hours = ?3 AND hour BETWEEN ?4 AND ?5",
    )?;
    let width = if daily { DAY_HOURS } else { 1 };
    let mut found =
        statement.query((dimension, name.unwrap_or_default(), width, hours.0, hours.1))?;
    let mut cells = Vec::new();
    while let Some(row) = found.next()? {
        let hour: i64 = row.get(0)?;
        let counts = (0..).zip(heat_read(row.get_ref(1)?.as_blob()?));
        let used = counts.filter(|(_, count)| *count > 0);
        cells.extend(used.map(|(bucket, count)| HeatCell { hour, bucket, count: count.into() }));
    }
    Ok(cells)
}

/// Where the time of settled turns went, over `days`, by day and project.
///
/// # Errors
/// As SQLite fails.
pub fn times(db: &Connection, days: (i64, i64)) -> rusqlite::Result<Vec<DayTime>> {
    let mut statement = db.prepare_cached(
        "SELECT day, project, turns, calls, errors, active_ns, input, output, thinking, responding,
                tools, shell, mcp, edits, subagent, wait, hooks, other
         FROM day_time WHERE day BETWEEN ?1 AND ?2",
    )?;
    let read = |row: &Row<'_>| {
        Ok(DayTime {
            day: row.get(0)?,
            project: Some(row.get(1)?).filter(|name: &String| !name.is_empty()),
            turns: count(row, 2)?,
            calls: count(row, 3)?,
            errors: count(row, 4)?,
            active_ns: row.get(5)?,
            input: count(row, 6)?,
            output: count(row, 7)?,
            parts: Parts {
                thinking: row.get(8)?,
                responding: row.get(9)?,
                tools: row.get(10)?,
                shell: row.get(11)?,
                mcp: row.get(12)?,
                edits: row.get(13)?,
                subagent: row.get(14)?,
                wait: row.get(15)?,
                hooks: row.get(16)?,
                other: row.get(17)?,
            },
        })
    };
    statement.query_map(days, read)?.collect()
}

/// The newest day before `day` with a settled span of `dimension`, and how many spans there are before it in all.
///
/// # Errors
/// As SQLite fails.
pub fn older(db: &Connection, dimension: &str, day: i64) -> rusqlite::Result<Option<(i64, u64)>> {
    db.prepare_cached(
        "SELECT max(day), sum(count) FROM histogram WHERE dimension = ?1 AND days = 1 AND day < ?2",
    )?
    .query_row((dimension, day), |row| {
        let newest: Option<i64> = row.get(0)?;
        newest.map(|newest| Ok((newest, count(row, 1)?))).transpose()
    })
}

/// Stretches after `from_ns` in which no collector ran and hooks came, newest first.
///
/// # Errors
/// As SQLite fails.
pub fn gaps(db: &Connection, from_ns: i64, limit: usize) -> rusqlite::Result<Vec<Gap>> {
    // Ids begin with the time at which a hook was received, so that their index counts them.
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

/// How long hooks took from their stamp to the collector, over `days`.
///
/// # Errors
/// As SQLite fails.
pub fn arrival(db: &Connection, days: (i64, i64)) -> rusqlite::Result<Option<Arrival>> {
    const BUDGET_US: u64 = 5_000;
    let sums = sketches(db, "arrival", days)?;
    let Some(Sum { count, all, .. }) = sums.into_values().next() else { return Ok(None) };
    let hist = all
        .iter_log(64, 2.0)
        .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()));
    Ok(Some(Arrival {
        count,
        p50_us: all.value_at_quantile(0.5),
        p99_us: all.value_at_quantile(0.99),
        max_us: all.max(),
        over_budget: all.count_between(BUDGET_US, all.high()),
        hist: hist.collect(),
    }))
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
    let mut rows: Vec<_> = sketches(db, dimension, days)?.into_iter().map(latency_row).collect();
    rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    Ok(rows)
}

/// What one name comes to.
struct Sum {
    count: u64,
    errors: u64,
    total_us: u64,
    all: Histogram<u64>,
}

/// Calls, failures and durations by name, added up over `days`.
fn sketches(
    db: &Connection,
    dimension: &str,
    days: (i64, i64),
) -> rusqlite::Result<BTreeMap<String, Sum>> {
    let mut statement = db.prepare_cached(
        "SELECT name, count, errors, total_us, sketch FROM histogram
         WHERE dimension = ?1 AND days = ?2 AND day BETWEEN ?3 AND ?4",
    )?;
    let mut sums = BTreeMap::new();
    let mut deserializer = Deserializer::new();
    // Arrivals are kept by day only.
    let pieces = if dimension == "arrival" { vec![(1, days)] } else { pieces(days) };
    for (width, (first, last)) in pieces {
        let mut found = statement.query((dimension, width, first, last))?;
        while let Some(row) = found.next()? {
            let mut bytes = row.get_ref(4)?.as_blob()?;
            let Ok(mut sketch) = deserializer.deserialize::<u64, _>(&mut bytes) else { continue };
            let (calls, errors, total_us) = (count(row, 1)?, count(row, 2)?, count(row, 3)?);
            match sums.get_mut(row.get_ref(0)?.as_str()?) {
                Some(Sum { count, errors: failed, total_us: sum, all }) => {
                    *count += calls;
                    *failed += errors;
                    *sum += total_us;
                    // It grows as far as it has to, so that sketches always add.
                    let _added = all.add(&sketch);
                }
                None => {
                    sketch.auto(true);
                    let sum = Sum { count: calls, errors, total_us, all: sketch };
                    drop(sums.insert(row.get(0)?, sum));
                }
            }
        }
    }
    Ok(sums)
}

/// A period as few sketches: days at its edges, blocks of days between, each with its width.
fn pieces((first, last): (i64, i64)) -> Vec<(i64, (i64, i64))> {
    let from = first.saturating_add(BLOCK_DAYS - 1).div_euclid(BLOCK_DAYS) * BLOCK_DAYS;
    let to = last.saturating_add(1).div_euclid(BLOCK_DAYS) * BLOCK_DAYS;
    if from >= to {
        return vec![(1, (first, last))];
    }
    vec![(1, (first, from - 1)), (BLOCK_DAYS, (from, to - 1)), (1, (to, last))]
}

fn latency_row((name, sum): (String, Sum)) -> LatencyRow {
    let Sum { count, errors, total_us, all } = sum;
    LatencyRow {
        name,
        count,
        errors,
        total_us,
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
