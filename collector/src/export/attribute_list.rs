//! Collects the attributes of one span, cuts them to their limits and sorts them.

use std::borrow::Cow;

use hookspan_core::content::Content;
use hookspan_core::{Attribute, Class, Span, Status, Value};

use super::encoding::Encoding;
use super::limits::{cut_json, cut_text};
use super::private_names;
use super::value::Val;
use crate::config::destination::ContentPolicy;

/// Key under which a span refers to Cursor's own error text. It becomes the status message, never an attribute.
pub(super) const ERROR_TEXT: &str = "cursor.error_message";

pub(super) const ATTRIBUTE_MAX_BYTES: usize = 2 * 1_024;
const MAX_ATTRIBUTES: usize = 96;

/// Attributes whose text is a JSON document. Content has a flag for this.
const JSON_KEYS: [&str; 1] = ["cursor.model.params"];

/// A key and its value.
pub(super) type Pair<'a> = (&'a str, Val<'a>);

/// The attributes of one span or event while they are collected.
pub(super) struct List<'a> {
    pub(super) encoding: &'a Encoding,
    pub(super) span: &'a Span,
    pub(super) pairs: Vec<Pair<'a>>,
    pub(super) truncated: i64,
}

impl<'a> List<'a> {
    pub(super) fn new(encoding: &'a Encoding, span: &'a Span) -> Self {
        Self { encoding, span, pairs: Vec::new(), truncated: 0 }
    }

    pub(super) fn extend(&mut self, attributes: &'a [Attribute]) {
        for attribute in attributes {
            self.attribute(attribute);
        }
    }

    pub(super) fn attribute(&mut self, attribute: &'a Attribute) {
        let off = self.encoding.content == ContentPolicy::Off;
        let Some(key) = self.encoding.key(&attribute.key, self.span.kind) else { return };
        let value = match (attribute.class, &attribute.value) {
            // The name of an MCP tool would reveal the server.
            (Class::Detail, _) if off && key == "gen_ai.tool.name" => Val::Text("mcp".into()),
            (Class::Detail | Class::Path, _) if off => return,
            (Class::Path, Value::Str(path)) => match self.encoding.path(key, path, self.span) {
                Some(path) => Val::Text(path.into()),
                None => return,
            },
            (Class::Plain, Value::Str(text)) if off => {
                let Some(text) = private_names::attribute(&attribute.key, text) else { return };
                Val::Text(text)
            }
            (Class::Plain, Value::StrList(items)) if off => {
                let items =
                    items.iter().filter_map(|item| private_names::attribute(&attribute.key, item));
                Val::Texts(items.collect())
            }
            (_, value) => Val::of(value),
        };
        self.push(key, value);
    }

    /// Adds attributes for facts that are fields of a span. An attribute that the fold has set stays.
    pub(super) fn identity(&mut self) {
        let span = self.span;
        self.text("gen_ai.conversation.id", &*span.root);
        self.text("session.id", &*span.root);
        self.text("cursor.conversation.id", &*span.conversation);
        if !span.generation.is_empty() {
            self.text("cursor.generation.id", &*span.generation);
        }
        self.text("hookspan.kind", span.kind.as_str());
        match span.end {
            Some(end) => self.text("hookspan.end_reason", end.reason.as_str()),
            None => self.push("hookspan.incomplete", Val::Bool(true)),
        }
        if let Status::Error { kind, .. } = &span.status {
            self.text("error.type", kind.as_str());
        }
    }

    pub(super) fn content(&mut self, key: &'a str, content: &'a Content, budget: usize) {
        if key == ERROR_TEXT {
            return;
        }
        self.document(key, Cow::Borrowed(&*content.text), content.json, budget);
    }

    /// Adds text of up to `budget` bytes. JSON is cut as JSON.
    pub(super) fn document(
        &mut self,
        key: &'a str,
        mut text: Cow<'a, str>,
        json: bool,
        budget: usize,
    ) {
        self.truncated += i64::from(cut(&mut text, json, budget));
        self.pairs.push((key, Val::Text(text)));
    }

    /// Adds short text.
    pub(super) fn text(&mut self, key: &'a str, text: impl Into<Cow<'a, str>>) {
        self.push(key, Val::Text(text.into()));
    }

    /// Adds a value, cut to the limit of an attribute.
    pub(super) fn push(&mut self, key: &'a str, mut value: Val<'a>) {
        let cut = match &mut value {
            Val::Text(text) if text.len() > ATTRIBUTE_MAX_BYTES => {
                if let Some(redaction) = &self.encoding.redaction {
                    redaction.in_place(text.to_mut());
                }
                cut(text, JSON_KEYS.contains(&key), ATTRIBUTE_MAX_BYTES)
            }
            Val::Texts(items) => cut_list(items),
            _ => false,
        };
        self.truncated += i64::from(cut);
        self.pairs.push((key, value));
    }

    /// The present value of `key`.
    pub(super) fn find(&self, key: &str) -> Option<&Val<'a>> {
        self.pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// Returns the attributes, sorted and unique, and the number of attributes that were removed.
    pub(super) fn finish(mut self) -> (Vec<Pair<'a>>, usize) {
        if self.truncated > 0 {
            self.pairs.push(("hookspan.truncated", Val::Int(self.truncated)));
        }
        // The sort is stable and the first of several equal keys is kept, so the fold's value takes precedence over a
        // derived one.
        self.pairs.sort_by(|a, b| a.0.cmp(b.0));
        self.pairs.dedup_by(|later, earlier| later.0 == earlier.0);
        let over = self.pairs.len().saturating_sub(MAX_ATTRIBUTES);
        self.pairs.truncate(MAX_ATTRIBUTES);
        (self.pairs, over)
    }
}

/// Cuts `text` to `max` bytes. Returns whether it was longer.
fn cut(text: &mut Cow<'_, str>, json: bool, max: usize) -> bool {
    if text.len() <= max {
        return false;
    }
    if json { cut_json(text.to_mut(), max) } else { cut_text(text.to_mut(), max) }
}

/// Keeps the first items that fit into one attribute.
fn cut_list(items: &mut Vec<Cow<'_, str>>) -> bool {
    let mut room = ATTRIBUTE_MAX_BYTES;
    let before = items.len();
    let mut kept = 0;
    for item in &*items {
        // Each is a message with one field.
        let size = 1 + prost::length_delimiter_len(item.len()) + item.len();
        let Some(left) = room.checked_sub(size) else { break };
        room = left;
        kept += 1;
    }
    items.truncate(kept);
    kept < before
}
