//! How far the journal has been read. The stored form stays valid when files are renamed and when the system restarts.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Where to continue reading. For each segment that must still be kept: the start of its first unfinished record.
///
/// A segment is identified by a fingerprint of its first bytes. Unlike names and inode numbers, these bytes (they
/// include a random id) never change. The text form is `1 BOOT FINGERPRINT:OFFSET …` with hexadecimal fingerprints, one
/// for each segment. The default position reads everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    boot: String,
    offsets: BTreeMap<u64, u64>,
}

impl Position {
    pub(super) fn new(boot: &str, offsets: BTreeMap<u64, u64>) -> Self {
        Self { boot: boot.to_owned(), offsets }
    }

    /// Where to start in a segment of `len` bytes. That is the beginning if the segment is unknown, if the position
    /// lies behind the segment's end, or if the system was restarted, because bytes may be missing then.
    pub(super) fn start_in(&self, fingerprint: u64, len: u64, boot: &str) -> u64 {
        let known = self.offsets.get(&fingerprint).copied().filter(|offset| *offset <= len);
        known.filter(|_| self.boot == boot).unwrap_or(0)
    }

    /// How far a segment was read, regardless of restarts.
    pub(super) fn offset_in(&self, fingerprint: u64) -> u64 {
        self.offsets.get(&fingerprint).copied().unwrap_or(0)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1 {}", if self.boot.is_empty() { "-" } else { &self.boot })?;
        self.offsets.iter().try_for_each(|(key, offset)| write!(f, " {key:016x}:{offset}"))
    }
}

/// The text is not a position that this version knows. Reading everything again is always correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a journal position")]
pub(crate) struct NotAPosition;

impl FromStr for Position {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<Self, NotAPosition> {
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some("1") {
            return Err(NotAPosition);
        }
        let boot = words.next().ok_or(NotAPosition)?;
        let offset = |word: &str| {
            let (key, offset) = word.split_once(':')?;
            Some((u64::from_str_radix(key, 16).ok()?, offset.parse().ok()?))
        };
        let offsets =
            words.map(|word| offset(word).ok_or(NotAPosition)).collect::<Result<_, _>>()?;
        Ok(Self { boot: if boot == "-" { String::new() } else { boot.to_owned() }, offsets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_as_text() {
        let position = Position::new("boot-1", BTreeMap::from([(0xAB, 40), (u64::MAX, 7)]));
        let text = position.to_string();
        assert_eq!(text, "1 boot-1 00000000000000ab:40 ffffffffffffffff:7");
        assert_eq!(text.parse(), Ok(position));
        assert_eq!(Position::default().to_string().parse(), Ok(Position::default()));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "2 b", "1", "1 b x", "1 b ab:", "1 b zz:4", "1 b ab:-1"] {
            assert_eq!(text.parse::<Position>(), Err(NotAPosition), "{text:?}");
        }
    }

    #[test]
    fn reading_starts_anew_in_doubt() {
        let position = Position::new("b", BTreeMap::from([(1, 40)]));
        assert_eq!(position.start_in(1, 40, "b"), 40);
        assert_eq!(position.start_in(1, 39, "b"), 0, "behind the end");
        assert_eq!(position.start_in(2, 40, "b"), 0, "another segment");
        assert_eq!(position.start_in(1, 40, "c"), 0, "another boot");
    }
}
