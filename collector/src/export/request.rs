//! Collects encoded spans into a request.

use hookspan_core::Span;
use prost::Message as _;

use super::encoding::Encoding;
use super::resource::ResourceKey;
use super::wire::Wire;

/// A request: spans in the order they are added, one `ResourceSpans` per distinct resource.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    encoding: &'a Encoding,
    groups: Vec<Group>,
    /// The group of the last span. Neighbouring spans usually share a resource.
    last: usize,
    spans: usize,
    bytes: usize,
}

/// Spans of one resource, each as a field of `ScopeSpans`.
#[derive(Debug)]
struct Group {
    key: ResourceKey,
    spans: Wire,
}

impl<'a> Request<'a> {
    /// An empty request.
    #[must_use]
    pub(crate) fn new(encoding: &'a Encoding) -> Self {
        Self { encoding, groups: Vec::new(), last: 0, spans: 0, bytes: 0 }
    }

    /// Adds `encoded`, the encoding of `span`, unless the request would then exceed `max` bytes. The first span is
    /// always added. Returns whether the span was added.
    pub(crate) fn push(&mut self, span: &Span, encoded: &[u8], max: usize) -> bool {
        // Tag and length take at most six bytes. A fixed allowance covers the resources, which are small.
        let size = encoded.len() + 6;
        let known = self.group(span);
        let envelope = if known.is_some() { 0 } else { 1_024 };
        if self.spans > 0 && self.bytes + size + envelope > max {
            return false;
        }
        self.bytes += size + envelope;
        self.spans += 1;
        self.last = known.unwrap_or(self.groups.len());
        if known.is_none() {
            self.groups.push(Group { key: ResourceKey::of(span), spans: Wire::default() });
        }
        if let Some(group) = self.groups.get_mut(self.last) {
            group.spans.bytes_always(2, encoded);
        }
        true
    }

    fn group(&self, span: &Span) -> Option<usize> {
        let is_of = |group: &Group| group.key.is_of(span);
        if self.groups.get(self.last).is_some_and(is_of) {
            return Some(self.last);
        }
        self.groups.iter().position(is_of)
    }

    /// Spans so far.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.spans
    }

    /// Whether nothing was added yet.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.spans == 0
    }

    /// The bytes of the `ExportTraceServiceRequest`.
    #[must_use]
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.groups.sort_by(|a, b| a.key.cmp(&b.key));
        let scope = self.encoding.scope().encode_to_vec();
        let mut request = Wire::with_capacity(self.bytes);
        for group in self.groups {
            let resource = self.encoding.resource(&group.key).encode_to_vec();
            let spans = group.spans.finish();
            request.message(1, |of_resource| {
                of_resource.bytes_always(1, &resource);
                of_resource.message(2, |of_scope| {
                    of_scope.bytes_always(1, &scope);
                    of_scope.fields(&spans);
                    of_scope.bytes(3, self.encoding.schema_url().as_bytes());
                });
            });
        }
        request.finish()
    }
}
