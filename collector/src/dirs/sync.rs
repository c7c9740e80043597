//! Renames that survive a power cut.

use std::io;
use std::path::Path;

/// Syncs `folder`, so that a rename in it survives a power cut. Some file systems cannot sync a folder: there a power
/// cut may undo the rename, and nothing else is lost.
///
/// # Errors
/// The folder cannot be opened or synced.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match std::fs::File::open(folder)?.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Does nothing: only Unix can sync folders.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
