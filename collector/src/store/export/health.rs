//! Reads the state of destinations from the store. Works on any connection, so `status` needs no running collector.

use std::fmt;

use hookspan_core::Timestamp;
use hookspan_view::health::{DestinationHealth, MetricsHealth};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::points::{self, PointsRow};
use super::types::LossReason;
use super::{head, rows};

/// After its last loss, a destination is shown as losing for this long.
const LOSING_NS: i64 = 86_400_000_000_000;

/// One destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DestinationRow {
    /// Its name.
    pub name: String,
    /// ok, retry, paused, off.
    pub state: String,
    /// Whether a person paused it.
    pub stopped: bool,
    /// Whether it ever accepted a span.
    pub has_accepted: bool,
    /// Last success, nanoseconds since the epoch.
    pub last_ok_ns: Option<i64>,
    /// Last failure in words.
    pub last_error: Option<String>,
    /// What to do about the last failure.
    pub advice: Option<String>,
    /// Number of waiting spans. An upper bound if the destination samples conversations.
    pub queued: u64,
    /// Spans delivered.
    pub delivered: u64,
    /// Spans lost, by reason, sorted.
    pub lost: Vec<(String, u64)>,
    /// The last loss.
    pub last_loss: Option<LastLoss>,
    /// The state of its metrics, if it gets metrics.
    pub metrics: Option<PointsRow>,
}

/// The last time a destination lost spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastLoss {
    /// When, nanoseconds since the epoch.
    pub at_ns: i64,
    /// The word in the store.
    pub reason: String,
    /// The reason in more detail, often in the receiver's words.
    pub detail: String,
}

impl DestinationRow {
    /// Whether spans were lost during the last day.
    #[must_use]
    pub(crate) fn is_losing(&self, now: Timestamp) -> bool {
        let since = |loss: &LastLoss| now.0.saturating_sub(loss.at_ns);
        self.state != "off" && self.last_loss.as_ref().is_some_and(|loss| since(loss) < LOSING_NS)
    }

    /// The same state, as pages show it.
    #[must_use]
    pub(crate) fn health(self, endpoint_host: String, now: Timestamp) -> DestinationHealth {
        DestinationHealth {
            endpoint_host,
            losing: self.is_losing(now),
            last_loss: self.last_loss.map(|loss| loss.to_string()),
            name: self.name,
            state: self.state,
            last_ok: self.last_ok_ns.map(Timestamp),
            last_error: self.last_error,
            advice: self.advice,
            queued: self.queued,
            delivered: self.delivered,
            lost: self.lost,
            metrics: self.metrics.map(PointsRow::health),
        }
    }
}

impl PointsRow {
    /// The same state, as pages show it.
    fn health(self) -> MetricsHealth {
        MetricsHealth {
            state: self.state,
            last_ok: self.last_ok_ns.map(Timestamp),
            last_error: self.last_error,
            advice: self.advice,
            delivered: self.delivered,
            lost: self.lost,
            left_out: self.left_out,
        }
    }
}

impl fmt::Display for LastLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spans were lost ({}): {}. {}", self.reason, self.detail, self.advice())
    }
}

impl LastLoss {
    /// Advice on how to avoid the next loss.
    #[must_use]
    pub(crate) fn advice(&self) -> &'static str {
        LossReason::parse(&self.reason).map_or("", LossReason::advice)
    }
}

/// All destinations that ever had a position, by name.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn destinations(db: &Connection) -> rusqlite::Result<Vec<DestinationRow>> {
    let head = head(db)?;
    let mut all = db
        .prepare_cached(
            "SELECT destination, state, last_ok_ns, last_error, acked_seq, delivered, built_seq, advice,
                    stopped, accepted_by IS NOT NULL,
                    (SELECT sum(spans) FROM export_batch b WHERE b.destination = p.destination)
             FROM export_position p ORDER BY destination",
        )?
        .query_map([], |row| {
            let (acked, built): (i64, i64) = (row.get(4)?, row.get(6)?);
            // The numbers in the queue have no gaps, so the difference of two numbers is a count.
            let queued = match row.get::<_, Option<i64>>(10)? {
                Some(stored) => head.saturating_sub(built).max(0).saturating_add(stored),
                None => head.saturating_sub(acked),
            };
            let stopped = row.get(8)?;
            Ok(DestinationRow {
                name: row.get(0)?,
                state: if stopped { "paused".to_owned() } else { row.get(1)? },
                stopped,
                has_accepted: row.get(9)?,
                last_ok_ns: row.get(2)?,
                last_error: row.get(3)?,
                advice: row.get(7)?,
                queued: u64::try_from(queued).unwrap_or(0),
                delivered: rows::count(row, 5)?,
                lost: Vec::new(),
                last_loss: None,
                metrics: None,
            })
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for row in &mut all {
        add_losses(db, row)?;
        row.metrics = points::row(db, &row.name)?;
    }
    Ok(all)
}

fn add_losses(db: &Connection, row: &mut DestinationRow) -> rusqlite::Result<()> {
    row.lost = db
        .prepare_cached(
            "SELECT reason, sum(count) FROM export_loss WHERE destination = ?1
             GROUP BY reason ORDER BY reason",
        )?
        .query_map(params![row.name], |loss| Ok((loss.get(0)?, rows::count(loss, 1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    row.last_loss = db
        .prepare_cached(
            "SELECT at_ns, reason, detail FROM export_loss WHERE destination = ?1
             ORDER BY rowid DESC LIMIT 1",
        )?
        .query_row(params![row.name], |loss| {
            Ok(LastLoss { at_ns: loss.get(0)?, reason: loss.get(1)?, detail: loss.get(2)? })
        })
        .optional()?;
    Ok(())
}
