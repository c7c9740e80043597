//! Files that only their owner may read, under any umask. Symbolic links are never followed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Opens `path` for reading and appending, creating it 0600. An existing file keeps its content.
///
/// # Errors
/// Returns the error of the file system. A symbolic link is refused.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    let file = options_private(&mut options).open(path)?;
    close_to_others(&file)?;
    Ok(file)
}

/// Makes sure that `path` exists and that other users cannot read it. An existing file is not opened: closing a
/// descriptor would drop all locks that the process holds on that file, including SQLite's.
///
/// # Errors
/// As [`create_private`].
pub(crate) fn ensure_private(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => close_to_others_at(path, &found),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        // A new file, or something that is no regular file and that opening will refuse.
        _ => create_private(path).map(drop),
    }
}

/// Opens an existing `path` for reading. A symbolic link is refused, and a FIFO does not block.
///
/// # Errors
/// Returns the error of the file system.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options_private(options.read(true)).open(path)
}

/// Replaces the content of `path` with `bytes` in one step: readers see either the old or the new file.
///
/// # Errors
/// Returns the error of the file system.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(&staging_prefix(path)).tempfile_in(directory)?;
    close_to_others(file.as_file())?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Removes the temporary file of an interrupted [`write_private`] to `path`. Call it only if no other process can be
/// writing `path`.
pub(super) fn sweep_staged(path: &Path) {
    let prefix = staging_prefix(path);
    let entries = path.parent().and_then(|directory| std::fs::read_dir(directory).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let is_staged = entry.file_name().to_string_lossy().starts_with(&prefix);
        if is_staged && let Err(error) = std::fs::remove_file(entry.path()) {
            tracing::warn!(%error, "dirs.staged_file_kept");
        }
    }
}

fn staging_prefix(path: &Path) -> String {
    format!(".{}-", path.file_name().unwrap_or_default().to_string_lossy())
}

#[cfg(unix)]
fn options_private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.mode(0o600).custom_flags(flags.bits().cast_signed())
}

#[cfg(not(unix))]
fn options_private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// The umask may have removed too many bits from the mode given at creation.
#[cfg(unix)]
fn close_to_others(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if file.metadata()?.permissions().mode() & 0o777 == 0o600 {
        return Ok(());
    }
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

#[cfg(unix)]
fn close_to_others_at(path: &Path, found: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if found.permissions().mode() & 0o777 == 0o600 {
        return Ok(());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn close_to_others_at(_path: &Path, _found: &std::fs::Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn close_to_others(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_write_left_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.json");
        write_private(&path, b"{}").unwrap();
        for name in [".serve.json-x1y2", ".token-x1y2", "serve.json-mine"] {
            std::fs::write(folder.path().join(name), "half").unwrap();
        }
        sweep_staged(&path);
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, [".token-x1y2", "serve.json", "serve.json-mine"]);
    }
}
