//! Attributes that particular backends read: OpenInference (Phoenix, Arize) and Langfuse.

use std::borrow::Cow;

use hookspan_core::SpanKind;
use hookspan_core::content::Content;

use super::attribute_list::List;
use super::hashed::hashed_path;
use super::strict;
use super::value::{Val, base_name};
use crate::config::destination::{ContentPolicy, PathPolicy};
use crate::config::{OpenInference, Profile};

const REDACTED: &str = "__REDACTED__";

/// Adds these attributes if the destination is configured to get them. They are computed from the attributes already in
/// the list.
pub(super) fn add<'a>(
    list: &mut List<'a>,
    contents: &[&'a (&'static str, Content)],
    budget: usize,
) {
    whose(list);
    match list.encoding.openinference {
        OpenInference::Off => {}
        OpenInference::Kind => kind(list),
        OpenInference::Full => {
            kind(list);
            values(list, contents, budget);
            model(list);
        }
    }
    if list.encoding.langfuse {
        let word = match list.span.kind {
            SpanKind::Generation | SpanKind::Subagent => "agent",
            SpanKind::Response => "generation",
            SpanKind::Tool => "tool",
            _ => "span",
        };
        list.text("langfuse.observation.type", word);
        langfuse_text(list, contents, budget);
    }
}

/// The input and output that Langfuse's pages show: plain text instead of the conventions' messages.
fn langfuse_text<'a>(list: &mut List<'a>, contents: &[&'a (&'static str, Content)], budget: usize) {
    if list.encoding.semconv != Profile::Genai141Strict {
        return;
    }
    for (key, content) in contents {
        let side = match *key {
            "gen_ai.input.messages" | "gen_ai.tool.call.arguments" => "langfuse.observation.input",
            "gen_ai.output.messages" | "gen_ai.tool.call.result" => "langfuse.observation.output",
            _ => continue,
        };
        let (text, json) = strict::plain(key, content);
        list.document(side, text, json, budget);
    }
}

/// Adds the name, the tags and the person, which backends show in lists of traces and filter by. Backends read these
/// from spans, not from the resource.
fn whose(list: &mut List<'_>) {
    let encoding = list.encoding;
    let is_full = encoding.openinference == OpenInference::Full;
    if encoding.semconv != Profile::Genai141Strict || !(encoding.langfuse || is_full) {
        return;
    }
    if let Some(user) = &encoding.user {
        list.text("user.id", user.as_str());
    }
    if list.span.parent.is_some() {
        return;
    }
    let project = project(list);
    let surface = list.span.text("hookspan.surface").map(Cow::Borrowed);
    let tags: Vec<_> = surface.into_iter().chain(project.clone()).collect();
    let key = if encoding.langfuse { "langfuse.trace.tags" } else { "tag.tags" };
    if !tags.is_empty() {
        list.push(key, Val::Texts(tags));
    }
    if encoding.langfuse
        && let Some(project) = project
    {
        // Without the project, all turns would have the same name in Langfuse.
        let name = format!("{}: {project}", list.span.plain_name);
        list.text("langfuse.trace.name", name);
    }
}

/// The name of the workspace's folder, in the form that the policy for paths allows.
fn project<'a>(list: &List<'a>) -> Option<Cow<'a, str>> {
    let encoding = list.encoding;
    let name = base_name(list.span.workspace.as_deref()?);
    let name = Some(name).filter(|name| !name.is_empty())?;
    match (encoding.content, encoding.paths) {
        (ContentPolicy::Off, _) | (_, PathPolicy::Off) => None,
        (_, PathPolicy::Hash) => Some(Cow::Owned(hashed_path(name))),
        (_, PathPolicy::Relative | PathPolicy::Full) => Some(Cow::Borrowed(name)),
    }
}

fn kind(list: &mut List<'_>) {
    let word = match list.span.kind {
        SpanKind::Session | SpanKind::Thought | SpanKind::Compaction | SpanKind::Tab => "CHAIN",
        SpanKind::Generation | SpanKind::Subagent => "AGENT",
        SpanKind::Response => "LLM",
        SpanKind::Tool => "TOOL",
    };
    list.text("openinference.span.kind", word);
}

fn values<'a>(list: &mut List<'a>, contents: &[&'a (&'static str, Content)], budget: usize) {
    let strict = list.encoding.semconv == Profile::Genai141Strict;
    let hide = (list.encoding.hide_inputs, list.encoding.hide_outputs);
    for (key, content) in contents {
        let (value, mime_type, hidden) = match *key {
            "gen_ai.input.messages" | "gen_ai.tool.call.arguments" => {
                ("input.value", "input.mime_type", hide.0)
            }
            "gen_ai.output.messages" | "gen_ai.tool.call.result" => {
                ("output.value", "output.mime_type", hide.1)
            }
            _ => continue,
        };
        let (text, json) = match (hidden, strict) {
            (true, _) => (Cow::Borrowed(REDACTED), false),
            (false, true) => strict::plain(key, content),
            (false, false) => (Cow::Borrowed(&*content.text), content.json),
        };
        if strict && list.span.kind == SpanKind::Response && value == "output.value" {
            list.text("llm.output_messages.0.message.role", "assistant");
            list.document("llm.output_messages.0.message.content", text.clone(), json, budget);
        }
        list.document(value, text.clone(), json, budget);
        list.text(mime_type, if json { "application/json" } else { "text/plain" });
        if *key == "gen_ai.tool.call.arguments" {
            list.document("tool.parameters", text, json, budget);
        }
    }
}

/// Copies attributes from their names in the GenAI conventions to OpenInference's names.
fn model(list: &mut List<'_>) {
    const TOOL: [(&str, &str); 2] =
        [("gen_ai.tool.name", "tool.name"), ("gen_ai.tool.call.id", "tool.id")];
    const LLM: [(&str, &str); 2] =
        [("gen_ai.request.model", "llm.model_name"), ("gen_ai.provider.name", "llm.provider")];
    const TOKENS: [(&str, &str); 5] = [
        ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
        ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
        ("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"),
        ("gen_ai.usage.cache_creation.input_tokens", "llm.token_count.prompt_details.cache_write"),
        ("gen_ai.usage.cache_write.input_tokens", "llm.token_count.prompt_details.cache_write"),
    ];
    let names: &[_] = match list.span.kind {
        SpanKind::Tool => &TOOL,
        SpanKind::Response => &LLM,
        _ => &[],
    };
    for (from, to) in names.iter().chain(&TOKENS) {
        if let Some(value) = list.find(from).cloned() {
            list.push(to, value);
        }
    }
    let sum = [TOKENS[0].0, TOKENS[1].0].map(|key| match list.find(key) {
        Some(Val::Int(count)) => Some(*count),
        _ => None,
    });
    if let [Some(input), Some(output)] = sum {
        list.push("llm.token_count.total", Val::Int(input.saturating_add(output)));
    }
}
