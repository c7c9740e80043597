//! Reads durations over a period of days: heatmap, percentiles, sums of each day.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hookspan_view::health::Arrival;
use hookspan_view::source::{HeatCell, LatencyRow};
use rusqlite::Connection;

use crate::store::rows::count;
use crate::store::write::{BLOCK_DAYS, DAY_HOURS, DIGITS, LONGEST_US, heat_read};

/// Durations during `hours`, with a count for each, for one name of `dimension` or for all. With `daily`, per UTC day.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn heat(
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

/// The newest day before `day` that has a settled span of `dimension`, and the number of such spans before `day`.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn older(
    db: &Connection,
    dimension: &str,
    day: i64,
) -> rusqlite::Result<Option<(i64, u64)>> {
    db.prepare_cached(
        "SELECT max(day), sum(count) FROM histogram WHERE dimension = ?1 AND days = 1 AND day < ?2",
    )?
    .query_row((dimension, day), |row| {
        let newest: Option<i64> = row.get(0)?;
        newest.map(|newest| Ok((newest, count(row, 1)?))).transpose()
    })
}

/// Time from a hook's timestamp until the collector had read the hook, during `days`.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn arrival(db: &Connection, days: (i64, i64)) -> rusqlite::Result<Option<Arrival>> {
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

/// Percentiles per name of `dimension` during `days`, most calls first. A damaged sketch is left out; `rebuild`
/// restores it.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn latency(
    db: &Connection,
    dimension: &str,
    days: (i64, i64),
) -> rusqlite::Result<Vec<LatencyRow>> {
    Ok(by_count(sketches(db, dimension, days)?))
}

/// Percentiles from sums, most calls first.
pub(super) fn by_count(sums: BTreeMap<String, Sum>) -> Vec<LatencyRow> {
    let mut rows: Vec<_> = sums.into_iter().map(latency_row).collect();
    rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    rows
}

/// The sums of one name.
pub(super) struct Sum {
    count: u64,
    errors: u64,
    total_us: u64,
    all: Histogram<u64>,
}

impl Sum {
    /// Adds a span.
    pub(super) fn record(&mut self, us: Option<u64>, failed: bool) {
        self.count += 1;
        self.errors += u64::from(failed);
        if let Some(us) = us {
            self.total_us = self.total_us.saturating_add(us);
            self.all.saturating_record(us.clamp(1, LONGEST_US));
        }
    }

    pub(super) fn new() -> rusqlite::Result<Self> {
        let all = Histogram::new_with_bounds(1, LONGEST_US, DIGITS);
        let all = all.map_err(|_| rusqlite::Error::InvalidQuery)?;
        Ok(Self { count: 0, errors: 0, total_us: 0, all })
    }
}

/// Calls, failures and durations by name, added up over `days`.
pub(super) fn sketches(
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
                    // The histogram grows as needed, so adding cannot fail.
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

/// Divides a period into few sketches: days at its ends, and blocks of days in between, each with its width.
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
    // A span of unknown length is counted and is in no sketch.
    let unknown = count.saturating_sub(all.len());
    let known = |us: u64| (!all.is_empty()).then_some(us);
    let at = |quantile| known(all.value_at_quantile(quantile));
    LatencyRow {
        name,
        count,
        errors,
        unknown,
        total_us: known(total_us),
        p50_us: at(0.5),
        p90_us: at(0.9),
        p95_us: at(0.95),
        p99_us: at(0.99),
        max_us: known(all.max()),
    }
}
