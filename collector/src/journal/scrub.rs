//! Blanking what has been committed: a deleted session must not come back from the journal, nor be read in it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use hookspan_shim::frame::HEADER_BYTES;

use super::{Position, files, segment};
use crate::dirs::StateDir;

static ZEROS: [u8; 64 * 1_024] = [0; 64 * 1_024];

/// How long each segment is now. What is committed beyond these lengths later covers all that is in them.
///
/// # Errors
/// A file cannot be looked at.
pub fn lengths(dir: &StateDir) -> io::Result<Vec<(PathBuf, u64)>> {
    let sealed = match files::segments(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        sealed => sealed?,
    };
    let mut found = Vec::new();
    for path in sealed.into_iter().map(|(_, path)| path).chain([dir.journal()]) {
        match std::fs::metadata(&path) {
            Ok(file) => found.push((path, file.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Overwrites with zeros whatever `position` says is committed, in every segment; its first header stays, since the segment
/// is known by it. Returns how many bytes of `before` are not committed yet: come again until it is 0.
///
/// # Errors
/// A file cannot be read or written.
pub fn scrub(dir: &StateDir, position: &Position, before: &[(PathBuf, u64)]) -> io::Result<u64> {
    super::torn::forget(dir)?;
    let mut left = 0;
    for (path, _) in lengths(dir)? {
        let Some(committed) = blank(&path, position)? else { continue };
        let wanted = before.iter().find(|(known, _)| *known == path).map_or(0, |(_, len)| *len);
        left += wanted.saturating_sub(committed);
    }
    Ok(left)
}

/// Blanks one segment; `None` when it has gone, or holds nothing yet.
fn blank(path: &Path, position: &Position) -> io::Result<Option<u64>> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let Some(fingerprint) = segment::fingerprint(&file)? else { return Ok(None) };
    let committed = position.offset_in(fingerprint);
    let mut at = HEADER_BYTES as u64;
    while at < committed {
        let len = (committed - at).min(ZEROS.len() as u64);
        let zeros = &ZEROS[..usize::try_from(len).unwrap_or(0)];
        write_at(&file, zeros, at)?;
        at += len;
    }
    file.sync_data()?;
    Ok(Some(committed))
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt as _;
    let mut done = 0;
    while done < bytes.len() {
        done += file.seek_write(&bytes[done..], at + done as u64)?;
    }
    Ok(())
}
