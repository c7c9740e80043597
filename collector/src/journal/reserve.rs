//! Space kept behind the journal's end, so that hooks go on being kept when the disk is full.

use std::fs::{File, OpenOptions};
use std::path::Path;

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

/// As [`extend`], for a file known by its path: the follower has it open for reading only, because the lease that tells
/// whether anybody can still write counts its own descriptors too.
pub(super) fn extend_at(path: &Path, len: u64) -> u64 {
    if let Ok(file) = OpenOptions::new().write(true).open(path) {
        extend(&file, len);
    }
    len + STEP_BYTES
}

/// Makes the file that counts losses, with space of its own, so that a full disk cannot prevent counting.
pub(super) fn prepare_losses(path: &Path) -> std::io::Result<()> {
    let file = super::write::open(path)?;
    reserve(&file, 0, LOSSES_BYTES);
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

#[cfg(target_os = "linux")]
fn reserve(file: &File, from: u64, bytes: u64) {
    use rustix::fs::{FallocateFlags, fallocate};

    if let Err(error) = fallocate(file, FallocateFlags::KEEP_SIZE, from, bytes) {
        tracing::debug!(%error, "journal.no_reserve");
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: u64, _: u64) {}
