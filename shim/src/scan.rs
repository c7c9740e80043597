//! Scans the first frame of a body once, to find which hook and which host it comes from, and whether the value is
//! complete.
//!
//! The scanner is not a parser: it tracks strings, escapes and depth, and reads keys at depth 1 only. Any bytes give a
//! result. Broken or foreign bytes give "unknown", never an error.

use crate::event::Event;

/// The name in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A name that this program knows.
    Known(Event),
    /// Another name.
    Unknown,
}

/// What a scan of a body finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Value of `hook_event_name` or `hookEventName`; `None` if the body has neither.
    pub name: Option<Name>,
    /// `conversation_id`, `conversationId` or `cursor_version` is a key.
    pub cursor: bool,
    /// An object, an array or a string has been closed at depth 0.
    pub complete: bool,
}

impl Scan {
    /// Scans a whole body.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        let mut scanner = Scanner::default();
        scanner.advance(body);
        scanner.found
    }
}

/// A scan that continues as more of the body arrives.
#[derive(Debug, Default)]
pub struct Scanner {
    /// What has been found so far.
    pub found: Scan,
    position: usize,
    depth: u32,
    within: Within,
    string_start: usize,
    string_has_escape: bool,
    /// A `:` at depth 1 came after the last `,`, so the next string is a value.
    in_value: bool,
    key: Key,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    #[default]
    Structure,
    String,
    Escape,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Key {
    EventName,
    Cursor,
    #[default]
    Other,
}

impl Key {
    fn named(bytes: &[u8]) -> Self {
        match bytes {
            b"hook_event_name" | b"hookEventName" => Self::EventName,
            b"conversation_id" | b"conversationId" | b"cursor_version" => Self::Cursor,
            _ => Self::Other,
        }
    }
}

impl Scanner {
    /// Scans the bytes that are new. `body` is everything received so far, from its first byte.
    pub fn advance(&mut self, body: &[u8]) {
        while let Some(rest) = body.get(self.position..).filter(|rest| !rest.is_empty()) {
            match self.within {
                Within::Structure => self.structure(rest),
                Within::String => self.string(rest, body),
                Within::Escape => {
                    self.within = Within::String;
                    self.position += 1;
                }
            }
        }
    }

    /// Moves behind the next quote.
    fn structure(&mut self, rest: &[u8]) {
        for (index, byte) in rest.iter().enumerate() {
            match byte {
                b'"' => {
                    self.position += index + 1;
                    self.string_start = self.position;
                    self.string_has_escape = false;
                    self.within = Within::String;
                    return;
                }
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.found.complete |= self.depth == 1;
                    self.depth = self.depth.saturating_sub(1);
                }
                b':' if self.depth == 1 => self.in_value = true,
                b',' if self.depth == 1 => self.in_value = false,
                _ => {}
            }
        }
        self.position += rest.len();
    }

    /// Moves to the position after the string's closing quote, or to the end of the received bytes.
    fn string(&mut self, rest: &[u8], body: &[u8]) {
        let mut rest = rest;
        loop {
            let plain = plain_prefix(rest);
            self.position += plain;
            match rest.get(plain..) {
                Some([b'"', ..]) => break,
                Some([_, _, after @ ..]) => {
                    self.position += 2;
                    self.string_has_escape = true;
                    rest = after;
                }
                Some([_]) => {
                    self.position += 1;
                    self.string_has_escape = true;
                    self.within = Within::Escape;
                    return;
                }
                _ => return,
            }
        }
        if self.depth <= 1 {
            self.close_string(body.get(self.string_start..self.position).unwrap_or(b""));
        }
        self.position += 1;
        self.within = Within::Structure;
    }

    fn close_string(&mut self, text: &[u8]) {
        if self.depth == 0 {
            self.found.complete = true;
        } else if !self.in_value {
            self.key = if self.string_has_escape { Key::Other } else { Key::named(text) };
            self.found.cursor |= self.key == Key::Cursor;
        } else if self.key == Key::EventName {
            self.found.name = Some(match Event::named(text) {
                Some(event) => Name::Known(event),
                None => Name::Unknown,
            });
            self.key = Key::Other;
        }
    }
}

/// Number of bytes before the first quote or backslash. All bytes, if there is none.
fn plain_prefix(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let ends = string_ends(u64::from_le_bytes(*word));
        if ends != 0 {
            return index * 8 + ends.trailing_zeros() as usize / 8;
        }
    }
    let ends = tail.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    words.len() * 8 + ends.unwrap_or(tail.len())
}

/// Sets the high bit of every byte of `word` that is a quote or a backslash. Only the lowest set bit is reliable.
const fn string_ends(word: u64) -> u64 {
    // Subtracting borrows at a zero byte. Quote and backslash are both ASCII, so one test of the high bits is enough
    // for both.
    let borrow =
        (word ^ splat(b'"')).wrapping_sub(splat(1)) | (word ^ splat(b'\\')).wrapping_sub(splat(1));
    borrow & !word & splat(0x80)
}

const fn splat(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &[u8], name: Option<Name>, cursor: bool, complete: bool) {
        let expected = Scan { name, cursor, complete };
        assert_eq!(Scan::of(body), expected, "{}", String::from_utf8_lossy(body));
        // The result does not depend on how the body is cut into reads.
        for pieces in [1, 3, 7] {
            let mut scanner = Scanner::default();
            for end in (0..body.len()).step_by(pieces).chain([body.len()]) {
                scanner.advance(&body[..end]);
            }
            assert_eq!(scanner.found, expected, "in pieces of {pieces}");
        }
    }

    const STOP: Option<Name> = Some(Name::Known(Event::Stop));

    #[test]
    fn the_name_is_found_first_last_and_between() {
        check(br#"{"hook_event_name":"stop"}"#, STOP, false, true);
        check(br#"{"a":{"b":[1,"x"]}, "hook_event_name" : "stop"}"#, STOP, false, true);
        check(br#"{"hookEventName":"stop","z":null}"#, STOP, false, true);
        check(br#"{"hook_event_name":"new"}"#, Some(Name::Unknown), false, true);
    }

    #[test]
    fn keys_count_only_at_depth_one() {
        check(br#"{"a":{"hook_event_name":"stop","conversation_id":"x"}}"#, None, false, true);
        check(br#"[{"hook_event_name":"stop"}]"#, None, false, true);
        check(br#"{"a":"hook_event_name","b":"stop"}"#, None, false, true);
        check(br#"{"tool_input":"{\"hook_event_name\":\"stop\"}"}"#, None, false, true);
        check(br#"{"a":"conversation_id"}"#, None, false, true);
    }

    #[test]
    fn cursor_is_known_by_its_keys() {
        for key in ["conversation_id", "conversationId", "cursor_version"] {
            check(format!(r#"{{"{key}":""}}"#).as_bytes(), None, true, true);
        }
        check(br#"{"session_id":"s"}"#, None, false, true);
    }

    #[test]
    fn a_value_is_complete_when_its_last_bracket_closes() {
        check(b"{\"a\":\"}\"", None, false, false);
        check(b"{\"a\":\"\\\"}", None, false, false);
        check(b"{\"a\":[{}]", None, false, false);
        check(b"{\"a\":[{}]}\n", None, false, true);
        check(b"", None, false, false);
        check(b"garbage", None, false, false);
        check(b"}}}", None, false, false);
        check(b"\"text\"", None, false, true);
    }

    #[test]
    fn marks_and_other_encodings_do_no_harm() {
        check(b"\xef\xbb\xbf{\"hook_event_name\":\"stop\"}", STOP, false, true);
        let utf16: Vec<u8> = "\u{feff}{\"hook_event_name\":\"stop\"}"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        check(&utf16, None, false, true);
        check(b"{\"a\":\"\xe4\xb8\"}\xff", None, false, true);
    }

    #[test]
    fn broken_text_before_the_name_does_not_hide_it() {
        check(b"{\"content\":\"\xff\xfe\x00\",\"hook_event_name\":\"stop\"", STOP, false, false);
    }

    #[test]
    fn a_wrong_type_for_the_name_is_no_name() {
        check(br#"{"hook_event_name":5,"x":"stop"}"#, None, false, true);
        check(br#"{"hook_event_name":["stop"]}"#, None, false, true);
    }

    #[test]
    fn long_strings_end_where_they_end() {
        for len in 0..40 {
            for end in ["\"", "\\\"", "\\\\\""] {
                let body = format!(
                    "{{\"a\":\"{}{end}, \"hook_event_name\":\"stop\"}}",
                    "\u{e9}".repeat(len)
                );
                let closed = end != "\\\"";
                assert_eq!(Scan::of(body.as_bytes()).complete, closed, "{body}");
            }
        }
    }
}
