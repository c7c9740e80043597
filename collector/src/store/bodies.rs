//! Reads bodies of hooks one after another.

use rusqlite::{Connection, OptionalExtension as _};

use super::codec::Unpacker;
use super::rows::signed;
use super::write::{HOOK_COLUMNS, HOOK_TABLES, hook};

/// Reads bodies and caches the last packs. A call's arguments and its result often are in one body, and neighbouring
/// hooks in one pack.
#[derive(Debug)]
pub(crate) struct Bodies<'a> {
    db: &'a Connection,
    unpacker: Unpacker,
    last: Option<(u64, Option<Vec<u8>>)>,
}

impl<'a> Bodies<'a> {
    /// Reads from the raw log in `db`.
    #[must_use]
    pub(crate) fn new(db: &'a Connection) -> Self {
        Self { db, unpacker: Unpacker::default(), last: None }
    }

    /// The body of the hook `seq`; `None` if it is damaged or pruned. A span then only lacks that text.
    pub(crate) fn get(&mut self, seq: u64) -> Option<&[u8]> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != seq) {
            let body = read(self.db, seq, &mut self.unpacker).ok().flatten();
            self.last = Some((seq, body));
        }
        self.last.as_ref().and_then(|(_, body)| body.as_deref())
    }
}

/// The body of a hook.
///
/// # Errors
///
/// Returns SQLite's error, or an error if the stored body is damaged.
pub(crate) fn body(db: &Connection, seq: u64) -> rusqlite::Result<Option<Vec<u8>>> {
    read(db, seq, &mut Unpacker::default())
}

fn read(db: &Connection, seq: u64, unpacker: &mut Unpacker) -> rusqlite::Result<Option<Vec<u8>>> {
    let sql = format!("SELECT {HOOK_COLUMNS} FROM {HOOK_TABLES} WHERE h.seq = ?1");
    let found =
        db.prepare_cached(&sql)?.query_row([signed(seq)], |row| hook(row, unpacker)).optional()?;
    Ok(found.map(|hook| hook.body))
}
