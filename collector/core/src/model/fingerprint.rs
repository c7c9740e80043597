//! Fingerprints tell the fold what has changed. This module also has the other small hashes that the fold uses. None of
//! them is part of an id that leaves the fold; those ids are SHA-256, see [`crate::model::id`].

use std::fmt;

use sha2::{Digest, Sha256};

use crate::model::id::{SpanId, TraceId};
use crate::model::time::Timestamp;

/// FNV-1a over parts, each followed by its length. Equal parts give equal digests.
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

/// Adds one number to a running hash. Small numbers, such as counts and positions, may come first: they neither cancel
/// each other nor vanish in a hash of 0.
pub(crate) fn mix(hash: u64, value: u64) -> u64 {
    let mut x = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(value);
    x = (x ^ (x >> 32)).wrapping_add(0x0123_4567_89ab_cdef).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 29)
}

/// A hash of everything that a thing is made from, as 64 bits. If two fingerprints of a thing are equal, nothing that
/// it is made from has changed.
///
/// The contract of every fingerprint in the fold:
///
/// * It covers what its maker adds, in that order, and nothing else. Code that reads one more value to make a thing
///   adds that value to the thing's fingerprint.
/// * It is compared only with an earlier fingerprint of the same thing, by [`Self::is`]. It never leaves the fold, and
///   no id is made from it.
/// * [`Self::INVALID`] equals no fingerprint, not even itself. A thing with this fingerprint is always made and
///   reported again. A fingerprint becomes invalid when the store may not have the thing (after a replay), and it
///   starts invalid for a thing that was never reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprint(u64);

/// Kinds of things. Two kinds made from the same numbers have different fingerprints.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Made {
    Turn = 1,
    Thought,
    Compaction,
    Response,
    Call,
    Agent,
    Conversation,
    Candidates,
    Place,
    Window,
    Question,
}

impl Fingerprint {
    pub(crate) const INVALID: Self = Self(0);

    /// The fingerprint of a kind of thing, with nothing added yet.
    pub(crate) fn of(made: Made) -> Self {
        Self(0).with(made as u64)
    }

    pub(crate) fn with(self, value: u64) -> Self {
        Self(mix(self.0, value).max(1))
    }

    pub(crate) fn with_all(self, values: impl Iterator<Item = u64>) -> Self {
        values.fold(self, Self::with)
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.with(digest(&[text.as_bytes()]))
    }

    pub(crate) fn time(self, at: Timestamp) -> Self {
        self.with(at.0 as u64)
    }

    /// Adds a time that may be missing.
    pub(crate) fn maybe(self, at: Option<Timestamp>) -> Self {
        at.map_or_else(|| self.with(u64::MAX), |at| self.with(0).time(at))
    }

    pub(crate) fn flag(self, flag: bool) -> Self {
        self.with(u64::from(flag))
    }

    pub(crate) fn span(self, span: SpanId) -> Self {
        self.with(u64::from_be_bytes(span.0))
    }

    pub(crate) fn trace(self, trace: TraceId) -> Self {
        self.with(digest(&[&trace.0]))
    }

    pub(crate) fn and(self, other: Self) -> Self {
        self.with(other.0)
    }

    /// Whether nothing has changed since `earlier`.
    pub(crate) const fn is(self, earlier: Self) -> bool {
        self.0 != 0 && self.0 == earlier.0
    }
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self::INVALID
    }
}

/// The key of something that came without an id: the first eight bytes of a SHA-256. Written as `~` and 16 hex digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentKey(u64);

impl ContentKey {
    /// Hashes parts with a zero byte between them.
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

    /// A turn whose loose hooks changed from `[4]` to `[3, 4]` once kept its fingerprint and was not reported again.
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
    fn an_invalid_fingerprint_is_that_of_nothing() {
        let made = Fingerprint::of(Made::Turn).with(3);
        assert!(made.is(made) && made.is(Fingerprint::of(Made::Turn).with(3)));
        assert!(!Fingerprint::INVALID.is(Fingerprint::INVALID));
        assert!(!made.is(Fingerprint::INVALID) && !Fingerprint::INVALID.is(made));
    }

    #[test]
    fn fingerprints_tell_kinds_orders_and_missing_values_apart() {
        let of = Fingerprint::of;
        let (some, zero) = (Some(Timestamp(1)), Timestamp(0));
        let all = [
            of(Made::Turn),
            of(Made::Call),
            of(Made::Turn).with(1),
            of(Made::Turn).with(1).with(2),
            of(Made::Turn).with(2).with(1),
            of(Made::Turn).maybe(None),
            of(Made::Turn).maybe(Some(zero)),
            of(Made::Turn).maybe(some),
            of(Made::Turn).text(""),
            of(Made::Turn).text("a").text("b"),
            of(Made::Turn).text("ab"),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all.iter().skip(at + 1).all(|other| !one.is(*other)), "{at}");
        }
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
    }
}
