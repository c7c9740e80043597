//! Splits a JSON object or array into its parts without parsing them. Every hook needs this, so it has its own scanner.
//!
//! The scanner is only a shortcut. Everything it accepts, `serde_json` accepts too and splits in the same places (a
//! property test in this file). Anything unusual (an escaped or unprintable key, more than 64 levels, any mistake)
//! gives `None`, and the caller asks `serde_json`.

use memchr::memchr2;

/// Maximum nesting.
const LEVELS: u32 = 64;

/// Calls `field` for each field of the object `text` with the key, the value as written, and whether the value is a
/// string without escapes. Keys have no escapes. Returns `None` if `text` is not such an object; `field` may have been
/// called for its beginning.
pub(crate) fn object<'a>(
    text: &'a str,
    mut field: impl FnMut(&'a str, &'a str, bool),
) -> Option<()> {
    let mut scan = Scan::of(text);
    scan.open(b'{')?;
    if scan.skip_if(b'}') {
        return scan.end().then_some(());
    }
    loop {
        if !scan.skip_if(b'"') {
            return None;
        }
        let start = scan.at;
        scan.plain_string()?;
        let key = text.get(start..scan.at - 1)?;
        if !scan.skip_if(b':') {
            return None;
        }
        scan.space();
        let start = scan.at;
        // Most values are strings, and strings are the longest values.
        let is_plain = if scan.peek() == Some(b'"') {
            scan.at += 1;
            scan.string()?
        } else {
            scan.value()?;
            false
        };
        field(key, text.get(start..scan.at)?, is_plain);
        if !scan.skip_if(b',') {
            return (scan.skip_if(b'}') && scan.end()).then_some(());
        }
    }
}

/// The first element of the array at the start of `text`, which must be valid.
pub(crate) fn first(text: &str) -> Option<&str> {
    let mut scan = Scan::of(text);
    scan.open(b'[')?;
    let start = scan.at;
    scan.value()?;
    text.get(start..scan.at)
}

/// Maps each element of the array `text` with `element`.
pub(crate) fn array<'a, T>(text: &'a str, element: fn(&'a str) -> T) -> Option<Vec<T>> {
    let mut scan = Scan::of(text);
    scan.open(b'[')?;
    let mut elements = Vec::new();
    if scan.skip_if(b']') {
        return scan.end().then_some(elements);
    }
    loop {
        scan.space();
        let start = scan.at;
        scan.value()?;
        elements.push(element(text.get(start..scan.at)?));
        if scan.skip_if(b']') {
            return scan.end().then_some(elements);
        }
        if !scan.skip_if(b',') {
            return None;
        }
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// Whether a control character stands anywhere but at the end. Control characters are not allowed in strings.
    /// Usually there is none, and then strings need not be searched for them.
    controls: bool,
}

impl<'a> Scan<'a> {
    fn of(text: &'a str) -> Self {
        let (blocks, rest) = text.trim_ascii_end().as_bytes().as_chunks::<64>();
        // These comparisons compile to a few vector instructions.
        let mut least = [u8::MAX; 64];
        for block in blocks {
            for (least, &byte) in least.iter_mut().zip(block) {
                *least = byte.min(*least);
            }
        }
        let controls = least.iter().chain(rest).any(|&byte| byte < 0x20);
        Self { text, at: 0, controls }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skips space, and then `byte` if it follows.
    fn skip_if(&mut self, byte: u8) -> bool {
        // Hooks rarely have space between their parts.
        if self.peek().is_some_and(|next| next <= b' ') {
            self.space();
        }
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Moves behind the outermost bracket and the space after it.
    fn open(&mut self, bracket: u8) -> Option<()> {
        let found = self.skip_if(bracket);
        self.space();
        found.then_some(())
    }

    /// Whether only space is left.
    fn end(&mut self) -> bool {
        self.space();
        self.at == self.text.len()
    }

    /// Index of the next byte that a string must escape: a quote, a backslash, a control character.
    fn special(&self) -> Option<usize> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let length = memchr2(b'"', b'\\', rest)?;
        if self.controls {
            let control = rest[..length].iter().position(|byte| *byte < 0x20);
            return Some(self.at + control.unwrap_or(length));
        }
        Some(self.at + length)
    }

    /// Moves behind the rest of a string without escapes and its closing quote.
    fn plain_string(&mut self) -> Option<()> {
        self.at = self.special()?;
        (self.peek()? == b'"').then(|| self.at += 1)
    }

    /// Moves behind the rest of a string and its closing quote. Returns whether it has no escapes.
    fn string(&mut self) -> Option<bool> {
        let bytes = self.text.as_bytes();
        let mut is_plain = true;
        loop {
            self.at = self.special()?;
            match bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(is_plain);
                }
                b'\\' => match bytes.get(self.at + 1)? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
                    b'u' => {
                        let digits = bytes.get(self.at + 2..self.at + 6)?;
                        if !digits.iter().all(u8::is_ascii_hexdigit) {
                            return None;
                        }
                        self.at += 6;
                    }
                    _ => return None,
                },
                _ => return None,
            }
            is_plain = false;
        }
    }

    /// Moves behind the value that starts here.
    fn value(&mut self) -> Option<()> {
        // One bit per open bracket, the innermost lowest: 1 for an object, 0 for an array.
        let (mut open, mut depth) = (0_u64, 0_u32);
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    self.string()?;
                }
                bracket @ (b'{' | b'[') => {
                    self.at += 1;
                    let is_object = bracket == b'{';
                    if self.skip_if(if is_object { b'}' } else { b']' }) {
                        // An empty container ends at once, like any other value.
                    } else {
                        depth += 1;
                        if depth > LEVELS {
                            return None;
                        }
                        open = open << 1 | u64::from(is_object);
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => return None,
            }
            // A value has ended. Its container may end here, too.
            loop {
                if depth == 0 {
                    return Some(());
                }
                let is_object = open & 1 == 1;
                if self.skip_if(b',') {
                    if is_object {
                        self.key()?;
                    } else {
                        self.space();
                    }
                    break;
                }
                if !self.skip_if(if is_object { b'}' } else { b']' }) {
                    return None;
                }
                open >>= 1;
                depth -= 1;
            }
        }
    }

    /// Reads a key of a nested object, with the colon and the white space behind it.
    fn key(&mut self) -> Option<()> {
        if !self.skip_if(b'"') {
            return None;
        }
        self.string()?;
        let found = self.skip_if(b':');
        self.space();
        found.then_some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let found = self.text.as_bytes().get(self.at..)?.starts_with(word.as_bytes());
        self.at += word.len();
        found.then_some(())
    }

    fn number(&mut self) -> Option<()> {
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Some(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    use super::*;

    fn pairs(text: &str) -> Option<Vec<(&str, &str)>> {
        let mut pairs = Vec::new();
        object(text, |key, value, is_plain| {
            assert_eq!(is_plain, value.starts_with('"') && !value.contains('\\'), "{text}");
            pairs.push((key, value));
        })?;
        Some(pairs)
    }

    /// The result of `serde_json`, for documents with distinct keys.
    fn serde_object(text: &str) -> Option<BTreeMap<String, &RawValue>> {
        serde_json::from_str(text).ok()
    }

    fn agrees(text: &str) -> Result<(), TestCaseError> {
        if let Some(fields) = pairs(text) {
            let expected = serde_object(text);
            prop_assert!(expected.is_some(), "only the scanner takes {text:?}");
            let mut expected = expected.unwrap_or_default();
            // Of equal keys, both sides keep the last one.
            for (key, value) in fields.iter().rev() {
                if let Some(other) = expected.remove(*key) {
                    prop_assert_eq!(other.get(), *value, "{}", text);
                }
            }
            prop_assert!(expected.is_empty(), "{text:?}: {expected:?}");
        }
        if let Some(elements) = array(text, |element| element) {
            let expected: Result<Vec<&RawValue>, _> = serde_json::from_str(text);
            let expected: Vec<&str> = expected
                .map_err(|error| TestCaseError::fail(format!("{text:?}: {error}")))?
                .iter()
                .map(|value| value.get())
                .collect();
            prop_assert_eq!(elements, expected, "{}", text);
        }
        Ok(())
    }

    #[test]
    fn ordinary_documents_are_cut() {
        let text =
            " {\"a\":1 , \"b\" : [1, {\"c\":\"x\\n\\u00e9\"}] ,\"d\":\"\",\"e\":{}, \"f\":null}\n";
        let fields = pairs(text).unwrap();
        let expected = [
            ("a", "1"),
            ("b", "[1, {\"c\":\"x\\n\\u00e9\"}]"),
            ("d", "\"\""),
            ("e", "{}"),
            ("f", "null"),
        ];
        assert_eq!(fields, expected);
        assert_eq!(array("[ 1,\"a\" ,[] ]", |element| element).unwrap(), ["1", "\"a\"", "[]"]);
        assert_eq!(pairs("{}").unwrap(), []);
    }

    #[test]
    fn what_is_odd_is_declined() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
        let odd = [
            "",
            "{",
            "[1]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":01}",
            "{\"a\":1.}",
            "{\"a\":-}",
            "{\"a\":1e}",
            "{\"a\":tru}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\u12\"}",
            "{\"a\":\"\n\"}",
            "{\"\\u0061\":1}",
            "{\"a\":[1 2]}",
            "{\"a\":[1}}",
            "{\"a\":{\"b\":1]}",
            "{\"a\":1} x",
            "{\"a\":nul",
            "{,}",
            "{\"a\":[,]}",
            "{\"a\":{,}}",
            &deep,
        ];
        for text in odd {
            assert_eq!(pairs(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// At any position, in any context.
        #[test]
        fn the_first_special_byte_is_found(
            mut text in prop::collection::vec(prop::sample::select("ax \x7fé😀!#[]".chars().collect::<Vec<_>>()), 0..200),
            places in prop::collection::vec((0_usize..200, prop::sample::select("\"\\\0\x1f\n".chars().collect::<Vec<_>>())), 0..4),
            from in 0_usize..100,
        ) {
            for (place, special) in places {
                if let Some(slot) = text.get_mut(place) {
                    *slot = special;
                }
            }
            let text: String = text.into_iter().collect();
            let scan = Scan { at: from, ..Scan::of(&text) };
            let rest = text.as_bytes().get(from..).unwrap_or_default();
            let expected = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            // A string ends with a quote, and an escape begins with a backslash. If neither follows, the scanner must
            // find nothing.
            let ends = rest.iter().any(|byte| matches!(byte, b'"' | b'\\'));
            let expected = expected.filter(|_| ends).map(|at| from + at);
            prop_assert_eq!(scan.special(), expected);
        }

        /// Documents made of JSON's own characters, most of them invalid somewhere.
        #[test]
        fn what_the_scanner_takes_serde_takes_alike(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\"", "\"\\n\"", "\"\\u00e9\"", "\"\\ud83d\"", "1",
                    "-0.5e+3", "01", "true", "null", "fals", " ", "\n", "\"", "\\", "\u{1}", "é",
                    "\"a\":", ",\"b\":", "{\"a\":1}", "[1,2]", "{\"x\":[{}]}",
                ]),
                0..24,
            ),
        ) {
            let inner = parts.concat();
            agrees(&inner)?;
            agrees(&format!("{{\"k\":{inner}}}"))?;
            agrees(&format!("{{\"k\":1{inner}}}"))?;
            agrees(&format!("[{inner}]"))?;
        }

        /// Valid documents are accepted.
        #[test]
        fn sound_documents_are_taken(keys in prop::collection::btree_map("[a-z_]{1,8}", ".{0,80}", 0..8)) {
            let text = serde_json::to_string(&keys).unwrap();
            let found = pairs(&text);
            prop_assert!(found.is_some(), "{text}");
            agrees(&text)?;
        }
    }
}
