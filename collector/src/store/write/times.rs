//! Sums of where settled turns spent their time, per UTC day and project.

use std::collections::{BTreeMap, BTreeSet};

use hookspan_core::{Parts, SpanId};
use hookspan_view::facet;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql};

use super::sketches::DAY_NS;
use crate::store::rows;

/// Values to add to a day: turns, calls, errors, active time, its ten parts, input and output tokens, and the number of
/// turns that reported each of these.
pub(in crate::store) type Sums = [i64; 18];

/// The sums of one transaction. They are added to the stored sums.
#[derive(Default)]
pub(super) struct Times {
    days: BTreeMap<(i64, String), Sums>,
    /// Turns that the transaction changes, by root and span. Their earlier values are already subtracted.
    touched: BTreeSet<(i64, SpanId)>,
}

impl Times {
    /// Call this before a turn's row or span changes. It subtracts the turn's current values, and [`Self::write`] adds
    /// the new ones.
    pub(super) fn touch(
        &mut self,
        db: &Connection,
        root: i64,
        span: SpanId,
    ) -> rusqlite::Result<()> {
        if self.touched.insert((root, span))
            && let Some((day, project, sums)) = counted(db, root, span)?
        {
            self.add(day, project, sums.map(i64::wrapping_neg));
        }
        Ok(())
    }

    /// Does the same for all turns of `root`.
    pub(super) fn touch_all(&mut self, db: &Connection, root: i64) -> rusqlite::Result<()> {
        let mut turns = db.prepare_cached("SELECT span FROM turn WHERE root = ?1")?;
        let spans = turns.query_map([root], |row| row.get(0).map(SpanId))?;
        for span in spans.collect::<rusqlite::Result<Vec<_>>>()? {
            self.touch(db, root, span)?;
        }
        Ok(())
    }

    fn add(&mut self, day: i64, project: String, more: Sums) {
        let sums = self.days.entry((day, project)).or_default();
        for (sum, more) in sums.iter_mut().zip(more) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Adds the new values of the changed turns to the table.
    pub(super) fn write(&mut self, db: &Connection) -> rusqlite::Result<()> {
        for (root, span) in std::mem::take(&mut self.touched) {
            if let Some((day, project, sums)) = counted(db, root, span)? {
                self.add(day, project, sums);
            }
        }
        for ((day, project), sums) in std::mem::take(&mut self.days) {
            if sums.iter().all(|sum| *sum == 0) {
                continue;
            }
            put(db, day, &project, sums)?;
            if sums[0] < 0 {
                db.prepare_cached(
                    "DELETE FROM day_time WHERE day = ?1 AND project = ?2 AND turns <= 0",
                )?
                .execute((day, &project))?;
            }
        }
        Ok(())
    }

    /// Clears the sums of a transaction that was rolled back.
    pub(super) fn clear(&mut self) {
        self.days.clear();
        self.touched.clear();
    }
}

/// The values of a turn. `None` until its span has settled.
fn counted(
    db: &Connection,
    root: i64,
    span: SpanId,
) -> rusqlite::Result<Option<(i64, String, Sums)>> {
    db.prepare_cached(
        "SELECT t.started_ns, t.ended_ns, t.tool_calls, t.errors, t.input, t.output, t.parts, s.workspace
         FROM turn t JOIN span s ON s.conversation = t.root AND s.id = t.span
         WHERE t.root = ?1 AND t.span = ?2 AND s.end_ns IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM unsettled u WHERE u.root = s.root AND u.span = s.row)",
    )?
    .query_row((root, span.0), day_sums)
    .optional()
}

/// The UTC day, project and values of a row with start, end, calls, errors, tokens in and out, parts and workspace.
pub(in crate::store) fn day_sums(row: &Row<'_>) -> rusqlite::Result<(i64, String, Sums)> {
    let (started, ended): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
    let Parts { thinking, responding, tools, shell, mcp, edits, subagent, wait, hooks, other } =
        rows::parts(row, 6)?;
    let (input, output): (Option<i64>, Option<i64>) = (row.get(4)?, row.get(5)?);
    let sums = [
        1,
        row.get(2)?,
        row.get(3)?,
        ended.map_or(0, |ended| ended.saturating_sub(started)),
        thinking,
        responding,
        tools,
        shell,
        mcp,
        edits,
        subagent,
        wait,
        hooks,
        other,
        input.unwrap_or(0),
        output.unwrap_or(0),
        i64::from(input.is_some()),
        i64::from(output.is_some()),
    ];
    let workspace = row.get_ref(7)?.as_str_or_null()?;
    let project = workspace.and_then(facet::project).unwrap_or_default();
    Ok((started.div_euclid(DAY_NS), project.into_owned(), sums))
}

fn put(db: &Connection, day: i64, project: &str, sums: Sums) -> rusqlite::Result<()> {
    let mut values: Vec<&dyn ToSql> = vec![&day, &project];
    values.extend(sums.iter().map(|sum| sum as &dyn ToSql));
    db.prepare_cached(
        "INSERT INTO day_time (day, project, turns, calls, errors, active_ns, thinking, responding,
                               tools, shell, mcp, edits, subagent, wait, hooks, other, input, output,
                               input_turns, output_turns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
         ON CONFLICT (day, project) DO UPDATE
         SET turns = turns + excluded.turns, calls = calls + excluded.calls,
             errors = errors + excluded.errors, active_ns = active_ns + excluded.active_ns,
             thinking = thinking + excluded.thinking, responding = responding + excluded.responding,
             tools = tools + excluded.tools, shell = shell + excluded.shell, mcp = mcp + excluded.mcp,
             edits = edits + excluded.edits, subagent = subagent + excluded.subagent,
             wait = wait + excluded.wait, hooks = hooks + excluded.hooks, other = other + excluded.other,
             input = input + excluded.input, output = output + excluded.output,
             input_turns = input_turns + excluded.input_turns,
             output_turns = output_turns + excluded.output_turns",
    )?
    .execute(&*values)?;
    Ok(())
}
