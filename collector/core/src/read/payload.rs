//! Knows Cursor's field names and how to read a body that may contain anything.
//!
//! A body is split one level deep into raw values. Each field is parsed alone and only when needed, so an odd field
//! affects only itself. No code here recurses over nested input, except [`serde_json::Value`] with its limit of 128
//! levels.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use simdutf8::basic::from_utf8;

use crate::read::json_scan as split;
use crate::read::known_fields::{is_listed, tag};

/// The text of a body: without a byte order mark, converted from UTF-16, with damaged UTF-8 repaired.
pub(crate) fn decode(body: &[u8]) -> Cow<'_, str> {
    match body {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)),
        [b'{', 0, ..] => Cow::Owned(utf16(body, u16::from_le_bytes)),
        [0, b'{', ..] => Cow::Owned(utf16(body, u16::from_be_bytes)),
        _ => {
            let mut rest = body;
            while let Some(stripped) = rest.strip_prefix(b"\xef\xbb\xbf") {
                rest = stripped;
            }
            // For valid text, the lossy conversion is ten times slower.
            from_utf8(rest).map_or_else(|_| String::from_utf8_lossy(rest), Cow::Borrowed)
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| match pair {
        &[a, b] => unit([a, b]),
        _ => 0,
    });
    let text: String =
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    text.trim_start_matches('\u{feff}').to_owned()
}

/// A JSON value as written. It is valid: only [`Fields::parse`] and [`array()`] create one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    text: &'a str,
    /// True only if the value has no escapes. False if that is unknown.
    is_plain: bool,
}

impl<'a> Raw<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, is_plain: false }
    }

    /// Its text.
    pub(crate) fn get(self) -> &'a str {
        self.text
    }
}

/// The fields of one JSON object, in order, values unread.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a> {
    fields: Vec<Field<'a>>,
    /// One bit per tag of a field that is present. Most names that callers ask for are absent, and this shows it fast.
    tags: u64,
    /// Some key has an upper-case letter, so the camelCase spelling of a name must be tried, too.
    camel: bool,
}

#[derive(Debug)]
struct Field<'a> {
    /// [`tag`] of the key. A hook has twenty fields and callers ask for thirty names, so comparing must be cheap.
    tag: u32,
    /// Whether known hooks send a field of this name.
    listed: bool,
    key: Cow<'a, str>,
    value: Raw<'a>,
}

/// The bit of [`Fields::tags`] that stands for a tag.
const fn bit(tag: u32) -> u64 {
    1 << (tag.wrapping_mul(0x9e37_79b1) >> 26)
}

impl<'a> Fields<'a> {
    /// The object's fields, if `text` is exactly one JSON object.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let fields = Vec::with_capacity(if text.len() < 512 { 6 } else { 20 });
        let mut all = Self { fields, ..Self::default() };
        let add = |key, text, is_plain| all.add(Cow::Borrowed(key), Raw { text, is_plain });
        match split::object(text, add) {
            Some(()) => Some(all),
            None => serde_json::from_str(text).ok(),
        }
    }

    fn add(&mut self, key: Cow<'a, str>, value: Raw<'a>) {
        let tag = tag(&key);
        let listed = is_listed(&key, tag);
        // No listed name has a capital.
        self.camel |= !listed && key.bytes().any(|byte| byte.is_ascii_uppercase());
        self.tags |= bit(tag);
        self.fields.push(Field { tag, listed, key, value });
    }

    /// The value of `name` in its snake_case or camelCase spelling. If a key occurs twice, the last value. JSON null
    /// counts as absent.
    // Most names are absent. A test of one bit shows that.
    #[inline]
    pub(crate) fn raw(&self, name: &str) -> Option<Raw<'a>> {
        let tag = tag(name);
        if self.tags & bit(tag) == 0 && !self.camel { None } else { self.find(name, tag) }
    }

    #[inline(never)]
    fn find(&self, name: &str, tag: u32) -> Option<Raw<'a>> {
        let mut fields = self.fields.iter().rev();
        let exact = fields.find(|field| field.tag == tag && field.key == name);
        let found = match exact {
            None if self.camel => {
                self.fields.iter().rev().find(|field| is_camel_of(&field.key, name))
            }
            exact => exact,
        };
        found.map(|field| field.value).filter(|value| value.get() != "null")
    }

    /// Whether a field is there in exactly this spelling.
    pub(crate) fn has_own(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.key == name)
    }

    /// The names, as sent, that no known hook sends in this spelling, each with the shape of its value.
    pub(crate) fn unlisted(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let unlisted = self.fields.iter().filter(|field| !field.listed);
        unlisted.map(|field| (&*field.key, shape(field.value)))
    }

    /// The first of `names` that is present.
    pub(crate) fn first(&self, names: &[&str]) -> Option<Raw<'a>> {
        names.iter().find_map(|name| self.raw(name))
    }

    /// Text of a field. Numbers and booleans are not text.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).and_then(text)
    }

    /// Text that is not empty.
    pub(crate) fn said(&self, name: &str) -> Option<Cow<'a, str>> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// Text that is not empty, owned.
    pub(crate) fn word(&self, name: &str) -> Option<String> {
        self.said(name).map(Cow::into_owned)
    }

    /// A number. Text that contains a number counts, too.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.raw(name).and_then(number)
    }

    /// A whole number; fractions are cut off.
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        let raw = self.raw(name)?;
        if let Ok(int) = serde_json::from_str::<i64>(raw.get()) {
            return Some(int);
        }
        // `as` saturates, so a forged number cannot overflow.
        number(raw).map(|number| number as i64)
    }

    /// A count: a whole number that is not negative.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.int(name).and_then(|int| u64::try_from(int).ok())
    }

    /// A flag, also if written as text.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.raw(name)?.get() {
            "true" | "\"true\"" => Some(true),
            "false" | "\"false\"" => Some(false),
            _ => None,
        }
    }

    /// The fields of an object field, or of a JSON object inside a text field (which then lives in `store`).
    pub(crate) fn object<'s>(&self, name: &str, store: &'s mut String) -> Option<Fields<'s>>
    where
        'a: 's,
    {
        object(self.raw(name)?, store)
    }
}

/// The fields of an object, or of a JSON object inside text (which then lives in `store`).
pub(crate) fn object<'s>(raw: Raw<'s>, store: &'s mut String) -> Option<Fields<'s>> {
    if raw.get().starts_with('{') {
        return Fields::parse(raw.get());
    }
    *store = text(raw)?.into_owned();
    store.trim_start().starts_with('{').then(|| Fields::parse(store)).flatten()
}

/// The elements of an array, unread.
pub(crate) fn array(raw: Raw<'_>) -> Vec<Raw<'_>> {
    let found = split::array(raw.get(), Raw::of).or_else(|| {
        let found: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        Some(found.into_iter().map(|value| Raw::of(value.get())).collect())
    });
    found.unwrap_or_default()
}

/// The first element of an array, unread.
pub(crate) fn first(raw: Raw<'_>) -> Option<Raw<'_>> {
    match split::first(raw.get()) {
        Some(element) => Some(Raw::of(element)),
        // The array is empty, not an array, or nested too deep for the scanner.
        None => array(raw).into_iter().next(),
    }
}

/// The text of a JSON string. Lone surrogates become replacement characters.
pub(crate) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if raw.is_plain || memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    unescaped(inner).or_else(|| repaired(raw)).map(Cow::Owned)
}

/// Unescapes a valid string in one pass. `serde_json` would copy it three times for a caller that wants bytes, and the
/// longest text of most hooks is a tool's output, JSON in a string. `None` if the text may contain half a character.
fn unescaped(inner: &str) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, escape)) =
        memchr(b'\\', rest.as_bytes()).and_then(|at| rest.split_at_checked(at))
    {
        text.push_str(before);
        let (char, len) = match escape.as_bytes().get(1)? {
            byte @ (b'"' | b'\\' | b'/') => (char::from(*byte), 2),
            b'n' => ('\n', 2),
            b't' => ('\t', 2),
            b'r' => ('\r', 2),
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'u' => (char::from_u32(u32::from_str_radix(escape.get(2..6)?, 16).ok()?)?, 6),
            _ => return None,
        };
        text.push(char);
        rest = escape.get(len..)?;
    }
    text.push_str(rest);
    Some(text)
}

/// The text of a string that may have lone surrogates: they become replacement characters.
fn repaired(raw: Raw<'_>) -> Option<String> {
    let Wtf8(bytes) = serde_json::from_str(raw.get()).ok()?;
    Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// The kind of a value, without its content.
fn shape(raw: Raw<'_>) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'"') => "text",
        Some(b'{') => "object",
        Some(b'[') => "list",
        Some(b't' | b'f') => "flag",
        Some(b'n') => "null",
        _ => "number",
    }
}

fn number(raw: Raw<'_>) -> Option<f64> {
    let text = text(raw);
    let digits = text.as_deref().unwrap_or_else(|| raw.get());
    digits.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// Whether `key` is the camelCase spelling of `name`.
fn is_camel_of(key: &str, name: &str) -> bool {
    let mut wanted = name.bytes();
    for byte in key.bytes() {
        let expected = match wanted.next() {
            Some(b'_') => wanted.next().map(|byte| byte.to_ascii_uppercase()),
            other => other,
        };
        if expected != Some(byte) {
            return false;
        }
    }
    wanted.next().is_none()
}

/// The value of a top-level text field in a document that is not valid JSON: the first `"name" : "value"`. Escapes are
/// not decoded, because ids contain none.
pub(crate) fn scan<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = text;
    loop {
        let at = rest.find(name)?;
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        rest = after;
        if !before.ends_with('"') || before.ends_with("\\\"") {
            continue;
        }
        let value = after.strip_prefix('"').map(str::trim_start).and_then(|s| s.strip_prefix(':'));
        let Some(value) = value.map(str::trim_start).and_then(|s| s.strip_prefix('"')) else {
            continue;
        };
        let end = value.find(['"', '\\'])?;
        if value[end..].starts_with('"') {
            return Some(&value[..end]);
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Fields::default();
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    fields.add(key, Raw::of(value.get()));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A key: borrowed if it has no escapes, and readable even if it has a lone surrogate.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> Result<Key<'de>, E> {
                // The lossy conversion is for invalid text; on valid text it is slow.
                Ok(Key(std::str::from_utf8(bytes)
                    .map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)))
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(String::from_utf8_lossy(bytes).into_owned())))
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_bytes(Text)
    }
}

/// A string's bytes with lone surrogates kept, as `serde_json` returns them for bytes.
struct Wtf8(Vec<u8>);

impl<'de> Deserialize<'de> for Wtf8 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Wtf8;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Wtf8, E> {
                Ok(Wtf8(bytes.to_vec()))
            }
            fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Wtf8, E> {
                Ok(Wtf8(bytes))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Wtf8, E> {
                Ok(Wtf8(text.as_bytes().to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field(body: &[u8], name: &str) -> Option<String> {
        let text = decode(body);
        Fields::parse(&text).and_then(|fields| fields.text(name).map(Cow::into_owned))
    }

    #[test]
    fn a_body_is_read_in_any_encoding() {
        let json = r#"{"prompt":"naïve"}"#;
        let with_bom = [b"\xef\xbb\xbf".as_slice(), json.as_bytes(), b"\r\n"].concat();
        let le: Vec<u8> = json.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = "\u{feff}"
            .encode_utf16()
            .chain(json.encode_utf16())
            .flat_map(u16::to_be_bytes)
            .collect();
        for body in [json.as_bytes(), &with_bom, &le, &be] {
            assert_eq!(field(body, "prompt").as_deref(), Some("naïve"));
        }
        assert_eq!(field(b"{\"prompt\":\"a\xff\"}", "prompt").as_deref(), Some("a\u{fffd}"));
    }

    #[test]
    fn a_lone_surrogate_is_repaired() {
        assert_eq!(
            field(br#"{"t":"a\ud83dz\n"}"#, "t").as_deref(),
            Some("a\u{fffd}\u{fffd}\u{fffd}z\n")
        );
        assert_eq!(field(br#"{"t":"\ud83d\ude00"}"#, "t").as_deref(), Some("😀"));
    }

    proptest! {
        /// For valid strings both ways agree; only half characters need the slow way.
        #[test]
        fn escapes_are_undone_as_serde_undoes_them(
            parts in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(vec![
                        "\\n", "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\r", "\\t", "\\u00e9", "\\u0000", "\\uFFFF",
                        "\\ud83d\\ude00", "\\ud83d", "\\ude00", "é", "😀", "n", "u00e9",
                    ]).prop_map(str::to_owned),
                    "[ a-z]{0,40}",
                ],
                0..12,
            ),
        ) {
            let inner = parts.concat();
            let quoted = format!("\"{inner}\"");
            let long = repaired(Raw::of(&quoted));
            prop_assert!(long.is_some(), "{quoted} is sound");
            let short = unescaped(&inner);
            prop_assert!(short.is_some() || inner.contains("\\ud83d") || inner.contains("\\ude00"), "{inner}");
            prop_assert_eq!(short.or_else(|| long.clone()), long);
        }
    }

    #[test]
    fn of_equal_keys_the_last_wins_and_null_is_absent() {
        assert_eq!(field(br#"{"t":"a","t":"b"}"#, "t").as_deref(), Some("b"));
        assert_eq!(field(br#"{"t":null}"#, "t"), None);
    }

    #[test]
    fn camel_case_names_are_read_too() {
        assert_eq!(
            field(br#"{"hookEventName":"stop"}"#, "hook_event_name").as_deref(),
            Some("stop")
        );
        assert_eq!(field(br#"{"hookEventname":"stop"}"#, "hook_event_name"), None);
    }

    #[test]
    fn depth_costs_nothing() {
        let deep = format!("{{\"x\":{}{},\"t\":\"y\"}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(field(deep.as_bytes(), "t").as_deref(), Some("y"));
    }

    #[test]
    fn ids_are_found_in_a_torn_document() {
        let torn = r#"{"prompt":"say \"conversation_id\":\"x\"", "conversation_id" : "c1","generation_id":"g"#;
        assert_eq!(scan(torn, "conversation_id"), Some("c1"));
        assert_eq!(scan(torn, "generation_id"), None);
    }

    #[test]
    fn numbers_come_as_numbers_or_text() {
        let fields = Fields::parse(r#"{"a":12.5,"b":"12.5","c":1e400,"d":"x","e":7}"#).unwrap();
        assert_eq!(fields.number("a"), Some(12.5));
        assert_eq!(fields.number("b"), Some(12.5));
        assert_eq!(fields.number("c"), None);
        assert_eq!(fields.number("d"), None);
        assert_eq!(fields.int("e"), Some(7));
        assert_eq!(fields.int("a"), Some(12));
    }
}
