//! The export state of each destination: position, stored batches and losses.
//!
//! Exporters write this state over their own connections. The engine's connection writes everything derived from hooks.
//! The engine's transactions must neither grow by a destination's batch nor wait for a destination. Only exporters
//! write the `export_*` tables, and a rebuild does not change these tables. So each row has one writer: the engine for
//! data from hooks, and one exporter per destination for the export state. SQLite's lock serialises an exporter's short
//! transactions (one per request) with those of the engine. If the lock is held for long, an exporter fails and tries
//! again. The engine waits for at most one small commit.

mod control;
mod health;
mod losses;
mod points;
mod types;

use std::path::Path;
use std::time::Duration;

use hookspan_core::{Span, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::bodies::Bodies;
use super::open::{self, OpenError};
use super::rows::{self, signed};
pub(crate) use control::{remove, replay, set_stopped, switch_off_others};
pub(crate) use health::{DestinationRow, destinations};
pub(crate) use points::{PointsPosition, PointsRow, StoredPoints, keep_points};
pub(crate) use types::{
    Batch, DestinationState, Held, Loss, LossReason, Position, Setback, StartAt,
};

/// Replaces a receiver's answer that may have quoted a deleted session.
pub(crate) const ANSWER_DELETED: &str = "the receiver's answer was deleted together with a session";

/// Used instead of the first number of a batch, for events that concern no batch.
const NO_BATCH: i64 = -1;

/// How long an exporter waits for the lock. A busy engine may take the lock many times in between, and exporters are in
/// no hurry.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The export tables as one destination's worker uses them.
#[derive(Debug)]
pub(crate) struct ExportStore {
    db: Connection,
    destination: String,
    /// Hash of the configured connection. If the hash changes, the name now belongs to another receiver, which has not
    /// accepted anything yet.
    connection: String,
}

impl ExportStore {
    /// Opens the store for `destination` and gives it a position if it has none. `connection` identifies the receiver.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub(crate) fn open(
        path: &Path,
        destination: &str,
        connection: &str,
        start: StartAt,
    ) -> Result<Self, OpenError> {
        let db = open::writer(path)?;
        let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
        db.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
        db.pragma_update(None, "cache_size", -2_048).map_err(sqlite)?;
        let mut store =
            Self { db, destination: destination.to_owned(), connection: connection.to_owned() };
        store.register(start).map_err(sqlite)?;
        Ok(store)
    }

    fn register(&mut self, start: StartAt) -> rusqlite::Result<()> {
        let (destination, connection) = (self.destination.clone(), self.connection.clone());
        self.write(|tx| {
            // The destination was paused before any attempt, because of its configuration. The configuration may have
            // changed since.
            tx.execute(
                "UPDATE export_position SET state = 'ok', last_error = NULL, advice = NULL
                 WHERE destination = ?1 AND state = 'paused' AND attempts = 0",
                [&destination],
            )?;
            // A paused destination is tried at once, because people restart the collector after correcting its
            // configuration.
            let known = tx.execute(
                "UPDATE export_position SET
                    not_before_ns = CASE state WHEN 'paused' THEN 0 ELSE not_before_ns END,
                    max_bytes = CASE accepted_by WHEN ?2 THEN max_bytes END
                 WHERE destination = ?1",
                params![destination, connection],
            )?;
            if known > 0 {
                return release(tx, &destination);
            }
            let acked = start_seq(tx, start)?;
            tx.execute(
                "INSERT INTO export_position (destination, acked_seq, built_seq, state)
                 VALUES (?1, ?2, ?2, 'ok')",
                params![destination, acked],
            )?;
            Ok(())
        })
    }

    /// The destination's position and state.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn position(&self) -> rusqlite::Result<Position> {
        self.db.prepare_cached(
            "SELECT acked_seq, built_seq, state, not_before_ns, attempts, accepted_by IS ?2, stopped, max_bytes,
                    max_bytes_ns
             FROM export_position WHERE destination = ?1",
        )?
        .query_row([&self.destination, &self.connection], |row| {
            let acked_seq: i64 = row.get(0)?;
            let size: Option<i64> = row.get(7)?;
            let size = size.and_then(|bytes| u64::try_from(bytes).ok());
            let learned = Timestamp(row.get(8)?);
            Ok(Position {
                acked_seq,
                built_seq: acked_seq.max(row.get(1)?),
                state: DestinationState::parse(row.get_ref(2)?.as_str()?),
                not_before: Timestamp(row.get(3)?),
                attempts: row.get(4)?,
                has_accepted: row.get(5)?,
                stopped: row.get(6)?,
                size: size.map(|bytes| (bytes, learned)),
            })
        })
    }

    /// The oldest stored batch that is to be sent.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn batch(&self) -> rusqlite::Result<Option<Batch>> {
        self.oldest(
            "SELECT first_seq, last_seq, spans, body, attempts FROM export_batch
             WHERE destination = ?1 AND held = 0 ORDER BY first_seq LIMIT 1",
        )
    }

    /// The oldest stored batch, set aside or not.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn oldest_batch(&self) -> rusqlite::Result<Option<Batch>> {
        self.oldest(
            "SELECT first_seq, last_seq, spans, body, attempts FROM export_batch
             WHERE destination = ?1 ORDER BY first_seq LIMIT 1",
        )
    }

    fn oldest(&self, sql: &str) -> rusqlite::Result<Option<Batch>> {
        self.db
            .prepare_cached(sql)?
            .query_row([&self.destination], |row| {
                Ok(Batch {
                    first_seq: row.get(0)?,
                    last_seq: row.get(1)?,
                    spans: rows::count(row, 2)?,
                    body: row.get::<_, Vec<u8>>(3)?.into(),
                    attempts: row.get(4)?,
                })
            })
            .optional()
    }

    /// Number of batches to send, number of batches set aside, and when the oldest of these was set aside.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn batches(&self) -> rusqlite::Result<(u64, u64, Option<Timestamp>)> {
        self.db
            .prepare_cached(
                "SELECT count(*) FILTER (WHERE held = 0), count(*) FILTER (WHERE held > 0),
                        min(held_ns) FILTER (WHERE held > 0)
                 FROM export_batch WHERE destination = ?1",
            )?
            .query_row([&self.destination], |row| {
                let oldest: Option<i64> = row.get(2)?;
                Ok((rows::count(row, 0)?, rows::count(row, 1)?, oldest.map(Timestamp)))
            })
    }

    /// Calls `each` for settled spans after `seq`, in the order of settling, until `each` returns `false`.
    ///
    /// # Errors
    ///
    /// Returns SQLite's error, or an error if a row contains something that this program does not write.
    pub(crate) fn settled_after(
        &self,
        seq: i64,
        mut each: impl FnMut(i64, Span) -> bool,
    ) -> rusqlite::Result<()> {
        let sql = format!(
            "SELECT {}, q.seq FROM settled q CROSS JOIN {}
             WHERE q.seq > ?1 AND s.row = q.span ORDER BY q.seq",
            rows::SETTLED_SPAN_COLUMNS,
            rows::SPAN_TABLES
        );
        let mut statement = self.db.prepare_cached(&sql)?;
        let mut found = statement.query([seq])?;
        while let Some(row) = found.next()? {
            let settled = row.get("seq")?;
            let (_, span) = rows::span(row)?;
            if !each(settled, span) {
                break;
            }
        }
        Ok(())
    }

    /// How many settled spans come after `seq`, at most `limit`.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn waiting(&self, seq: i64, limit: u64) -> rusqlite::Result<u64> {
        self.db
            .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM settled WHERE seq > ?1 LIMIT ?2)")?
            .query_row(params![seq, signed(limit)], |row| rows::count(row, 0))
    }

    /// The `settled.seq` that has exactly `keep` settled spans after it; 0 when there are fewer.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn seq_before_last(&self, keep: u64) -> rusqlite::Result<i64> {
        self.db
            .prepare_cached("SELECT seq FROM settled ORDER BY seq DESC LIMIT 1 OFFSET ?1")?
            .query_row([signed(keep)], |row| row.get(0))
            .optional()
            .map(|seq| seq.unwrap_or(0))
    }

    /// Bodies of hooks.
    #[must_use]
    pub(crate) fn bodies(&self) -> Bodies<'_> {
        Bodies::new(&self.db)
    }

    /// Stores a batch before its first attempt, together with the losses found while building it. If the user or a
    /// deletion has moved the position in the meantime, nothing is stored and the batch must be built again.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn store_batch(
        &mut self,
        batch: &Batch,
        losses: &[Loss],
        at: Timestamp,
    ) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            let built: i64 = tx
                .prepare_cached(
                    "SELECT max(acked_seq, built_seq) FROM export_position WHERE destination = ?1",
                )?
                .query_row([&destination], |row| row.get(0))?;
            if built != batch.first_seq - 1 {
                return Ok(());
            }
            insert(tx, &destination, batch)?;
            advance(tx, &destination, batch.last_seq)?;
            losses::count(tx, &destination, losses, at)
        })
    }

    /// The `settled.seq` before the first span of `start`.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn start_seq(&self, start: StartAt) -> rusqlite::Result<i64> {
        start_seq(&self.db, start)
    }

    /// Stores batches of spans that were sent before. The position does not move. A batch that is already stored stays
    /// unchanged.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn add_batches(&mut self, batches: &[Batch]) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            let mut is_stored = tx.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM export_batch WHERE destination = ?1 AND first_seq = ?2)",
            )?;
            for batch in batches {
                if !is_stored.query_row(params![destination, batch.first_seq], |row| row.get(0))? {
                    insert(tx, &destination, batch)?;
                }
            }
            tx.execute(
                "UPDATE export_position SET not_before_ns = 0 WHERE destination = ?1",
                [&destination],
            )?;
            Ok(())
        })
    }

    /// Moves the position past spans that need not be sent.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn skip_to(
        &mut self,
        seq: i64,
        losses: &[Loss],
        at: Timestamp,
    ) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            advance(tx, &destination, seq)?;
            losses::count(tx, &destination, losses, at)
        })
    }

    /// Removes finished batches. `delivered` of their spans arrived (`None`: they were given up), and `losses` did
    /// not. An accepted request clears the destination's problems and decides about batches that were set aside.
    /// After a pause, all of them are sent again. Otherwise, batches that cannot be split are lost, and the others
    /// are sent again. `next` is stored in the same transaction, which saves a sync. Returns whether `next` was
    /// stored.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn finish(
        &mut self,
        done: &[Batch],
        delivered: Option<u64>,
        losses: &[Loss],
        next: &[Batch],
        at: Timestamp,
    ) -> rusqlite::Result<bool> {
        let (destination, connection) = (self.destination.clone(), self.connection.clone());
        self.write(|tx| {
            // If a deletion has removed a batch in the meantime, the batch is built again. So the position does not
            // move past it.
            let mut were_stored = true;
            for batch in done {
                were_stored &= delete(tx, &destination, batch.first_seq)?;
            }
            if let Some(delivered) = delivered {
                decide_held(tx, &destination, &connection, at)?;
                tx.prepare_cached(
                    "UPDATE export_position SET state = 'ok', attempts = 0, not_before_ns = 0,
                        last_error = NULL, advice = NULL, last_ok_ns = ?2, delivered = delivered + ?3,
                        accepted_by = ?4
                     WHERE destination = ?1",
                )?
                .execute(params![destination, at.0, signed(delivered), connection])?;
            }
            if were_stored {
                next.iter().try_for_each(|next| insert(tx, &destination, next))?;
                if let Some(last) = next.last().or(done.last()) {
                    advance(tx, &destination, last.last_seq)?;
                }
            }
            // An answer about a deleted session is not stored, because it may quote the session.
            let told: Vec<Loss>;
            let losses = if were_stored {
                losses
            } else {
                told = losses.iter().map(Loss::untold).collect();
                told.as_slice()
            };
            losses::count(tx, &destination, losses, at)?;
            Ok(were_stored)
        })
    }

    /// Replaces a batch with `parts`, because it was too large or contains something that the receiver refuses.
    /// `max_bytes` is the new maximum request size, if the receiver refused a size.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn replace(
        &mut self,
        batch: &Batch,
        parts: &[Batch],
        max_bytes: Option<u64>,
        at: Timestamp,
    ) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            if delete(tx, &destination, batch.first_seq)? {
                parts.iter().try_for_each(|part| insert(tx, &destination, part))?;
            }
            if let Some(max_bytes) = max_bytes {
                tx.execute(
                    "UPDATE export_position SET max_bytes = ?2, max_bytes_ns = ?3 WHERE destination = ?1",
                    params![destination, signed(max_bytes), at.0],
                )?;
            }
            Ok(())
        })
    }

    /// Sets a refused batch aside with its reason, so that other batches can be tried.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn hold(
        &mut self,
        first_seq: i64,
        held: Held,
        setback: &Setback,
        at: Timestamp,
    ) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            tx.execute(
                "UPDATE export_batch SET held = ?3, refusal = ?4, held_ns = ?5
                 WHERE destination = ?1 AND first_seq = ?2",
                params![destination, first_seq, held.code(), setback.error, at.0],
            )?;
            record(tx, &destination, first_seq, setback)
        })
    }

    /// Puts every batch that was set aside back into the queue.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn release(&mut self) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| release(tx, &destination))
    }

    /// Pauses the destination for a reason that is known before anything is sent.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn pause(&mut self, setback: &Setback) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| record(tx, &destination, NO_BATCH, setback))
    }

    /// Records a failed attempt that will be repeated.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn set_back(&mut self, first_seq: i64, setback: &Setback) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| record(tx, &destination, first_seq, setback))
    }

    fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&tx)?;
        tx.commit()?;
        Ok(done)
    }
}

fn head(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("SELECT coalesce(max(seq), 0) FROM settled")?.query_row([], |row| row.get(0))
}

/// The `settled.seq` before the first span that a destination will get.
fn start_seq(db: &Connection, start: StartAt) -> rusqlite::Result<i64> {
    match start {
        StartAt::Beginning => Ok(0),
        StartAt::Head => head(db),
        StartAt::Since(at) => db.query_row(
            "SELECT coalesce(min(q.seq) - 1, (SELECT coalesce(max(seq), 0) FROM settled))
             FROM settled q JOIN span s ON s.row = q.span WHERE s.end_ns >= ?1",
            [at.0],
            |row| row.get(0),
        ),
    }
}

fn insert(tx: &Transaction<'_>, destination: &str, batch: &Batch) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO export_batch (destination, first_seq, last_seq, spans, body, attempts)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        destination,
        batch.first_seq,
        batch.last_seq,
        signed(batch.spans),
        &*batch.body,
        batch.attempts
    ])?;
    Ok(())
}

/// Whether there was such a batch.
fn delete(tx: &Transaction<'_>, destination: &str, first_seq: i64) -> rusqlite::Result<bool> {
    let deleted = tx
        .prepare_cached("DELETE FROM export_batch WHERE destination = ?1 AND first_seq = ?2")?
        .execute(params![destination, first_seq])?;
    Ok(deleted > 0)
}

/// Records that batches up to `seq` were built, and that everything before the oldest stored batch is done.
fn advance(tx: &Transaction<'_>, destination: &str, seq: i64) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE export_position SET
            built_seq = max(built_seq, acked_seq, ?2),
            acked_seq = max(acked_seq, coalesce(
                (SELECT min(first_seq) - 1 FROM export_batch WHERE destination = ?1),
                max(built_seq, ?2)))
         WHERE destination = ?1",
    )?
    .execute(params![destination, seq])?;
    Ok(())
}

/// Decides about batches that were set aside, after the receiver has accepted a request. Batches that it refused while
/// it accepted others were refused for their content. Batches that it refused while it accepted nothing are tried
/// again.
fn decide_held(
    tx: &Transaction<'_>,
    destination: &str,
    connection: &str,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let proves = "(SELECT state = 'retry' AND accepted_by IS ?3 FROM export_position WHERE destination = ?1)";
    let condition = format!("destination = ?1 AND held >= ?2 AND {proves}");
    let alone = Held::Alone.code();
    let mut refused = tx.prepare_cached(&format!(
        "SELECT first_seq, last_seq, spans, held, coalesce(refusal, '') FROM export_batch
         WHERE {condition} ORDER BY first_seq"
    ))?;
    let refused = refused.query_map(params![destination, alone, connection], |row| {
        let too_large = row.get::<_, i64>(3)? == Held::TooLarge.code();
        Ok(Loss {
            first_seq: row.get(0)?,
            last_seq: row.get(1)?,
            count: rows::count(row, 2)?,
            reason: if too_large { LossReason::TooLarge } else { LossReason::Rejected },
            detail: row.get(4)?,
        })
    })?;
    let refused: Vec<Loss> = refused.collect::<rusqlite::Result<_>>()?;
    losses::count(tx, destination, &refused, at)?;
    tx.prepare_cached(&format!("DELETE FROM export_batch WHERE {condition}"))?.execute(params![
        destination,
        alone,
        connection
    ])?;
    release(tx, destination)
}

fn release(tx: &Transaction<'_>, destination: &str) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE export_batch SET held = 0, refusal = NULL, attempts = 0 WHERE destination = ?1 AND held > 0",
    )?
    .execute([destination])?;
    Ok(())
}

fn record(
    tx: &Transaction<'_>,
    destination: &str,
    first_seq: i64,
    setback: &Setback,
) -> rusqlite::Result<()> {
    let stored = tx.execute(
        "UPDATE export_batch SET attempts = attempts + 1 WHERE destination = ?1 AND first_seq = ?2",
        params![destination, first_seq],
    )?;
    let quotes_deleted = stored == 0 && first_seq != NO_BATCH;
    let error = if quotes_deleted { ANSWER_DELETED } else { &*setback.error };
    tx.execute(
        "UPDATE export_position SET state = ?2, not_before_ns = ?3, attempts = ?4, last_error = ?5,
            advice = nullif(?6, '') WHERE destination = ?1",
        params![
            destination,
            setback.state.as_str(),
            setback.not_before.0,
            setback.attempts,
            error,
            setback.advice
        ],
    )?;
    Ok(())
}

/// A counter of the store; 0 if nothing was counted yet.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn counter(db: &Connection, key: &str) -> rusqlite::Result<u64> {
    let read = db
        .prepare_cached("SELECT value FROM counter WHERE key = ?1")?
        .query_row([key], |row| rows::count(row, 0))
        .optional();
    read.map(|value| value.unwrap_or(0))
}
