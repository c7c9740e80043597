//! One line of an import.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

use hookspan_core::Timestamp;
use serde::de::{self, DeserializeSeed as _, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::times::Time;
use crate::hooks_json::events;

/// Keys under which a payload names its event.
const NAME_KEYS: [&str; 3] = ["hook_event_name", "hookEventName", "agent_action_name"];
/// Keys that only payloads have, and envelopes do not (apart from the event's name).
const ID_KEYS: [&str; 2] = ["conversation_id", "session_id"];
/// Keys under which scripts put the payload.
const BODY_KEYS: [&str; 10] =
    ["event", "payload", "data", "input", "hook_input", "hook", "body", "raw", "stdin", "json"];
/// Keys under which scripts put the time of receipt.
const TIME_KEYS: [&str; 8] =
    ["observed_at", "ts", "timestamp", "received_at", "logged_at", "time", "@timestamp", "date"];
/// Keys under which scripts put the event's name beside a payload that does not contain it.
const EVENT_KEYS: [&str; 6] = ["argument", "event", "event_name", "hook_event", "hook", "type"];

/// Maximum length of an argument in bytes, as in a record of the journal.
const LONGEST_ARGUMENT: usize = 65_535;

type Keys<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// A line, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// When the hook was observed, if the line tells.
    pub(super) at: Option<Time>,
    /// The event's name, if the line has it beside the payload.
    pub(super) argument: Option<String>,
    /// What was on standard input.
    pub(super) body: Vec<u8>,
}

impl Line {
    /// The line as [`read`] reads it.
    pub(super) fn write(&self, at: Option<Timestamp>) -> Vec<u8> {
        let mut line = String::from("{");
        if let Some(at) = at {
            line += &format!("\"observed_at\":{},", at.0);
        }
        if let Some(argument) = &self.argument {
            line += &format!("\"argument\":{},", quoted(argument));
        }
        line += "\"event\":";
        let mut line = line.into_bytes();
        let fits = !self.body.contains(&b'\n') && keys(&self.body).is_some();
        if fits {
            line.extend_from_slice(&self.body);
        } else {
            line.extend_from_slice(quoted(&String::from_utf8_lossy(&self.body)).as_bytes());
        }
        line.push(b'}');
        line
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn keys(text: &[u8]) -> Option<Keys<'_>> {
    serde_json::from_slice(text).ok()
}

/// Parses a line without its line break. If it is neither an envelope nor a payload, the line itself becomes the body: it is
/// stored as it is and counts as malformed.
pub(super) fn read(line: &[u8]) -> Line {
    let text = String::from_utf8_lossy(line);
    let Some(keys) = keys(text.as_bytes()) else {
        return Line { at: None, argument: None, body: line.to_vec() };
    };
    let at = TIME_KEYS.iter().find_map(|key| Time::parse(keys.get(*key)?.get().trim_matches('"')));
    let body = if is_named(&keys) { None } else { enclosed(&keys) };
    let argument = body.as_deref().and_then(|_| name(&keys));
    Line { at, argument, body: body.unwrap_or_else(|| line.to_vec()) }
}

fn is_named(keys: &Keys<'_>) -> bool {
    NAME_KEYS.iter().any(|key| keys.contains_key(*key))
}

/// The payload in an envelope. `None` if the object itself is the payload.
fn enclosed(outer: &Keys<'_>) -> Option<Vec<u8>> {
    let named = BODY_KEYS.iter().find_map(|key| {
        let body = contents(outer.get(*key)?.get())?;
        keys(&body).is_some_and(|inner| is_named(&inner)).then_some(body)
    });
    if named.is_some() {
        return named;
    }
    if ID_KEYS.iter().any(|key| outer.contains_key(*key)) {
        return None;
    }
    let own = ["event", "payload"].map(|key| outer.get(key).map(|value| value.get()));
    let object = own.into_iter().flatten().find(|json| json.starts_with('{'));
    let text = || own.into_iter().flatten().find(|json| json.starts_with('"'));
    contents(object.or_else(text)?)
}

/// An object, or the bytes of a string.
fn contents(json: &str) -> Option<Vec<u8>> {
    match json.as_bytes().first()? {
        b'{' => Some(json.as_bytes().to_vec()),
        b'"' => string(json),
        _ => None,
    }
}

fn name(keys: &Keys<'_>) -> Option<String> {
    EVENT_KEYS.iter().find_map(|key| {
        let name: String = serde_json::from_str(keys.get(*key)?.get()).ok()?;
        let is_name = match *key {
            // Everything that an export wrote can be imported again.
            "argument" => name.len() <= LONGEST_ARGUMENT,
            _ => events::is_known(&name),
        };
        is_name.then_some(name)
    })
}

/// The bytes of a JSON string. A lone surrogate keeps the form that it had in the hook.
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
    /// Equal lines further apart than this count as one line. Only forged files contain such lines, and this limits
    /// their cost.
    const WINDOW: usize = 65_536;

    /// The id of a line. The n-th of several equal lines gets the same id in every import.
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
        if let Some(Time::Exact(at)) = line.at {
            // The time comes first, as in the shim's ids, so that an index grows at its end.
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

    fn exact(at: Option<i64>) -> Option<Time> {
        at.map(|ns| Time::Exact(Timestamp(ns)))
    }

    fn check(line: &str, at: Option<i64>, body: &[u8]) {
        assert_eq!(
            read(line.as_bytes()),
            Line { at: exact(at), argument: None, body: body.to_vec() },
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
    fn the_envelopes_of_other_scripts_are_opened() {
        let event = r#"{"hook_event_name":"stop","status":"completed"}"#;
        let quoted = quoted(event);
        for line in [
            format!(r#"{{"timestamp":7,"event":"stop","session_id":"s","data":{event}}}"#),
            format!(r#"{{"received_at":7,"input":{event}}}"#),
            format!(r#"{{"time":7,"type":"hook","raw":{quoted}}}"#),
            format!(r#"{{"ts":7,"hook":"stop","payload":{event}}}"#),
        ] {
            let read = read(line.as_bytes());
            assert_eq!((read.at, &*read.body), (exact(Some(7)), event.as_bytes()), "{line}");
        }
        // A script added the time to the payload itself.
        let own = r#"{"hook_event_name":"stop","ts":"2026-10-05T12:00:01+02:00","event":"stop"}"#;
        check(own, Some(1_791_194_401_000_000_000), own.as_bytes());
        // The name stands beside a payload that does not contain it.
        let bare = read(br#"{"ts": 7, "event": "stop", "payload": {"reason": "user_exit"}}"#);
        assert_eq!(bare.argument.as_deref(), Some("stop"));
        assert_eq!(bare.body, br#"{"reason": "user_exit"}"#);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for body in [
            "{\"a\":1}",
            "{\"event\":\"stop\",\"argument\":\"stop\"}",
            "{\n  \"a\": \"é\"\n}",
            "no JSON \"at\" all",
            "{\"cut\": ",
        ] {
            let line =
                Line { at: exact(Some(7)), argument: Some("stop".into()), body: body.into() };
            assert_eq!(read(&line.write(Some(Timestamp(7)))), line, "{body}");
        }
        let argument = Some("no event of ours ".repeat(9));
        let line = Line { at: exact(Some(7)), argument, body: b"{\"a\":1}".to_vec() };
        assert_eq!(read(&line.write(Some(Timestamp(7)))), line);
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
        let line =
            |at: Option<i64>, body: &str| Line { at: exact(at), argument: None, body: body.into() };
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
