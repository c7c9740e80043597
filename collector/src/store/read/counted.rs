//! Computes the same figures as the sums over periods, by counting spans and turns one by one. Used for filters for
//! which no sums are stored.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hookspan_core::SpanKind;
use hookspan_view::facet;
use hookspan_view::line::LineKind;
use hookspan_view::source::{HeatCell, LatencyRow, LineFilter, Spent};
use rusqlite::{Connection, Row, ToSql};

use super::lines::matches;
use super::periods::{Sum, by_count, sketches};
use super::words::{self, Words};
use super::{spent, sql_limit};
use crate::store::rows;
use crate::store::write::{DAY_HOURS, HEAT_BUCKETS, Sums, TURN_SUMS, plus, turn_sums};

const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;

/// Sessions `v` that can contain a match. Other sessions are not read.
fn sessions() -> String {
    let model = words::OF_A_TURN.replace("{v}", "v");
    format!(
        "v.last_ns >= :from AND v.started_ns - 86400000000000 <= :to AND {} AND {model}",
        words::of_session("v")
    )
}

/// Percentiles per name of `dimension`, over the settled spans that match. `None` if more than `most` spans would have
/// to be read.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn latency_of(
    db: &Connection,
    dimension: &str,
    filter: &LineFilter,
    most: usize,
) -> rusqlite::Result<Option<Vec<LatencyRow>>> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let whole = each(db, dimension, filter, most, |span| record(&mut sums, span))?;
    Ok(whole.then(|| by_count(sums)))
}

/// Percentiles per name of `dimension`, from the first to the last nanosecond given. Whole UTC days come from their
/// sums. Of a part of a day the spans are counted one by one; `None` if there are more than `most` of them.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn latency_between(
    db: &Connection,
    dimension: &str,
    (from, to): (i64, i64),
    most: usize,
) -> rusqlite::Result<Option<Vec<LatencyRow>>> {
    let end = to.saturating_add(1);
    let (first, after) =
        (from.saturating_add(DAY_NS - 1).div_euclid(DAY_NS), end.div_euclid(DAY_NS));
    let (mut sums, parts) = match first < after {
        true => {
            let sums = sketches(db, dimension, (first, after - 1))?;
            (sums, vec![(from, first * DAY_NS - 1), (after * DAY_NS, to)])
        }
        false => (BTreeMap::new(), vec![(from, to)]),
    };
    for (from, to) in parts.into_iter().filter(|(from, to)| from <= to) {
        let filter = LineFilter { from_ns: Some(from), to_ns: Some(to), ..LineFilter::default() };
        if !each(db, dimension, &filter, most, |span| record(&mut sums, span))? {
            return Ok(None);
        }
    }
    Ok(Some(by_count(sums)))
}

fn record(sums: &mut BTreeMap<String, Sum>, span: Counted) -> rusqlite::Result<()> {
    let sum = match sums.entry(span.name) {
        Entry::Occupied(sum) => sum.into_mut(),
        Entry::Vacant(free) => free.insert(Sum::new()?),
    };
    sum.record(span.us, span.failed);
    Ok(())
}

/// Durations of the settled spans that match, with a count for each. `None` if more than `most` spans would have to
/// be read.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn heat_of(
    db: &Connection,
    dimension: &str,
    name: Option<&str>,
    filter: &LineFilter,
    daily: bool,
    most: usize,
) -> rusqlite::Result<Option<Vec<HeatCell>>> {
    let mut cells: BTreeMap<(i64, u32), u64> = BTreeMap::new();
    let whole = each(db, dimension, filter, most, |span| {
        let is_wanted = name.is_none_or(|name| span.name == name);
        if let Some(us) = span.us.filter(|_| is_wanted) {
            let hour = span.start_ns.div_euclid(HOUR_NS);
            let hour = if daily { hour.div_euclid(DAY_HOURS) * DAY_HOURS } else { hour };
            let bucket = (us.max(1).ilog2() as usize).min(HEAT_BUCKETS - 1);
            *cells.entry((hour, bucket as u32)).or_default() += 1;
        }
        Ok(())
    })?;
    let cell = |((hour, bucket), count)| HeatCell { hour, bucket, count };
    Ok(whole.then(|| cells.into_iter().map(cell).collect()))
}

/// Sums over the settled turns that match, by column, project and model. `None` if more than `most` turns would have to
/// be read.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn spent_of(
    db: &Connection,
    edges: &[i64],
    filter: &LineFilter,
    most: usize,
) -> rusqlite::Result<Option<Vec<Spent>>> {
    let (sessions, words) = (sessions(), Words::of(filter));
    let sql = format!(
        "SELECT {TURN_SUMS},
                coalesce(s.end_ns IS NOT NULL AND (:model IS NULL OR coalesce(t.model, 'none') = :model COLLATE NOCASE)
                AND (NOT :failed OR s.error_type IS NOT NULL)
                AND NOT EXISTS (SELECT 1 FROM unsettled u WHERE u.root = s.root AND u.span = s.row), 0)
         FROM session v CROSS JOIN turn t ON t.root = v.root
              CROSS JOIN span s ON s.conversation = t.root AND s.id = t.span
         WHERE {sessions} AND t.started_ns >= :from AND t.started_ns <= :to LIMIT :limit"
    );
    let (Some(from), Some(to)) = (edges.first(), edges.last()) else { return Ok(Some(Vec::new())) };
    let (until, limit) = (to - 1, sql_limit(most.saturating_add(1)));
    let mut values: Vec<(&str, &dyn ToSql)> =
        vec![(":from", from), (":to", &until), (":failed", &filter.failed), (":limit", &limit)];
    values.extend(words.values());
    let mut statement = db.prepare_cached(&sql)?;
    let mut found = statement.query(&*values)?;
    let (mut seen, mut sums) = (0, BTreeMap::<(usize, String, String), Sums>::new());
    while let Some(row) = found.next()? {
        seen += 1;
        if row.get(11)? {
            let turn = turn_sums(row)?;
            let column = edges.partition_point(|edge| *edge <= turn.started_ns).saturating_sub(1);
            plus(sums.entry((column, turn.project, turn.model)).or_default(), &turn.sums);
        }
    }
    let of = |((column, project, model), sums)| spent::one(column, (project, model), sums);
    Ok((seen <= most).then(|| sums.into_iter().map(of).collect()))
}

/// A settled span that matches, with its name in the dimension.
struct Counted {
    name: String,
    start_ns: i64,
    us: Option<u64>,
    failed: bool,
}

/// Calls `see` with each settled span that matches. Returns false if it stopped because more than `most` spans would
/// have to be read.
fn each(
    db: &Connection,
    dimension: &str,
    filter: &LineFilter,
    most: usize,
    mut see: impl FnMut(Counted) -> rusqlite::Result<()>,
) -> rusqlite::Result<bool> {
    let (from, to) = period(filter);
    let words = Words::of(filter);
    let (class, limit) = (filter.kind.map(|kind| kind as u8), sql_limit(most.saturating_add(1)));
    let mut values: Vec<(&str, &dyn ToSql)> = vec![
        (":from", &from),
        (":to", &to),
        (":session", &filter.session),
        (":class", &class),
        (":tool", &filter.tool),
        (":limit", &limit),
    ];
    values.extend(words.values());
    let mut statement = db.prepare_cached(&spans(dimension, filter))?;
    let mut found = statement.query(&*values)?;
    let mut seen = 0;
    while let Some(row) = found.next()? {
        seen += 1;
        if seen > most {
            return Ok(false);
        }
        // The last column tells whether the span matches. Spans that do not match also count as read.
        if !row.get::<_, bool>(8)? {
            continue;
        }
        let Some(name) = facet_of(row, dimension)? else { continue };
        let us: Option<i64> = row.get(5)?;
        let us = us.map(|us| u64::try_from(us).unwrap_or(0));
        see(Counted { name, start_ns: row.get(7)?, us, failed: row.get(6)? })?;
    }
    Ok(true)
}

/// The spans to read. Failures are found by an index on their start, other spans by their sessions.
fn spans(dimension: &str, filter: &LineFilter) -> String {
    let (failed, matches, sessions) = (rows::is_failure("s"), matches(), sessions());
    let tables = match filter.failed {
        true => format!(
            "span s CROSS JOIN session v ON v.root = s.root CROSS JOIN name root ON root.id = s.root
         WHERE {failed}"
        ),
        false => {
            "session v CROSS JOIN name root ON root.id = v.root CROSS JOIN span s ON s.root = v.root
         WHERE true"
                .to_owned()
        }
    };
    let work = rows::work_ns("s");
    let detail = if dimension == "model" { "s.detail" } else { "NULL" };
    format!(
        "SELECT s.kind, s.class, s.tool, s.workspace, {detail}, {work} / 1000, {failed}, s.start_ns,
                coalesce(s.end_ns IS NOT NULL AND {matches}
                AND NOT EXISTS (SELECT 1 FROM unsettled u WHERE u.root = s.root AND u.span = s.row), 0)
         FROM {tables} AND {sessions}
           AND (:session IS NULL OR root.text = :session)
           AND ((:tool IS NULL AND :class IS NULL) OR EXISTS (SELECT 1 FROM reach r WHERE r.root = v.root
                AND (:class IS NULL OR r.class = :class) AND (:tool IS NULL OR r.tool = lower(:tool))))
           AND s.start_ns >= :from AND s.start_ns <= :to LIMIT :limit"
    )
}

fn period(filter: &LineFilter) -> (i64, i64) {
    (filter.from_ns.unwrap_or(i64::MIN), filter.to_ns.unwrap_or(i64::MAX))
}

/// The name under which a span is counted; see [`facet`]. `None` if the dimension does not apply to the span.
fn facet_of(row: &Row<'_>, dimension: &str) -> rusqlite::Result<Option<String>> {
    let is_turn = row.get_ref(0)?.as_str()? == SpanKind::Generation.as_str();
    Ok(match dimension {
        "kind" => {
            let class = usize::from(row.get::<_, u8>(1)?);
            LineKind::ALL.get(class).map(|kind| kind.as_str().to_owned())
        }
        "tool" => row.get(2)?,
        "project" if is_turn => {
            let workspace = row.get_ref(3)?.as_str_or_null()?;
            workspace.and_then(facet::project).map(Cow::into_owned)
        }
        "model" if is_turn => {
            let model = rows::text_attribute(row, 4, "gen_ai.request.model")?;
            model.filter(|name| !name.is_empty()).map(|name| facet::cut(&name).into_owned())
        }
        _ => None,
    })
}
