//! Reads one file of frames from a position on.
//!
//! A writer may be killed in the middle of a frame, and the next writer's frame follows directly. So the reader trusts
//! the length in a header only if the header's own checksum is right. Otherwise it continues at the next valid header.
//!
//! A failed read changes nothing: the offset moves only past bytes that were handed out or counted.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookspan_shim::frame::{Decoded, HEADER_BYTES, Header, MAGIC, find_magic};
use hookspan_shim::hash::xxh64;

use super::Counters;
use super::torn::Piece;
use crate::disk;

pub(super) const READ_BYTES: usize = 1 << 20;

/// If a frame ends beyond the end of the file and contains another valid header, the reader waits this long for its
/// rest. Such a frame is nearly always torn. But its body may contain a copy of a frame, and its writer may still be
/// writing.
const UNFINISHED: Duration = Duration::from_secs(1);

/// A frame as it was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub header: Header,
    pub payload: &'a [u8],
    /// Offset of the header in the file.
    pub at: u64,
}

/// Number of header bytes that are the same in every version: the checksum and the fields that it covers.
const CHECKED_BYTES: usize = 36;

/// A file and how far it has been read.
#[derive(Debug)]
pub(super) struct Segment {
    file: Arc<File>,
    /// Bytes of the file, beginning at `start`. Those before `cursor` have been handed out.
    buffer: Vec<u8>,
    start: u64,
    cursor: usize,
    /// The first bytes of the file, collected until there are enough for a fingerprint.
    head: Vec<u8>,
    fingerprint: Option<u64>,
    /// The bytes before the cursor belong to a torn stretch that is already counted.
    in_torn: bool,
    /// Offset of an unfinished frame, and when it was first seen.
    unfinished_since: Option<(u64, Instant)>,
    /// No process can write to the file any more, so an unfinished frame stays unfinished.
    pub no_writers: bool,
    /// Whether torn bytes are collected for [`Segment::take_torn`].
    pub keeps_torn: bool,
    torn: Vec<Piece>,
}

/// What stands at the cursor.
enum Next {
    Frame(Header),
    Newer(usize),
    Torn,
    Wait,
}

impl Segment {
    pub(super) fn new(file: impl Into<Arc<File>>, from: u64) -> Self {
        Self {
            file: file.into(),
            buffer: Vec::new(),
            start: from,
            cursor: 0,
            head: Vec::new(),
            fingerprint: None,
            in_torn: false,
            unfinished_since: None,
            no_writers: false,
            keeps_torn: false,
            torn: Vec::new(),
        }
    }

    /// The same for a file whose fingerprint is known.
    pub(super) fn known(file: Arc<File>, from: u64, fingerprint: Option<u64>) -> Self {
        Self { fingerprint, ..Self::new(file, from) }
    }

    /// The torn bytes since the last call, if they are collected.
    pub(super) fn take_torn(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.torn)
    }

    /// The file itself.
    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Offset up to which every byte has been handed out or counted.
    pub(super) fn offset(&self) -> u64 {
        self.start + self.cursor as u64
    }

    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(disk::look(&self.file)?.len())
    }

    /// Switches to another descriptor of the same file.
    pub(super) fn go_on_with(&mut self, file: Arc<File>) {
        self.file = file;
    }

    /// The segment's fingerprint. `None` until a complete header was read.
    pub(super) fn fingerprint(&self) -> Option<u64> {
        self.fingerprint
    }

    /// Reads once. Passes every complete frame to `take`, until `take` returns `false`. Returns whether there may be
    /// more.
    ///
    /// # Errors
    ///
    /// The file cannot be read. Frames that were passed on before stay valid, and the next call continues after them.
    pub(super) fn read(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        mut take: impl FnMut(Frame<'_>) -> bool,
    ) -> io::Result<bool> {
        let grown = self.fill()?;
        loop {
            match self.next(now)? {
                Next::Frame(header) => {
                    let from = self.cursor + HEADER_BYTES;
                    let to = from + header.len as usize;
                    let at = self.offset();
                    self.advance(to - self.cursor);
                    self.in_torn = false;
                    let payload = self.buffer.get(from..to).unwrap_or_default();
                    if !take(Frame { header, payload, at }) {
                        return Ok(true);
                    }
                }
                Next::Newer(bytes) => {
                    counters.newer += 1;
                    self.in_torn = false;
                    self.advance(bytes);
                }
                Next::Torn => {
                    counters.torn += u64::from(!self.in_torn);
                    self.in_torn = true;
                    let rest = self.buffer.get(self.cursor + 1..).unwrap_or_default();
                    // A magic may be cut in two by the end of the buffer.
                    let skipped = find_magic(rest).unwrap_or(rest.len().saturating_sub(3));
                    self.collect_torn(1 + skipped);
                    self.advance(1 + skipped);
                }
                Next::Wait => return Ok(grown),
            }
        }
    }

    fn collect_torn(&mut self, bytes: usize) {
        if !self.keeps_torn {
            return;
        }
        let at = self.offset();
        let end = (self.cursor + bytes).min(self.buffer.len());
        let skipped = self.buffer.get(self.cursor..end).unwrap_or_default();
        match self.torn.last_mut() {
            Some(piece) if piece.at + piece.bytes.len() as u64 == at => {
                piece.bytes.extend_from_slice(skipped);
            }
            _ => self.torn.push(Piece { at, bytes: skipped.to_vec() }),
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.cursor = (self.cursor + bytes).min(self.buffer.len());
        self.unfinished_since = None;
    }

    /// Reads more bytes into the buffer. Returns whether the file has even more. The buffer is bounded: a caller that
    /// takes a few frames at a time must not load the whole segment.
    fn fill(&mut self) -> io::Result<bool> {
        // Half a buffer can hold a complete frame. Moving the rest to the front for every small read would cost more
        // than the reading.
        if self.buffer.len() - self.cursor >= READ_BYTES / 2 {
            return Ok(true);
        }
        self.buffer.drain(..self.cursor);
        self.start += self.cursor as u64;
        self.cursor = 0;
        let have = self.buffer.len();
        let missing = self.len()?.saturating_sub(self.start + have as u64);
        let wanted = usize::try_from(missing).unwrap_or(READ_BYTES);
        let wanted = wanted.min(READ_BYTES.saturating_sub(have));
        if wanted == 0 {
            return Ok(missing > 0);
        }
        self.buffer.resize(have + wanted, 0);
        let place = self.buffer.get_mut(have..).unwrap_or_default();
        let read = disk::read_at(&self.file, place, self.start + have as u64);
        self.buffer.truncate(have + read.as_ref().copied().unwrap_or(0));
        let read = read?;
        self.keep_head(have);
        Ok(read as u64 != missing)
    }

    /// Keeps the first bytes of the file. The buffer after `from` was just read.
    fn keep_head(&mut self, from: usize) {
        let follows = self.start + from as u64 == self.head.len() as u64;
        if self.fingerprint.is_some() || !follows {
            return;
        }
        let read = self.buffer.get(from..).unwrap_or_default();
        let missing = HEADER_BYTES - self.head.len();
        self.head.extend_from_slice(read.get(..missing).unwrap_or(read));
        if self.head.len() == HEADER_BYTES {
            self.fingerprint = Some(xxh64(&self.head, 0));
        }
    }

    fn next(&mut self, now: Instant) -> io::Result<Next> {
        let rest = self.buffer.get(self.cursor..).unwrap_or_default();
        let Some(bytes) = rest.first_chunk::<HEADER_BYTES>() else {
            let begins = rest.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic);
            return Ok(match rest {
                [] => Next::Wait,
                // The rest of the header may not be written or read yet.
                _ if begins && !self.is_final()? => Next::Wait,
                _ => Next::Torn,
            });
        };
        let (len, header) = match Header::decode(bytes) {
            Decoded::Bad => return Ok(Next::Torn),
            Decoded::Newer { len } => (len as usize, None),
            Decoded::Header(header) => (header.len as usize, Some(header)),
        };
        let payload = rest.get(HEADER_BYTES..).unwrap_or_default();
        Ok(match (payload.get(..len), header) {
            (Some(_), None) => {
                let unchecked = rest.get(CHECKED_BYTES..).unwrap_or_default();
                let len = HEADER_BYTES - CHECKED_BYTES + len;
                Next::Newer(CHECKED_BYTES + up_to_header(unchecked, len))
            }
            (Some(payload), Some(header)) if header.matches(payload) => Next::Frame(header),
            (Some(_), Some(_)) => Next::Torn,
            (None, _) if self.is_final()? => Next::Torn,
            (None, _) if !has_header(payload) => Next::Wait,
            (None, _) => self.wait_for_unfinished(now)?,
        })
    }

    /// Whether the file has bytes beyond the buffer.
    ///
    /// # Errors
    ///
    /// The system does not tell the file's length. Without the length, no frame may be called torn, because the rest of
    /// it may exist.
    pub(super) fn is_behind(&self) -> io::Result<bool> {
        Ok(self.start + (self.buffer.len() as u64) < self.len()?)
    }

    /// Whether the buffer holds the last bytes that the file will ever have.
    fn is_final(&self) -> io::Result<bool> {
        Ok(self.no_writers && !self.is_behind()?)
    }

    fn wait_for_unfinished(&mut self, now: Instant) -> io::Result<Next> {
        let at = self.offset();
        let since = match self.unfinished_since {
            Some((offset, since)) if offset == at => since,
            _ => now,
        };
        self.unfinished_since = Some((at, since));
        let over = now.duration_since(since) >= UNFINISHED && !self.is_behind()?;
        Ok(if over { Next::Torn } else { Next::Wait })
    }
}

/// How many of these bytes belong to a frame of a later version: `len`, but only up to the next valid header. This
/// version cannot check the bytes after [`CHECKED_BYTES`]. If the writer was killed while writing, frames of other
/// writers stand there. Text contains a valid header only if it contains a copy of a frame.
fn up_to_header(bytes: &[u8], len: usize) -> usize {
    // A header may begin with the frame's last byte.
    let bytes = bytes.get(..len + HEADER_BYTES - 1).unwrap_or(bytes);
    let mut from = 0;
    while let Some(found) = bytes.get(from..).and_then(find_magic) {
        let at = from + found;
        let header = bytes.get(at..).and_then(|rest| rest.first_chunk()).map(Header::decode);
        match header {
            _ if at >= len => break,
            Some(Decoded::Bad) => from = at + MAGIC.len(),
            // A valid header, or the start of one.
            _ => return at,
        }
    }
    len
}

/// Whether `bytes` contain a valid header.
fn has_header(mut bytes: &[u8]) -> bool {
    while let Some(at) = find_magic(bytes) {
        let found = bytes.get(at..).unwrap_or_default();
        match found.first_chunk::<HEADER_BYTES>().map(Header::decode) {
            None => return false,
            Some(Decoded::Bad) => bytes = found.get(MAGIC.len()..).unwrap_or_default(),
            Some(_) => return true,
        }
    }
    false
}

/// The segment's fingerprint: a hash of its first header's bytes. `None` if the file is shorter.
pub(super) fn fingerprint(file: &File) -> io::Result<Option<u64>> {
    let mut bytes = [0; HEADER_BYTES];
    let read = disk::read_at(file, &mut bytes, 0)?;
    Ok((read == bytes.len()).then(|| xxh64(&bytes, 0)))
}
