//! Hooks that `doctor` sends to test that hooks arrive. They are read, and never stored.
//!
//! Like every hook, a probe goes through the hook program, the journal and the reader. The reader drops it before it is
//! counted, folded or stored. Only the position after the probe is committed, and `doctor` waits for that position. So
//! nothing has to be cleaned up. If a probe was not read, the next reader drops it.
//!
//! Nobody must be able to hide a real hook by making it look like a probe. Two conditions make a record a probe:
//!
//! * **The argument on the command line** is `hookspan-doctor-` and 32 hexadecimal digits. In real hooks the argument
//!   comes from hooks.json and is the name of an event. Models, files of a repository and answers of other hooks cannot
//!   change it: they can change only the body and the environment (a `sessionStart` hook may set variables).
//! * **The body** is, byte for byte, the text that [`Probe::body`] writes for the same digits. Cursor never sends this
//!   text, which has no event, no id and none of Cursor's fields. So even an entry in hooks.json with such an argument
//!   hides nothing: Cursor's hooks for that entry have Cursor's bodies and are stored.

use std::fmt::Write as _;
use std::fs::File;
use std::io;

use hookspan_shim::record::{self, Metadata};

use super::{Position, Record, files, segment};
use crate::dirs::StateDir;

const ARGUMENT: &str = "hookspan-doctor-";
const DIGITS: usize = 32;

/// One probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    digits: String,
}

impl Probe {
    /// A probe named by random bytes.
    #[must_use]
    pub(crate) fn new(random: [u8; DIGITS / 2]) -> Self {
        let mut digits = String::with_capacity(DIGITS);
        for byte in random {
            // Writing to a string cannot fail.
            let _written = write!(digits, "{byte:02x}");
        }
        Self { digits }
    }

    /// The probe that an argument names.
    fn named(argument: &[u8]) -> Option<Self> {
        let digits = argument.strip_prefix(ARGUMENT.as_bytes())?;
        let hex = |digit: &u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(digit);
        let whole = digits.len() == DIGITS && digits.iter().all(hex);
        whole.then(|| Self { digits: String::from_utf8_lossy(digits).into_owned() })
    }

    /// The probe's argument on the command line of the hook program.
    #[must_use]
    pub(crate) fn argument(&self) -> String {
        format!("{ARGUMENT}{}", self.digits)
    }

    /// Its body.
    #[must_use]
    pub(crate) fn body(&self) -> String {
        format!("{{\"hookspan_probe\":\"{}\"}}", self.digits)
    }
}

/// Whether a hook with this argument and body is a probe.
fn is_probe(argument: &[u8], body: &[u8]) -> bool {
    Probe::named(argument).is_some_and(|probe| probe.body().as_bytes() == body)
}

impl Record {
    /// Whether the record is a probe of `doctor` and must be dropped.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.argument.as_ref().is_some_and(|argument| is_probe(argument.as_bytes(), &self.body))
    }
}

/// Whether the payload of a record's first frame belongs to a probe. `meta_bytes` is the length of the metadata at its
/// start.
pub(super) fn is_probe_frame(payload: &[u8], meta_bytes: usize) -> bool {
    let Some((metadata, body)) = payload.split_at_checked(meta_bytes) else { return false };
    let argument = Metadata::decode(metadata).and_then(|found| found.text(record::ARGUMENT));
    argument.is_some_and(|argument| is_probe(argument, body))
}

/// A place in the journal. A caller waits until everything before it was read.
#[derive(Debug)]
pub(crate) struct JournalEnd {
    journal: File,
    bytes_before: u64,
}

impl JournalEnd {
    /// Notes where the journal ends now.
    ///
    /// # Errors
    /// The journal is not there or cannot be read.
    pub(crate) fn now(dir: &StateDir) -> io::Result<Self> {
        let journal = File::open(files::current(dir))?;
        let bytes_before = journal.metadata()?.len();
        Ok(Self { journal, bytes_before })
    }

    /// The current end of the journal, if something was appended to it since this place was noted.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn after_growth(&self) -> io::Result<Option<ReadUpTo>> {
        let bytes = self.journal.metadata()?.len();
        let fingerprint = segment::fingerprint(&self.journal)?;
        let grown = fingerprint.filter(|_| bytes > self.bytes_before);
        Ok(grown.map(|fingerprint| ReadUpTo { fingerprint, bytes }))
    }
}

/// A place in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadUpTo {
    fingerprint: u64,
    bytes: u64,
}

impl ReadUpTo {
    /// Whether `position` is at or after this place.
    #[must_use]
    pub(crate) fn is_covered_by(&self, position: &Position) -> bool {
        position.offset_in(self.fingerprint) >= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe() -> Probe {
        Probe::new([0xA5; 16])
    }

    #[test]
    fn a_probe_knows_itself() {
        let (argument, body) = (probe().argument(), probe().body());
        assert_eq!(argument, format!("hookspan-doctor-{}", "a5".repeat(16)));
        assert!(is_probe(argument.as_bytes(), body.as_bytes()));
    }

    #[test]
    fn nothing_else_is_one() {
        let (argument, body) = (probe().argument(), probe().body());
        let other = Probe::new([0; 16]);
        let cursor = r#"{"conversation_id":"c","hook_event_name":"stop"}"#;
        let longer = body.replace('}', r#","prompt":"hidden"}"#);
        let twice = format!("{body}\n");
        for (argument, body) in [
            // A real hook whose body has the text of a probe.
            ("stop", body.as_str()),
            // A real hook of an entry in hooks.json that has the argument of a probe.
            (argument.as_str(), cursor),
            (argument.as_str(), longer.as_str()),
            (argument.as_str(), twice.as_str()),
            (argument.as_str(), other.body().as_str()),
            (argument.as_str(), ""),
            ("hookspan-doctor-", r#"{"hookspan_probe":""}"#),
            ("hookspan-doctor-zz", r#"{"hookspan_probe":"zz"}"#),
        ] {
            assert!(!is_probe(argument.as_bytes(), body.as_bytes()), "{argument} {body}");
        }
        let upper = argument.to_uppercase();
        assert!(!is_probe(upper.as_bytes(), body.as_bytes()));
    }

    #[test]
    fn the_end_is_reached_by_a_position_at_or_behind_it() {
        let position: Position = "1 b 00000000000000ab:40".parse().unwrap();
        let at = |fingerprint, bytes| ReadUpTo { fingerprint, bytes }.is_covered_by(&position);
        assert!(at(0xAB, 39) && at(0xAB, 40));
        assert!(!at(0xAB, 41) && !at(0xAC, 1));
    }
}
