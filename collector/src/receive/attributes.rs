//! Looks up attributes of received items, and prepares them for storing: without secrets and names, and shortened.

use std::borrow::Cow;

use opentelemetry_proto::tonic::common::v1::any_value::Value as Wire;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use serde_json::{Map, Number, Value};

use crate::redaction::Redaction;

/// Maximum number of stored attributes of one item.
const COUNT_MAX: usize = 64;
/// Maximum length of an attribute's name, bytes.
const KEY_MAX_BYTES: usize = 128;
/// Maximum length of a text, bytes.
pub(super) const TEXT_MAX_BYTES: usize = 2_048;
/// Maximum length of all attributes of an item together, bytes.
const ALL_MAX_BYTES: usize = 8_192;
/// Maximum depth of lists and maps inside each other.
const DEPTH_MAX: usize = 4;
/// Maximum number of parts of one list or map.
const PARTS_MAX: usize = 32;

/// Attributes that name a person or an organisation. Nothing that hookspan shows needs them.
const PEOPLE: [&str; 9] = [
    "user.email",
    "user.id",
    "user.name",
    "user.account_uuid",
    "user.account_id",
    "organization.id",
    "organization.name",
    "enduser.id",
    "cursor.user.id",
];

/// The value of an attribute.
pub(super) fn get<'a>(pairs: &'a [KeyValue], key: &str) -> Option<&'a Wire> {
    pairs.iter().find(|pair| pair.key == key)?.value.as_ref()?.value.as_ref()
}

/// An attribute that is a text, and not empty.
pub(super) fn text<'a>(pairs: &'a [KeyValue], key: &str) -> Option<&'a str> {
    match get(pairs, key)? {
        Wire::StringValue(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// An attribute that is a number, or a text that contains a number: some agents send all values as texts.
pub(super) fn number(pairs: &[KeyValue], key: &str) -> Option<f64> {
    let number = match get(pairs, key)? {
        Wire::IntValue(value) => *value as f64,
        Wire::DoubleValue(value) => *value,
        Wire::StringValue(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (number.is_finite() && (0.0..=MOST).contains(&number)).then_some(number)
}

/// Like [`number`], as a whole number.
#[expect(clippy::cast_possible_truncation, reason = "it is below 2^53")]
pub(super) fn whole(pairs: &[KeyValue], key: &str) -> Option<i64> {
    number(pairs, key).map(|number| number as i64)
}

/// 2^53. A larger number cannot be a real count.
pub(super) const MOST: f64 = 9_007_199_254_740_992.0;

/// Returns the attributes as a JSON object, without secrets and without attributes that name people. Also returns the
/// number of attributes that were dropped or shortened because of a limit.
pub(super) fn kept(pairs: &[KeyValue], redaction: &Redaction) -> (String, u32) {
    let (mut map, mut cut, mut bytes) = (Map::new(), 0_u32, 0);
    for pair in pairs {
        if PEOPLE.contains(&pair.key.as_str()) {
            continue;
        }
        let mut shortened = false;
        let mut writer = Writer { redaction, shortened: &mut shortened };
        let value = pair.value.as_ref();
        let value = value.map_or(Value::Null, |value| writer.json(&pair.key, value, 0));
        let size = pair.key.len() + length(&value);
        if map.len() >= COUNT_MAX || pair.key.len() > KEY_MAX_BYTES || bytes + size > ALL_MAX_BYTES
        {
            cut = cut.saturating_add(1);
            continue;
        }
        bytes += size;
        cut = cut.saturating_add(u32::from(shortened));
        map.insert(redaction.text(&pair.key).into_owned(), value);
    }
    (Value::Object(map).to_string(), cut)
}

/// Roughly the bytes of a value in JSON.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(length).sum::<usize>() + list.len(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + length(value) + 4).sum(),
        _ => 8,
    }
}

struct Writer<'a> {
    redaction: &'a Redaction,
    /// Set to true if a part of the value is left out.
    shortened: &'a mut bool,
}

impl Writer<'_> {
    fn json(&mut self, key: &str, value: &AnyValue, depth: usize) -> Value {
        let Some(value) = &value.value else { return Value::Null };
        match value {
            Wire::StringValue(text) => Value::String(self.text(key, text)),
            Wire::BoolValue(value) => Value::Bool(*value),
            Wire::IntValue(value) => Value::Number((*value).into()),
            Wire::DoubleValue(value) => Number::from_f64(*value).map_or(Value::Null, Value::Number),
            Wire::BytesValue(bytes) => {
                *self.shortened = true;
                Value::String(format!("{} bytes", bytes.len()))
            }
            Wire::ArrayValue(_) | Wire::KvlistValue(_) if depth >= DEPTH_MAX => {
                *self.shortened = true;
                Value::Null
            }
            Wire::ArrayValue(list) => {
                *self.shortened |= list.values.len() > PARTS_MAX;
                let parts = list.values.iter().take(PARTS_MAX);
                Value::Array(parts.map(|part| self.json(key, part, depth + 1)).collect())
            }
            Wire::KvlistValue(list) => {
                *self.shortened |= list.values.len() > PARTS_MAX;
                let parts = list.values.iter().take(PARTS_MAX).map(|pair| {
                    let value = pair.value.as_ref();
                    let value =
                        value.map_or(Value::Null, |value| self.json(&pair.key, value, depth + 1));
                    let key = self.redaction.text(&pair.key);
                    (shorten(&key, KEY_MAX_BYTES).into_owned(), value)
                });
                Value::Object(parts.collect())
            }
            // An index into a table of texts. Only the profiles signal has such a table.
            Wire::StringValueStrindex(_) => Value::Null,
        }
    }

    /// Redacts a text, then shortens it: half a secret would not be recognised. The redactor also reads the attribute's
    /// name, which often says that the value is a secret.
    fn text(&mut self, key: &str, text: &str) -> String {
        let named = format!("{key}={text}");
        let redacted = self.redaction.text(&named);
        let value = match redacted.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')) {
            Some(value) => Cow::Borrowed(value),
            None => self.redaction.text(text),
        };
        let short = shorten(&value, TEXT_MAX_BYTES);
        *self.shortened |= short.len() < value.len();
        short.into_owned()
    }
}

/// At most `max_bytes` of a text, cut between two characters. A cut text ends in `…`.
pub(super) fn shorten(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let end = (0..=max_bytes.saturating_sub('…'.len_utf8())).rev();
    let end = end.into_iter().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default()))
}
