//! Sums of settled turns, per quarter of an hour and per UTC day, by project and model.

use std::collections::{BTreeMap, BTreeSet};

use hookspan_core::price::Usage;
use hookspan_core::{Parts, SpanId, Tokens};
use hookspan_view::facet;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql};

use crate::store::rows;

/// The summed values, in this order: turns, calls, errors, active time, its ten parts, input tokens, output tokens,
/// turns that reported input, turns that reported output, and the tokens by price: input without cache, cache read,
/// cache written.
pub(in crate::store) type Sums = [i64; 21];

/// The shortest period for which sums are stored. Every time zone in use differs from UTC by a whole number of quarters
/// of an hour.
pub(in crate::store) const QUARTER_NS: i64 = 900_000_000_000;
/// Quarters of a UTC day.
pub(in crate::store) const DAY_QUARTERS: i64 = 96;

/// A settled turn as it is summed up.
pub(in crate::store) struct Turn {
    pub(in crate::store) started_ns: i64,
    pub(in crate::store) project: String,
    pub(in crate::store) model: String,
    pub(in crate::store) sums: Sums,
}

/// The sums of one transaction. They are added to the stored sums.
#[derive(Default)]
pub(super) struct Times {
    /// By quarter, project and model.
    quarters: BTreeMap<(i64, String, String), Sums>,
    /// Turns that the transaction changes (root and span). Their earlier values are subtracted already.
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
            && let Some(turn) = counted(db, root, span)?
        {
            let sums = turn.sums.map(i64::wrapping_neg);
            self.add(Turn { sums, ..turn });
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

    fn add(&mut self, turn: Turn) {
        let Turn { started_ns, project, model, sums: more } = turn;
        let key = (started_ns.div_euclid(QUARTER_NS), project, model);
        plus(self.quarters.entry(key).or_default(), &more);
    }

    /// Adds the new values of the changed turns to the table.
    pub(super) fn write(&mut self, db: &Connection) -> rusqlite::Result<()> {
        for (root, span) in std::mem::take(&mut self.touched) {
            if let Some(turn) = counted(db, root, span)? {
                self.add(turn);
            }
        }
        for ((quarter, project, model), sums) in std::mem::take(&mut self.quarters) {
            if sums.iter().all(|sum| *sum == 0) {
                continue;
            }
            let day = quarter.div_euclid(DAY_QUARTERS) * DAY_QUARTERS;
            for (width, first) in [(1, quarter), (DAY_QUARTERS, day)] {
                put(db, (width, first), (&project, &model), sums)?;
                if sums[0] < 0 {
                    db.prepare_cached(
                        "DELETE FROM turn_time WHERE width = ?1 AND quarter = ?2 AND project = ?3
                         AND model = ?4 AND turns <= 0",
                    )?
                    .execute((width, first, &project, &model))?;
                }
            }
        }
        Ok(())
    }

    /// Clears the sums of a transaction that was rolled back.
    pub(super) fn clear(&mut self) {
        self.quarters.clear();
        self.touched.clear();
    }
}

/// Adds sums to sums.
pub(in crate::store) fn plus(sums: &mut Sums, more: &Sums) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// The values of a turn; nothing before its span has settled.
fn counted(db: &Connection, root: i64, span: SpanId) -> rusqlite::Result<Option<Turn>> {
    db.prepare_cached(&format!(
        "SELECT {TURN_SUMS} FROM turn t JOIN span s ON s.conversation = t.root AND s.id = t.span
         WHERE t.root = ?1 AND t.span = ?2 AND s.end_ns IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM unsettled u WHERE u.root = s.root AND u.span = s.row)"
    ))?
    .query_row((root, span.0), turn_sums)
    .optional()
}

/// The columns of a turn `t` and its span `s` that [`turn_sums`] reads.
pub(in crate::store) const TURN_SUMS: &str =
    "t.started_ns, t.ended_ns, t.tool_calls, t.errors, t.input, t.output, t.parts,
     s.workspace, t.model, t.cache_read, t.cache_write";

/// A row of [`TURN_SUMS`].
pub(in crate::store) fn turn_sums(row: &Row<'_>) -> rusqlite::Result<Turn> {
    let (started_ns, ended): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
    let Parts { thinking, responding, tools, shell, mcp, edits, subagent, wait, hooks, other } =
        rows::parts(row, 6)?;
    let (input, output): (Option<i64>, Option<i64>) = (row.get(4)?, row.get(5)?);
    let (cache_read, cache_write): (Option<i64>, Option<i64>) = (row.get(9)?, row.get(10)?);
    let said = |count: Option<i64>| count.map(|count| count.max(0).cast_unsigned());
    // A turn without input and output tokens has no cost.
    let is_said = input.is_some() || output.is_some();
    let priced = Usage::from(Tokens {
        input: said(input),
        output: said(output),
        cache_read: said(cache_read).filter(|_| is_said),
        cache_write: said(cache_write).filter(|_| is_said),
    });
    let sums = [
        1,
        row.get(2)?,
        row.get(3)?,
        ended.map_or(0, |ended| ended.saturating_sub(started_ns)),
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
        rows::signed(priced.input),
        rows::signed(priced.cache_read),
        rows::signed(priced.cache_write),
    ];
    let workspace = row.get_ref(7)?.as_str_or_null()?;
    let project = workspace.and_then(facet::project).unwrap_or_default().into_owned();
    let model = row.get_ref(8)?.as_str_or_null()?.unwrap_or_default();
    Ok(Turn { started_ns, project, model: facet::cut(model).into_owned(), sums })
}

fn put(
    db: &Connection,
    (width, quarter): (i64, i64),
    (project, model): (&str, &str),
    sums: Sums,
) -> rusqlite::Result<()> {
    let mut values: Vec<&dyn ToSql> = vec![&width, &quarter, &project, &model];
    values.extend(sums.iter().map(|sum| sum as &dyn ToSql));
    db.prepare_cached(
        "INSERT INTO turn_time (width, quarter, project, model, turns, calls, errors, active_ns, thinking, responding,
                                tools, shell, mcp, edits, subagent, wait, hooks, other, input, output,
                                input_turns, output_turns, plain, cache_read, cache_write)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
                 ?21, ?22, ?23, ?24, ?25)
         ON CONFLICT (width, quarter, project, model) DO UPDATE
         SET turns = turns + excluded.turns, calls = calls + excluded.calls,
             errors = errors + excluded.errors, active_ns = active_ns + excluded.active_ns,
             thinking = thinking + excluded.thinking, responding = responding + excluded.responding,
             tools = tools + excluded.tools, shell = shell + excluded.shell, mcp = mcp + excluded.mcp,
             edits = edits + excluded.edits, subagent = subagent + excluded.subagent,
             wait = wait + excluded.wait, hooks = hooks + excluded.hooks, other = other + excluded.other,
             input = input + excluded.input, output = output + excluded.output,
             input_turns = input_turns + excluded.input_turns,
             output_turns = output_turns + excluded.output_turns, plain = plain + excluded.plain,
             cache_read = cache_read + excluded.cache_read,
             cache_write = cache_write + excluded.cache_write",
    )?
    .execute(&*values)?;
    Ok(())
}
