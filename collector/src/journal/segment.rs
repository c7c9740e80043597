//! One file of frames, read from a position on.
//!
//! A writer may be killed in the middle of a frame, and its neighbours follow at once. So the length in a header is only
//! believed when the header's own check holds, and after anything else reading goes on at the next sound header.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use hookspan_shim::frame::{Decoded, HEADER_BYTES, Header, MAGIC, find_magic};
use hookspan_shim::hash::xxh64;

use super::Counters;
use super::torn::Piece;

pub(super) const READ_BYTES: usize = 1 << 20;

/// How long a frame that reaches over the end of the file is waited for although what follows its beginning looks like
/// another frame. That is nearly always a torn one; but a body may contain a copy of a frame, and its write may be seen
/// half done.
const UNFINISHED: Duration = Duration::from_secs(1);

/// A frame as it was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub header: Header,
    pub payload: &'a [u8],
    /// Offset of the header in the file.
    pub at: u64,
}

/// Bytes of a header that its own check vouches for in every version, with the check.
const CHECKED_BYTES: usize = 36;

/// A file and how far it has been read.
#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    /// What has been read and not yet been handed out, from `start` in the file.
    buffer: Vec<u8>,
    start: u64,
    cursor: usize,
    fingerprint: Option<u64>,
    /// The bytes before the cursor belong to a torn stretch that has been counted.
    in_torn: bool,
    /// When the frame at the cursor was first found unfinished.
    unfinished_since: Option<(u64, Instant)>,
    /// Nobody is left who could write: what is unfinished stays so.
    pub no_writers: bool,
    /// What was torn is to be collected for [`Segment::take_torn`].
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
    pub(super) fn new(file: File, from: u64) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            start: from,
            cursor: 0,
            fingerprint: None,
            in_torn: false,
            unfinished_since: None,
            no_writers: false,
            keeps_torn: false,
            torn: Vec::new(),
        }
    }

    /// What has been torn since the last call, if it is kept.
    pub(super) fn take_torn(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.torn)
    }

    /// The file itself.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Offset up to which everything has been handed out or counted.
    pub(super) fn offset(&self) -> u64 {
        self.start + self.cursor as u64
    }

    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Goes back to `offset`, to read what follows again.
    pub(super) fn rewind(&mut self, file: File, offset: u64) {
        let fingerprint = self.fingerprint;
        let (no_writers, keeps_torn) = (self.no_writers, self.keeps_torn);
        *self = Self { fingerprint, no_writers, keeps_torn, ..Self::new(file, offset) };
    }

    /// What the segment is known by, or `None` as long as it holds no whole header.
    pub(super) fn fingerprint(&mut self) -> io::Result<Option<u64>> {
        if self.fingerprint.is_none() {
            self.fingerprint = fingerprint(&self.file)?;
        }
        Ok(self.fingerprint)
    }

    /// Reads once and hands every whole frame to `take` until it returns `false`. Returns whether there may be more.
    pub(super) fn read(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        mut take: impl FnMut(Frame<'_>) -> bool,
    ) -> io::Result<bool> {
        let grown = self.fill()?;
        loop {
            match self.next(now) {
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
                    // A magic may be cut off by the end of what has been read.
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

    /// Reads more behind what there is, and returns whether the file has still more. What was not handed out counts: a
    /// reader that takes little at a time must not pile up the segment here, and a frame is far shorter than the buffer.
    fn fill(&mut self) -> io::Result<bool> {
        // While half of it is left, a whole frame is: moving the rest to the front for each little step costs more than
        // reading it did.
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
        let read = read_at(&self.file, place, self.start + have as u64);
        self.buffer.truncate(have + read.as_ref().copied().unwrap_or(0));
        Ok(read? as u64 != missing)
    }

    fn next(&mut self, now: Instant) -> Next {
        let rest = self.buffer.get(self.cursor..).unwrap_or_default();
        let Some(bytes) = rest.first_chunk::<HEADER_BYTES>() else {
            let begins = rest.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic);
            return match rest {
                [] => Next::Wait,
                // The rest of the header may not have been written yet, or not been read.
                _ if begins && (!self.no_writers || self.is_behind()) => Next::Wait,
                _ => Next::Torn,
            };
        };
        let (len, header) = match Header::decode(bytes) {
            Decoded::Bad => return Next::Torn,
            Decoded::Newer { len } => (len as usize, None),
            Decoded::Header(header) => (header.len as usize, Some(header)),
        };
        let payload = rest.get(HEADER_BYTES..).unwrap_or_default();
        match (payload.get(..len), header) {
            (Some(_), None) => {
                let unchecked = rest.get(CHECKED_BYTES..).unwrap_or_default();
                let len = HEADER_BYTES - CHECKED_BYTES + len;
                Next::Newer(CHECKED_BYTES + up_to_header(unchecked, len))
            }
            (Some(payload), Some(header)) if header.matches(payload) => Next::Frame(header),
            (Some(_), Some(_)) => Next::Torn,
            (None, _) if self.no_writers && !self.is_behind() => Next::Torn,
            (None, _) if !has_header(payload) => Next::Wait,
            (None, _) => self.wait_for_unfinished(now),
        }
    }

    /// There are bytes in the file that have not been read into the buffer.
    pub(super) fn is_behind(&self) -> bool {
        self.len().is_ok_and(|len| self.start + (self.buffer.len() as u64) < len)
    }

    fn wait_for_unfinished(&mut self, now: Instant) -> Next {
        let at = self.offset();
        let since = match self.unfinished_since {
            Some((offset, since)) if offset == at => since,
            _ => now,
        };
        self.unfinished_since = Some((at, since));
        let over = now.duration_since(since) >= UNFINISHED && !self.is_behind();
        if over { Next::Torn } else { Next::Wait }
    }
}

/// How far a frame of a later version is skipped: `len` of these bytes, but not beyond the next sound header. Nobody here can
/// check what follows [`CHECKED_BYTES`] of its header; its writer may have been killed in the middle of it, and then others' frames lie there.
/// A whole one cannot hold a header, except as a copy: no text does.
fn up_to_header(bytes: &[u8], len: usize) -> usize {
    // A header may begin in the last byte of it.
    let bytes = bytes.get(..len + HEADER_BYTES - 1).unwrap_or(bytes);
    let mut from = 0;
    while let Some(found) = bytes.get(from..).and_then(find_magic) {
        let at = from + found;
        let header = bytes.get(at..).and_then(|rest| rest.first_chunk()).map(Header::decode);
        match header {
            _ if at >= len => break,
            Some(Decoded::Bad) => from = at + MAGIC.len(),
            // Sound, or not all there yet.
            _ => return at,
        }
    }
    len
}

/// Whether a sound header lies somewhere in `bytes`.
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

/// What a segment is known by: a hash of its first header's bytes, or `None` when it is shorter.
pub(super) fn fingerprint(file: &File) -> io::Result<Option<u64>> {
    let mut bytes = [0; HEADER_BYTES];
    let read = read_at(file, &mut bytes, 0)?;
    Ok((read == bytes.len()).then(|| xxh64(&bytes, 0)))
}

/// Reads until `into` is full or the file ends.
fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match read_once_at(file, rest, offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(unix)]
fn read_once_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

#[cfg(windows)]
fn read_once_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, offset)
}
