//! Keeps torn bytes (bytes that are not a complete frame), so that a person can examine them.
//!
//! No program reads the file. It may contain text of payloads, so it is deleted together with any session, and a week
//! after the last piece was added.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::clock;
use crate::dirs::StateDir;
use crate::disk;

/// Maximum size of the file. Further pieces are counted and not kept.
const KEPT_MAX_BYTES: u64 = 8 << 20;
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);

/// A stretch of torn bytes, or the part of it in one read.
#[derive(Debug)]
pub(super) struct Piece {
    /// Offset in the segment.
    pub at: u64,
    pub bytes: Vec<u8>,
}

/// Appends `pieces` of `segment`, each after a line that names its offset. Zeros, which a power cut leaves behind, are
/// not kept.
pub(super) fn keep(dir: &StateDir, segment: &Path, pieces: &[Piece]) -> io::Result<()> {
    let telling = |piece: &&Piece| piece.bytes.iter().any(|byte| *byte != 0);
    let pieces: Vec<&Piece> = pieces.iter().filter(telling).collect();
    if pieces.is_empty() {
        return Ok(());
    }
    let mut file = disk::create(&dir.torn())?;
    let mut size = disk::look(&file)?.len();
    for Piece { at, bytes } in pieces {
        let name = segment.file_name().unwrap_or_default().to_string_lossy();
        let mut text = format!("{name}, {} bytes at {at}:\n", bytes.len()).into_bytes();
        text.extend_from_slice(bytes);
        text.push(b'\n');
        size += text.len() as u64;
        if size > KEPT_MAX_BYTES {
            return Ok(());
        }
        file.write_all(&text)?;
    }
    Ok(())
}

/// Removes the file, if there is one.
pub(super) fn forget(dir: &StateDir) -> io::Result<()> {
    disk::remove(&dir.torn())
}

/// Removes the file if the last piece is a week old.
pub(super) fn forget_old(dir: &StateDir) -> io::Result<()> {
    let Some(found) = disk::look_at(&dir.torn())? else { return Ok(()) };
    let changed = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Duration::from_nanos(u64::try_from(clock::now().0).unwrap_or_default());
    if now.saturating_sub(changed) > KEPT_FOR { forget(dir) } else { Ok(()) }
}
