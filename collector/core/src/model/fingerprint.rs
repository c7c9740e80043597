//! Small hashes inside the fold. Never part of an id that leaves it; those are SHA-256, see [`crate::model::id`].

use std::fmt;

use sha2::{Digest, Sha256};

/// FNV-1a over parts, each closed by its length: equal parts, equal digest.
pub(crate) fn digest(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for &byte in *part {
            hash = step(hash, u64::from(byte));
        }
        hash = mix(hash, part.len() as u64);
    }
    hash
}

fn step(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Folds one number into a running hash. Counts and positions are small numbers, and a hash may begin with one: neither do
/// they cancel each other, nor is any of them lost in a hash of nought.
pub(crate) fn mix(hash: u64, value: u64) -> u64 {
    let mut x = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(value);
    x = (x ^ (x >> 32)).wrapping_add(0x0123_4567_89ab_cdef).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 29)
}

/// The key of something that came without an id: the first eight bytes of a SHA-256. Written as `~` and 16 hex digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentKey(u64);

impl ContentKey {
    /// Of parts, a zero byte between them.
    pub(crate) fn of(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                hash.update([0]);
            }
            hash.update(part.as_bytes());
        }
        Self(hash.finalize().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes)))
    }
}

impl fmt::Display for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "~{:016x}", self.0)
    }
}

/// [`ContentKey`] as text.
pub(crate) fn content_key(parts: &[&str]) -> String {
    ContentKey::of(parts).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_content_key_is_the_documented_one() {
        assert_eq!(content_key(&["hmm"]), "~0a034dc9c0d0d4fa");
    }

    /// A turn whose loose hooks were `[4]` and became `[3, 4]` had the same mark as before, and was not told again.
    #[test]
    fn few_small_numbers_in_a_row_have_a_hash_of_their_own() {
        let mut level: Vec<(u64, Vec<u64>)> = (0..6).map(|first| (first, vec![first])).collect();
        let mut seen = BTreeMap::new();
        for _ in 0..4 {
            let longer = level.iter().flat_map(|(hash, row)| {
                (0..6).map(|next| (mix(*hash, next), [&row[..], &[next]].concat()))
            });
            level = longer.collect();
            for (hash, row) in &level {
                assert_eq!(seen.insert(*hash, row.clone()), None, "{row:?}");
            }
        }
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
    }
}
