//! Space kept behind the journal's end, so that hooks go on being kept when the disk is full.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::disk;

/// What is kept behind the end of the journal, in bytes.
const RESERVE_BYTES: u64 = 16 << 20;
/// The reserve is made this much larger than it must be, so that it is not made again for every hook.
const STEP_BYTES: u64 = 4 << 20;
/// What is kept for the file that counts losses: two thousand of them.
const LOSSES_BYTES: u64 = 64 << 10;

/// Reserves space behind `len` and returns the length up to which nothing has to be reserved again. Without such space a
/// full disk loses hooks sooner, and counts them; that is no reason to fail.
pub(super) fn extend(file: &File, len: u64) -> u64 {
    reserve(file, len, RESERVE_BYTES + STEP_BYTES);
    len + STEP_BYTES
}

/// As [`extend`], for a file known by its path. The follower has it open for reading only: the lease that tells whether anybody
/// can still write counts the follower's own descriptors too.
///
/// # Errors
/// The file cannot be opened. Try again: nothing is reserved.
pub(super) fn extend_at(path: &Path, len: u64) -> io::Result<u64> {
    Ok(extend(&disk::open_to_write(path)?, len))
}

/// Makes the file that counts losses, with space of its own, so that a full disk cannot prevent counting.
pub(super) fn prepare_losses(path: &Path) -> io::Result<()> {
    reserve(&disk::create(path)?, 0, LOSSES_BYTES);
    Ok(())
}

/// On btrfs reserved space is not used by a file that is copied on write, and that can be turned off only while the file
/// is empty. Elsewhere nothing.
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
