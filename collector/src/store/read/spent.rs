//! Sums over turns for periods in any time zone, computed from stored sums per quarter of an hour and per UTC day.

use std::collections::BTreeMap;

use hookspan_core::Parts;
use hookspan_core::price::Usage;
use hookspan_view::source::{DayTime, Spent};
use rusqlite::{CachedStatement, Connection};

use crate::store::write::{DAY_QUARTERS, QUARTER_NS, Sums, plus};

/// Sums by project and model.
type ByName = BTreeMap<(String, String), Sums>;

/// Sums over settled turns by column, project and model. `edges` are whole quarters of an hour, in nanoseconds.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn spent(db: &Connection, edges: &[i64]) -> rusqlite::Result<Vec<Spent>> {
    let mut sums = Stored { statement: db.prepare_cached(SUMS)? };
    let mut places = Vec::with_capacity(edges.len());
    for edge in edges {
        places.push(sums.place(edge.div_euclid(QUARTER_NS))?);
    }
    let mut found = Vec::new();
    for (column, pair) in places.windows(2).enumerate() {
        let [from, to] = pair else { continue };
        // First the sums from the day nearest to one edge to the day nearest to the other. Then the difference between
        // these days and the edges is added or subtracted.
        let mut column_sums = sums.between(DAY_QUARTERS, (from.day, to.day))?;
        add(&mut column_sums, &to.beyond, 1);
        add(&mut column_sums, &from.beyond, -1);
        column_sums.retain(|_, sums| sums[0] > 0);
        found.extend(column_sums.into_iter().map(|(names, sums)| one(column, names, sums)));
    }
    Ok(found)
}

const SUMS: &str =
    "SELECT project, model, sum(turns), sum(calls), sum(errors), sum(active_ns), sum(thinking), sum(responding),
            sum(tools), sum(shell), sum(mcp), sum(edits), sum(subagent), sum(wait), sum(hooks), sum(other),
            sum(input), sum(output), sum(input_turns), sum(output_turns), sum(plain), sum(cache_read),
            sum(cache_write)
     FROM turn_time WHERE width = ?1 AND quarter >= ?2 AND quarter < ?3 GROUP BY project, model";

/// The stored sums.
struct Stored<'a> {
    statement: CachedStatement<'a>,
}

/// An edge of a column. `day` is the UTC day that begins nearest to the edge. `beyond` has the sums between the begin
/// of that day and the edge; they are negative if the edge comes first.
struct Place {
    day: i64,
    beyond: ByName,
}

impl Stored<'_> {
    fn place(&mut self, edge: i64) -> rusqlite::Result<Place> {
        let day = (edge + DAY_QUARTERS / 2).div_euclid(DAY_QUARTERS) * DAY_QUARTERS;
        let mut beyond = ByName::new();
        if edge > day {
            beyond = self.between(1, (day, edge))?;
        } else if edge < day {
            add(&mut beyond, &self.between(1, (edge, day))?, -1);
        }
        Ok(Place { day, beyond })
    }

    fn between(&mut self, width: i64, (from, to): (i64, i64)) -> rusqlite::Result<ByName> {
        let mut sums = ByName::new();
        let mut rows = self.statement.query((width, from, to))?;
        while let Some(row) = rows.next()? {
            let mut values: Sums = [0; 21];
            for (at, value) in values.iter_mut().enumerate() {
                *value = row.get(at + 2)?;
            }
            let _none = sums.insert((row.get(0)?, row.get(1)?), values);
        }
        Ok(sums)
    }
}

fn add(sums: &mut ByName, more: &ByName, sign: i64) {
    for (names, values) in more {
        plus(sums.entry(names.clone()).or_default(), &values.map(|value| value * sign));
    }
}

/// One row of the answer.
pub(super) fn one(column: usize, (project, model): (String, String), sums: Sums) -> Spent {
    let count = |at: usize| u64::try_from(sums[at]).unwrap_or(0);
    let named = |name: String| Some(name).filter(|name| !name.is_empty());
    let said = |at: usize, turns: usize| (sums[turns] > 0).then(|| count(at));
    Spent {
        model: named(model),
        usage: Usage {
            input: count(18),
            output: count(15),
            cache_read: count(19),
            cache_write: count(20),
        },
        time: DayTime {
            day: i64::try_from(column).unwrap_or(i64::MAX),
            project: named(project),
            turns: count(0),
            calls: count(1),
            errors: count(2),
            active_ns: sums[3],
            parts: Parts {
                thinking: sums[4],
                responding: sums[5],
                tools: sums[6],
                shell: sums[7],
                mcp: sums[8],
                edits: sums[9],
                subagent: sums[10],
                wait: sums[11],
                hooks: sums[12],
                other: sums[13],
            },
            input: said(14, 16),
            output: said(15, 17),
        },
    }
}
