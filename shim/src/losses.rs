//! The record of a loss: 32 bytes appended to `losses` in the state directory when a hook could not be stored anywhere.
//!
//! wall ns u64, id u64, errno u32, bytes u32, check u64 (XXH64 of the first 24 bytes), little-endian. The number of
//! losses is the file's size divided by 32. Several writers can append at once safely; incrementing a counter would not
//! be safe.

use crate::hash::xxh64;

/// Bytes of one loss.
pub const LOSS_BYTES: usize = 32;
/// Maximum size of the file. A file of this size gives only a lower bound of the losses.
pub const LOSSES_MAX_BYTES: u64 = 16 << 20;

/// A hook that could not be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// When the hook started, in nanoseconds since the Unix epoch.
    pub wall_ns: u64,
    /// Id its record would have had.
    pub id: u64,
    /// Error number of the operating system; 0 if the write was cut short.
    pub errno: u32,
    /// Bytes of body that were read.
    pub bytes: u32,
}

impl Loss {
    /// The loss as it is stored in the file.
    #[must_use]
    pub fn encode(&self) -> [u8; LOSS_BYTES] {
        let mut out = [0; LOSS_BYTES];
        out[0..8].copy_from_slice(&self.wall_ns.to_le_bytes());
        out[8..16].copy_from_slice(&self.id.to_le_bytes());
        out[16..20].copy_from_slice(&self.errno.to_le_bytes());
        out[20..24].copy_from_slice(&self.bytes.to_le_bytes());
        let check = xxh64(&out[0..24], 0);
        out[24..32].copy_from_slice(&check.to_le_bytes());
        out
    }

    /// Reads one loss. `None` if its checksum is wrong.
    #[must_use]
    pub fn decode(bytes: &[u8; LOSS_BYTES]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<8>();
        let [wall, id, [e0, e1, e2, e3, b0, b1, b2, b3], check] = words else { return None };
        (u64::from_le_bytes(*check) == xxh64(&bytes[0..24], 0)).then_some(Self {
            wall_ns: u64::from_le_bytes(*wall),
            id: u64::from_le_bytes(*id),
            errno: u32::from_le_bytes([*e0, *e1, *e2, *e3]),
            bytes: u32::from_le_bytes([*b0, *b1, *b2, *b3]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_reads_back_unless_a_bit_is_wrong() {
        let loss = Loss { wall_ns: 1, id: u64::MAX, errno: 28, bytes: 4_096 };
        let bytes = loss.encode();
        assert_eq!(Loss::decode(&bytes), Some(loss));
        for bit in 0..LOSS_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Loss::decode(&damaged), None, "bit {bit}");
        }
    }
}
