//! Values in OTLP's form, and the last part of a path.

use std::borrow::Cow;

use hookspan_core::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use serde_json::Value as Json;

use super::wire::Wire;
use crate::redaction::Redaction;

/// The value of an attribute that is being written. Text is borrowed until something changes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Val<'a> {
    Text(Cow<'a, str>),
    Int(i64),
    Double(f64),
    Bool(bool),
    Texts(Vec<Cow<'a, str>>),
    /// A document in parts, as log records carry messages.
    Json(Json),
}

impl<'a> Val<'a> {
    /// A value of the fold.
    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::Str(text) => Self::Text(Cow::Borrowed(text)),
            Value::Int(number) => Self::Int(*number),
            Value::Double(number) => Self::Double(*number),
            Value::Bool(flag) => Self::Bool(*flag),
            Value::StrList(items) => {
                Self::Texts(items.iter().map(|item| Cow::Borrowed(item.as_str())).collect())
            }
        }
    }

    /// Writes an `AnyValue` without secrets.
    pub(super) fn write(&self, wire: &mut Wire, redaction: Option<&Redaction>) {
        match self {
            Self::Text(text) => wire.bytes_always(1, clean(redaction, text).as_bytes()),
            Self::Bool(flag) => wire.number_always(2, u64::from(*flag)),
            Self::Int(number) => wire.number_always(3, number.cast_unsigned()),
            Self::Double(number) => wire.fixed64_always(4, number.to_bits()),
            Self::Texts(items) => wire.message(5, |wire| {
                for item in items {
                    wire.message(1, |wire| wire.bytes_always(1, clean(redaction, item).as_bytes()));
                }
            }),
            Self::Json(document) => json(document, wire, redaction),
        }
    }
}

/// Writes a document as an `AnyValue`. Null is one without a value.
fn json(document: &Json, wire: &mut Wire, redaction: Option<&Redaction>) {
    match document {
        Json::Null => {}
        Json::Bool(flag) => wire.number_always(2, u64::from(*flag)),
        Json::Number(number) => match number.as_i64() {
            Some(number) => wire.number_always(3, number.cast_unsigned()),
            None => wire.fixed64_always(4, number.as_f64().unwrap_or(f64::NAN).to_bits()),
        },
        Json::String(text) => wire.bytes_always(1, clean(redaction, text).as_bytes()),
        Json::Array(items) => wire.message(5, |wire| {
            for item in items {
                wire.message(1, |wire| json(item, wire, redaction));
            }
        }),
        Json::Object(members) => wire.message(6, |wire| {
            for (name, value) in members {
                wire.message(1, |wire| {
                    wire.bytes(1, clean(redaction, name).as_bytes());
                    wire.message(2, |wire| json(value, wire, redaction));
                });
            }
        }),
    }
}

/// `text` without secrets, unless redaction is switched off.
pub(super) fn clean<'t>(redaction: Option<&Redaction>, text: &'t str) -> Cow<'t, str> {
    redaction.map_or(Cow::Borrowed(text), |redaction| redaction.text(text))
}

/// An attribute.
pub(super) fn key_value(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), key_strindex: 0 }
}

/// The last part of a path of either kind.
pub(super) fn base_name(path: &str) -> &str {
    hookspan_core::path::name(path)
}
