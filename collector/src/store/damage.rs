//! What the errors of SQLite say about the file.

use rusqlite::ErrorCode;

/// Whether SQLite says that the file itself is damaged.
#[must_use]
pub fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}
