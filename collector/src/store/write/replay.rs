//! Reads the raw log for the fold: at the start, for an evicted conversation, and for a rebuild.

use hookspan_core::{Hook, SpanId};
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::raw::{self, HOOK_COLUMNS, HOOK_TABLES};
use super::{Reading, Store, Transaction};
use crate::store::codec::Unpacker;
use crate::store::open::RULES;

/// `raw_hook.source` of evidence.
const EVIDENCE: i64 = 2;

/// Counters that are derived from the raw log. A rebuild counts them again.
const DERIVED_COUNTERS: &str = "key IN ('malformed', 'unknown_event', 'damaged_body')
     OR key GLOB 'unknown_event.*' OR key GLOB 'unknown_field.*'
     OR key GLOB 'unknown_value.*'";

impl Store {
    /// The root of `conversation`, if the raw log has hooks of it before `before`.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub fn known_root(&self, conversation: &str, before: u64) -> rusqlite::Result<Option<String>> {
        let earlier = self
            .db
            .prepare_cached(
                "SELECT n.id FROM name n WHERE n.text = ?1 AND EXISTS
                     (SELECT 1 FROM raw_hook WHERE conversation = n.id AND seq < ?2)",
            )?
            .query_row((conversation, before.cast_signed()), |row| row.get::<_, i64>(0))
            .optional()?;
        let Some(id) = earlier else { return Ok(None) };
        let root = self
            .db
            .prepare_cached(
                "SELECT n.text FROM conversation c JOIN name n ON n.id = c.root WHERE c.id = ?1",
            )?
            .query_row([id], |row| row.get(0))
            .optional()?;
        Ok(Some(root.unwrap_or_else(|| conversation.to_owned())))
    }

    /// The session whose subagent may be a conversation that begins at `at_ns` in `workspace`: the last session there
    /// that delegated something and was not silent for `idle_ns` before.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub(crate) fn delegating(
        &self,
        workspace: &str,
        at_ns: i64,
        idle_ns: i64,
    ) -> rusqlite::Result<Option<String>> {
        self.db
            .prepare_cached(
                "SELECT n.text FROM session s JOIN name n ON n.id = s.root
                 WHERE s.last_ns >= ?2 - ?3 AND s.started_ns <= ?2 AND s.workspace = ?1 AND s.subagents > 0
                 ORDER BY s.last_ns DESC LIMIT 1",
            )?
            .query_row((workspace, at_ns, idle_ns), |row| row.get(0))
            .optional()
    }

    /// The spans that `conversation` has as a root. It would lose them if it became a child.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub fn spans_alone(&self, conversation: &str) -> rusqlite::Result<Option<Vec<SpanId>>> {
        let own = "SELECT c.id FROM conversation c JOIN name n ON n.id = c.id
             WHERE n.text = ?1 AND c.root = c.id";
        let own = self.db.prepare_cached(own)?.query_row([conversation], |row| row.get(0));
        let Some(own) = own.optional()? else { return Ok(None) };
        let own: i64 = own;
        self.db
            .prepare_cached(
                "SELECT id FROM span WHERE root = ?1 AND conversation = ?1
                     AND kind IN ('session', 'generation')",
            )?
            .query_map([own], |row| row.get(0).map(SpanId))?
            .collect::<rusqlite::Result<_>>()
            .map(Some)
    }

    /// Numbers and times of all hooks before `before` that belong to `root` or to a conversation bound to it, in order.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub fn group(&self, root: &str, before: u64) -> rusqlite::Result<Vec<(u64, i64)>> {
        self.places(
            "SELECT seq, observed_ns FROM raw_hook WHERE seq < ?2 AND conversation IN
                 (SELECT id FROM name WHERE text = ?1
                  UNION SELECT c.id FROM conversation c JOIN name n ON n.id = c.root
                  WHERE n.text = ?1)",
            (root, before.cast_signed()),
        )
    }

    /// Numbers and times of all folded hooks of the conversations that the fold held at the last commit, in order.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub fn held(&self) -> rusqlite::Result<Vec<(u64, i64)>> {
        self.places(
            "SELECT seq, observed_ns FROM raw_hook WHERE seq <= ?1 AND conversation IN
                 (SELECT id FROM conversation WHERE held)",
            [self.marks.folded.cast_signed()],
        )
    }

    fn places(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> rusqlite::Result<Vec<(u64, i64)>> {
        let mut statement = self.db.prepare_cached(sql)?;
        let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?));
        let rows = statement.query_map(values, row)?;
        let mut places: Vec<(u64, i64)> = rows.collect::<rusqlite::Result<_>>()?;
        places.sort_unstable();
        Ok(places)
    }

    /// The hook at `seq`. If its body is damaged, the hook counts as malformed, and the replay continues without the
    /// body.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub fn hook(&mut self, seq: u64) -> rusqlite::Result<Option<Hook>> {
        let sql = format!("SELECT {HOOK_COLUMNS} FROM {HOOK_TABLES} WHERE h.seq = ?1");
        let Self { db, unpacker, .. } = self;
        let found = db
            .prepare_cached(&sql)?
            .query_row([seq.cast_signed()], |row| tolerant(row, unpacker))
            .optional()?;
        let Some((hook, damaged)) = found else { return Ok(None) };
        if damaged {
            self.count("damaged_body", 1);
        }
        Ok(Some(hook))
    }

    /// The next hooks whose effects are not in the derived tables, at most `limit`.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub fn unfolded(&mut self, limit: usize) -> rusqlite::Result<Vec<Hook>> {
        let sql = format!(
            "SELECT {HOOK_COLUMNS} FROM {HOOK_TABLES} WHERE h.seq > ?1 ORDER BY h.seq LIMIT ?2"
        );
        let after = (self.marks.folded.cast_signed(), i64::try_from(limit).unwrap_or(i64::MAX));
        let Self { db, unpacker, .. } = self;
        let found: Vec<(Hook, bool)> = db
            .prepare_cached(&sql)?
            .query_map(after, |row| tolerant(row, unpacker))?
            .collect::<rusqlite::Result<_>>()?;
        let damaged = found.iter().filter(|(_, damaged)| *damaged).count();
        self.count("damaged_body", damaged as u64);
        Ok(found.into_iter().map(|(hook, _)| hook).collect())
    }

    /// Divides the unfolded hooks into blocks of `block` hooks, and returns one time for each block: the earliest time
    /// among the hooks that follow the block in the same run. Time may pass up to it without overtaking a later hook. A
    /// run consists of consecutive hooks of one source, because an import may lie far in the past.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub fn horizons(&self, block: usize) -> rusqlite::Result<Vec<i64>> {
        let after = [self.marks.folded.cast_signed()];
        let total = "SELECT count(*) FROM raw_hook WHERE seq > ?1";
        let mut left: i64 = self.db.query_row(total, after, |row| row.get(0))?;
        let mut statement = self
            .db
            .prepare("SELECT observed_ns, source FROM raw_hook WHERE seq > ?1 ORDER BY seq DESC")?;
        let mut rows = statement.query(after)?;
        // Nothing is known about hooks after the last block, so it has no such time.
        let (mut horizons, mut run, mut earliest) = (vec![i64::MIN], None, i64::MAX);
        while let Some(row) = rows.next()? {
            let (at, source): (i64, i64) = (row.get(0)?, row.get(1)?);
            // Evidence may occur inside any run, and its time has no meaning.
            if source != EVIDENCE {
                earliest = if run == Some(source) { earliest.min(at) } else { at };
                run = Some(source);
            }
            left -= 1;
            if left > 0 && left.cast_unsigned().is_multiple_of(block as u64) {
                horizons.push(earliest);
            }
        }
        horizons.reverse();
        Ok(horizons)
    }

    /// How many hooks wait to be folded. They are counted, because deletions leave gaps in the numbers.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub fn unfolded_hooks(&self) -> rusqlite::Result<u64> {
        self.db
            .query_row(
                "SELECT count(*) FROM raw_hook WHERE seq > ?1",
                [self.marks.folded.cast_signed()],
                |row| row.get::<_, i64>(0),
            )
            .map(i64::cast_unsigned)
    }

    /// Gives the derived tables an epoch (a name) if they have none. A rebuild changes the epoch, so that pages reload.
    /// Also records the last row. If a power cut loses later rows, their numbers are used again, and the search index
    /// may contain entries of the lost rows.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn begin(&mut self, epoch: &str) -> rusqlite::Result<()> {
        self.renew_names(env!("CARGO_PKG_VERSION"))?;
        let named = self.state("epoch")?.is_some();
        let opened = format!("{epoch} {} {}", self.marks.rev, self.marks.settled);
        self.transaction(|open| {
            if !named {
                // Nothing is derived yet: the database is new, or a migration has emptied the derived tables.
                open.set_state("epoch", epoch)?;
                open.set_state("rules", &RULES.to_string())?;
            }
            open.set_state("opened", &opened)
        })?;
        Ok(())
    }

    /// Empties the derived tables, so that the raw log is folded again from its start.
    ///
    /// # Errors
    /// Returns SQLite's error. Then nothing has changed.
    pub fn start_rebuild(&mut self, epoch: &str) -> rusqlite::Result<()> {
        self.transaction(|open| {
            open.store.db.execute_batch(&format!(
                "INSERT INTO settled_before (id, settled_seq)
                     SELECT s.id, q.seq FROM settled q JOIN span s ON s.row = q.span WHERE true
                     ON CONFLICT (id) DO UPDATE SET settled_seq = excluded.settled_seq;
                 DELETE FROM settled;
                 DELETE FROM unsettled;
                 DELETE FROM span;
                 DELETE FROM file;
                 DELETE FROM turn;
                 DELETE FROM session;
                 DELETE FROM conversation;
                 DELETE FROM histogram WHERE dimension <> 'arrival';
                 DELETE FROM heat;
                 DELETE FROM turn_time;
                 DELETE FROM reach;
                 DELETE FROM counter WHERE {DERIVED_COUNTERS};"
            ))?;
            open.store.novel.clear();
            open.store.files.clear();
            open.store.sketches.clear();
            open.store.ending.clear();
            open.store.marks.folded = 0;
            open.store.marks.rebuilding = true;
            open.set_state("rules", &RULES.to_string())?;
            open.set_state("epoch", epoch)
        })?;
        Ok(())
    }
}

impl Transaction<'_> {
    /// Notes that this transaction contains the effects of the hook at `seq`, which is already in the raw log.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn folded(&mut self, seq: u64, reading: &Reading) -> rusqlite::Result<()> {
        raw::reinterpret(&self.store.db, &mut self.store.names, seq, reading)?;
        self.reading(reading);
        self.store.subjects.note(seq, reading);
        self.store.marks.folded = seq;
        Ok(())
    }

    /// Notes that no hook is left to fold. The last numbers may belong to deleted hooks.
    pub fn folded_all(&mut self) {
        self.store.marks.folded = self.store.marks.seq;
    }

    /// Ends a rebuild. Every span that could settle has settled. Numbers in the export queue that were saved for spans
    /// and not used again are deleted.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub fn end_rebuild(&mut self) -> rusqlite::Result<()> {
        if std::mem::take(&mut self.store.marks.rebuilding) {
            self.store.db.execute_batch("DELETE FROM settled_before")?;
        }
        Ok(())
    }

    /// The connection, for reads that must see this transaction's writes.
    #[must_use]
    pub fn store(&mut self) -> &mut Store {
        self.store
    }
}

/// Returns the place in the export queue that a span had before the rebuild.
pub(super) fn take_place(db: &Connection, id: SpanId) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("DELETE FROM settled_before WHERE id = ?1 RETURNING settled_seq")?
        .query_row([id.0], |row| row.get(0))
        .optional()
}

fn tolerant(row: &Row<'_>, unpacker: &mut Unpacker) -> rusqlite::Result<(Hook, bool)> {
    match raw::hook(row, unpacker) {
        Ok(hook) => Ok((hook, false)),
        Err(rusqlite::Error::FromSqlConversionFailure(raw::BODY, ..)) => {
            raw::envelope(row, Vec::new()).map(|hook| (hook, true))
        }
        Err(error) => Err(error),
    }
}
