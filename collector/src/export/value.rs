//! Values in OTLP's form, and the last part of a path.

use hookspan_core::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value};

/// An attribute.
pub(super) fn key_value(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), key_strindex: 0 }
}

/// A value of the fold.
pub(super) fn value_of(value: &Value) -> any_value::Value {
    match value {
        Value::Str(text) => any_value::Value::StringValue(text.to_string()),
        Value::Int(number) => any_value::Value::IntValue(*number),
        Value::Double(number) => any_value::Value::DoubleValue(*number),
        Value::Bool(flag) => any_value::Value::BoolValue(*flag),
        Value::StrList(items) => any_value::Value::ArrayValue(ArrayValue {
            values: items
                .iter()
                .map(|item| AnyValue {
                    value: Some(any_value::Value::StringValue(item.to_string())),
                })
                .collect(),
        }),
    }
}

/// The last part of a path of either kind.
pub(super) fn base_name(path: &str) -> &str {
    hookspan_core::path::name(path)
}
