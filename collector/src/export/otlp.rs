//! Encodes a [`Span`] as OTLP. A pure function: the same spans give the same bytes in any process.
//!
//! Attributes are sorted bytewise and unique, resources are sorted, and spans keep their order. Nothing depends on a hash
//! order, a clock or the environment. Only this file decides what a destination may see: by the class of each attribute, and by
//! reading content only at policy `full`.

use hookspan_core::content::{Content, EDIT_CHANGES};
use hookspan_core::{
    Attribute, ContentRef, Link, Span, SpanEvent, SpanKind, Status, Timestamp, Value,
};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link as OtlpLink, SpanKind as OtlpKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span as OtlpSpan, Status as OtlpStatus,
};
use prost::Message as _;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::attribute_list::{ERROR_TEXT, List};
pub(crate) use super::encoding::Encoding;
use super::path_text::Paths;
use super::resource::{ResourceBase, ResourceKey};
use super::value::key_value;
use super::{private_names, strict, view};
use crate::config::destination::{ContentPolicy, Destination, PathPolicy};
use crate::config::person;
use crate::config::preset::Preset;
use crate::config::{OpenInference, Profile};
use crate::redaction::Redaction;

/// Span flags: sampled, and it is known that the parent is not remote.
const FLAGS: u32 = 0x101;
const CONTENT_MIN_BYTES: usize = 512;
const SPAN_MAX_BYTES: usize = 48 * 1_024;
const MAX_EVENTS: usize = 64;
const MAX_LINKS: usize = 128;
const NAME_MAX_CHARS: usize = 128;
const ERROR_TEXT_MAX_CHARS: usize = 256;

/// Content keys in the order in which they are dropped if a span is too large.
pub(super) const SHED_ORDER: [&str; 4] = [
    "gen_ai.tool.call.result",
    "gen_ai.output.messages",
    "gen_ai.input.messages",
    "gen_ai.tool.call.arguments",
];

/// Reads content from the raw log.
pub(crate) type ReadContent<'a> = dyn FnMut(&ContentRef) -> Option<Content> + 'a;

impl Encoding {
    /// The encoding of a destination.
    #[must_use]
    pub(crate) fn of(
        destination: &Destination,
        resource: ResourceBase,
        redaction: &Redaction,
    ) -> Self {
        Self {
            content: destination.content,
            paths: destination.paths,
            semconv: destination.semconv,
            openinference: destination.openinference,
            hide_inputs: false,
            hide_outputs: false,
            langfuse: destination.preset == Preset::Langfuse,
            content_max_bytes: destination.content_max_bytes,
            prices: Arc::default(),
            answers_apart: false,
            user: destination.attributes.get(person::USER).cloned(),
            resource: resource.with(&destination.attributes),
            redaction: destination.redact.then(|| redaction.clone()),
        }
    }

    /// The encoding for a file: the same as for a destination with this policy.
    #[must_use]
    pub(crate) fn file(
        content: ContentPolicy,
        resource: ResourceBase,
        redaction: Option<Redaction>,
    ) -> Self {
        Self {
            content,
            paths: PathPolicy::default(),
            semconv: Profile::default(),
            openinference: OpenInference::default(),
            hide_inputs: false,
            hide_outputs: false,
            langfuse: false,
            content_max_bytes: 32 * 1_024,
            prices: Arc::default(),
            answers_apart: false,
            user: None,
            resource,
            redaction,
        }
    }

    /// Writes one span. `read` is called only at policy `full`.
    #[must_use]
    pub(crate) fn span(&self, span: &Span, read: &mut ReadContent<'_>) -> OtlpSpan {
        self.span_until(span, span.start, read)
    }

    /// Like [`Self::span`], but a span that still runs ends at `last`.
    #[must_use]
    pub(crate) fn span_until(
        &self,
        span: &Span,
        last: Timestamp,
        read: &mut ReadContent<'_>,
    ) -> OtlpSpan {
        let mut encoded = self.span_in_limits(span, read);
        if span.end.is_none() {
            encoded.end_time_unix_nano = unsigned(last.max(span.start).0);
        }
        encoded
    }

    fn span_in_limits(&self, span: &Span, read: &mut ReadContent<'_>) -> OtlpSpan {
        let contents = self.contents(span, read);
        let mut budget = self.content_max_bytes;
        let mut shed = 0;
        loop {
            let encoded = self.span_within(span, &contents, budget, shed);
            if encoded.encoded_len() <= SPAN_MAX_BYTES || shed == SHED_ORDER.len() {
                return encoded;
            }
            if budget > CONTENT_MIN_BYTES {
                budget /= 2;
            } else {
                shed += 1;
            }
        }
    }

    fn contents(&self, span: &Span, read: &mut ReadContent<'_>) -> Vec<(&'static str, Content)> {
        if self.content != ContentPolicy::Full {
            return Vec::new();
        }
        let parts = span.contents.iter().filter(|part| part.key != EDIT_CHANGES);
        let read = parts.filter_map(|part| Some((part.key, read(part)?)));
        let mut contents: Vec<_> = read.collect();
        // Redacts before truncating, because half a secret matches no rule.
        if let Some(redaction) = &self.redaction {
            contents.iter_mut().for_each(|(_, content)| redaction.in_place(&mut content.text));
        }
        let paths = Paths { policy: self.paths, workspace: span.workspace.as_deref() };
        contents.iter_mut().for_each(|(_, content)| paths.content(content));
        strict::contents(&List::new(self, span), &mut contents);
        contents
    }

    /// `text` without secrets, unless redaction is switched off.
    pub(super) fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redaction.as_ref().map_or(Cow::Borrowed(text), |redaction| redaction.text(text))
    }

    /// The span with at most `budget` bytes of each content, and without the first `shed` keys of [`SHED_ORDER`].
    fn span_within(
        &self,
        span: &Span,
        contents: &[(&'static str, Content)],
        budget: usize,
        shed: usize,
    ) -> OtlpSpan {
        let gone: &[&str] = SHED_ORDER.get(..shed).unwrap_or_default();
        let kept: Vec<_> = contents.iter().filter(|(key, _)| !gone.contains(key)).collect();
        let mut list = List::new(self, span);
        list.extend(&span.attributes);
        list.identity();
        strict::add(&mut list);
        for (key, content) in &kept {
            list.content(key, content, budget);
        }
        view::add(&mut list, &kept, budget);
        let name = self.name(&list);
        let (attributes, over) = list.finish();
        let dropped = over + (contents.len() - kept.len());
        let (events, dropped_events) = self.events(span);
        let links: Vec<OtlpLink> = span.links.iter().take(MAX_LINKS).map(otlp_link).collect();
        let mut encoded = OtlpSpan {
            trace_id: span.trace.0.to_vec(),
            span_id: span.id.0.to_vec(),
            trace_state: String::new(),
            parent_span_id: span.parent.map_or_else(Vec::new, |id| id.0.to_vec()),
            flags: FLAGS,
            name,
            kind: self.kind(span) as i32,
            start_time_unix_nano: unsigned(span.start.0),
            end_time_unix_nano: unsigned(span.end.map_or(span.start.0, |end| end.at.0)),
            attributes,
            dropped_attributes_count: count(dropped),
            events,
            dropped_events_count: count(dropped_events),
            dropped_links_count: count(span.links.len() - links.len()),
            links,
            status: Some(self.status(span, &kept)),
        };
        if let Some(redaction) = &self.redaction {
            redaction.span(&mut encoded);
        }
        encoded
    }

    /// The model runs elsewhere. So in the strict profile an answer is a span of kind CLIENT.
    fn kind(&self, span: &Span) -> OtlpKind {
        match (self.semconv, span.kind) {
            (Profile::Genai141Strict, SpanKind::Response) => OtlpKind::Client,
            _ => OtlpKind::Internal,
        }
    }

    fn name(&self, list: &List<'_>) -> String {
        let span = list.span;
        if self.semconv == Profile::Genai141Strict
            && span.kind == SpanKind::Tool
            && let Some(any_value::Value::StringValue(tool)) = list.find("gen_ai.tool.name")
        {
            let name = format!("execute_tool {tool}");
            return first_chars(&self.redacted(&name), NAME_MAX_CHARS);
        }
        if self.content != ContentPolicy::Off {
            return first_chars(&self.redacted(&span.name), NAME_MAX_CHARS);
        }
        let is_type = |attribute: &&Attribute| attribute.key == "cursor.subagent.type";
        let agent = match span.attributes.iter().find(is_type).map(|attribute| &attribute.value) {
            Some(Value::Str(agent)) => Some(agent.as_str()),
            _ => None,
        };
        let name = private_names::span(span.kind, &span.plain_name, agent);
        first_chars(&self.redacted(&name), NAME_MAX_CHARS)
    }

    fn status(&self, span: &Span, contents: &[&(&'static str, Content)]) -> OtlpStatus {
        let Status::Error { message, .. } = &span.status else { return OtlpStatus::default() };
        // Cursor's error text is content: it is sent only at `full`, and shortened.
        let own = contents.iter().find(|(key, _)| *key == ERROR_TEXT);
        let message = own.map_or(message.as_str(), |(_, content)| content.text.as_str());
        OtlpStatus {
            message: first_chars(&self.redacted(message), ERROR_TEXT_MAX_CHARS),
            code: StatusCode::Error as i32,
        }
    }

    fn events(&self, span: &Span) -> (Vec<Event>, usize) {
        let events = span.events.iter().take(MAX_EVENTS).map(|event| self.event(span, event));
        (events.collect(), span.events.len().saturating_sub(MAX_EVENTS))
    }

    fn event(&self, span: &Span, event: &SpanEvent) -> Event {
        let mut list = List::new(self, span);
        list.extend(&event.attributes);
        let (attributes, dropped) = list.finish();
        Event {
            time_unix_nano: unsigned(event.at.0),
            name: event.name.clone().into_owned(),
            attributes,
            dropped_attributes_count: count(dropped),
        }
    }

    fn schema_url(&self) -> &'static str {
        if self.semconv == Profile::Genai141Strict { strict::SCHEMA_URL } else { "" }
    }

    fn resource(&self, key: &ResourceKey) -> Resource {
        let strict = self.semconv == Profile::Genai141Strict;
        let mut resource = self.resource.resource(key, self.content, self.paths, strict);
        if let Some(redaction) = &self.redaction {
            redaction.pairs(&mut resource.attributes);
        }
        resource
    }

    /// The resource of metrics: this machine and account, without a project. At `off`, the installation's id is
    /// replaced by the random id `instance`, because the installation's id can be computed from guessed names. Without
    /// an id, two machines would overwrite each other's series.
    pub(super) fn machine(&self, instance: &str) -> Resource {
        let key = ResourceKey::default();
        let mut resource = self.resource.resource(&key, self.content, self.paths, true);
        if self.content == ContentPolicy::Off {
            let value = any_value::Value::StringValue(instance.to_owned());
            resource.attributes.push(key_value("service.instance.id", value));
            resource.attributes.sort_by(|a, b| a.key.cmp(&b.key));
        }
        if let Some(redaction) = &self.redaction {
            redaction.pairs(&mut resource.attributes);
        }
        resource
    }

    fn scope(&self) -> InstrumentationScope {
        let profile = any_value::Value::StringValue(self.semconv.as_str().to_owned());
        InstrumentationScope {
            name: "hookspan".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            attributes: vec![key_value("hookspan.semconv", profile)],
            dropped_attributes_count: 0,
        }
    }
}

/// Collects a request: spans in the order they are added, one `ResourceSpans` per distinct resource.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    encoding: &'a Encoding,
    groups: BTreeMap<ResourceKey, Vec<OtlpSpan>>,
    spans: usize,
    bytes: usize,
}

impl<'a> Request<'a> {
    /// An empty request.
    #[must_use]
    pub(crate) fn new(encoding: &'a Encoding) -> Self {
        Self { encoding, groups: BTreeMap::new(), spans: 0, bytes: 0 }
    }

    /// Adds `encoded`, the encoding of `span`, unless the request would then exceed `max` bytes. The first span is
    /// always added. Returns whether the span was added.
    pub(crate) fn push(&mut self, span: &Span, encoded: OtlpSpan, max: usize) -> bool {
        // Tag and length take at most six bytes. A fixed allowance covers the resources, which are small.
        let size = encoded.encoded_len() + 6;
        let key = ResourceKey::of(span);
        let envelope = if self.groups.contains_key(&key) { 0 } else { 1_024 };
        if self.spans > 0 && self.bytes + size + envelope > max {
            return false;
        }
        self.bytes += size + envelope;
        self.spans += 1;
        self.groups.entry(key).or_default().push(encoded);
        true
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

    /// The message.
    #[must_use]
    pub(crate) fn finish(self) -> ExportTraceServiceRequest {
        let resource_spans = self
            .groups
            .into_iter()
            .map(|(key, spans)| ResourceSpans {
                resource: Some(self.encoding.resource(&key)),
                scope_spans: vec![ScopeSpans {
                    scope: Some(self.encoding.scope()),
                    spans,
                    schema_url: self.encoding.schema_url().to_owned(),
                }],
                schema_url: String::new(),
            })
            .collect();
        ExportTraceServiceRequest { resource_spans }
    }
}

fn otlp_link(link: &Link) -> OtlpLink {
    let kind = any_value::Value::StringValue(link.kind.to_owned());
    OtlpLink {
        trace_id: link.trace.0.to_vec(),
        span_id: link.span.0.to_vec(),
        trace_state: String::new(),
        attributes: vec![key_value("hookspan.link.type", kind)],
        dropped_attributes_count: 0,
        flags: FLAGS,
    }
}

fn first_chars(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max - 1).chain(['…']).collect(),
    }
}

fn unsigned(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
