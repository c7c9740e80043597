//! Finds hooks that may contain the task that a conversation gave to a subagent.

use rusqlite::Connection;

use super::codec::Unpacker;
use super::write::{HOOK_COLUMNS, HOOK_TABLES, hook};

/// Maximum number of hooks read, newest first.
const MOST: i64 = 500;

/// Bodies of the newest hooks of `conversation` that may contain a task. Damaged bodies are left out.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn bodies(db: &Connection, conversation: &str) -> rusqlite::Result<Vec<Vec<u8>>> {
    let sql = format!(
        "SELECT {HOOK_COLUMNS} FROM {HOOK_TABLES}
         WHERE h.conversation = (SELECT id FROM name WHERE text = ?1)
           AND h.event IN (SELECT id FROM name WHERE text IN ('subagentStart', 'preToolUse'))
         ORDER BY h.seq DESC LIMIT ?2"
    );
    let mut unpacker = Unpacker::default();
    let mut statement = db.prepare_cached(&sql)?;
    let found = statement.query_map((conversation, MOST), |row| hook(row, &mut unpacker))?;
    Ok(found.filter_map(Result::ok).map(|hook| hook.body).collect())
}
