//! Encodes a [`Span`] as OTLP. A pure function: the same spans give the same bytes in any process.
//!
//! Attributes are sorted bytewise and unique, resources are sorted, and spans keep their order. Nothing depends on a hash
//! order, a clock or the environment. Only this file decides what a destination may see: by the class of each attribute, and by
//! reading content only at policy `full`.

use hookspan_core::content::{Content, EDIT_CHANGES};
use hookspan_core::{
    Attribute, ContentRef, Link, Span, SpanEvent, SpanKind, Status, Timestamp, Value,
};
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind as OtlpKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use std::borrow::Cow;
use std::sync::Arc;

use super::attribute_list::{ERROR_TEXT, List, Pair};
pub(crate) use super::encoding::Encoding;
use super::path_text::Paths;
pub(crate) use super::request::Request;
use super::resource::{ResourceBase, ResourceKey};
use super::value::{Val, clean, key_value};
use super::wire::Wire;
use super::{private_names, strict, view};
use crate::config::destination::{ContentPolicy, Destination, PathPolicy};
use crate::config::person;
use crate::config::preset::Preset;
use crate::config::{OpenInference, Profile};
use crate::redaction::Redaction;

/// Span flags: sampled, and it is known that the parent is not remote.
const FLAGS: u32 = 0x101;
pub(super) const CONTENT_MIN_BYTES: usize = 512;
pub(super) const SPAN_MAX_BYTES: usize = 48 * 1_024;
const MAX_EVENTS: usize = 64;
const MAX_LINKS: usize = 128;
const NAME_MAX_CHARS: usize = 128;
const ERROR_TEXT_MAX_CHARS: usize = 256;
/// Room for a span without content. The buffer grows for larger spans.
const USUAL_SPAN_BYTES: usize = 1_536;

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

    /// Writes one span as the bytes of an OTLP `Span`. `read` is called only at policy `full`.
    #[must_use]
    pub(crate) fn bytes(&self, span: &Span, read: &mut ReadContent<'_>) -> Vec<u8> {
        self.bytes_until(span, span.start, read)
    }

    /// Like [`Self::bytes`], but a span that still runs ends at `last`.
    #[must_use]
    pub(crate) fn bytes_until(
        &self,
        span: &Span,
        last: Timestamp,
        read: &mut ReadContent<'_>,
    ) -> Vec<u8> {
        let end = span.end.map_or(last.max(span.start), |end| end.at);
        let contents = self.contents(span, read);
        let mut budget = self.content_max_bytes;
        let mut shed = 0;
        loop {
            let encoded = self.span_within(span, end, &contents, budget, shed);
            if encoded.len() <= SPAN_MAX_BYTES || shed == SHED_ORDER.len() {
                return encoded;
            }
            if budget > CONTENT_MIN_BYTES {
                budget /= 2;
            } else {
                shed += 1;
            }
        }
    }

    pub(super) fn contents(
        &self,
        span: &Span,
        read: &mut ReadContent<'_>,
    ) -> Vec<(&'static str, Content)> {
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
        clean(self.redaction.as_ref(), text)
    }

    /// The span with at most `budget` bytes of each content, and without the first `shed` keys of [`SHED_ORDER`].
    fn span_within(
        &self,
        span: &Span,
        end: Timestamp,
        contents: &[(&'static str, Content)],
        budget: usize,
        shed: usize,
    ) -> Vec<u8> {
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
        // The numbers of the fields are those of OTLP's `Span`.
        let mut wire = Wire::with_capacity(USUAL_SPAN_BYTES);
        wire.bytes(1, &span.trace.0);
        wire.bytes(2, &span.id.0);
        wire.bytes(4, span.parent.as_ref().map_or(&[][..], |id| &id.0));
        self.text(&mut wire, 5, &name);
        wire.number(6, self.kind(span) as u64);
        wire.fixed64(7, unsigned(span.start.0));
        wire.fixed64(8, unsigned(end.0));
        self.attributes(&mut wire, 9, &attributes);
        wire.number(10, count(dropped));
        for event in span.events.iter().take(MAX_EVENTS) {
            wire.message(11, |wire| self.event(wire, span, event));
        }
        wire.number(12, count(span.events.len().saturating_sub(MAX_EVENTS)));
        for link in span.links.iter().take(MAX_LINKS) {
            wire.message(13, |wire| self.link(wire, link));
        }
        wire.number(14, count(span.links.len().saturating_sub(MAX_LINKS)));
        wire.message(15, |wire| self.status(wire, span, &kept));
        wire.fixed32(16, FLAGS);
        wire.finish()
    }

    /// Writes `KeyValue`s. Every string of a span passes here or through [`Self::text`], so none leaves with a secret.
    pub(super) fn attributes(&self, wire: &mut Wire, field: u32, pairs: &[Pair<'_>]) {
        for (key, value) in pairs {
            wire.message(field, |wire| {
                wire.bytes(1, key.as_bytes());
                wire.message(2, |wire| value.write(wire, self.redaction.as_ref()));
            });
        }
    }

    fn text(&self, wire: &mut Wire, field: u32, text: &str) {
        wire.bytes(field, self.redacted(text).as_bytes());
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
            && let Some(Val::Text(tool)) = list.find("gen_ai.tool.name")
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

    fn status(&self, wire: &mut Wire, span: &Span, contents: &[&(&'static str, Content)]) {
        let Status::Error { message, .. } = &span.status else { return };
        // Cursor's error text is content: it is sent only at `full`, and shortened.
        let own = contents.iter().find(|(key, _)| *key == ERROR_TEXT);
        let message = own.map_or(message.as_str(), |(_, content)| content.text.as_str());
        self.text(wire, 2, &first_chars(&self.redacted(message), ERROR_TEXT_MAX_CHARS));
        wire.number(3, StatusCode::Error as u64);
    }

    fn event(&self, wire: &mut Wire, span: &Span, event: &SpanEvent) {
        let mut list = List::new(self, span);
        list.extend(&event.attributes);
        let (attributes, dropped) = list.finish();
        wire.fixed64(1, unsigned(event.at.0));
        self.text(wire, 2, &event.name);
        self.attributes(wire, 3, &attributes);
        wire.number(4, count(dropped));
    }

    fn link(&self, wire: &mut Wire, link: &Link) {
        wire.bytes(1, &link.trace.0);
        wire.bytes(2, &link.span.0);
        self.attributes(wire, 4, &[("hookspan.link.type", Val::Text(link.kind.into()))]);
        wire.fixed32(6, FLAGS);
    }

    pub(super) fn schema_url(&self) -> &'static str {
        if self.semconv == Profile::Genai141Strict { strict::SCHEMA_URL } else { "" }
    }

    pub(super) fn resource(&self, key: &ResourceKey) -> Resource {
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

    pub(super) fn scope(&self) -> InstrumentationScope {
        let profile = any_value::Value::StringValue(self.semconv.as_str().to_owned());
        InstrumentationScope {
            name: "hookspan".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            attributes: vec![key_value("hookspan.semconv", profile)],
            dropped_attributes_count: 0,
        }
    }
}

fn first_chars(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max - 1).chain(['…']).collect(),
    }
}

pub(super) fn unsigned(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

fn count(n: usize) -> u64 {
    u64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
