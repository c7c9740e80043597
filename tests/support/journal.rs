//! Writes the journal as ARCHITECTURE.md lays it down, without a process for each hook: a load that no two cores could
//! start shims for. It shares no code with the shim, so a change of the format shows here.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use xxhash_rust::xxh64::xxh64;

use crate::random::Random;

const MAGIC: [u8; 4] = [0xff, b'H', b'S', b'J'];
const VERSION: u8 = 1;
const LAST: u8 = 1;
const HEADER_BYTES: usize = 40;
/// Written at once. The shim writes each frame alone; a reader cannot tell.
const CHUNK_BYTES: usize = 256 << 10;

/// Appends records of one frame each.
#[derive(Debug)]
pub struct JournalWriter {
    path: PathBuf,
    random: Random,
    boot: SystemTime,
    chunk: Vec<u8>,
}

impl JournalWriter {
    /// A writer to the journal at `path`.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        let now = SystemTime::now();
        let seed = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        Self { path, random: Random::from_seed(seed), boot: now, chunk: Vec::new() }
    }

    /// Takes one hook, as of now. Nothing is written before [`Self::flush`], or before enough has come together.
    ///
    /// # Errors
    /// As the file system fails.
    pub fn append(&mut self, event: &str, body: &[u8]) -> io::Result<()> {
        let now = SystemTime::now();
        let wall = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let up = now.duration_since(self.boot).unwrap_or_default().as_nanos() as u64;
        let id = self.random.bits();
        let start = self.chunk.len();
        self.chunk.extend([0; HEADER_BYTES]);
        self.chunk.extend(wall.to_le_bytes());
        self.chunk.extend(up.to_le_bytes());
        self.chunk.extend([0; 8]);
        self.chunk.extend([1, 0]);
        self.chunk.extend((event.len() as u16).to_le_bytes());
        self.chunk.extend(event.as_bytes());
        while !(self.chunk.len() - start).is_multiple_of(8) {
            self.chunk.push(0);
        }
        let metadata = self.chunk.len() - start - HEADER_BYTES;
        self.chunk.extend(body);
        let (header, payload) = self.chunk[start..].split_at_mut(HEADER_BYTES);
        header[..4].copy_from_slice(&MAGIC);
        header[4..6].copy_from_slice(&[VERSION, LAST]);
        header[6..8].copy_from_slice(&(metadata as u16).to_le_bytes());
        header[8..16].copy_from_slice(&id.to_le_bytes());
        header[20..24].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[24..32].copy_from_slice(&xxh64(payload, id).to_le_bytes());
        let check = xxh64(&header[..32], 0) as u32;
        header[32..36].copy_from_slice(&check.to_le_bytes());
        if self.chunk.len() >= CHUNK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what has come together. The file is opened each time, as each shim does: it may have been rotated.
    ///
    /// # Errors
    /// As the file system fails.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        File::options().create(true).append(true).open(&self.path)?.write_all(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }
}
