//! Reads OTLP/JSON from `hookspan export --format otlp-json` and from receivers into one form.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A span as any OTLP receiver would understand it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// 32 lowercase hex digits.
    pub trace: String,
    /// 16 lowercase hex digits.
    pub id: String,
    /// Empty for a root.
    pub parent: String,
    /// Name.
    pub name: String,
    /// Nanoseconds since the epoch.
    pub start: u64,
    /// Nanoseconds since the epoch.
    pub end: u64,
    /// 0 unset, 1 OK, 2 error.
    pub status: u64,
    /// Attributes as text: strings as they are, everything else as JSON.
    pub attributes: BTreeMap<String, String>,
    /// The traces and spans it links to.
    pub links: Vec<(String, String)>,
}

impl Span {
    /// An attribute, empty when absent.
    #[must_use]
    pub fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }

    /// `hookspan.kind`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.attribute("hookspan.kind")
    }

    /// The part of a span that must be the same in every way out: what identifies it, and its place in the trace.
    #[must_use]
    pub fn place(&self) -> (String, String, String, String) {
        (self.trace.clone(), self.id.clone(), self.parent.clone(), self.name.clone())
    }
}

/// All spans of an OTLP/JSON document, sorted.
#[track_caller]
#[must_use]
pub fn from_otlp_json(document: &str) -> Vec<Span> {
    let document: Value = serde_json::from_str(document)
        .unwrap_or_else(|error| panic!("no JSON: {error}\n{document}"));
    from_otlp_value(&document)
}

/// The same for a document that is already parsed.
#[must_use]
pub fn from_otlp_value(document: &Value) -> Vec<Span> {
    let mut spans: Vec<_> = list(document, "resourceSpans")
        .iter()
        .flat_map(|resource| list(resource, "scopeSpans"))
        .flat_map(|scope| list(scope, "spans"))
        .map(span)
        .collect();
    spans.sort();
    spans
}

/// The keys of all resources of an OTLP/JSON document.
#[must_use]
pub fn resource_attributes(document: &str) -> BTreeMap<String, String> {
    let document: Value = serde_json::from_str(document).unwrap();
    list(&document, "resourceSpans")
        .iter()
        .flat_map(|resource| attributes(&resource["resource"]))
        .collect()
}

/// Spans whose parent is not among the spans. There must be none.
#[must_use]
pub fn orphans(spans: &[Span]) -> Vec<&Span> {
    let ids: BTreeSet<_> = spans.iter().map(|span| (&span.trace, &span.id)).collect();
    spans
        .iter()
        .filter(|span| !span.parent.is_empty() && !ids.contains(&(&span.trace, &span.parent)))
        .collect()
}

/// How many spans there are of each kind.
#[must_use]
pub fn kinds(spans: &[Span]) -> BTreeMap<String, u64> {
    let mut kinds = BTreeMap::new();
    for span in spans {
        *kinds.entry(span.kind().to_owned()).or_default() += 1;
    }
    kinds
}

/// Sum of an integer attribute over all spans.
#[must_use]
pub fn total(spans: &[Span], key: &str) -> u64 {
    spans.iter().map(|span| span.attribute(key).parse::<u64>().unwrap_or(0)).sum()
}

/// Computes a span id from its definition: SHA-256 over length-prefixed parts, the first eight bytes in hex. This is
/// written a second time on purpose: ids are a promise to every backend, so the product's own code must not be what
/// checks them.
#[must_use]
pub fn span_id(conversation: &str, generation: &str, kind: &str, key: &str) -> String {
    let mut hash = Sha256::new();
    for part in ["hookspan.span.v1", conversation, generation, kind, key] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn span(value: &Value) -> Span {
    Span {
        trace: id(value, "traceId"),
        id: id(value, "spanId"),
        parent: id(value, "parentSpanId"),
        name: text(value, "name"),
        start: nanoseconds(value, "startTimeUnixNano"),
        end: nanoseconds(value, "endTimeUnixNano"),
        status: match &member(value, "status")["code"] {
            Value::String(name) if name == "STATUS_CODE_ERROR" => 2,
            Value::String(name) if name == "STATUS_CODE_OK" => 1,
            code => code.as_u64().unwrap_or(0),
        },
        attributes: attributes(value),
        links: list(value, "links")
            .iter()
            .map(|link| (id(link, "traceId"), id(link, "spanId")))
            .collect(),
    }
}

fn attributes(owner: &Value) -> BTreeMap<String, String> {
    list(owner, "attributes")
        .iter()
        .map(|attribute| (text(attribute, "key"), any_value(&attribute["value"])))
        .collect()
}

/// The one member of an `AnyValue`.
fn any_value(value: &Value) -> String {
    let Some((kind, inner)) = value.as_object().and_then(|object| object.iter().next()) else {
        return String::new();
    };
    match inner {
        // One receiver writes 0, another 0.0.
        number if kind.starts_with("double") => number.as_f64().unwrap_or(f64::NAN).to_string(),
        Value::Object(_) => {
            let values: Vec<_> = list(inner, "values").iter().map(any_value).collect();
            format!("[{}]", values.join(", "))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Hex as OTLP/JSON has it, or base64 as protobuf's own JSON form has it.
fn id(value: &Value, key: &str) -> String {
    let text = text(value, key);
    match text.len() {
        0 | 16 | 32 => text,
        _ => from_base64(&text).iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn text(value: &Value, key: &str) -> String {
    member(value, key).as_str().unwrap_or_default().to_owned()
}

/// 64-bit integers are strings in OTLP/JSON. Anything else is a fault of the writer.
#[track_caller]
fn nanoseconds(value: &Value, key: &str) -> u64 {
    let text = member(value, key);
    let text = text.as_str().unwrap_or_else(|| panic!("{key} is no string in {value}"));
    text.parse().unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    member(value, key).as_array().map_or(&[], Vec::as_slice)
}

/// The member `key` (in lowerCamelCase, as OTLP/JSON requires), or its snake_case form, which one receiver prints.
fn member<'a>(value: &'a Value, key: &str) -> &'a Value {
    let mut snake = String::new();
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    if value.get(key).is_some() { &value[key] } else { &value[snake.as_str()] }
}

fn from_base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let digit = ALPHABET.iter().position(|known| *known == letter).unwrap();
        bits = bits << 6 | u32::try_from(digit).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    bytes
}
