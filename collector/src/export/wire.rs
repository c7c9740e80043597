//! Writes Protocol Buffers: the part of the wire format that OTLP needs.
//!
//! The generated types need an owned string for every key and value of a span, and measure each message before they
//! write it. A span has about 25 attributes, so this took more time than all other work of an export. This writer takes
//! borrowed text. It fills in the length of a message when the message is complete. Its output is what the generated
//! types write: fields in the order of their numbers, and no field that has its default value.

/// How a field's value is written.
#[derive(Clone, Copy)]
enum Form {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct Wire(Vec<u8>);

impl Wire {
    /// An empty message with room for this many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// The message.
    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    /// A number, unless it is 0.
    pub(super) fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.number_always(field, value);
        }
    }

    /// A number, even 0: for the value of an attribute.
    pub(super) fn number_always(&mut self, field: u32, value: u64) {
        self.key(field, Form::Varint);
        self.varint(value);
    }

    /// A number of eight bytes, unless it is 0.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.fixed64_always(field, value);
        }
    }

    /// A number of eight bytes, even 0.
    pub(super) fn fixed64_always(&mut self, field: u32, value: u64) {
        self.key(field, Form::Fixed64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A number of four bytes, unless it is 0.
    pub(super) fn fixed32(&mut self, field: u32, value: u32) {
        if value != 0 {
            self.key(field, Form::Fixed32);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Text or bytes, unless they are empty.
    pub(super) fn bytes(&mut self, field: u32, value: &[u8]) {
        if !value.is_empty() {
            self.bytes_always(field, value);
        }
    }

    /// Text, bytes or a whole message, even empty.
    pub(super) fn bytes_always(&mut self, field: u32, value: &[u8]) {
        self.key(field, Form::Bytes);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Appends fields that are already encoded.
    pub(super) fn fields(&mut self, fields: &[u8]) {
        self.0.extend_from_slice(fields);
    }

    /// A message inside this one.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.key(field, Form::Bytes);
        let at = self.0.len();
        self.0.push(0);
        write(self);
        let length = self.0.len() - at - 1;
        match (u8::try_from(length), self.0.get_mut(at)) {
            // Nearly every attribute is shorter than 128 bytes, so its length fits into one byte.
            (Ok(length @ ..0x80), Some(place)) => *place = length,
            _ => {
                let mut prefix = Self::default();
                prefix.varint(length as u64);
                self.0.splice(at..=at, prefix.0);
            }
        }
    }

    fn key(&mut self, field: u32, form: Form) {
        self.varint(u64::from(field << 3 | form as u32));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
    use prost::Message as _;

    use super::*;

    #[test]
    fn messages_of_any_length_are_as_the_generated_types_write_them() {
        for length in [0, 1, 120, 121, 122, 127, 128, 129, 16_370, 16_384, 70_000, 3_000_000] {
            let text = "x".repeat(length);
            let value = AnyValue { value: Some(any_value::Value::StringValue(text.clone())) };
            let pair = KeyValue { key: "k".to_owned(), value: Some(value), key_strindex: 0 };
            let mut wire = Wire::default();
            wire.bytes(1, b"k");
            wire.message(2, |wire| wire.bytes_always(1, text.as_bytes()));
            assert_eq!(wire.finish(), pair.encode_to_vec(), "{length}");
        }
    }

    #[test]
    fn numbers_are_as_the_generated_types_write_them() {
        for number in [0, 1, -1, 127, 128, i64::MAX, i64::MIN] {
            let value = AnyValue { value: Some(any_value::Value::IntValue(number)) };
            let mut wire = Wire::default();
            wire.number_always(3, number.cast_unsigned());
            assert_eq!(wire.finish(), value.encode_to_vec(), "{number}");
        }
        let mut nothing = Wire::default();
        nothing.number(3, 0);
        nothing.fixed64(3, 0);
        nothing.fixed32(3, 0);
        nothing.bytes(3, b"");
        assert!(nothing.finish().is_empty());
    }
}
