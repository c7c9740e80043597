//! What was no whole frame, kept aside for whoever wants to look at it.
//!
//! Nothing reads the file again. It may hold a payload's text, so it goes when a session is deleted, and a week after the
//! last piece.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::clock;
use crate::dirs::{self, StateDir};

/// Size of the file beyond which pieces are counted only.
const KEPT_MAX_BYTES: u64 = 8 << 20;
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);

/// A stretch of bytes, or as much of it as one read covered.
#[derive(Debug)]
pub(super) struct Piece {
    /// Offset in the segment.
    pub at: u64,
    pub bytes: Vec<u8>,
}

/// Appends `pieces` of `segment`, each behind a line that says where it was. Zeros, as a power cut leaves them, say nothing.
pub(super) fn keep(dir: &StateDir, segment: &Path, pieces: &[Piece]) -> io::Result<()> {
    let telling = |piece: &&Piece| piece.bytes.iter().any(|byte| *byte != 0);
    let pieces: Vec<&Piece> = pieces.iter().filter(telling).collect();
    if pieces.is_empty() {
        return Ok(());
    }
    let mut file = dirs::create_private(&dir.torn())?;
    let mut size = file.metadata()?.len();
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

/// Removes the file; one that is not there is fine.
pub(super) fn forget(dir: &StateDir) -> io::Result<()> {
    match std::fs::remove_file(dir.torn()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the file when nothing has come for a week.
pub(super) fn forget_old(dir: &StateDir) -> io::Result<()> {
    let Ok(changed) = std::fs::metadata(dir.torn()).and_then(|found| found.modified()) else {
        return Ok(());
    };
    let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Duration::from_nanos(u64::try_from(clock::now().0).unwrap_or_default());
    if now.saturating_sub(changed) > KEPT_FOR { forget(dir) } else { Ok(()) }
}
