//! A lock, so that only one command at a time changes the installations of a state directory.

use std::fs::File;
use std::io;

use super::StateDir;

/// Held while a command changes `install.json` and the files listed there. The kernel releases the lock no matter how
/// the process ends.
///
/// The lock is on the directory itself, so no lock file is left behind.
#[derive(Debug)]
pub(crate) struct Exclusive {
    _held: File,
}

impl Exclusive {
    /// Waits for the lock of a state directory that exists. Holders keep it for milliseconds.
    ///
    /// # Errors
    /// The directory cannot be opened or locked.
    #[cfg(unix)]
    pub(crate) fn wait(dir: &StateDir) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        loop {
            let held = File::open(dir.root())?;
            held.lock()?;
            // The previous holder may have removed the directory, and another process may have created a new one.
            let (ours, named) = (held.metadata()?, dir.root().metadata()?);
            if (ours.dev(), ours.ino()) == (named.dev(), named.ino()) {
                return Ok(Self { _held: held });
            }
        }
    }

    /// Where a directory cannot be opened, the lock is on a file in the directory.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    #[cfg(not(unix))]
    pub fn wait(dir: &StateDir) -> io::Result<Self> {
        let held = super::create_private(&dir.root().join("install.lock"))?;
        held.lock()?;
        Ok(Self { _held: held })
    }
}
