//! Overwrites committed records, so that a deleted session can neither come back from the journal nor be read there.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use hookspan_shim::frame::HEADER_BYTES;

use super::{Position, files, segment, spilled};
use crate::dirs::StateDir;
use crate::disk::{self, Identity};

static ZEROS: [u8; 64 * 1_024] = [0; 64 * 1_024];

/// The length of each file with records, by inode, because names change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lengths(Vec<(Identity, u64)>);

/// Notes the length of every file with records. Once a later position lies beyond these lengths, all of these bytes are
/// committed.
///
/// # Errors
/// A file cannot be looked at.
pub(crate) fn lengths(dir: &StateDir) -> io::Result<Lengths> {
    let mut lengths = Vec::new();
    for path in files(dir)? {
        let found = disk::look_at(&path)?.filter(Metadata::is_file);
        lengths.extend(found.map(|found| (disk::identity(&found), found.len())));
    }
    Ok(Lengths(lengths))
}

/// Overwrites every committed byte in every file with records with zeros. `position` tells which bytes are committed.
/// The first header stays, because it identifies the segment. Returns how many bytes of `before` are not committed yet:
/// repeat the call until it returns 0.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn scrub(dir: &StateDir, position: &Position, before: &Lengths) -> io::Result<u64> {
    super::torn::forget(dir)?;
    let mut left = 0;
    for path in files(dir)? {
        let Some((identity, committed)) = blank(&path, position)? else { continue };
        let wanted = before.0.iter().find(|(known, _)| *known == identity);
        left += wanted.map_or(0, |(_, len)| len.saturating_sub(committed));
    }
    Ok(left)
}

/// Segments, the journal under any of its names, and spill files.
fn files(dir: &StateDir) -> io::Result<Vec<PathBuf>> {
    let sealed = match files::segments(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        sealed => sealed?,
    };
    let sealed = sealed.into_iter().map(|(_, path)| path);
    Ok(sealed.chain([files::current(dir)]).chain(spilled(dir)).collect())
}

/// Overwrites one file. `None` if the file is gone, empty, or not a regular file.
fn blank(path: &Path, position: &Position) -> io::Result<Option<(Identity, u64)>> {
    let Some(identity) = disk::regular(path)? else { return Ok(None) };
    let file = match disk::open_to_write(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let Some(fingerprint) = segment::fingerprint(&file)? else { return Ok(None) };
    let committed = position.offset_in(fingerprint);
    let (mut at, mut changed) = (HEADER_BYTES as u64, false);
    let mut buffer = vec![0; ZEROS.len()];
    while at < committed {
        let len = usize::try_from(committed - at).unwrap_or(usize::MAX).min(ZEROS.len());
        let (found, zeros) = (buffer.get_mut(..len).unwrap_or_default(), &ZEROS[..len]);
        read_at(&file, found, at)?;
        // Bytes that an earlier deletion has overwritten are skipped.
        if found != zeros {
            write_at(&file, zeros, at)?;
            changed = true;
        }
        at += len as u64;
    }
    if changed {
        disk::sync(&file)?;
    }
    Ok(Some((identity, committed)))
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(not(unix))]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt as _;
    let mut done = 0;
    while done < bytes.len() {
        match file.seek_read(&mut bytes[done..], at + done as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(())
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
