//! The frame: what one `write` puts into the journal.
//!
//! A record is one frame or several with the same id, numbered from 0. Frames of different writers alternate in a
//! segment. All numbers are little-endian:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | magic `FF 48 53 4A`: FF cannot occur in UTF-8 |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | flags: [`LAST`], [`NO_EOF`], [`CUT`] |
//! | 6 | 2 | bytes of metadata at the start of the payload; 0 when seq > 0 |
//! | 8 | 8 | id of the record, random |
//! | 16 | 4 | seq |
//! | 20 | 4 | len: bytes of metadata and body, at most [`PAYLOAD_MAX`] |
//! | 24 | 8 | XXH64 of those bytes, seeded with the id |
//! | 32 | 4 | low half of XXH64 of bytes 0-31, seed 0 |
//! | 36 | 4 | zero |
//!
//! The header has its own checksum, so that a reader can trust the length before the payload has arrived.

use crate::hash::xxh64;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 40;
/// Maximum number of bytes after a frame's header.
pub const PAYLOAD_MAX: usize = 262_144;
/// The first four bytes of every frame.
pub const MAGIC: [u8; 4] = *b"\xffHSJ";
/// The format this code writes.
pub const VERSION: u8 = 1;

/// Flag of the last frame of a record.
pub const LAST: u8 = 1;
/// Flag: standard input was not closed in time. What arrived until then is stored.
pub const NO_EOF: u8 = 2;
/// Flag: the body was longer than the maximum, and its rest was dropped.
pub const CUT: u8 = 4;

/// A header that has passed its own check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// [`LAST`], [`NO_EOF`], [`CUT`] and any flags that later versions add.
    pub flags: u8,
    /// Bytes of metadata at the start of the payload.
    pub meta_bytes: u16,
    /// The record's id.
    pub id: u64,
    /// Number of the frame in its record, from 0.
    pub seq: u32,
    /// Bytes behind the header.
    pub len: u32,
    /// XXH64 of the payload, seeded with the id.
    pub checksum: u64,
}

/// What the forty bytes of a possible header contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A header of this version.
    Header(Header),
    /// A valid header of another version: a newer shim wrote the frame. The reader can skip the whole frame.
    Newer {
        /// Bytes behind the header.
        len: u32,
    },
    /// Not a header, or a damaged one. None of its fields can be trusted, least of all the length.
    Bad,
}

impl Header {
    /// Reads a header. Any forty bytes give a result.
    #[must_use]
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Decoded {
        let mut fields = Fields(bytes);
        let magic: [u8; 4] = fields.take();
        let [version, flags] = fields.take();
        let meta_bytes = u16::from_le_bytes(fields.take());
        let id = u64::from_le_bytes(fields.take());
        let seq = u32::from_le_bytes(fields.take());
        let len = u32::from_le_bytes(fields.take());
        let checksum = u64::from_le_bytes(fields.take());
        let check = u32::from_le_bytes(fields.take());
        if magic != MAGIC || check != header_check(bytes) || len as usize > PAYLOAD_MAX {
            return Decoded::Bad;
        }
        if version != VERSION {
            return Decoded::Newer { len };
        }
        let metadata_is_sound = u32::from(meta_bytes) <= len && (seq == 0 || meta_bytes == 0);
        if !metadata_is_sound || fields.take() != [0; 4] {
            return Decoded::Bad;
        }
        Decoded::Header(Self { flags, meta_bytes, id, seq, len, checksum })
    }

    /// The header as it stands in the journal.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&[VERSION, self.flags]);
        bytes[6..8].copy_from_slice(&self.meta_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.id.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.seq.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.len.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.checksum.to_le_bytes());
        let check = header_check(&bytes);
        bytes[32..36].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Whether `payload` is complete and undamaged: it has `len` bytes and the right checksum.
    #[must_use]
    pub fn matches(&self, payload: &[u8]) -> bool {
        payload.len() == self.len as usize && xxh64(payload, self.id) == self.checksum
    }
}

/// Fills in a frame's header. The payload must already be in place after it.
///
/// `frame` is the header's forty bytes followed by the payload. A shorter slice is left unchanged.
pub fn seal(frame: &mut [u8], id: u64, seq: u32, meta_bytes: u16, flags: u8) {
    let Some((header, payload)) = frame.split_first_chunk_mut::<HEADER_BYTES>() else { return };
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let checksum = xxh64(payload, id);
    *header = Header { flags, meta_bytes, id, seq, len, checksum }.encode();
}

/// Offset of the next magic in `bytes`, or `None`. A magic cut off by the end is not reported.
#[must_use]
pub fn find_magic(bytes: &[u8]) -> Option<usize> {
    let [first, ..] = MAGIC;
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        let at = from + rest.iter().position(|byte| *byte == first)?;
        if bytes.get(at..)?.starts_with(&MAGIC) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn header_check(bytes: &[u8; HEADER_BYTES]) -> u32 {
    let (checked, _) = bytes.split_at(32);
    xxh64(checked, 0) as u32
}

/// Takes fixed-size fields from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((field, rest)) = self.0.split_first_chunk::<N>() else { return [0; N] };
        self.0 = rest;
        *field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; HEADER_BYTES];
        frame.extend_from_slice(payload);
        seal(&mut frame, 7, 0, 2, LAST);
        frame
    }

    fn decode(frame: &[u8]) -> Decoded {
        Header::decode(frame.first_chunk().unwrap())
    }

    #[test]
    fn a_sealed_frame_reads_back() {
        let frame = sealed(b"mmbody");
        let Decoded::Header(header) = decode(&frame) else { panic!("not a header") };
        assert_eq!((header.flags, header.meta_bytes, header.id), (LAST, 2, 7));
        assert_eq!((header.seq, header.len), (0, 6));
        assert!(header.matches(b"mmbody"));
        assert!(!header.matches(b"mmbodx"));
        assert!(!header.matches(b"mmbod"));
    }

    /// Journals on users' disks have this format, so these bytes must never change.
    #[test]
    fn the_header_is_frozen() {
        let frame = sealed(b"mmbody");
        let hex: String = frame.iter().take(HEADER_BYTES).map(|b| format!("{b:02x}")).collect();
        let frozen = "ff48534a0101020007000000000000000000000006000000\
                      e117c8a262a97e1d7e3c58b700000000";
        assert_eq!(hex, frozen);
    }

    #[test]
    fn any_flipped_bit_of_a_header_makes_it_bad() {
        let frame = sealed(b"mmbody");
        for bit in 0..HEADER_BYTES * 8 {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&damaged), Decoded::Bad, "bit {bit}");
        }
    }

    #[test]
    fn a_sound_header_of_another_version_can_be_skipped() {
        let mut frame = sealed(b"mmbody");
        frame[4] = 2;
        let check = header_check(frame.first_chunk().unwrap());
        frame[32..36].copy_from_slice(&check.to_le_bytes());
        assert_eq!(decode(&frame), Decoded::Newer { len: 6 });
    }

    #[test]
    fn a_length_over_the_limit_is_bad_even_when_the_check_holds() {
        for (len, meta_bytes, seq) in
            [(PAYLOAD_MAX as u32 + 1, 0, 0), (u32::MAX, 0, 0), (5, 6, 0), (5, 1, 1)]
        {
            let header = Header { flags: 0, meta_bytes, id: 1, seq, len, checksum: 0 };
            assert_eq!(decode(&header.encode()), Decoded::Bad, "{header:?}");
        }
    }

    #[test]
    fn magic_is_found_at_every_place_and_not_when_cut_off() {
        assert_eq!(find_magic(b"\xff\xffHSJ"), Some(1));
        assert_eq!(find_magic(b"\xffHS\xffHSJ\xffHSJ"), Some(3));
        assert_eq!(find_magic(b"abc\xffHS"), None);
        assert_eq!(find_magic(b""), None);
    }
}
