//! The raw log: hooks as they came, and how they are read back.

use std::borrow::Cow;
use std::sync::Arc;

use hookspan_core::content::{Content, Field};
use hookspan_core::hook::HookContext;
use hookspan_core::{Event, EventKind, Hook, HookSource, Reader, Timestamp};
use hookspan_dashboard::line;
use rusqlite::types::Type;
use rusqlite::{Connection, Row};
use serde::{Deserialize, Serialize};

use super::names::Names;
use crate::store::codec::{self, Packed, Packer};

/// A hook on its way into the raw log: packed and read, both outside the writer's thread.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Unique: wall clock big-endian, then the record's own id.
    pub id: [u8; 16],
    /// See `raw_hook.flags`.
    pub flags: u8,
    /// The hook without its body; its `seq` is given when it is written.
    pub hook: Hook,
    /// Its body.
    pub packed: Packed,
    /// Its reading, until the fold takes it.
    pub event: Option<Event>,
    /// The part of the reading that the raw log notes.
    pub reading: Reading,
}

/// Makes arrivals. It keeps its working memory between hooks.
#[derive(Debug, Default)]
pub struct Preparer {
    reader: Reader,
    packer: Packer,
}

impl Preparer {
    /// Reads and packs a hook.
    pub fn prepare(&mut self, id: [u8; 16], flags: u8, mut hook: Hook) -> Arrival {
        let (event, content) = self.reader.read_with(&hook, subject_field);
        let reading = Reading::of(&event, content.as_ref());
        let packed = self.packer.pack(&std::mem::take(&mut hook.body));
        Arrival { id, flags, hook, packed, reading, event: Some(event) }
    }

    /// From now on takes less time and more bytes, or not any more.
    pub fn set_haste(&mut self, haste: bool) {
        self.packer.set_haste(haste);
    }
}

/// What a hook was read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The conversation, empty when it has none.
    pub conversation: Arc<str>,
    /// The event's name, empty when it has none.
    pub name: Cow<'static, str>,
    /// Whether it could not be read.
    pub malformed: bool,
    /// Whether its name is one that hookspan does not know.
    pub unknown: bool,
    /// Fields that no hook of Cursor is known to send.
    pub unseen: Vec<Box<str>>,
    /// The version that sent it, where it says so and something in it is new.
    pub version: Option<Box<str>>,
    /// What the call is about (a command, a query, a task), when that stands in the body alone.
    pub subject: Option<Box<str>>,
}

impl Reading {
    /// What is noted of `event`, and of the content that tells what it is about, see [`subject_field`].
    #[must_use]
    pub fn of(event: &Event, content: Option<&Content>) -> Self {
        let malformed = matches!(event.kind, EventKind::Malformed);
        let name = if malformed { Cow::Borrowed("") } else { event.name.clone() };
        let unknown = matches!(event.kind, EventKind::Unknown { .. });
        let version = event.about.cursor_version.as_deref();
        Self {
            conversation: event.conversation.clone(),
            name,
            malformed,
            unknown,
            unseen: event.unseen.clone(),
            version: version.filter(|_| unknown || !event.unseen.is_empty()).map(Into::into),
            subject: content.and_then(line::subject).map(Into::into),
        }
    }
}

/// What a call's label needs from the body. A call about a file is called by its path, which the fold has.
#[must_use]
pub fn subject_field(kind: &EventKind) -> Option<Field> {
    match kind {
        EventKind::ToolStart(tool)
        | EventKind::ToolEnd(tool)
        | EventKind::ToolFailure(tool)
        | EventKind::ShellStart(tool)
        | EventKind::ShellEnd(tool)
        | EventKind::McpStart(tool)
        | EventKind::McpEnd(tool) => tool.path.is_none().then_some(Field::ToolInput),
        EventKind::SubagentStart(_) | EventKind::SubagentStop(_) => Some(Field::Task),
        _ => None,
    }
}

/// Columns that [`hook`] reads, from [`HOOK_TABLES`].
pub const HOOK_COLUMNS: &str = "h.seq, h.observed_ns, h.boottime_ns, h.source, h.argument, \
     h.context, p.codec, p.len, p.xxh64, p.body";

/// Where [`HOOK_COLUMNS`] come from.
pub const HOOK_TABLES: &str = "raw_hook h JOIN payload p ON p.seq = h.seq";

/// Where the body stands among [`HOOK_COLUMNS`].
pub(super) const BODY: usize = 9;

/// A hook as it came.
///
/// # Errors
/// When the body is not the one that was stored.
pub fn hook(row: &Row<'_>) -> rusqlite::Result<Hook> {
    let stored = row.get_ref(BODY)?.as_blob()?;
    let body =
        codec::unpack(row.get(6)?, unsigned(row, 7)?, row.get(8)?, stored).map_err(|damage| {
            rusqlite::Error::FromSqlConversionFailure(BODY, Type::Blob, Box::new(damage))
        })?;
    envelope(row, body)
}

/// A hook with everything but its body as it came.
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

/// Writes a hook under `seq`. False when its id is known: then nothing was written.
pub(super) fn insert(
    db: &Connection,
    names: &mut Names,
    seq: u64,
    arrival: &Arrival,
) -> rusqlite::Result<bool> {
    let (hook, seq) = (&arrival.hook, seq.cast_signed());
    let source = match hook.source {
        HookSource::Shim => 0,
        HookSource::Import => 1,
        HookSource::Evidence => 2,
    };
    let (conversation, event) = ids(db, names, &arrival.reading)?;
    let mut statement = db.prepare_cached(
        "INSERT INTO raw_hook (seq, id, observed_ns, boottime_ns, source, flags, conversation, event,
                               malformed, argument, context)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (id) DO NOTHING",
    )?;
    let written = statement.execute((
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
    ))?;
    if written == 0 {
        return Ok(false);
    }
    let Packed { codec, len, xxh64, bytes } = &arrival.packed;
    db.prepare_cached(
        "INSERT INTO payload (seq, codec, len, xxh64, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute((seq, codec, len.cast_signed(), xxh64, bytes))?;
    Ok(true)
}

/// Notes how a stored hook is read now, where that differs from when it was written.
pub(super) fn reinterpret(
    db: &Connection,
    names: &mut Names,
    seq: u64,
    reading: &Reading,
) -> rusqlite::Result<()> {
    let (conversation, event) = ids(db, names, reading)?;
    db.prepare_cached(
        "UPDATE raw_hook SET conversation = ?2, event = ?3, malformed = ?4
         WHERE seq = ?1 AND (conversation IS NOT ?2 OR event IS NOT ?3 OR malformed IS NOT ?4)",
    )?
    .execute((seq.cast_signed(), conversation, event, reading.malformed))?;
    Ok(())
}

/// Name ids of the conversation and of the event.
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
