//! Where the time of settled turns went, added up per UTC day and project.

use std::collections::BTreeMap;

use hookspan_core::{Span, SpanKind, TurnSummary};
use rusqlite::{Connection, OptionalExtension as _, ToSql};

use super::settled_turn::SettledTurn;
use super::sketches::{Counted, DAY_NS};
use crate::store::rows::{self, TURN_COLUMNS, TURN_TABLES};

/// What to add to a day: turns, calls, errors, active time, the ten parts of it, tokens in and out.
type Sums = [i64; 16];

/// Sums of one transaction, to be added to what is stored.
#[derive(Default)]
pub(super) struct Times {
    days: BTreeMap<(i64, String), Sums>,
}

impl Times {
    /// Counts `turn`, which is final.
    pub(super) fn add(&mut self, project: &str, turn: &TurnSummary) {
        let day = turn.started_at.0.div_euclid(DAY_NS);
        let sums = self.days.entry((day, project.to_owned())).or_default();
        for (sum, more) in sums.iter_mut().zip(sums_of(turn)) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Counts a turn that has been written before.
    pub(super) fn add_stored(
        &mut self,
        db: &Connection,
        settled: &SettledTurn,
    ) -> rusqlite::Result<()> {
        let name = "SELECT id FROM name WHERE text = ?1";
        let root: Option<i64> =
            db.prepare_cached(name)?.query_row([&*settled.root], |row| row.get(0)).optional()?;
        let sql =
            format!("SELECT {TURN_COLUMNS} FROM {TURN_TABLES} WHERE t.root = ?1 AND t.span = ?2");
        let found = db.prepare_cached(&sql)?.query_row((root, settled.span.0), rows::turn);
        if let Some(turn) = found.optional()? {
            self.add(&settled.project, &turn);
        }
        Ok(())
    }

    /// Adds what was counted to the table.
    pub(super) fn write(&mut self, db: &Connection) -> rusqlite::Result<()> {
        for ((day, project), sums) in std::mem::take(&mut self.days) {
            put(db, day, &project, sums)?;
        }
        Ok(())
    }

    /// Takes back what the turns among `spans` counted for; call it while their rows are there.
    pub(super) fn remove<'a>(
        db: &Connection,
        spans: impl Iterator<Item = &'a Span>,
    ) -> rusqlite::Result<()> {
        let mut gone = Self::default();
        for span in spans.filter(|span| span.kind == SpanKind::Generation) {
            if let Some(turn) = Counted::of(span).and_then(|mut counted| counted.take_turn()) {
                gone.add_stored(db, &turn)?;
            }
        }
        for ((day, project), sums) in gone.days {
            put(db, day, &project, sums.map(i64::wrapping_neg))?;
            db.prepare_cached(
                "DELETE FROM day_time WHERE day = ?1 AND project = ?2 AND turns <= 0",
            )?
            .execute((day, &project))?;
        }
        Ok(())
    }

    /// Forgets what was counted in a transaction that was rolled back.
    pub(super) fn clear(&mut self) {
        self.days.clear();
    }
}

fn sums_of(turn: &TurnSummary) -> Sums {
    let parts = turn.parts;
    let tokens = turn.tokens.unwrap_or_default();
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    [
        1,
        count(turn.tool_calls),
        count(turn.errors),
        turn.ended_at.map_or(0, |end| end.since(turn.started_at)),
        parts.thinking,
        parts.responding,
        parts.tools,
        parts.shell,
        parts.mcp,
        parts.edits,
        parts.subagent,
        parts.wait,
        parts.hooks,
        parts.other,
        count(tokens.input.unwrap_or_default()),
        count(tokens.output.unwrap_or_default()),
    ]
}

fn put(db: &Connection, day: i64, project: &str, sums: Sums) -> rusqlite::Result<()> {
    let mut values: Vec<&dyn ToSql> = vec![&day, &project];
    values.extend(sums.iter().map(|sum| sum as &dyn ToSql));
    db.prepare_cached(
        "INSERT INTO day_time (day, project, turns, calls, errors, active_ns, thinking, responding,
                               tools, shell, mcp, edits, subagent, wait, hooks, other, input, output)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
         ON CONFLICT (day, project) DO UPDATE
         SET turns = turns + excluded.turns, calls = calls + excluded.calls,
             errors = errors + excluded.errors, active_ns = active_ns + excluded.active_ns,
             thinking = thinking + excluded.thinking, responding = responding + excluded.responding,
             tools = tools + excluded.tools, shell = shell + excluded.shell, mcp = mcp + excluded.mcp,
             edits = edits + excluded.edits, subagent = subagent + excluded.subagent,
             wait = wait + excluded.wait, hooks = hooks + excluded.hooks, other = other + excluded.other,
             input = input + excluded.input, output = output + excluded.output",
    )?
    .execute(&*values)?;
    Ok(())
}
