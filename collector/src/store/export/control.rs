//! Changes to a destination that do not come from its worker: by the configuration or by the user.

use std::path::Path;

use rusqlite::{Connection, params};

use super::{BUSY_TIMEOUT, StartAt, destinations, head, start_seq};
use crate::store::open::{self, OpenError};

/// Marks destinations that are not in `configured` as off. Their positions stay, so a destination that comes back
/// continues where it stopped.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn switch_off_others(path: &Path, configured: &[&str]) -> Result<(), OpenError> {
    change(path, |db| {
        for row in destinations(db)? {
            let state = match (configured.contains(&row.name.as_str()), row.state.as_str()) {
                (false, state) if state != "off" => "off",
                (true, "off") => "ok",
                _ => continue,
            };
            db.execute(
                "UPDATE export_position SET state = ?2 WHERE destination = ?1",
                params![row.name, state],
            )?;
        }
        Ok(())
    })
}

/// Pauses or resumes a destination at the user's request. Its worker checks this before each request. Returns `false`
/// if there is no such destination.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn set_stopped(
    path: &Path,
    destination: &str,
    stopped: bool,
) -> Result<bool, OpenError> {
    change(path, |db| {
        let changed = db.execute(
            "UPDATE export_position SET stopped = ?2, not_before_ns = 0 WHERE destination = ?1",
            params![destination, stopped],
        )?;
        db.execute(
            "UPDATE export_points SET not_before_ns = 0 WHERE destination = ?1",
            [destination],
        )?;
        Ok(changed > 0)
    })
}

/// Restarts a destination at `start`. Spans after `start` are sent again under the same ids. Returns the number of
/// waiting spans, or `None` if there is no such destination.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn replay(
    path: &Path,
    destination: &str,
    start: StartAt,
) -> Result<Option<u64>, OpenError> {
    change(path, |db| {
        let tx = db.unchecked_transaction()?;
        let seq = start_seq(&tx, start)?;
        let changed = tx.execute(
            "UPDATE export_position SET acked_seq = ?2, built_seq = ?2, not_before_ns = 0
             WHERE destination = ?1",
            params![destination, seq],
        )?;
        tx.execute("DELETE FROM export_batch WHERE destination = ?1", [destination])?;
        let waiting = u64::try_from(head(&tx)?.saturating_sub(seq)).unwrap_or(0);
        tx.commit()?;
        Ok((changed > 0).then_some(waiting))
    })
}

/// Removes a destination with its position, its stored requests and its losses. Returns `false` if there is no such
/// destination.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn remove(path: &Path, destination: &str) -> Result<bool, OpenError> {
    change(path, |db| {
        let tx = db.unchecked_transaction()?;
        let mut changed = 0;
        for table in ["export_position", "export_batch", "export_loss", "export_points"] {
            let sql = format!("DELETE FROM {table} WHERE destination IN (?1, ?1 || ':logs')");
            changed += tx.execute(&sql, [destination])?;
        }
        tx.commit()?;
        Ok(changed > 0)
    })
}

fn change<T>(
    path: &Path,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.into(), source };
    let db = open::writer(path)?;
    db.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
    work(&db).map_err(sqlite)
}
