//! Cutting a JSON object or array into its parts, unread: the one thing every hook needs, so it has a scanner of its own.
//!
//! It is a shortcut and never a judge. What it takes, `serde_json` takes too and cuts in the same places (a property in
//! this file); whatever is odd (an escaped or unprintable key, more than 64 levels, any mistake) it declines with `None`,
//! and the caller asks `serde_json`.

/// Deepest nesting that is followed.
const LEVELS: u32 = 64;

/// Hands each field of the object that `text` is to `field`: its key, which has no escapes, and its value as written.
/// `None` when `text` is anything else; some fields may have been handed over by then.
pub(crate) fn object<'a>(text: &'a str, mut field: impl FnMut(&'a str, &'a str)) -> Option<()> {
    let mut scan = Scan { text, at: 0 };
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
        scan.value()?;
        field(key, text.get(start..scan.at)?);
        if scan.skip_if(b'}') {
            return scan.end().then_some(());
        }
        if !scan.skip_if(b',') {
            return None;
        }
        scan.space();
    }
}

/// The first element of the array that begins `text`, which is a sound value.
pub(crate) fn first(text: &str) -> Option<&str> {
    let mut scan = Scan { text, at: 0 };
    scan.open(b'[')?;
    let start = scan.at;
    scan.value()?;
    text.get(start..scan.at)
}

/// What `element` makes of each element of the array that `text` is, and nothing else.
pub(crate) fn array<'a, T>(text: &'a str, element: fn(&'a str) -> T) -> Option<Vec<T>> {
    let mut scan = Scan { text, at: 0 };
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
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Space, then `byte`, if it is there.
    fn skip_if(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The bracket that everything is in, and the space behind it.
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

    /// The rest of a string without escapes, its closing quote included.
    fn plain_string(&mut self) -> Option<()> {
        self.at = special(self.text.as_bytes(), self.at);
        (self.peek()? == b'"').then(|| self.at += 1)
    }

    /// The rest of a string, its closing quote included.
    fn string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        loop {
            self.at = special(bytes, self.at);
            match bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(());
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
        }
    }

    /// A whole value, at whose first byte this stands.
    fn value(&mut self) -> Option<()> {
        // One bit per open bracket, the innermost lowest: 1 for an object.
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
                        // Empty: a value like any other.
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
            // A value has ended; so may have what it is in.
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

    /// A key inside a value, its colon, and the space behind it.
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

/// Where the next byte from `at` on is that a string cannot hold as it is: a quote, a backslash, a control character.
/// The end, if there is none.
fn special(bytes: &[u8], mut at: usize) -> usize {
    let is_special = |byte: u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    at = plain_blocks::<128>(bytes, at);
    at = plain_blocks::<64>(bytes, at);
    // Short texts, and the last block: eight bytes in one word.
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let found = special_in(u64::from_le_bytes(*block));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += block.len();
    }
    while bytes.get(at).is_some_and(|&byte| !is_special(byte)) {
        at += 1;
    }
    at
}

/// Where the first block of `N` bytes with a special one begins. A block of known length, and the least of it, become a few
/// vector instructions.
fn plain_blocks<const N: usize>(bytes: &[u8], mut at: usize) -> usize {
    // 0 where it is special.
    let mark = |byte: u8| (byte ^ b'"').min(byte ^ b'\\').min(byte & 0xe0);
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<N>) {
        if block.iter().fold(u8::MAX, |least, &byte| least.min(mark(byte))) == 0 {
            break;
        }
        at += N;
    }
    at
}

/// The highest bit of each special byte of a word. A borrow can mark bytes above the first special one by mistake, never
/// one below it.
const fn special_in(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const fn zero(word: u64) -> u64 {
        word.wrapping_sub(EACH) & !word
    }
    let quote = zero(word ^ (EACH * b'"' as u64));
    let backslash = zero(word ^ (EACH * b'\\' as u64));
    let control = word.wrapping_sub(EACH * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    use super::*;

    fn pairs(text: &str) -> Option<Vec<(&str, &str)>> {
        let mut pairs = Vec::new();
        object(text, |key, value| pairs.push((key, value)))?;
        Some(pairs)
    }

    /// What `serde_json` makes of it, for documents with distinct keys.
    fn serde_object(text: &str) -> Option<BTreeMap<String, &RawValue>> {
        serde_json::from_str(text).ok()
    }

    fn agrees(text: &str) -> Result<(), TestCaseError> {
        if let Some(fields) = pairs(text) {
            let expected = serde_object(text);
            prop_assert!(expected.is_some(), "only the scanner takes {text:?}");
            let mut expected = expected.unwrap_or_default();
            // Of equal keys the last one wins, on both sides.
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

        /// Whole blocks, whole words and the rest agree with looking at each byte.
        #[test]
        fn the_first_special_byte_is_found(
            mut bytes in prop::collection::vec(prop::sample::select(b"ax \x7f\x80\xa2\xdc\xff!#[]".to_vec()), 0..200),
            places in prop::collection::vec((0_usize..200, prop::sample::select(b"\"\\\x00\x1f\n".to_vec())), 0..4),
            from in 0_usize..100,
        ) {
            for (place, byte) in places {
                if let Some(slot) = bytes.get_mut(place) {
                    *slot = byte;
                }
            }
            let from = from.min(bytes.len());
            let expected = bytes[from..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            prop_assert_eq!(special(&bytes, from), from + expected.unwrap_or(bytes.len() - from));
        }

        /// Documents from the alphabet of JSON, most of them broken somewhere.
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

        /// Sound documents are not declined.
        #[test]
        fn sound_documents_are_taken(keys in prop::collection::btree_map("[a-z_]{1,8}", ".{0,80}", 0..8)) {
            let text = serde_json::to_string(&keys).unwrap();
            let found = pairs(&text);
            prop_assert!(found.is_some(), "{text}");
            agrees(&text)?;
        }
    }
}
