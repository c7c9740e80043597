//! Writes hooks into the journal without starting a process for each. Two cores could not start shims fast enough for
//! this load.

use std::fs::File;
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::campaign::frames;
use crate::random::Random;

/// Number of bytes per write. The shim writes each frame separately; a reader cannot tell the difference.
const CHUNK_BYTES: usize = 256 << 10;

/// Appends records of one frame each.
#[derive(Debug)]
pub struct JournalWriter {
    path: PathBuf,
    random: Random,
    chunk: Vec<u8>,
}

impl JournalWriter {
    /// A writer to the journal at `path`.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, random: Random::from_seed(now()), chunk: Vec::new() }
    }

    /// Adds a hook with a time in nanoseconds since 1970. Nothing is written before [`Self::flush`] or before enough
    /// bytes have accumulated.
    ///
    /// # Errors
    ///
    /// Returns the file system's error.
    pub fn append(&mut self, at: u64, event: &str, body: &[u8]) -> io::Result<()> {
        self.chunk.extend(frames::record(self.random.bits(), at, event, body));
        if self.chunk.len() >= CHUNK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what has accumulated. The file is opened each time, as by each shim, because it may have been rotated.
    ///
    /// # Errors
    ///
    /// Returns the file system's error. A full journal is a link, which no shim follows, and gives an error as well.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let mut options = File::options();
        options.create(true).append(true);
        // The file gets the shim's mode, because the collector refuses a journal that others can open.
        #[cfg(unix)]
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
        options.open(&self.path)?.write_all(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }

    /// Waits until everything written is on the disk.
    ///
    /// # Errors
    ///
    /// Returns the file system's error.
    pub fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// Nanoseconds since 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
