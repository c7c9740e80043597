//! Writes hooks into the journal without a process for each: a load that no two cores could start shims for.

use std::fs::File;
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::campaign::frames;
use crate::random::Random;

/// Written at once. The shim writes each frame alone; a reader cannot tell.
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

    /// Takes one hook of a time in nanoseconds since 1970. Nothing is written before [`Self::flush`], or before enough has
    /// come together.
    ///
    /// # Errors
    /// As the file system fails.
    pub fn append(&mut self, at: u64, event: &str, body: &[u8]) -> io::Result<()> {
        self.chunk.extend(frames::record(self.random.bits(), at, event, body));
        if self.chunk.len() >= CHUNK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what has come together. The file is opened each time, as each shim does: it may have been rotated.
    ///
    /// # Errors
    /// As the file system fails; and where the journal is full and so a link, which no shim follows.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let mut options = File::options();
        options.create(true).append(true);
        // As the shim makes it: the collector refuses a journal that others can open.
        #[cfg(unix)]
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
        options.open(&self.path)?.write_all(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }

    /// Waits until what has been written is on the disk.
    ///
    /// # Errors
    /// As the file system fails.
    pub fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// Nanoseconds since 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
