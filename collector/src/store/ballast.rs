//! Reserves disk space for the case of a full disk. SQLite needs space even to delete rows or to move its log into the
//! database.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::dirs::create_private;

/// Size of the reserve in bytes: 32 MiB.
pub(crate) const BALLAST_BYTES: u64 = 32 << 20;
/// Bytes that must be free before the reserve is made. Otherwise the reserve itself could fill the disk.
const FREE_BYTES: u64 = 4 * BALLAST_BYTES;

/// Path of the reserve, beside the database.
#[must_use]
pub(crate) fn path(database: &Path) -> PathBuf {
    database.with_file_name("ballast")
}

/// Makes the reserve if it is missing and there is space. Failures are ignored: without the reserve, a full disk is only harder
/// to recover from.
pub(crate) fn keep(database: &Path) {
    let path = path(database);
    if fs::symlink_metadata(&path).is_ok_and(|found| found.len() >= BALLAST_BYTES) {
        return;
    }
    if let Err(error) = make(&path) {
        tracing::debug!(%error, "ballast.not_kept");
    }
}

/// Frees the reserve. False if there was none.
pub(crate) fn free(database: &Path) -> bool {
    fs::remove_file(path(database)).is_ok()
}

#[cfg(target_os = "linux")]
fn make(path: &Path) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate, statvfs};

    let folder = path.parent().unwrap_or(Path::new("."));
    let disk = statvfs(folder)?;
    if disk.f_bavail.saturating_mul(disk.f_frsize) < FREE_BYTES {
        return Ok(());
    }
    let file = create_private(path)?;
    fallocate(&file, FallocateFlags::empty(), 0, BALLAST_BYTES)?;
    Ok(())
}

/// Other systems allocate blocks only for written bytes.
#[cfg(not(target_os = "linux"))]
fn make(path: &Path) -> io::Result<()> {
    let mut file = create_private(path)?;
    file.set_len(0)?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..BALLAST_BYTES >> 20 {
        io::Write::write_all(&mut file, &zeros)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_of_real_blocks_once_and_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("hookspan.db");
        keep(&database);
        keep(&database);
        let found = fs::metadata(path(&database)).unwrap();
        assert_eq!(found.len(), BALLAST_BYTES);
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            assert!(found.blocks() * 512 >= BALLAST_BYTES, "{} blocks", found.blocks());
            assert_eq!(found.mode() & 0o777, 0o600);
        }
        assert!(free(&database));
        assert!(!free(&database));
    }
}
