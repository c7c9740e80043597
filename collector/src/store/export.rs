//! What has left this machine: positions, batches in flight and losses, per destination.
//!
//! Why a second connection writes here. The engine owns the write connection for everything that is derived from hooks, and
//! its transactions must never grow by a destination's batch or wait for a destination's pace. The `export_*` tables are
//! touched by nobody else, a rebuild leaves them alone, and SQLite's own lock puts the few short transactions of an exporter
//! (one per request) between those of the engine. So the rule "one writer" holds per table: the engine for what hooks say,
//! one exporter per destination for what left. When the lock is taken for long, an exporter fails and tries again; the
//! engine only ever waits for one small commit.

use std::path::Path;
use std::time::Duration;

use hookspan_core::{Span, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::bodies::Bodies;
use super::open::{self, OpenError};
use super::rows::{self, signed};

/// Exporters may lose the race for the lock to a busy engine many times in a row; they have time.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The export tables as one destination's worker uses them.
#[derive(Debug)]
pub struct ExportStore {
    db: Connection,
    destination: String,
}

/// Where a destination stands; a row of `export_position`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// `settled.seq` up to which everything is delivered or counted lost.
    pub acked_seq: i64,
    /// What it is doing.
    pub state: DestinationState,
    /// No attempt before this.
    pub not_before: Timestamp,
    /// Failures in a row.
    pub attempts: u32,
}

/// `export_position.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationState {
    /// Delivering, or nothing to deliver.
    Ok,
    /// Waiting to try again.
    Retry,
    /// Refused for a reason that waiting does not cure; probed now and then.
    Paused,
    /// Not in the configuration any more.
    Off,
}

impl DestinationState {
    /// The word in the store, in JSON and on pages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Retry => "retry",
            Self::Paused => "paused",
            Self::Off => "off",
        }
    }

    fn parse(word: &str) -> Self {
        [Self::Retry, Self::Paused, Self::Off]
            .into_iter()
            .find(|state| state.as_str() == word)
            .unwrap_or(Self::Ok)
    }
}

/// An encoded request, as stored before its first attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// First `settled.seq` it stands for; its key.
    pub first_seq: i64,
    /// Last `settled.seq` it stands for.
    pub last_seq: i64,
    /// Spans inside.
    pub spans: u64,
    /// An `ExportTraceServiceRequest`.
    pub body: Vec<u8>,
    /// Attempts so far.
    pub attempts: u32,
}

/// Spans that will never arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// First `settled.seq` concerned.
    pub first_seq: i64,
    /// Last `settled.seq` concerned.
    pub last_seq: i64,
    /// Spans.
    pub count: u64,
    /// Why.
    pub reason: LossReason,
    /// In words.
    pub detail: String,
}

/// `export_loss.reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// The destination refused them.
    Rejected,
    /// The destination took the request and refused some of it.
    Partial,
    /// Older than the destination takes.
    Expired,
    /// Too many were waiting.
    Overflow,
    /// A single span was larger than the destination takes.
    TooLarge,
}

impl LossReason {
    /// Whether the destination's own answer is the cause, and so worth showing as its last error.
    const fn is_refusal(self) -> bool {
        matches!(self, Self::Rejected | Self::Partial | Self::TooLarge)
    }

    /// The word in the store, in JSON and on pages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Partial => "partial",
            Self::Expired => "expired",
            Self::Overflow => "overflow",
            Self::TooLarge => "too_large",
        }
    }
}

/// Where a destination that is new starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// After everything settled so far.
    Head,
    /// With what ended at or after this.
    Since(Timestamp),
    /// With everything.
    Beginning,
}

/// How an attempt that did not deliver leaves the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    /// New state.
    pub state: DestinationState,
    /// No attempt before this.
    pub not_before: Timestamp,
    /// Failures in a row, this one included.
    pub attempts: u32,
    /// What happened, in words.
    pub error: String,
}

impl ExportStore {
    /// Opens the store for `destination` and gives it a position if it has none.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: &Path, destination: &str, start: StartAt) -> Result<Self, OpenError> {
        let db = open::writer(path)?;
        let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
        db.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
        db.pragma_update(None, "cache_size", -2_048).map_err(sqlite)?;
        let mut store = Self { db, destination: destination.to_owned() };
        store.register(start).map_err(sqlite)?;
        Ok(store)
    }

    fn register(&mut self, start: StartAt) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            let known = tx
                .query_row(
                    "SELECT 1 FROM export_position WHERE destination = ?1",
                    [&destination],
                    |_| Ok(()),
                )
                .optional()?;
            if known.is_some() {
                return Ok(());
            }
            let acked = match start {
                StartAt::Beginning => 0,
                StartAt::Head => head(tx)?,
                StartAt::Since(at) => tx.query_row(
                    "SELECT coalesce(min(q.seq) - 1, (SELECT coalesce(max(seq), 0) FROM settled))
                     FROM settled q JOIN span s ON s.row = q.span WHERE s.end_ns >= ?1",
                    [at.0],
                    |row| row.get(0),
                )?,
            };
            tx.execute(
                "INSERT INTO export_position (destination, acked_seq, state) VALUES (?1, ?2, 'ok')",
                params![destination, acked],
            )?;
            Ok(())
        })
    }

    /// Where the destination stands.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn position(&self) -> rusqlite::Result<Position> {
        self.db.prepare_cached(
            "SELECT acked_seq, state, not_before_ns, attempts FROM export_position WHERE destination = ?1",
        )?
        .query_row([&self.destination], |row| {
            Ok(Position {
                acked_seq: row.get(0)?,
                state: DestinationState::parse(row.get_ref(1)?.as_str()?),
                not_before: Timestamp(row.get(2)?),
                attempts: row.get(3)?,
            })
        })
    }

    /// The oldest stored batch.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn batch(&self) -> rusqlite::Result<Option<Batch>> {
        self.db
            .prepare_cached(
                "SELECT first_seq, last_seq, spans, body, attempts FROM export_batch
                 WHERE destination = ?1 ORDER BY first_seq LIMIT 1",
            )?
            .query_row([&self.destination], |row| {
                Ok(Batch {
                    first_seq: row.get(0)?,
                    last_seq: row.get(1)?,
                    spans: rows::count(row, 2)?,
                    body: row.get(3)?,
                    attempts: row.get(4)?,
                })
            })
            .optional()
    }

    /// How many batches are stored.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn batches(&self) -> rusqlite::Result<u64> {
        self.db
            .prepare_cached("SELECT count(*) FROM export_batch WHERE destination = ?1")?
            .query_row([&self.destination], |row| rows::count(row, 0))
    }

    /// Calls `each` for settled spans after `seq`, in order of settling, until it returns `false`.
    ///
    /// # Errors
    /// When SQLite fails or a row does not hold what this program writes.
    pub fn settled_after(
        &self,
        seq: i64,
        mut each: impl FnMut(i64, Span) -> bool,
    ) -> rusqlite::Result<()> {
        let sql = format!(
            "SELECT {}, q.seq FROM settled q CROSS JOIN {}
             WHERE q.seq > ?1 AND s.row = q.span ORDER BY q.seq",
            rows::SPAN_COLUMNS,
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
    /// When SQLite fails.
    pub fn waiting(&self, seq: i64, limit: u64) -> rusqlite::Result<u64> {
        self.db
            .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM settled WHERE seq > ?1 LIMIT ?2)")?
            .query_row(params![seq, signed(limit)], |row| rows::count(row, 0))
    }

    /// The last `settled.seq` given so far.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn head(&self) -> rusqlite::Result<i64> {
        head(&self.db)
    }

    /// The `settled.seq` that has exactly `keep` settled spans after it; 0 when there are fewer.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn seq_before_last(&self, keep: u64) -> rusqlite::Result<i64> {
        self.db
            .prepare_cached("SELECT seq FROM settled ORDER BY seq DESC LIMIT 1 OFFSET ?1")?
            .query_row([signed(keep)], |row| row.get(0))
            .optional()
            .map(|seq| seq.unwrap_or(0))
    }

    /// Bodies of hooks.
    #[must_use]
    pub fn bodies(&self) -> Bodies<'_> {
        Bodies::new(&self.db)
    }

    /// Stores a batch ahead of its first attempt, with the losses met while it was put together.
    ///
    /// # Errors
    /// When SQLite fails; nothing is stored then.
    pub fn store_batch(
        &mut self,
        batch: &Batch,
        losses: &[Loss],
        at: Timestamp,
    ) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            insert(tx, &destination, batch)?;
            count_losses(tx, &destination, losses, at)
        })
    }

    /// Moves past spans of which none is to be sent.
    ///
    /// # Errors
    /// When SQLite fails; nothing is stored then.
    pub fn skip_to(&mut self, seq: i64, losses: &[Loss], at: Timestamp) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            advance(tx, &destination, seq)?;
            count_losses(tx, &destination, losses, at)
        })
    }

    /// Removes a batch that is done with: `delivered` of its spans arrived (`None`: it was given up), `losses` did not. A
    /// success clears the destination's troubles. `next` is stored in the same transaction: one sync instead of two.
    ///
    /// # Errors
    /// When SQLite fails; nothing is stored then.
    pub fn finish(
        &mut self,
        batch: &Batch,
        delivered: Option<u64>,
        losses: &[Loss],
        next: Option<&Batch>,
        at: Timestamp,
    ) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            delete(tx, &destination, batch.first_seq)?;
            advance(tx, &destination, batch.last_seq)?;
            if let Some(delivered) = delivered {
                tx.prepare_cached(
                    "UPDATE export_position SET state = 'ok', attempts = 0, not_before_ns = 0,
                        last_error = NULL, last_ok_ns = ?2, delivered = delivered + ?3
                     WHERE destination = ?1",
                )?
                .execute(params![destination, at.0, signed(delivered)])?;
            } else if let Some(loss) = losses.last().filter(|loss| loss.reason.is_refusal()) {
                tx.prepare_cached(
                    "UPDATE export_position SET last_error = ?2 WHERE destination = ?1",
                )?
                .execute(params![destination, loss.detail])?;
            }
            if let Some(next) = next {
                insert(tx, &destination, next)?;
            }
            count_losses(tx, &destination, losses, at)
        })
    }

    /// Puts `parts` in the place of a batch that was too large or holds something that is refused.
    ///
    /// # Errors
    /// When SQLite fails; nothing is stored then.
    pub fn replace(&mut self, batch: &Batch, parts: &[Batch]) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            delete(tx, &destination, batch.first_seq)?;
            parts.iter().try_for_each(|part| insert(tx, &destination, part))
        })
    }

    /// Records an attempt that has to be made again.
    ///
    /// # Errors
    /// When SQLite fails; nothing is stored then.
    pub fn set_back(&mut self, first_seq: i64, setback: &Setback) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            tx.execute(
                "UPDATE export_batch SET attempts = attempts + 1
                 WHERE destination = ?1 AND first_seq = ?2",
                params![destination, first_seq],
            )?;
            tx.execute(
                "UPDATE export_position SET state = ?2, not_before_ns = ?3, attempts = ?4,
                    last_error = ?5 WHERE destination = ?1",
                params![
                    destination,
                    setback.state.as_str(),
                    setback.not_before.0,
                    setback.attempts,
                    setback.error
                ],
            )?;
            Ok(())
        })
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
        batch.body,
        batch.attempts
    ])?;
    Ok(())
}

fn delete(tx: &Transaction<'_>, destination: &str, first_seq: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM export_batch WHERE destination = ?1 AND first_seq = ?2")?
        .execute(params![destination, first_seq])?;
    Ok(())
}

fn advance(tx: &Transaction<'_>, destination: &str, seq: i64) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE export_position SET acked_seq = max(acked_seq, ?2) WHERE destination = ?1",
    )?
    .execute(params![destination, seq])?;
    Ok(())
}

fn count_losses(
    tx: &Transaction<'_>,
    destination: &str,
    losses: &[Loss],
    at: Timestamp,
) -> rusqlite::Result<()> {
    for loss in losses {
        tx.prepare_cached(
            "INSERT INTO export_loss (destination, first_seq, last_seq, count, reason, detail, at_ns)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            destination,
            loss.first_seq,
            loss.last_seq,
            signed(loss.count),
            loss.reason.as_str(),
            loss.detail,
            at.0
        ])?;
    }
    Ok(())
}

/// How one destination is doing, as far as the store knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestinationRow {
    /// Its name.
    pub name: String,
    /// ok, retry, paused, off.
    pub state: String,
    /// Last success, nanoseconds since the epoch.
    pub last_ok_ns: Option<i64>,
    /// Last failure in words.
    pub last_error: Option<String>,
    /// Spans waiting; an upper bound where conversations are sampled.
    pub queued: u64,
    /// Spans delivered.
    pub delivered: u64,
    /// Spans lost, by reason, sorted.
    pub lost: Vec<(String, u64)>,
}

/// Every destination that ever had a position, by name. Works on any connection, so `status` needs no collector.
///
/// # Errors
/// When SQLite fails.
pub fn destinations(db: &Connection) -> rusqlite::Result<Vec<DestinationRow>> {
    let head = head(db)?;
    let mut all = db
        .prepare_cached(
            "SELECT destination, state, last_ok_ns, last_error, acked_seq, delivered
             FROM export_position ORDER BY destination",
        )?
        .query_map([], |row| {
            // Sequence numbers are given without gaps, so a difference is a count.
            let queued = head.saturating_sub(row.get::<_, i64>(4)?);
            Ok(DestinationRow {
                name: row.get(0)?,
                state: row.get(1)?,
                last_ok_ns: row.get(2)?,
                last_error: row.get(3)?,
                queued: u64::try_from(queued).unwrap_or(0),
                delivered: rows::count(row, 5)?,
                lost: Vec::new(),
            })
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for row in &mut all {
        row.lost = db
            .prepare_cached(
                "SELECT reason, sum(count) FROM export_loss WHERE destination = ?1
                 GROUP BY reason ORDER BY reason",
            )?
            .query_map([&row.name], |loss| Ok((loss.get(0)?, rows::count(loss, 1)?)))?
            .collect::<rusqlite::Result<_>>()?;
    }
    Ok(all)
}

/// A counter of the store; 0 when it never counted.
///
/// # Errors
/// When SQLite fails.
pub fn counter(db: &Connection, key: &str) -> rusqlite::Result<u64> {
    let read = db
        .prepare_cached("SELECT value FROM counter WHERE key = ?1")?
        .query_row([key], |row| rows::count(row, 0))
        .optional();
    read.map(|value| value.unwrap_or(0))
}

/// Marks destinations that are not among `configured` as off. Their positions stay: one that comes back goes on where it
/// stopped.
///
/// # Errors
/// When SQLite fails.
pub fn switch_off_others(path: &Path, configured: &[&str]) -> Result<(), OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    let db = open::writer(path)?;
    let known = destinations(&db).map_err(sqlite)?;
    for row in known {
        let state = match (configured.contains(&row.name.as_str()), row.state.as_str()) {
            (false, state) if state != "off" => "off",
            (true, "off") => "ok",
            _ => continue,
        };
        db.execute(
            "UPDATE export_position SET state = ?2 WHERE destination = ?1",
            params![row.name, state],
        )
        .map_err(sqlite)?;
    }
    Ok(())
}
