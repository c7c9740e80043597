//! Splits an export request into items without decoding the whole request at once.
//!
//! Two bytes of a request can become a span of 300 bytes in memory. So the three levels of a request (resources,
//! scopes, items) are walked as slices, and each item is decoded alone and dropped before the next one. All three signals
//! have these levels, with the same field numbers.

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Maximum size of an item, of a resource and of a scope. If it consists of attributes of two bytes each, it needs
/// thirty times as much memory.
const ITEM_MAX_BYTES: usize = 256 * 1_024;

/// How a request is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Protobuf,
    Json,
}

/// The body is not what its content type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A span, a metric or a log record that is not decoded yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    encoding: Encoding,
    bytes: &'a [u8],
}

impl Item<'_> {
    /// Decodes the item. `None` if it is too large or not a valid `M`.
    pub(super) fn decode<M: Message + Default + DeserializeOwned>(self) -> Option<M> {
        decode(self.encoding, self.bytes)
    }
}

fn decode<M: Message + Default + DeserializeOwned>(encoding: Encoding, bytes: &[u8]) -> Option<M> {
    if bytes.len() > ITEM_MAX_BYTES {
        return None;
    }
    match encoding {
        Encoding::Protobuf => M::decode(bytes).ok(),
        Encoding::Json => serde_json::from_slice(bytes).ok(),
    }
}

/// A function that receives an item with its resource and scope.
pub(super) type Visit<'v, 'a> =
    dyn FnMut(Option<&Resource>, Option<&InstrumentationScope>, Item<'a>) + 'v;

/// Calls `visit` for each item, with its resource and scope. An item whose resource or scope cannot be decoded is visited
/// without them.
///
/// # Errors
/// [`Malformed`]. Items before the damage may have been visited.
pub(super) fn walk<'a>(
    encoding: Encoding,
    body: &'a [u8],
    visit: &mut Visit<'_, 'a>,
) -> Result<(), Malformed> {
    for resource in children(encoding, body, Level::Request)?.1 {
        let resource = resource?;
        let (head, scopes) = children(encoding, resource, Level::Resource)?;
        let resource: Option<Resource> =
            head.map_or(Some(Resource::default()), |head| decode(encoding, head));
        for scope in scopes {
            let (head, items) = children(encoding, scope?, Level::Scope)?;
            let scope: Option<InstrumentationScope> =
                head.map_or(Some(InstrumentationScope::default()), |head| decode(encoding, head));
            for item in items {
                visit(resource.as_ref(), scope.as_ref(), Item { encoding, bytes: item? });
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Request,
    Resource,
    Scope,
}

/// The head of a level (its resource or scope), and its children.
type Parts<'a> = (Option<&'a [u8]>, Box<dyn Iterator<Item = Result<&'a [u8], Malformed>> + 'a>);

fn children(encoding: Encoding, bytes: &[u8], level: Level) -> Result<Parts<'_>, Malformed> {
    match encoding {
        Encoding::Protobuf => protobuf(bytes, level),
        Encoding::Json => json(bytes, level),
    }
}

fn protobuf(bytes: &[u8], level: Level) -> Result<Parts<'_>, Malformed> {
    const HEAD: u32 = 1;
    let of = if level == Level::Request { 1 } else { 2 };
    let mut head = None;
    if level != Level::Request {
        // The head need not be the first field.
        for field in Fields(bytes) {
            if let (HEAD, bytes) = field? {
                head = Some(bytes);
            }
        }
    }
    let items = Fields(bytes).filter_map(move |field| match field {
        Ok((tag, bytes)) => (tag == of).then_some(Ok(bytes)),
        Err(malformed) => Some(Err(malformed)),
    });
    Ok((head, Box::new(items)))
}

/// The fields of a message that have a length, by number.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            match self.field() {
                Ok(None) => {}
                Ok(Some(field)) => return Some(Ok(field)),
                Err(malformed) => {
                    self.0 = &[];
                    return Some(Err(malformed));
                }
            }
        }
        None
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<Option<(u32, &'a [u8])>, Malformed> {
        let (tag, wire) = decode_key(&mut self.0).map_err(|_| Malformed)?;
        if wire != WireType::LengthDelimited {
            let skipped = skip_field(wire, tag, &mut self.0, DecodeContext::default());
            return skipped.map(|()| None).map_err(|_| Malformed);
        }
        let length = decode_varint(&mut self.0).map_err(|_| Malformed)?;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let (field, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(Some((tag, field)))
    }
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(
        borrow,
        default,
        alias = "resourceSpans",
        alias = "resourceMetrics",
        alias = "resourceLogs"
    )]
    children: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct OfResource<'a> {
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "scopeSpans", alias = "scopeMetrics", alias = "scopeLogs")]
    children: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct OfScope<'a> {
    #[serde(borrow)]
    scope: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "spans", alias = "metrics", alias = "logRecords")]
    children: Vec<&'a RawValue>,
}

fn json(bytes: &[u8], level: Level) -> Result<Parts<'_>, Malformed> {
    // Only an object is valid. Serde would also accept a list, and read its elements as the fields.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Malformed);
    }
    let (head, children) = match level {
        Level::Request => {
            let Request { children } = serde_json::from_slice(bytes).map_err(|_| Malformed)?;
            (None, children)
        }
        Level::Resource => {
            let of: OfResource<'_> = serde_json::from_slice(bytes).map_err(|_| Malformed)?;
            (of.resource, of.children)
        }
        Level::Scope => {
            let of: OfScope<'_> = serde_json::from_slice(bytes).map_err(|_| Malformed)?;
            (of.scope, of.children)
        }
    };
    let items = children.into_iter().map(|raw| Ok(raw.get().as_bytes()));
    Ok((head.map(|raw| raw.get().as_bytes()), Box::new(items)))
}
