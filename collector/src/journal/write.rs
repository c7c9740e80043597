//! Appends records in the shim's format, for tests.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use hookspan_core::hook::HookContext;
use hookspan_shim::event::Event;
use hookspan_shim::frame::{HEADER_BYTES, LAST, PAYLOAD_MAX, seal};
use hookspan_shim::record::{self, METADATA_MAX, Stamp};

use super::record_id;

/// A record to append.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewRecord<'a> {
    /// Nanoseconds since the Unix epoch.
    pub wall_ns: u64,
    /// `CLOCK_BOOTTIME` in nanoseconds; 0 if unknown.
    pub boottime_ns: u64,
    /// Identifies the record together with `wall_ns`. Of two records with the same identity, only one is stored.
    pub id: u64,
    /// The event's name, for bodies that do not contain it.
    pub argument: &'a str,
    /// What the environment said.
    pub context: HookContext,
    /// The flags that [`super::Record::flags`] will have.
    pub flags: u8,
    /// The payload.
    pub body: &'a [u8],
}

/// Appends one record. Uses as many frames as necessary, and one write for each. Returns the record's unique id.
///
/// # Errors
///
/// A write failed. Part of a frame may have been written; readers skip it.
pub(crate) fn append(file: &mut File, new: &NewRecord<'_>) -> io::Result<[u8; 16]> {
    let mut frame = vec![0; HEADER_BYTES + METADATA_MAX];
    let meta_bytes = encode_metadata(frame.get_mut(HEADER_BYTES..).unwrap_or_default(), new);
    frame.truncate(HEADER_BYTES + usize::from(meta_bytes));
    let mut rest = new.body;
    for seq in 0.. {
        let room = PAYLOAD_MAX - (frame.len() - HEADER_BYTES);
        let (part, after) = rest.split_at_checked(room).unwrap_or((rest, &[]));
        frame.extend_from_slice(part);
        rest = after;
        let flags = if rest.is_empty() { new.flags | LAST } else { 0 };
        seal(&mut frame, new.id, seq, if seq == 0 { meta_bytes } else { 0 }, flags);
        file.write_all(&frame)?;
        if rest.is_empty() {
            break;
        }
        frame.truncate(HEADER_BYTES);
    }
    Ok(record_id(new.wall_ns, new.id))
}

/// Opens a segment file for appending. A missing file is created with mode 0600 under any umask.
///
/// # Errors
/// The file cannot be opened or created.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    crate::dirs::create_private(path)
}

fn encode_metadata(out: &mut [u8], new: &NewRecord<'_>) -> u16 {
    let event = Event::named(new.argument.as_bytes()).map_or(0, |event| event as u8);
    let (wall_ns, boottime_ns) = (new.wall_ns, new.boottime_ns);
    let stamp = Stamp { wall_ns, boottime_ns, event, ..Stamp::default() };
    let text = |text: &'_ Option<String>| text.clone().unwrap_or_default().into_bytes();
    let context = &new.context;
    record::encode(
        out,
        &stamp,
        &[
            (record::ARGUMENT, new.argument.as_bytes()),
            (record::CURSOR_VERSION, &text(&context.cursor_version)),
            (record::PROJECT_DIR, &text(&context.project_dir)),
            (record::TRANSCRIPT_PATH, &text(&context.transcript_path)),
            (record::PWD, &text(&context.cwd)),
        ],
    )
    .unwrap_or_default()
}
