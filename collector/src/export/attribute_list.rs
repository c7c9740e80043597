//! Collects the attributes of one span, cuts them to their limits and sorts them.

use hookspan_core::content::Content;
use hookspan_core::{Attribute, Class, Span, Status, Value};
use opentelemetry_proto::tonic::common::v1::{ArrayValue, KeyValue, any_value};
use prost::Message as _;
use smol_str::SmolStr;

use super::encoding::Encoding;
use super::limits::{cut_json, cut_text};
use super::private_names;
use super::value::{key_value, value_of};
use crate::config::destination::ContentPolicy;

/// Key under which a span refers to Cursor's own error text. It becomes the status message, never an attribute.
pub(super) const ERROR_TEXT: &str = "cursor.error_message";

pub(super) const ATTRIBUTE_MAX_BYTES: usize = 2 * 1_024;
const MAX_ATTRIBUTES: usize = 96;

/// Attributes whose text is a JSON document. Content has a flag for this.
const JSON_KEYS: [&str; 1] = ["cursor.model.params"];

/// The attributes of one span or event while they are collected.
pub(super) struct List<'a> {
    pub(super) encoding: &'a Encoding,
    pub(super) span: &'a Span,
    pub(super) pairs: Vec<KeyValue>,
    pub(super) truncated: i64,
}

impl<'a> List<'a> {
    pub(super) fn new(encoding: &'a Encoding, span: &'a Span) -> Self {
        Self { encoding, span, pairs: Vec::new(), truncated: 0 }
    }

    pub(super) fn extend(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            self.attribute(attribute);
        }
    }

    pub(super) fn attribute(&mut self, attribute: &Attribute) {
        let off = self.encoding.content == ContentPolicy::Off;
        let Some(key) = self.encoding.key(&attribute.key, self.span.kind) else { return };
        let value = match (attribute.class, &attribute.value) {
            // The name of an MCP tool would reveal the server.
            (Class::Detail, _) if off && key == "gen_ai.tool.name" => {
                any_value::Value::StringValue("mcp".to_owned())
            }
            (Class::Detail | Class::Path, _) if off => return,
            (Class::Path, Value::Str(path)) => match self.encoding.path(key, path, self.span) {
                Some(path) => any_value::Value::StringValue(path),
                None => return,
            },
            (Class::Plain, Value::Str(text)) if off => {
                let Some(text) = private_names::attribute(&attribute.key, text) else { return };
                any_value::Value::StringValue(text.into_owned())
            }
            (Class::Plain, Value::StrList(items)) if off => {
                let items = items.iter().filter_map(|item| {
                    private_names::attribute(&attribute.key, item).map(SmolStr::from)
                });
                value_of(&Value::StrList(items.collect()))
            }
            (_, value) => value_of(value),
        };
        self.push(key, value);
    }

    /// Adds attributes for facts that are fields of a span. An attribute that the fold has set stays.
    pub(super) fn identity(&mut self) {
        let span = self.span;
        self.text("gen_ai.conversation.id", &span.root);
        self.text("session.id", &span.root);
        self.text("cursor.conversation.id", &span.conversation);
        if !span.generation.is_empty() {
            self.text("cursor.generation.id", &span.generation);
        }
        self.text("hookspan.kind", span.kind.as_str());
        match span.end {
            Some(end) => self.text("hookspan.end_reason", end.reason.as_str()),
            None => self.push("hookspan.incomplete", any_value::Value::BoolValue(true)),
        }
        if let Status::Error { kind, .. } = &span.status {
            self.text("error.type", kind.as_str());
        }
    }

    pub(super) fn content(&mut self, key: &str, content: &Content, budget: usize) {
        if key == ERROR_TEXT {
            return;
        }
        self.document(key, &content.text, content.json, budget);
    }

    /// Adds text of up to `budget` bytes. JSON is cut as JSON.
    pub(super) fn document(&mut self, key: &str, text: &str, json: bool, budget: usize) {
        let mut text = text.to_owned();
        let cut = if json { cut_json(&mut text, budget) } else { cut_text(&mut text, budget) };
        self.truncated += i64::from(cut);
        self.pairs.push(key_value(key, any_value::Value::StringValue(text)));
    }

    /// Adds short text.
    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.push(key, any_value::Value::StringValue(text.to_owned()));
    }

    /// Adds a value, cut to the limit of an attribute.
    pub(super) fn push(&mut self, key: &str, mut value: any_value::Value) {
        if let (any_value::Value::StringValue(text), Some(redaction)) =
            (&mut value, &self.encoding.redaction)
            && text.len() > ATTRIBUTE_MAX_BYTES
        {
            redaction.in_place(text);
        }
        let cut = match &mut value {
            any_value::Value::StringValue(text) if JSON_KEYS.contains(&key) => {
                cut_json(text, ATTRIBUTE_MAX_BYTES)
            }
            any_value::Value::StringValue(text) => cut_text(text, ATTRIBUTE_MAX_BYTES),
            any_value::Value::ArrayValue(list) => cut_list(list),
            _ => false,
        };
        self.truncated += i64::from(cut);
        self.pairs.push(key_value(key, value));
    }

    /// The present value of `key`.
    pub(super) fn find(&self, key: &str) -> Option<&any_value::Value> {
        self.pairs.iter().find(|pair| pair.key == key)?.value.as_ref()?.value.as_ref()
    }

    /// Returns the attributes, sorted and unique, and the number of attributes that were removed.
    pub(super) fn finish(mut self) -> (Vec<KeyValue>, usize) {
        if self.truncated > 0 {
            let value = any_value::Value::IntValue(self.truncated);
            self.pairs.push(key_value("hookspan.truncated", value));
        }
        // The sort is stable and the first of several equal keys is kept, so the fold's value takes precedence over a
        // derived one.
        self.pairs.sort_by(|a, b| a.key.cmp(&b.key));
        self.pairs.dedup_by(|later, earlier| later.key == earlier.key);
        let over = self.pairs.len().saturating_sub(MAX_ATTRIBUTES);
        self.pairs.truncate(MAX_ATTRIBUTES);
        (self.pairs, over)
    }
}

/// Keeps the first items that fit into one attribute.
fn cut_list(list: &mut ArrayValue) -> bool {
    let mut room = ATTRIBUTE_MAX_BYTES;
    let before = list.values.len();
    let mut kept = 0;
    for item in &list.values {
        let Some(left) = room.checked_sub(item.encoded_len()) else { break };
        room = left;
        kept += 1;
    }
    list.values.truncate(kept);
    kept < before
}
