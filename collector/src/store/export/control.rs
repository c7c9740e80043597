//! What changes a destination from outside its worker: the configuration, and a person.

use std::path::Path;

use rusqlite::{Connection, params};

use super::{BUSY_TIMEOUT, destinations};
use crate::store::open::{self, OpenError};

/// Marks destinations that are not among `configured` as off. Their positions stay: one that comes back goes on where it
/// stopped.
///
/// # Errors
/// When SQLite fails.
pub fn switch_off_others(path: &Path, configured: &[&str]) -> Result<(), OpenError> {
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

/// Pauses or resumes a destination for a person. Its worker looks before each request. `false` when there is none of that
/// name.
///
/// # Errors
/// When SQLite fails.
pub fn set_stopped(path: &Path, destination: &str, stopped: bool) -> Result<bool, OpenError> {
    change(path, |db| {
        let changed = db.execute(
            "UPDATE export_position SET stopped = ?2, not_before_ns = 0 WHERE destination = ?1",
            params![destination, stopped],
        )?;
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
