//! Writes and reads the raw log: hooks as received.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hookspan_core::hook::HookContext;
use hookspan_core::{Hook, HookSource, Timestamp};
use rusqlite::types::Type;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};

use super::names::Names;
use super::prepare::{Arrival, Reading};
use crate::store::codec::{Damage, Packed, Packer, Unpacker};

/// Maximum distance between the numbers of a pack's hooks. A batch is smaller, no matter where it comes from.
const MOST_APART: i64 = 8_192;

/// Columns that [`hook`] reads, from [`HOOK_TABLES`].
pub(crate) const HOOK_COLUMNS: &str = "h.seq, h.observed_ns, h.boottime_ns, h.source, h.argument, \
     h.context, p.codec, p.len, p.xxh64, p.body, p.seq, h.body_start, h.body_len";

/// Where [`HOOK_COLUMNS`] come from.
pub(crate) const HOOK_TABLES: &str = "raw_hook h JOIN payload p ON p.seq = coalesce(h.pack, h.seq)";

/// The same for databases without packs. A salvage may read such a database.
pub(crate) const HOOK_COLUMNS_ALONE: &str = "h.seq, h.observed_ns, h.boottime_ns, h.source, h.argument, \
     h.context, p.codec, p.len, p.xxh64, p.body, p.seq, NULL, NULL";
/// See [`HOOK_COLUMNS_ALONE`].
pub(crate) const HOOK_TABLES_ALONE: &str = "raw_hook h JOIN payload p ON p.seq = h.seq";

/// Index of the body among [`HOOK_COLUMNS`].
pub(super) const BODY: usize = 9;

/// A hook as received.
///
/// # Errors
///
/// The body differs from the one that was stored.
pub(crate) fn hook(row: &Row<'_>, unpacker: &mut Unpacker) -> rusqlite::Result<Hook> {
    let id = (row.get(10)?, unsigned(row, 7)?, row.get(8)?);
    let part = match (row.get::<_, Option<i64>>(11)?, row.get::<_, Option<i64>>(12)?) {
        (Some(start), Some(len)) => {
            let place = |at: i64| usize::try_from(at).map_err(|_| broken(Damage::Form));
            let (start, len) = (place(start)?, place(len)?);
            Some(start..start.saturating_add(len))
        }
        _ => None,
    };
    let body = unpacker.part(id, part, || {
        let bytes = row.get_ref(BODY)?.as_blob().map_err(rusqlite::Error::from)?;
        Ok::<_, Unreadable>((row.get(6)?, bytes))
    })?;
    envelope(row, body)
}

/// Why a body could not be read. [`Unpacker::part`] needs a single error type.
struct Unreadable(rusqlite::Error);

impl From<Damage> for Unreadable {
    fn from(damage: Damage) -> Self {
        Self(broken(damage))
    }
}

impl From<rusqlite::Error> for Unreadable {
    fn from(error: rusqlite::Error) -> Self {
        Self(error)
    }
}

impl From<Unreadable> for rusqlite::Error {
    fn from(Unreadable(error): Unreadable) -> Self {
        error
    }
}

fn broken(damage: Damage) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(BODY, Type::Blob, Box::new(damage))
}

/// A hook without its body.
pub(super) fn envelope(row: &Row<'_>, body: Vec<u8>) -> rusqlite::Result<Hook> {
    let context = row.get_ref(5)?.as_str_or_null()?;
    Ok(Hook {
        seq: unsigned(row, 0)?,
        observed_at: Timestamp(row.get(1)?),
        boottime_ns: row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned),
        argument: row.get(4)?,
        context: context.and_then(context_read).unwrap_or_default(),
        source: match row.get(3)? {
            1 => HookSource::Import,
            2 => HookSource::Evidence,
            _ => HookSource::Shim,
        },
        body,
    })
}

/// The prepared statements for writing the raw log. Looking them up for each hook would cost more than running some of
/// them.
pub(super) struct Log<'a> {
    db: &'a Connection,
    hooks: CachedStatement<'a>,
    payloads: CachedStatement<'a>,
}

impl<'a> Log<'a> {
    pub(super) fn open(db: &'a Connection) -> rusqlite::Result<Self> {
        let hooks = db.prepare_cached(
            "INSERT INTO raw_hook (seq, id, observed_ns, boottime_ns, source, flags, conversation, event,
                                   malformed, argument, context, pack, body_start, body_len)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
             ON CONFLICT (id) DO NOTHING",
        )?;
        Ok(Self { db, hooks, payloads: payloads(db)? })
    }

    /// Writes a hook under `seq`. Returns false if its id is already stored. Nothing is written then.
    pub(super) fn insert(
        &mut self,
        names: &mut Names,
        packs: &mut Packs,
        seq: u64,
        arrival: &Arrival,
    ) -> rusqlite::Result<bool> {
        let (hook, body, seq) = (&arrival.hook, &arrival.body, seq.cast_signed());
        let source = match hook.source {
            HookSource::Shim => 0,
            HookSource::Import => 1,
            HookSource::Evidence => 2,
        };
        let (conversation, event) = ids(self.db, names, &arrival.reading)?;
        let pack = packs.known(&body.pack, seq);
        let part = (!body.is_alone()).then_some((body.start.cast_signed(), body.len.cast_signed()));
        let written = self.hooks.execute(params![
            seq,
            arrival.id,
            hook.observed_at.0,
            hook.boottime_ns.map(u64::cast_signed),
            source,
            arrival.flags,
            conversation,
            event,
            arrival.reading.malformed,
            hook.argument.as_deref(),
            context_text(&hook.context),
            pack,
            part.map(|(start, _)| start),
            part.map(|(_, len)| len),
        ])?;
        if written == 0 {
            return Ok(false);
        }
        if pack.is_none() {
            payload(&mut self.payloads, seq, &body.pack)?;
            packs.note(&body.pack, seq);
        }
        Ok(true)
    }
}

fn payloads(db: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    db.prepare_cached(
        "INSERT INTO payload (seq, codec, len, xxh64, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
}

fn payload(statement: &mut CachedStatement<'_>, seq: i64, pack: &Packed) -> rusqlite::Result<()> {
    let Packed { codec, len, xxh64, bytes } = pack;
    statement.execute((seq, codec, len.cast_signed(), xxh64, bytes))?;
    Ok(())
}

/// Packs written in this transaction, by the number of their first hook.
#[derive(Debug, Default)]
pub(super) struct Packs {
    /// Numbers by the address of the pack. An address stays valid because the packs are held here.
    keys: HashMap<*const Packed, (Arc<Packed>, i64), RandomState>,
}

impl Packs {
    /// The number under which the pack of hook `seq` was stored. `None` if it was not stored yet.
    fn known(&self, pack: &Arc<Packed>, seq: i64) -> Option<i64> {
        let (_, key) = self.keys.get(&Arc::as_ptr(pack))?;
        (seq - key < MOST_APART).then_some(*key)
    }

    fn note(&mut self, pack: &Arc<Packed>, seq: i64) {
        self.keys.insert(Arc::as_ptr(pack), (Arc::clone(pack), seq));
    }
}

/// Updates the stored facts of a hook if this version parses the hook differently.
pub(super) fn reinterpret(
    db: &Connection,
    names: &mut Names,
    seq: u64,
    reading: &Reading,
) -> rusqlite::Result<()> {
    let (conversation, event) = ids(db, names, reading)?;
    let changed = db
        .prepare_cached(
            "UPDATE raw_hook SET conversation = ?2, event = ?3, malformed = ?4
             WHERE seq = ?1 AND (conversation IS NOT ?2 OR event IS NOT ?3 OR malformed IS NOT ?4)",
        )?
        .execute((seq.cast_signed(), conversation, event, reading.malformed))?;
    if changed > 0 { part(db, seq.cast_signed()) } else { Ok(()) }
}

/// Divides packs that contain hooks of two conversations into packs of one hook each. After one of the conversations is
/// deleted, nothing of it may remain.
fn part(db: &Connection, seq: i64) -> rusqlite::Result<()> {
    let key = db
        .prepare_cached(
            "SELECT coalesce(pack, seq) FROM raw_hook WHERE seq = ?1 AND body_start IS NOT NULL",
        )?
        .query_row([seq], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(key) = key else { return Ok(()) };
    let members = "h.seq >= ?1 AND h.seq < ?2 AND coalesce(h.pack, h.seq) = ?1";
    let bounds = (key, key + MOST_APART);
    let sql = format!(
        "SELECT min(coalesce(conversation, 0)) <> max(coalesce(conversation, 0)) FROM raw_hook h WHERE {members}"
    );
    if !db.query_row(&sql, bounds, |row| row.get::<_, bool>(0))? {
        return Ok(());
    }
    split(db, key)
}

/// Divides the pack under `key` into packs of one hook each, so that one of its hooks can be deleted.
pub(super) fn split(db: &Connection, key: i64) -> rusqlite::Result<()> {
    let members = "h.seq >= ?1 AND h.seq < ?2 AND coalesce(h.pack, h.seq) = ?1";
    let bounds = (key, key + MOST_APART);
    let sql = format!("SELECT {HOOK_COLUMNS} FROM {HOOK_TABLES} WHERE {members}");
    let mut unpacker = Unpacker::default();
    let hooks: rusqlite::Result<Vec<_>> =
        db.prepare(&sql)?.query_map(bounds, |row| hook(row, &mut unpacker))?.collect();
    let hooks = match hooks {
        // Damage is reported elsewhere, and a pack that cannot be read cannot be divided.
        Err(rusqlite::Error::FromSqlConversionFailure(BODY, ..)) => return Ok(()),
        hooks => hooks?,
    };
    db.execute("DELETE FROM payload WHERE seq = ?1", [key])?;
    let (mut packer, mut payloads) = (Packer::new(), payloads(db)?);
    for hook in hooks {
        let seq = hook.seq.cast_signed();
        payload(&mut payloads, seq, &packer.pack(&hook.body))?;
        db.execute(
            "UPDATE raw_hook SET pack = NULL, body_start = NULL, body_len = NULL WHERE seq = ?1",
            [seq],
        )?;
    }
    Ok(())
}

/// The ids in the name table of the conversation and the event.
fn ids(
    db: &Connection,
    names: &mut Names,
    reading: &Reading,
) -> rusqlite::Result<(Option<i64>, Option<i64>)> {
    let mut id = |text: &str| match text {
        "" => Ok(None),
        text => names.id(db, text).map(Some),
    };
    Ok((id(&reading.conversation)?, id(&reading.name)?))
}

#[derive(Serialize, Deserialize)]
struct Context {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transcript_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
}

fn context_text(context: &HookContext) -> Option<String> {
    if *context == HookContext::default() {
        return None;
    }
    let HookContext { cursor_version, project_dir, transcript_path, cwd } = context.clone();
    serde_json::to_string(&Context { cursor_version, project_dir, transcript_path, cwd }).ok()
}

fn context_read(text: &str) -> Option<HookContext> {
    let Context { cursor_version, project_dir, transcript_path, cwd } =
        serde_json::from_str(text).ok()?;
    Some(HookContext { cursor_version, project_dir, transcript_path, cwd })
}

fn unsigned(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(index).map(i64::cast_unsigned)
}

#[cfg(test)]
mod tests;
