//! How bodies are stored: compressed if that saves space, always with a checksum of the original bytes.
//!
//! The unit is a *pack*: one body, or several bodies of hooks of one conversation, one after the other. Hooks of one
//! conversation repeat much of each other, so a pack takes half the space or less.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Not compressed.
const PLAIN: i64 = 0;
/// One Zstandard frame. Releases before packs added Zstandard's own checksum; `xxh64` replaces it.
const ZSTD: i64 = 1;
/// Level 3 is a third slower for 3 % fewer bytes.
const LEVEL: i32 = 1;
/// Buffers up to this capacity are kept between bodies. The buffer of a rare large body is freed.
const SCRATCH_MAX: usize = 1 << 20;
/// Shorter bodies are not compressed: the frame's header would cost more than compression saves.
const WORTHWHILE: usize = 128;
/// Maximum length of a body. The shim cuts bodies at 16 MiB, so a row that claims a longer one is forged.
const MOST: u64 = 64 << 20;
/// Number of packs that an [`Unpacker`] caches, so that hooks of this many conversations may alternate without
/// unpacking a pack twice.
const KEPT: usize = 32;
/// Maximum size of a cached pack. Together with [`KEPT`] it limits the cache to 4 MiB.
const KEPT_BYTES: usize = 128 << 10;

/// A pack as the `payload` table holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Compression of `bytes`.
    pub codec: i64,
    /// Bytes before compression.
    pub len: u64,
    /// XXH64 of the bytes before compression, as SQLite's signed integer.
    pub xxh64: i64,
    /// The stored bytes.
    pub bytes: Vec<u8>,
}

/// Why a stored body could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Damage {
    /// The bytes differ from those that were stored.
    #[error("the stored body does not match its checksum")]
    Checksum,
    /// A forged or damaged row.
    #[error("the stored body has an impossible size or form")]
    Form,
    /// Zstandard refused.
    #[error("the stored body cannot be decompressed: {0}")]
    Zstd(#[from] io::Error),
}

/// Packs bodies; keeps its working memory between calls.
pub(crate) struct Packer {
    compressor: Option<zstd::bulk::Compressor<'static>>,
    /// Output buffer of the compressor. Its capacity is twice the size of a frame, so frames are copied out of it.
    scratch: Vec<u8>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Default for Packer {
    fn default() -> Self {
        Self::new()
    }
}

impl Packer {
    /// A packer. If there is no memory for a compressor, bodies are stored as they are.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self { compressor: zstd::bulk::Compressor::new(LEVEL).ok(), scratch: Vec::new() }
    }

    /// Packs `body`.
    pub(crate) fn pack(&mut self, body: &[u8]) -> Packed {
        let packed = match &mut self.compressor {
            Some(compressor) if body.len() >= WORTHWHILE => {
                self.scratch.clear();
                self.scratch.reserve(zstd::zstd_safe::compress_bound(body.len()));
                compressor.compress_to_buffer(body, &mut self.scratch).ok()
            }
            _ => None,
        };
        let (codec, bytes) = match packed.and_then(|len| self.scratch.get(..len)) {
            Some(bytes) if bytes.len() < body.len() => (ZSTD, bytes),
            _ => (PLAIN, body),
        };
        let bytes = bytes.to_vec();
        if self.scratch.capacity() > SCRATCH_MAX {
            self.scratch = Vec::new();
        }
        Packed { codec, len: body.len() as u64, xxh64: checksum(body), bytes }
    }
}

/// Reads a stored body and checks that it is the original.
///
/// # Errors
///
/// [`Damage`] if it differs from the original.
pub(crate) fn unpack(codec: i64, len: u64, xxh64: i64, bytes: &[u8]) -> Result<Vec<u8>, Damage> {
    let capacity = usize::try_from(len).ok().filter(|_| len <= MOST).ok_or(Damage::Form)?;
    let body = match codec {
        PLAIN => bytes.to_vec(),
        ZSTD => decompress(bytes, capacity)?,
        _ => return Err(Damage::Form),
    };
    if body.len() != capacity || checksum(&body) != xxh64 {
        return Err(Damage::Checksum);
    }
    Ok(body)
}

/// Identifies a pack by its key in `payload`, its length and its checksum. After a deletion, the key alone may belong
/// to another pack.
pub(crate) type PackId = (i64, u64, i64);

/// Unpacks bodies of consecutive hooks. It caches recent packs, so that a pack is decompressed once and not once per hook.
#[derive(Debug, Default)]
pub(crate) struct Unpacker {
    /// The most recently used pack is last.
    kept: Vec<(PackId, Arc<[u8]>)>,
}

impl Unpacker {
    /// The bytes of `part` in the pack `id`. If the pack is not cached, calls `stored` for its codec and bytes.
    ///
    /// # Errors
    ///
    /// [`Damage`] if the pack differs from what was stored or does not contain the part. Otherwise the error of
    /// `stored`.
    pub(crate) fn part<'a, E: From<Damage>>(
        &mut self,
        id: PackId,
        part: Option<Range<usize>>,
        stored: impl FnOnce() -> Result<(i64, &'a [u8]), E>,
    ) -> Result<Vec<u8>, E> {
        let cut = |pack: &[u8], part: Range<usize>| {
            pack.get(part).map(<[u8]>::to_vec).ok_or_else(|| Damage::Form.into())
        };
        if let Some(at) = self.kept.iter().position(|(kept, _)| *kept == id) {
            // A pack that was needed twice is likely to be needed again.
            self.kept[at..].rotate_left(1);
            let pack = self.kept.last().map_or(&[][..], |(_, pack)| pack);
            return cut(pack, part.unwrap_or(0..pack.len()));
        }
        let (codec, bytes) = stored()?;
        let pack = unpack(codec, id.1, id.2, bytes)?;
        // A pack with a single body is needed only once, so it is not cached.
        let Some(part) = part else { return Ok(pack) };
        let found = cut(&pack, part)?;
        if pack.len() <= KEPT_BYTES {
            if self.kept.len() >= KEPT {
                self.kept.remove(0);
            }
            self.kept.push((id, pack.into()));
        }
        Ok(found)
    }
}

/// Decompresses. Each thread keeps its decompressor, because making one takes longer than decompressing an ordinary
/// hook.
fn decompress(bytes: &[u8], capacity: usize) -> io::Result<Vec<u8>> {
    thread_local! {
        static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
            const { RefCell::new(None) };
    }
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let mut decompressor = match kept.take() {
            Some(decompressor) => decompressor,
            None => zstd::bulk::Decompressor::new()?,
        };
        let body = decompressor.decompress(bytes, capacity);
        *kept = Some(decompressor);
        body
    })
}

/// XXH64 as SQLite's signed integer.
pub(crate) fn checksum(body: &[u8]) -> i64 {
    hookspan_shim::hash::xxh64(body, 0).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_reads_back_and_a_flipped_bit_does_not() {
        let mut packer = Packer::new();
        for body in [&b""[..], b"x", &[b'a'; 4_096], &(0..=255).collect::<Vec<u8>>()] {
            let packed = packer.pack(body);
            let Packed { codec, len, xxh64, bytes } = &packed;
            assert_eq!(unpack(*codec, *len, *xxh64, bytes).unwrap(), body);
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                if let Ok(read) = unpack(*codec, *len, *xxh64, &damaged) {
                    assert_eq!(read, body, "a bit without meaning may flip, the body may not");
                }
            }
        }
        assert_eq!(packer.pack(&[b'a'; 4_096]).codec, ZSTD);
    }

    #[test]
    fn a_pack_is_unpacked_once_for_all_its_parts_and_a_part_that_is_not_there_is_damage() {
        let body: Vec<u8> = (0..9_000_u32).flat_map(u32::to_le_bytes).collect();
        let Packed { codec, len, xxh64, bytes } = Packer::new().pack(&body);
        let mut unpacker = Unpacker::default();
        let mut reads = 0;
        let mut part = |unpacker: &mut Unpacker, key, part: Option<Range<usize>>| {
            unpacker.part((key, len, xxh64), part, || {
                reads += 1;
                Ok::<_, Damage>((codec, &bytes))
            })
        };
        for start in [0, 4_000, 20_000] {
            assert_eq!(
                part(&mut unpacker, 1, Some(start..start + 99)).unwrap(),
                body[start..][..99]
            );
        }
        assert!(part(&mut unpacker, 1, Some(35_990..36_001)).is_err());
        assert_eq!(part(&mut unpacker, 1, None).unwrap(), body);
        // After as many other packs, the first one is no longer cached.
        for key in 2..2 + KEPT as i64 {
            part(&mut unpacker, key, Some(0..1)).unwrap();
        }
        part(&mut unpacker, 1, Some(0..1)).unwrap();
        assert_eq!((reads, unpacker.kept.len()), (2 + KEPT, KEPT));
    }

    #[test]
    fn forged_sizes_are_refused_before_memory_is_taken() {
        assert!(matches!(unpack(ZSTD, u64::MAX, 0, b""), Err(Damage::Form)));
        assert!(matches!(unpack(7, 0, 0, b""), Err(Damage::Form)));
    }
}
