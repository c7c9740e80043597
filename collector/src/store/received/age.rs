//! Deletes received telemetry: together with its session, or by age if it belongs to no session.

use rusqlite::Connection;

/// Time for which telemetry without a session is kept. No session's page shows it, so it is not kept for longer.
const KEEP_NS: i64 = 7 * 86_400 * 1_000_000_000;

/// Deletes the telemetry of a conversation. Call this while the conversation still has its name.
///
/// # Errors
/// Returns SQLite's error if the database cannot be written.
pub(crate) fn forget(db: &Connection, conversation: i64) -> rusqlite::Result<()> {
    for table in ["received_span", "received_usage", "received_series"] {
        let own = "session = (SELECT text FROM name WHERE id = ?1)";
        db.prepare_cached(&format!("DELETE FROM {table} WHERE {own}"))?.execute([conversation])?;
    }
    Ok(())
}

/// Deletes telemetry that is too old and belongs to no stored session. Returns the number of spans.
///
/// # Errors
/// Returns SQLite's error if the database cannot be written.
pub(crate) fn sweep(db: &Connection, now_ns: i64) -> rusqlite::Result<u64> {
    let before = now_ns - KEEP_NS;
    let mut spans = 0;
    for (table, age) in [
        ("received_span", "received_ns"),
        ("received_usage", "last_ns"),
        ("received_series", "received_ns"),
    ] {
        let deleted = db
            .prepare_cached(&format!(
                "DELETE FROM {table} WHERE {age} < ?1 AND (session IS NULL OR NOT EXISTS (
                     SELECT 1 FROM name n LEFT JOIN conversation c ON c.id = n.id
                     JOIN session s ON s.root = coalesce(c.root, n.id) WHERE n.text = {table}.session))"
            ))?
            .execute([before])?;
        if table == "received_span" {
            spans = deleted as u64;
        }
    }
    Ok(spans)
}
