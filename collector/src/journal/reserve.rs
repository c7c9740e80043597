//! Reserves disk space after the journal's end, so that hooks still fit when the disk is full.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::disk;

/// Bytes reserved after the journal's end.
const RESERVE_BYTES: u64 = 16 << 20;
/// Extra bytes per reservation, so that most hooks need no new one.
const STEP_BYTES: u64 = 4 << 20;
/// Bytes reserved for the file that counts losses: enough for two thousand losses.
const LOSSES_BYTES: u64 = 64 << 10;

/// Reserves space after `len`. Returns the length up to which no new reservation is needed. A failed reservation is
/// ignored: on a full disk, hooks are then lost (and counted) earlier.
pub(super) fn extend(file: &File, len: u64) -> u64 {
    reserve(file, len, RESERVE_BYTES + STEP_BYTES);
    len + STEP_BYTES
}

/// Like [`extend`], for a path. The follower itself opens the file for reading only, because the lease that detects
/// writers would count the follower's own descriptor.
///
/// # Errors
/// The file cannot be opened. Nothing is reserved; try again.
pub(super) fn extend_at(path: &Path, len: u64) -> io::Result<u64> {
    Ok(extend(&disk::open_to_write(path)?, len))
}

/// Makes the file that counts losses and reserves its space, so that losses are counted even on a full disk.
pub(super) fn prepare_losses(path: &Path) -> io::Result<()> {
    reserve(&disk::create(path)?, 0, LOSSES_BYTES);
    Ok(())
}

/// On btrfs, a copy-on-write file does not use reserved space, so copy-on-write is turned off. That is possible only
/// while the file is empty. On other file systems this does nothing.
#[cfg(target_os = "linux")]
pub(super) fn prepare(file: &File) {
    use rustix::fs::{IFlags, fstatfs, ioctl_getflags, ioctl_setflags};

    const BTRFS: u64 = 0x9123_683E;
    if fstatfs(file).is_ok_and(|found| found.f_type as u64 == BTRFS)
        && let Ok(flags) = ioctl_getflags(file)
        && let Err(error) = ioctl_setflags(file, flags | IFlags::NOCOW)
    {
        tracing::debug!(%error, "journal.no_nocow");
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn prepare(_: &File) {}

fn reserve(file: &File, from: u64, bytes: u64) {
    if let Err(error) = disk::reserve(file, from, bytes) {
        tracing::debug!(%error, "journal.no_reserve");
    }
}
