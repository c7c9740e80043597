//! Spans that a destination did not get: how many, why, and which. The number of rows is bounded, no matter what a
//! receiver does.

use hookspan_core::Timestamp;
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::rows::signed;
use super::types::Loss;

/// Maximum number of rows per destination. Beyond it, old rows are added up. To show one span, a page reads all of
/// these rows.
const ROWS_MAX: u64 = 1_000;
/// Rows that stay after summing up.
const ROWS_KEPT: u64 = ROWS_MAX / 2;

/// Counts losses. A loss that directly follows the last one in the queue, with the same reason and text, is added to
/// the same row. So a destination that is down for a month has one row.
pub(super) fn count(
    tx: &Transaction<'_>,
    destination: &str,
    losses: &[Loss],
    at: Timestamp,
) -> rusqlite::Result<()> {
    for loss in losses {
        if !extend_last(tx, destination, loss, at)? {
            insert(tx, destination, loss, at)?;
        }
    }
    if losses.is_empty() { Ok(()) } else { compact(tx, destination) }
}

fn insert(
    tx: &Transaction<'_>,
    destination: &str,
    loss: &Loss,
    at: Timestamp,
) -> rusqlite::Result<()> {
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
    ])
    .map(drop)
}

/// Adds a loss to the last row. Only adjacent whole ranges, or consecutive parts of ranges, are merged, so that the row
/// stays true for each span.
fn extend_last(
    tx: &Transaction<'_>,
    destination: &str,
    loss: &Loss,
    at: Timestamp,
) -> rusqlite::Result<bool> {
    let is_whole = signed(loss.count) > loss.last_seq - loss.first_seq;
    let last = tx
        .prepare_cached(
            "SELECT rowid, last_seq, count > last_seq - first_seq FROM export_loss
             WHERE rowid = (SELECT max(rowid) FROM export_loss WHERE destination = ?1)
             AND reason = ?2 AND detail = ?3",
        )?
        .query_row(params![destination, loss.reason.as_str(), loss.detail], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
        })
        .optional()?;
    let Some((row, end, was_whole)) = last else { return Ok(false) };
    let follows = if is_whole { loss.first_seq == end + 1 } else { loss.first_seq > end };
    if was_whole != is_whole || !follows {
        return Ok(false);
    }
    tx.prepare_cached(
        "UPDATE export_loss SET last_seq = ?2, count = count + ?3, at_ns = ?4 WHERE rowid = ?1",
    )?
    .execute(params![row, loss.last_seq, signed(loss.count), at.0])?;
    Ok(true)
}

/// Replaces the oldest rows by one row per reason, without sequence numbers and text. The sums stay the same.
fn compact(tx: &Transaction<'_>, destination: &str) -> rusqlite::Result<()> {
    let rows: i64 = tx
        .prepare_cached("SELECT count(*) FROM export_loss WHERE destination = ?1")?
        .query_row([destination], |row| row.get(0))?;
    if rows <= signed(ROWS_MAX) {
        return Ok(());
    }
    let old = "destination = ?1 AND rowid NOT IN
        (SELECT rowid FROM export_loss WHERE destination = ?1 ORDER BY rowid DESC LIMIT ?2)";
    let kept = params![destination, signed(ROWS_KEPT)];
    // The oldest row of each reason is kept and gets the sum of the others. So the newest row of the destination is not
    // changed.
    tx.execute(
        &format!(
            "UPDATE export_loss SET first_seq = 0, last_seq = -1, detail = '',
                (count, at_ns) = (SELECT sum(o.count), max(o.at_ns) FROM export_loss o
                    WHERE o.destination = ?1 AND o.reason = export_loss.reason AND o.rowid IN
                        (SELECT rowid FROM export_loss WHERE {old}))
             WHERE rowid IN (SELECT min(rowid) FROM export_loss WHERE {old} GROUP BY reason)"
        ),
        kept,
    )?;
    tx.execute(
        &format!(
            "DELETE FROM export_loss WHERE {old} AND rowid NOT IN
                (SELECT min(rowid) FROM export_loss WHERE {old} GROUP BY reason)"
        ),
        kept,
    )
    .map(drop)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::types::LossReason;
    use super::*;

    fn database() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE export_loss (destination TEXT NOT NULL, first_seq INTEGER NOT NULL,
                 last_seq INTEGER NOT NULL, count INTEGER NOT NULL, reason TEXT NOT NULL,
                 detail TEXT NOT NULL, at_ns INTEGER NOT NULL)",
        )
        .unwrap();
        db
    }

    fn loss(first_seq: i64, last_seq: i64, count: u64, reason: LossReason) -> Loss {
        Loss { first_seq, last_seq, count, reason, detail: "why".to_owned() }
    }

    fn add(db: &mut Connection, destination: &str, losses: &[Loss]) {
        let tx = db.transaction().unwrap();
        count(&tx, destination, losses, Timestamp(7)).unwrap();
        tx.commit().unwrap();
    }

    fn rows(db: &Connection, destination: &str) -> Vec<(i64, i64, i64, String)> {
        let sql = "SELECT first_seq, last_seq, count, reason FROM export_loss WHERE destination = ?1 ORDER BY rowid";
        let mut rows = db.prepare(sql).unwrap();
        let read =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        rows.query_map([destination], read).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn losses_that_follow_each_other_are_one_row() {
        use LossReason::{Overflow, Partial};
        let mut db = database();
        for first in 1..=50 {
            add(&mut db, "a", &[loss(first, first, 1, Overflow)]);
            add(&mut db, "b", &[loss(first * 2, first * 2, 1, Overflow)]);
        }
        assert_eq!(rows(&db, "a"), [(1, 50, 50, "overflow".to_owned())]);
        assert_eq!(rows(&db, "b").len(), 50, "what lies between them was not lost");
        add(&mut db, "a", &[loss(51, 60, 4, Partial), loss(70, 79, 4, Partial)]);
        // The spans were sent again and refused again, so the same sequence numbers occur a second time.
        add(&mut db, "a", &[loss(51, 60, 4, Partial)]);
        let parts = [(51, 79, 8), (51, 60, 4)].map(|(a, b, n)| (a, b, n, "partial".to_owned()));
        assert_eq!(rows(&db, "a")[1..], parts);
    }

    #[test]
    fn rows_are_bounded_and_sums_stay() {
        use LossReason::{Overflow, Rejected};
        let mut db = database();
        for number in 0..5_000 {
            let reason = if number % 3 == 0 { Overflow } else { Rejected };
            add(&mut db, "a", &[loss(number * 10, number * 10, 1, reason)]);
        }
        add(&mut db, "b", &[loss(1, 2, 2, Overflow)]);
        let rows = rows(&db, "a");
        assert!(rows.len() <= 1_000, "{}", rows.len());
        let sum = |reason: &str| -> i64 {
            rows.iter().filter(|row| row.3 == reason).map(|row| row.2).sum()
        };
        assert_eq!((sum("overflow"), sum("rejected")), (1_667, 3_333));
        assert_eq!(rows.last().unwrap().0, 49_990, "the newest is still the newest");
        let covering = rows.iter().filter(|row| row.1 < row.0).count();
        assert_eq!(covering, 2, "sums name no place");
    }
}
