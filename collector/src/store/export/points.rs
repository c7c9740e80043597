//! The metrics part of the export state: for each destination, the position in the queue of settled spans and the
//! request that is being sent.

use std::path::Path;

use hookspan_core::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::types::{DestinationState, Setback};
use super::{ANSWER_DELETED, BUSY_TIMEOUT, ExportStore, head, rows, signed};
use crate::store::open::{self, OpenError};

/// The position and the state of a destination's metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PointsPosition {
    /// `settled.seq` up to which spans were counted in finished requests.
    pub acked_seq: i64,
    /// End of the period of the last finished request.
    pub counted: Timestamp,
    /// State.
    pub state: DestinationState,
    /// No attempt before this.
    pub not_before: Timestamp,
    /// Failures in a row.
    pub attempts: u32,
    /// Whether the receiver has accepted a request.
    pub has_accepted: bool,
    /// Total number of spans that were too old to be counted.
    pub left_out: u64,
    /// Whether a person paused the destination.
    pub stopped: bool,
    /// The request that waits to be sent.
    pub stored: Option<StoredPoints>,
}

/// A request with metrics, as stored before its first attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPoints {
    /// An `ExportMetricsServiceRequest`.
    pub body: Vec<u8>,
    /// Number of points in the request.
    pub points: u64,
    /// `settled.seq` of the last span that it counts.
    pub last_seq: i64,
    /// End of the request's period.
    pub built: Timestamp,
}

/// The state of a destination's metrics, as `status` and pages show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PointsRow {
    /// ok, retry, paused.
    pub state: String,
    /// Points delivered.
    pub delivered: u64,
    /// Points that will never arrive.
    pub lost: u64,
    /// Spans that were too old to be counted.
    pub left_out: u64,
    /// Last success, nanoseconds since the epoch.
    pub last_ok_ns: Option<i64>,
    /// Last failure in words.
    pub last_error: Option<String>,
    /// What to do about the last failure.
    pub advice: Option<String>,
}

/// Deletes the metrics position of all destinations except `wanted`. If metrics are switched on again later, they start
/// at the end of the queue.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn keep_points(path: &Path, wanted: &[&str]) -> Result<(), OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    let db = open::writer(path)?;
    db.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
    let all = db
        .prepare("SELECT destination FROM export_points")
        .and_then(|mut all| all.query_map([], |row| row.get(0))?.collect())
        .map_err(sqlite)?;
    let all: Vec<String> = all;
    for name in all.iter().filter(|name| !wanted.contains(&name.as_str())) {
        db.execute("DELETE FROM export_points WHERE destination = ?1", [name]).map_err(sqlite)?;
    }
    Ok(())
}

/// The state of a destination's metrics. `None` if it gets no metrics.
pub(super) fn row(db: &Connection, destination: &str) -> rusqlite::Result<Option<PointsRow>> {
    db.prepare_cached(
        "SELECT state, delivered, lost, left_out, last_ok_ns, last_error, advice
         FROM export_points WHERE destination = ?1",
    )?
    .query_row([destination], |row| {
        Ok(PointsRow {
            state: row.get(0)?,
            delivered: rows::count(row, 1)?,
            lost: rows::count(row, 2)?,
            left_out: rows::count(row, 3)?,
            last_ok_ns: row.get(4)?,
            last_error: row.get(5)?,
            advice: row.get(6)?,
        })
    })
    .optional()
}

impl ExportStore {
    /// Gives the destination's metrics a position at the end of the queue, if they have none. A paused or waiting
    /// request is tried at once.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn start_points(&mut self, now: Timestamp) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            tx.execute(
                "INSERT INTO export_points (destination, acked_seq, counted_ns) VALUES (?1, ?2, ?3)
                 ON CONFLICT (destination) DO UPDATE SET not_before_ns = 0",
                params![destination, head(tx)?, now.0],
            )?;
            Ok(())
        })
    }

    /// The position of the metrics. `None` if the destination was removed.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn points(&self) -> rusqlite::Result<Option<PointsPosition>> {
        self.db
            .prepare_cached(
                "SELECT m.acked_seq, m.counted_ns, m.state, m.not_before_ns, m.attempts,
                        m.last_ok_ns IS NOT NULL, m.left_out, coalesce(p.stopped, 0),
                        m.body, m.points, m.last_seq, m.built_ns
                 FROM export_points m LEFT JOIN export_position p USING (destination)
                 WHERE m.destination = ?1",
            )?
            .query_row([&self.destination], |row| {
                let body: Option<Vec<u8>> = row.get(8)?;
                let (points, last_seq) = (rows::count(row, 9)?, row.get(10)?);
                let built = Timestamp(row.get(11)?);
                Ok(PointsPosition {
                    acked_seq: row.get(0)?,
                    counted: Timestamp(row.get(1)?),
                    state: DestinationState::parse(row.get_ref(2)?.as_str()?),
                    not_before: Timestamp(row.get(3)?),
                    attempts: row.get(4)?,
                    has_accepted: row.get(5)?,
                    left_out: rows::count(row, 6)?,
                    stopped: row.get(7)?,
                    stored: body.map(|body| StoredPoints { body, points, last_seq, built }),
                })
            })
            .optional()
    }

    /// Stores a request before its first attempt, and replaces the previous request. `left_out` is the number of spans
    /// that were too old.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn store_points(
        &mut self,
        request: &StoredPoints,
        left_out: u64,
    ) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            tx.prepare_cached(
                "UPDATE export_points SET body = ?2, points = ?3, last_seq = ?4, built_ns = ?5,
                        left_out = left_out + ?6
                 WHERE destination = ?1",
            )?
            .execute(params![
                destination,
                request.body,
                signed(request.points),
                request.last_seq,
                request.built.0,
                signed(left_out)
            ])?;
            Ok(())
        })
    }

    /// Removes a finished request. `delivered` points arrived and `lost` points did not. `None` means that no point
    /// arrived; the state of the destination then stays. If a deletion has removed the request in the meantime, the
    /// request is built again without the deleted spans.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn finish_points(
        &mut self,
        request: &StoredPoints,
        delivered: Option<u64>,
        lost: u64,
        at: Timestamp,
    ) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            tx.prepare_cached(
                "UPDATE export_points SET
                    acked_seq = CASE WHEN body IS NULL THEN acked_seq ELSE max(acked_seq, ?2) END,
                    counted_ns = CASE WHEN body IS NULL THEN counted_ns ELSE ?3 END,
                    body = NULL, delivered = delivered + ?4, lost = lost + ?5, not_before_ns = 0
                 WHERE destination = ?1",
            )?
            .execute(params![
                destination,
                request.last_seq,
                request.built.0,
                signed(delivered.unwrap_or(0)),
                signed(lost)
            ])?;
            if delivered.is_some() {
                tx.prepare_cached(
                    "UPDATE export_points SET state = 'ok', attempts = 0, last_error = NULL,
                        advice = NULL, last_ok_ns = ?2 WHERE destination = ?1",
                )?
                .execute(params![destination, at.0])?;
            }
            Ok(())
        })
    }

    /// Records a failed attempt. The request stays stored. If a deletion has removed the request, the answer is not
    /// stored, because the answer may quote the request.
    ///
    /// # Errors
    /// Returns SQLite's error. Nothing is stored then.
    pub(crate) fn set_back_points(&mut self, setback: &Setback) -> rusqlite::Result<()> {
        let destination = self.destination.clone();
        self.write(|tx| {
            tx.prepare_cached(
                "UPDATE export_points SET state = ?2, not_before_ns = ?3, attempts = ?4,
                    last_error = CASE WHEN body IS NULL THEN ?7 ELSE ?5 END,
                    advice = nullif(?6, '') WHERE destination = ?1",
            )?
            .execute(params![
                destination,
                setback.state.as_str(),
                setback.not_before.0,
                setback.attempts,
                setback.error,
                setback.advice,
                ANSWER_DELETED
            ])?;
            Ok(())
        })
    }

    /// The state of this destination, for hookspan's own metrics.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn own_state(&self) -> rusqlite::Result<super::DestinationRow> {
        let all = super::destinations(&self.db)?;
        Ok(all.into_iter().find(|row| row.name == self.destination).unwrap_or_default())
    }

    /// Number of hooks by outcome.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn hooks(&self) -> rusqlite::Result<Vec<(&'static str, u64)>> {
        let mut all = Vec::new();
        for outcome in ["received", "duplicate", "malformed"] {
            all.push((outcome, super::counter(&self.db, outcome)?));
        }
        let lost = "SELECT coalesce(sum(value), 0) FROM counter WHERE key GLOB 'lost.*'";
        let lost = self.db.prepare_cached(lost)?.query_row([], |row| rows::count(row, 0))?;
        all.push(("lost", lost));
        Ok(all)
    }

    /// Size of the database.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn database_bytes(&self) -> rusqlite::Result<u64> {
        let sql = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
        self.db.prepare_cached(sql)?.query_row([], |row| rows::count(row, 0))
    }
}
