//! The JSON in `span.detail` and `turn.parts`.
//!
//! `{"attributes": [[key, value], [key, value, "detail"], [key, value, "path"]], "events": [[ns, name, attributes]],
//! "links": [[type, trace, span, ns]], "contents": [[key, hook, field]]}`; empty lists are left out. Integers have no
//! fraction, doubles always have one, so each is read back with its type.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;

use hookspan_core::content::Field;
use hookspan_core::{
    Attribute, Class, ContentRef, Link, Parts, Span, SpanEvent, SpanId, Timestamp, TraceId, Value,
};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{SerializeSeq as _, SerializeTuple as _, Serializer};
use serde::{Deserialize as DeriveDeserialize, Serialize};

/// The parts of a span that have no column.
pub(super) struct Detail {
    pub(super) attributes: Vec<Attribute>,
    pub(super) events: Vec<SpanEvent>,
    pub(super) links: Vec<Link>,
    pub(super) contents: Vec<ContentRef>,
}

pub(super) fn encode(span: &Span) -> serde_json::Result<String> {
    serde_json::to_string(&Written {
        attributes: Attributes(&span.attributes),
        events: &span.events.iter().map(WrittenEvent).collect::<Vec<_>>(),
        links: &span.links.iter().map(WrittenLink).collect::<Vec<_>>(),
        contents: &span
            .contents
            .iter()
            .map(|content| (content.key, content.hook, field_word(content.field)))
            .collect::<Vec<_>>(),
    })
}

pub(super) fn decode(text: &str) -> serde_json::Result<Detail> {
    let read: Read<'_> = serde_json::from_str(text)?;
    let bad = |what: &str| <serde_json::Error as de::Error>::custom(format!("bad {what}"));
    let attributes = |list: Vec<ReadAttribute>| list.into_iter().map(|read| read.0).collect();
    let event = |(at, name, list): (i64, String, Vec<ReadAttribute>)| SpanEvent {
        at: Timestamp(at),
        name: Cow::Owned(name),
        attributes: attributes(list),
    };
    let link = |(kind, trace, span, at): ReadLink<'_>| {
        Ok(Link {
            trace: TraceId::from_hex(&trace).ok_or_else(|| bad("trace id"))?,
            span: SpanId::from_hex(&span).ok_or_else(|| bad("span id"))?,
            kind: intern(&kind).ok_or_else(|| bad("link type"))?,
            at: Timestamp(at),
        })
    };
    let content = |(key, hook, field): (Cow<'_, str>, u64, Cow<'_, str>)| {
        Ok(ContentRef {
            key: intern(&key).ok_or_else(|| bad("content key"))?,
            hook,
            field: field_parse(&field).ok_or_else(|| bad("content field"))?,
        })
    };
    Ok(Detail {
        attributes: attributes(read.attributes),
        events: read.events.into_iter().map(event).collect(),
        links: read.links.into_iter().map(link).collect::<serde_json::Result<_>>()?,
        contents: read.contents.into_iter().map(content).collect::<serde_json::Result<_>>()?,
    })
}

pub(super) fn encode_parts(parts: &Parts) -> serde_json::Result<String> {
    serde_json::to_string(&BTreeMap::from(parts.named()))
}

pub(super) fn decode_parts(text: &str) -> serde_json::Result<Parts> {
    Ok(serde_json::from_str::<StoredParts>(text)?.into())
}

#[derive(DeriveDeserialize)]
struct StoredParts {
    thinking: i64,
    responding: i64,
    tools: i64,
    shell: i64,
    mcp: i64,
    edits: i64,
    subagent: i64,
    wait: i64,
    hooks: i64,
    other: i64,
}

impl From<StoredParts> for Parts {
    fn from(stored: StoredParts) -> Self {
        let StoredParts {
            thinking,
            responding,
            tools,
            shell,
            mcp,
            edits,
            subagent,
            wait,
            hooks,
            other,
        } = stored;
        Self { thinking, responding, tools, shell, mcp, edits, subagent, wait, hooks, other }
    }
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Attributes::is_empty")]
    attributes: Attributes<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    events: &'a [WrittenEvent<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    links: &'a [WrittenLink<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    contents: &'a [(&'static str, u64, &'static str)],
}

struct Attributes<'a>(&'a [Attribute]);

impl Attributes<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(self.0.iter().map(WrittenAttribute))
    }
}

struct WrittenAttribute<'a>(&'a Attribute);

impl Serialize for WrittenAttribute<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let class = match self.0.class {
            Class::Plain => None,
            Class::Detail => Some("detail"),
            Class::Path => Some("path"),
        };
        let mut list = out.serialize_seq(Some(2 + usize::from(class.is_some())))?;
        list.serialize_element(&self.0.key)?;
        match &self.0.value {
            Value::Str(text) => list.serialize_element(text)?,
            Value::Int(number) => list.serialize_element(number)?,
            Value::Double(number) => list.serialize_element(number)?,
            Value::Bool(flag) => list.serialize_element(flag)?,
            Value::StrList(texts) => list.serialize_element(texts)?,
        }
        if let Some(class) = class {
            list.serialize_element(class)?;
        }
        list.end()
    }
}

struct WrittenEvent<'a>(&'a SpanEvent);

impl Serialize for WrittenEvent<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut list = out.serialize_tuple(3)?;
        list.serialize_element(&self.0.at.0)?;
        list.serialize_element(&self.0.name)?;
        list.serialize_element(&Attributes(&self.0.attributes))?;
        list.end()
    }
}

struct WrittenLink<'a>(&'a Link);

impl Serialize for WrittenLink<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut list = out.serialize_tuple(4)?;
        list.serialize_element(self.0.kind)?;
        list.serialize_element(&format_args!("{}", self.0.trace))?;
        list.serialize_element(&format_args!("{}", self.0.span))?;
        list.serialize_element(&self.0.at.0)?;
        list.end()
    }
}

/// Type, trace, span, time.
type ReadLink<'a> = (Cow<'a, str>, Cow<'a, str>, Cow<'a, str>, i64);

#[derive(DeriveDeserialize)]
struct Read<'a> {
    #[serde(default)]
    attributes: Vec<ReadAttribute>,
    #[serde(default)]
    events: Vec<(i64, String, Vec<ReadAttribute>)>,
    #[serde(default, borrow)]
    links: Vec<ReadLink<'a>>,
    #[serde(default, borrow)]
    contents: Vec<(Cow<'a, str>, u64, Cow<'a, str>)>,
}

struct ReadAttribute(Attribute);

impl<'de> Deserialize<'de> for ReadAttribute {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = ReadAttribute;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("[key, value] or [key, value, class]")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ReadAttribute, A::Error> {
                let missing = |index| de::Error::invalid_length(index, &self);
                let key: ReadKey = list.next_element()?.ok_or_else(|| missing(0))?;
                let value: ReadValue = list.next_element()?.ok_or_else(|| missing(1))?;
                let class = match list.next_element::<&str>()? {
                    None => Class::Plain,
                    Some("detail") => Class::Detail,
                    Some("path") => Class::Path,
                    Some(other) => {
                        return Err(de::Error::unknown_variant(other, &["detail", "path"]));
                    }
                };
                Ok(ReadAttribute(Attribute { key: key.0, value: value.0, class }))
            }
        }
        input.deserialize_seq(Parts)
    }
}

struct ReadKey(Cow<'static, str>);

impl<'de> Deserialize<'de> for ReadKey {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = ReadKey;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an attribute")
            }
            fn visit_str<E>(self, text: &str) -> Result<ReadKey, E> {
                Ok(ReadKey(key(text)))
            }
        }
        input.deserialize_str(Text)
    }
}

struct ReadValue(Value);

impl<'de> Deserialize<'de> for ReadValue {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = ReadValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a number, a flag or a list of texts")
            }
            fn visit_str<E>(self, text: &str) -> Result<ReadValue, E> {
                Ok(ReadValue(Value::Str(text.into())))
            }
            fn visit_string<E>(self, text: String) -> Result<ReadValue, E> {
                Ok(ReadValue(Value::Str(text.into())))
            }
            fn visit_i64<E>(self, number: i64) -> Result<ReadValue, E> {
                Ok(ReadValue(Value::Int(number)))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<ReadValue, E> {
                i64::try_from(number).map(|number| ReadValue(Value::Int(number))).map_err(E::custom)
            }
            fn visit_f64<E>(self, number: f64) -> Result<ReadValue, E> {
                Ok(ReadValue(Value::Double(number)))
            }
            /// JSON cannot express NaN.
            fn visit_unit<E>(self) -> Result<ReadValue, E> {
                Ok(ReadValue(Value::Double(f64::NAN)))
            }
            fn visit_bool<E>(self, flag: bool) -> Result<ReadValue, E> {
                Ok(ReadValue(Value::Bool(flag)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ReadValue, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(ReadValue(Value::StrList(texts)))
            }
        }
        input.deserialize_any(Any)
    }
}

/// The core uses few different `&'static str` words. Each is kept once for the life of the process. A database that
/// contains more different words than hookspan writes is forged, and gives an error instead of using memory.
fn intern(word: &str) -> Option<&'static str> {
    static WORDS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    keep(&WORDS, word)
}

/// The name of an attribute. Each name that hookspan writes is kept once for the life of the process, because an
/// export reads 25 names per span. Names of a forged database beyond that number stay texts of their own.
fn key(word: &str) -> Cow<'static, str> {
    static KEYS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    thread_local! {
        static KNOWN: RefCell<HashSet<&'static str, RandomState>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| match known.get(word) {
        Some(known) => Cow::Borrowed(*known),
        None => match keep(&KEYS, word) {
            Some(kept) => {
                known.insert(kept);
                Cow::Borrowed(kept)
            }
            None => Cow::Owned(word.to_owned()),
        },
    })
}

/// The copy of `word` in `words`, which holds a limited number of short words.
fn keep(words: &Mutex<Vec<&'static str>>, word: &str) -> Option<&'static str> {
    const MOST: usize = 256;
    let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.iter().find(|known| **known == word) {
        return Some(known);
    }
    if words.len() >= MOST || word.len() > 128 {
        return None;
    }
    let kept: &'static str = Box::leak(word.to_owned().into_boxed_str());
    words.push(kept);
    Some(kept)
}

const FIELDS: [(Field, &str); 10] = [
    (Field::Prompt, "prompt"),
    (Field::Response, "response"),
    (Field::Thought, "thought"),
    (Field::ToolInput, "tool_input"),
    (Field::ToolOutput, "tool_output"),
    (Field::Task, "task"),
    (Field::Summary, "summary"),
    (Field::Description, "description"),
    (Field::McpCommand, "mcp_command"),
    (Field::ErrorMessage, "error_message"),
];

/// Names every field, so that the compiler notices a forgotten one.
const fn field_word(field: Field) -> &'static str {
    match field {
        Field::Prompt => FIELDS[0].1,
        Field::Response => FIELDS[1].1,
        Field::Thought => FIELDS[2].1,
        Field::ToolInput => FIELDS[3].1,
        Field::ToolOutput => FIELDS[4].1,
        Field::Task => FIELDS[5].1,
        Field::Summary => FIELDS[6].1,
        Field::Description => FIELDS[7].1,
        Field::McpCommand => FIELDS[8].1,
        Field::ErrorMessage => FIELDS[9].1,
    }
}

fn field_parse(word: &str) -> Option<Field> {
    FIELDS.iter().find(|(_, known)| *known == word).map(|(field, _)| *field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_reads_back() {
        for (field, word) in FIELDS {
            assert_eq!(field_word(field), word);
            assert_eq!(field_parse(word), Some(field));
        }
    }

    #[test]
    fn damage_is_an_error_not_a_panic() {
        for text in [
            "",
            "{",
            r#"{"attributes":[["k"]]}"#,
            r#"{"attributes":[["k",{}]]}"#,
            r#"{"attributes":[["k",1,"secret"]]}"#,
            r#"{"links":[["x","00","00",1]]}"#,
            r#"{"contents":[["k",1,"nothing"]]}"#,
        ] {
            assert!(decode(text).is_err(), "{text}");
        }
        assert!(decode("{}").is_ok());
    }

    #[test]
    fn names_of_a_forged_database_are_read_and_take_no_lasting_memory() {
        for number in 0..2_000 {
            let text = format!(r#"{{"attributes":[["forged.{number}\u0021",1]]}}"#);
            let detail = decode(&text).unwrap();
            assert_eq!(detail.attributes[0].key, format!("forged.{number}!"));
        }
        let detail = decode(r#"{"attributes":[["forged.last",1]]}"#).unwrap();
        assert!(matches!(detail.attributes[0].key, Cow::Owned(_)));
    }

    #[test]
    fn parts_read_back() {
        let parts = Parts {
            thinking: 1,
            responding: 8,
            tools: 2,
            shell: 3,
            mcp: 4,
            edits: 5,
            subagent: 6,
            wait: 7,
            hooks: 9,
            other: i64::MAX,
        };
        assert_eq!(decode_parts(&encode_parts(&parts).unwrap()).unwrap(), parts);
    }
}
