//! One line of an import.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

use hookspan_core::Timestamp;
use serde::de::{self, DeserializeSeed as _, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// Keys that a payload of Cursor has and an envelope has not.
const PAYLOAD_KEYS: [&str; 3] = ["hook_event_name", "conversation_id", "session_id"];

/// A line, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// When it was observed, if it says so.
    pub(super) at: Option<Timestamp>,
    /// What was on standard input.
    pub(super) body: Vec<u8>,
}

/// Reads a line without its end. One that is neither an envelope nor a payload is a body all the same: it is kept as it is,
/// and turns out malformed.
pub(super) fn read(line: &[u8]) -> Line {
    let text = String::from_utf8_lossy(line);
    envelope(&text).unwrap_or_else(|| Line { at: None, body: line.to_vec() })
}

fn envelope(text: &str) -> Option<Line> {
    let keys: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).ok()?;
    if PAYLOAD_KEYS.iter().any(|key| keys.contains_key(*key)) {
        return None;
    }
    let event = keys.get("event").or_else(|| keys.get("payload"))?.get();
    let body = match event.as_bytes().first()? {
        b'{' => event.as_bytes().to_vec(),
        b'"' => string(event)?,
        _ => return None,
    };
    let at = keys.get("observed_at").or_else(|| keys.get("ts"));
    Some(Line { at: at.and_then(|at| time(at.get())), body })
}

/// A time as RFC 3339, or as nanoseconds since the Unix epoch in a number or a text.
fn time(json: &str) -> Option<Timestamp> {
    let text = json.trim().trim_matches('"');
    if let Ok(ns) = text.parse::<i64>() {
        return Some(Timestamp(ns)).filter(|at| at.0 >= 0);
    }
    let at: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(at.as_nanosecond()).ok().filter(|ns| *ns >= 0).map(Timestamp)
}

/// The bytes that a JSON string stands for. Half of a surrogate pair stays what it was, in the form that hooks have it.
fn string(json: &str) -> Option<Vec<u8>> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("text")
        }
        fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
    }
    impl<'de> de::DeserializeSeed<'de> for Bytes {
        type Value = Vec<u8>;
        fn deserialize<D: de::Deserializer<'de>>(self, input: D) -> Result<Vec<u8>, D::Error> {
            input.deserialize_bytes(Self)
        }
    }
    Bytes.deserialize(&mut serde_json::Deserializer::from_str(json)).ok()
}

/// Gives lines their ids.
#[derive(Debug, Default)]
pub(super) struct Ids {
    seen: HashMap<[u8; 16], u32>,
    order: VecDeque<[u8; 16]>,
}

impl Ids {
    /// Equal lines further apart than this count as the same one. They do not occur but in forged files, and this bounds
    /// what such a file can take.
    const WINDOW: usize = 65_536;

    /// The id of a line: the same for the same line at the same place among its equals.
    pub(super) fn id(&mut self, line: &Line) -> [u8; 16] {
        let first = Self::hash(line, 0);
        let count = self.seen.entry(first).or_default();
        let occurrence = *count;
        *count += 1;
        if occurrence == 0 {
            self.order.push_back(first);
            if self.order.len() > Self::WINDOW
                && let Some(oldest) = self.order.pop_front()
            {
                self.seen.remove(&oldest);
            }
        }
        if occurrence == 0 { first } else { Self::hash(line, occurrence) }
    }

    fn hash(line: &Line, occurrence: u32) -> [u8; 16] {
        let mut hash = Sha256::new();
        hash.update(b"hookspan.import.v1");
        hash.update(occurrence.to_be_bytes());
        hash.update(&line.body);
        let digest = hash.finalize();
        let mut id = [0; 16];
        for (to, from) in id.iter_mut().zip(digest) {
            *to = from;
        }
        if let Some(at) = line.at {
            // Time in front, as in the ids of the shim: an index over them grows at its end.
            for (to, from) in id.iter_mut().zip(at.0.to_be_bytes()) {
                *to = from;
            }
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, at: Option<i64>, body: &[u8]) {
        assert_eq!(
            read(line.as_bytes()),
            Line { at: at.map(Timestamp), body: body.to_vec() },
            "{line}"
        );
    }

    #[test]
    fn envelopes_give_time_and_bytes() {
        let at = 1_781_020_395_226_000_000;
        let event = r#"{"hook_event_name": "stop",  "x": [1, 2]}"#;
        for (key, time) in [
            ("observed_at", "\"2026-06-09T15:53:15.226Z\""),
            ("observed_at", "\"2026-06-09T17:53:15.226+02:00\""),
            ("ts", "1781020395226000000"),
            ("ts", "\"1781020395226000000\""),
        ] {
            let line =
                format!(r#"{{"note": {{}}, "{key}": {time}, "event": {event}, "event2": 1}}"#);
            check(&line, Some(at), event.as_bytes());
        }
        check(&format!(r#"{{"payload": {event}}}"#), None, event.as_bytes());
        check(
            r#"{"ts": "yesterday", "event": "{\"a\":\u00e9\u0000}"}"#,
            None,
            "{\"a\":é\0}".as_bytes(),
        );
        check(r#"{"ts": -5, "event": ""}"#, None, b"");
        check(r#"{"event": "\ud83d"}"#, None, b"\xed\xa0\xbd");
    }

    #[test]
    fn everything_else_is_a_body() {
        for line in [
            r#"{"hook_event_name": "stop", "event": {"a": 1}}"#,
            r#"{"a": 1}"#,
            r#"{"event": 5}"#,
            "{\"event\": {",
            "no JSON",
            "",
        ] {
            check(line, None, line.as_bytes());
        }
        assert_eq!(read(b"\xff\xfe").body, b"\xff\xfe");
    }

    #[test]
    fn the_same_lines_get_the_same_ids_and_equals_get_different_ones() {
        let line = |at: Option<i64>, body: &str| Line { at: at.map(Timestamp), body: body.into() };
        let lines = [
            line(Some(7), "a"),
            line(Some(7), "a"),
            line(Some(8), "a"),
            line(None, "a"),
            line(None, "a"),
        ];
        let ids = |lines: &[Line]| {
            let mut ids = Ids::default();
            lines.iter().map(|line| ids.id(line)).collect::<Vec<_>>()
        };
        let first = ids(&lines);
        assert_eq!(ids(&lines), first);
        let mut unique = first.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), lines.len());
        assert_eq!(first[0][..8], 7_i64.to_be_bytes());
    }
}
