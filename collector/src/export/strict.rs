//! The differences of the profile `genai-1.41-strict`: it follows the GenAI conventions to the letter, and sends plain
//! text where a backend shows text.
//!
//! The other profiles keep their bytes, so a destination in use never changes by itself. `docs/attributes.md` has the
//! complete list.

use std::borrow::Cow;
use std::sync::LazyLock;

use hookspan_core::content::Content;
use hookspan_core::price::{Estimate, Prices};
use hookspan_core::{SpanKind, Tokens};
use serde_json::Value as Json;

use super::attribute_list::List;
use super::value::Val;
use crate::config::{OpenInference, Profile};
use crate::prices;

/// Where the names and types of this profile are published.
pub(super) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

const OUTPUT: &str = "gen_ai.output.messages";

/// The makers' names of the models that this release knows. The prices in the list are not used here.
static MODELS: LazyLock<Prices> = LazyLock::new(|| prices::with_public(Prices::default()));

/// Selects the content that a span gets. An answer has a span of its own, so the turn repeats it only for backends that
/// show a trace by its root.
pub(super) fn contents(list: &List<'_>, contents: &mut Vec<(&'static str, Content)>) {
    if list.encoding.semconv != Profile::Genai141Strict {
        return;
    }
    if list.span.kind == SpanKind::Generation && list.encoding.answers_apart {
        contents.retain(|(key, _)| *key != OUTPUT);
    }
    for (key, content) in contents.iter_mut().filter(|(key, _)| *key == OUTPUT) {
        debug_assert_eq!(*key, OUTPUT);
        finish(content, finish_reason(list));
    }
}

/// Why the answer ended: the reason from the turn's end, or `error` for a failed span, otherwise `stop`.
fn finish_reason(list: &List<'_>) -> String {
    let span = list.span;
    let told = span.attributes.iter().find(|a| a.key == "gen_ai.response.finish_reasons");
    if let Some(hookspan_core::Value::StrList(reasons)) = told.map(|attribute| &attribute.value)
        && let Some(first) = reasons.first()
    {
        return first.to_string();
    }
    let failed = matches!(span.status, hookspan_core::Status::Error { .. });
    if failed { "error" } else { "stop" }.to_owned()
}

/// Adds `finish_reason` to every message. The schema of output messages requires it, and readers drop messages without
/// it.
fn finish(content: &mut Content, reason: String) {
    let Ok(Json::Array(mut messages)) = serde_json::from_str(&content.text) else { return };
    for message in messages.iter_mut().filter_map(Json::as_object_mut) {
        message.insert("finish_reason".to_owned(), Json::String(reason.clone()));
    }
    content.text = Json::Array(messages).to_string();
}

/// The plain text of messages in the conventions' form; any other text unchanged. Also tells whether it is JSON.
pub(super) fn plain<'a>(key: &str, content: &'a Content) -> (Cow<'a, str>, bool) {
    let messages = matches!(key, "gen_ai.input.messages" | OUTPUT);
    let parsed = if messages { serde_json::from_str(&content.text).ok() } else { None };
    let Some(Json::Array(messages)) = parsed else {
        return (Cow::Borrowed(&content.text), content.json);
    };
    let parts = messages.iter().filter_map(|message| message["parts"].as_array()).flatten();
    let texts: Vec<&str> = parts.filter_map(|part| part["content"].as_str()).collect();
    (Cow::Owned(texts.join("\n")), false)
}

/// Adds the maker's name of the model, and the cost of the tokens.
pub(super) fn add(list: &mut List<'_>) {
    if list.encoding.semconv != Profile::Genai141Strict {
        return;
    }
    nameless_agent(list);
    let Some(Val::Text(label)) = list.find("gen_ai.request.model").cloned() else { return };
    let tokens = tokens(list);
    if list.span.kind == SpanKind::Response || tokens.is_some() {
        let own = list.encoding.prices.name(&label).or_else(|| MODELS.name(&label));
        // "auto" is not a model: it means that Cursor chooses one.
        if let Some(name) = own.filter(|name| *name != "auto").map(str::to_owned) {
            list.text("gen_ai.response.model", name);
        }
    }
    let Some(tokens) = tokens else { return };
    if list.encoding.prices.price(&label).is_some()
        && let Some(estimate) = list.encoding.prices.estimate(Some(&label), tokens.into())
    {
        cost(list, estimate);
    }
}

/// A subagent without a type, or without a known parent, is called `subagent` in the name of its span. Its attribute
/// gets the same name.
fn nameless_agent(list: &mut List<'_>) {
    const KEY: &str = "gen_ai.agent.name";
    let is_nameless = match list.span.kind {
        SpanKind::Subagent => list.find("cursor.subagent.type").is_none(),
        SpanKind::Generation => list.find("hookspan.subagent.link").is_some(),
        _ => false,
    };
    if is_nameless {
        list.pairs.retain(|(key, _)| *key != KEY);
        list.text(KEY, "subagent");
    }
}

/// The token counts of a span that carries them.
fn tokens(list: &List<'_>) -> Option<Tokens> {
    let count = |key: &str| match list.find(key) {
        Some(Val::Int(count)) => u64::try_from(*count).ok(),
        _ => None,
    };
    let tokens = Tokens {
        input: count("gen_ai.usage.input_tokens"),
        output: count("gen_ai.usage.output_tokens"),
        cache_read: count("gen_ai.usage.cache_read.input_tokens"),
        cache_write: count("gen_ai.usage.cache_creation.input_tokens"),
    };
    (tokens.input.is_some() || tokens.output.is_some()).then_some(tokens)
}

fn cost(list: &mut List<'_>, estimate: Estimate) {
    // The conventions have no key for cost. Backends that show a cost expect dollars.
    let currency = &*list.encoding.prices.currency;
    list.push("hookspan.cost.estimate", Val::Double(estimate.amount));
    list.text("hookspan.cost.currency", currency);
    if estimate.unpriced_tokens > 0 {
        let count = i64::try_from(estimate.unpriced_tokens).unwrap_or(i64::MAX);
        list.push("hookspan.cost.unpriced_tokens", Val::Int(count));
    }
    if currency != "USD" {
        return;
    }
    if list.encoding.openinference == OpenInference::Full {
        list.push("llm.cost.total", Val::Double(estimate.amount));
    }
    if list.encoding.langfuse {
        let details = serde_json::json!({ "total": estimate.amount }).to_string();
        list.text("langfuse.observation.cost_details", details);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Content {
        Content { text: text.to_owned(), json: true }
    }

    #[test]
    fn an_answer_says_why_it_ended() {
        let mut one = content(r#"[{"role":"assistant","parts":[{"type":"text","content":"a"}]}]"#);
        finish(&mut one, "stop".to_owned());
        let messages: Json = serde_json::from_str(&one.text).unwrap();
        assert_eq!(messages[0]["finish_reason"], "stop");
        let mut other = content("no messages");
        finish(&mut other, "stop".to_owned());
        assert_eq!(other.text, "no messages");
    }

    #[test]
    fn the_text_of_messages_is_what_a_page_shows() {
        let two = r#"[{"role":"user","parts":[{"type":"text","content":"a"},{"type":"text","content":"b"}]}]"#;
        let two = content(two);
        let (text, json) = plain("gen_ai.input.messages", &two);
        assert_eq!((&*text, json), ("a\nb", false));
        let arguments = content(r#"[{"parts":1}]"#);
        let (text, json) = plain("gen_ai.tool.call.arguments", &arguments);
        assert_eq!((&*text, json), (&*arguments.text, true));
    }

    #[test]
    fn a_label_has_its_makers_name_or_none() {
        assert_eq!(MODELS.name("claude-4.6-sonnet-medium-thinking"), Some("claude-sonnet-4-6"));
        assert_eq!(MODELS.name("gpt-5.1-codex-max-high"), Some("gpt-5.1-codex-max"));
        assert_eq!(MODELS.name("default"), Some("auto"));
        assert_eq!(MODELS.name("house-model-7b"), None);
    }
}
