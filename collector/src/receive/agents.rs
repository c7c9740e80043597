//! What agents with telemetry of their own send: which attribute names the session, which items are kept, and which
//! attributes report tokens and cost. `docs/receiving.md` lists the names and their sources.

use opentelemetry_proto::tonic::common::v1::KeyValue;

use super::attributes::{number, text, whole};
use crate::store::received::{Field, Usage};

/// The program that sent an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agent {
    ClaudeCode,
    Codex,
    Gemini,
    /// Cursor's own export for enterprises.
    Cursor,
    /// Any other program. This includes agents that follow the generative-AI conventions, such as Copilot.
    Other,
}

impl Agent {
    pub(super) fn of(service: &str, scope: &str) -> Self {
        match (service, scope) {
            ("claude-code", _) => Self::ClaudeCode,
            (_, scope) if scope.starts_with("com.anthropic.claude_code") => Self::ClaudeCode,
            (service, _) if service.starts_with("codex") => Self::Codex,
            ("gemini-cli", _) | (_, "gemini_cli" | "gemini-cli") => Self::Gemini,
            (_, "cursor.telemetry") => Self::Cursor,
            _ => Self::Other,
        }
    }
}

/// Attributes that name a session, the most reliable first.
const SESSIONS: [&str; 5] = [
    "cursor.conversation.id",
    "gen_ai.conversation.id",
    "session.id",
    "conversation.id",
    "sessionId",
];
const SESSION_MAX_BYTES: usize = 128;

/// The session that attributes name. An item's own attributes precede those of its resource.
pub(super) fn session(agent: Agent, own: &[KeyValue], resource: &[KeyValue]) -> Option<String> {
    let named = |pairs| SESSIONS.iter().find_map(|key| text(pairs, key));
    // On Codex's spans, `thread.id` is the conversation. Other programs use this attribute for a thread of the system.
    let thread = || text(own, "thread.id").filter(|_| agent == Agent::Codex);
    let found = named(own).or_else(thread).or_else(|| named(resource))?;
    (found.len() <= SESSION_MAX_BYTES).then(|| found.to_owned())
}

/// The tool call that attributes name.
pub(super) fn tool(own: &[KeyValue]) -> Option<String> {
    let keys = ["gen_ai.tool.call.id", "tool_use_id", "call_id"];
    let found = keys.iter().find_map(|key| text(own, key))?;
    (found.len() <= SESSION_MAX_BYTES).then(|| found.to_owned())
}

pub(super) fn model(own: &[KeyValue]) -> Option<String> {
    let keys = ["gen_ai.response.model", "gen_ai.request.model", "model", "cursor.model.name"];
    let found = keys.iter().find_map(|key| text(own, key))?;
    Some(super::attributes::shorten(found, SESSION_MAX_BYTES).into_owned())
}

/// Spans in which Codex wraps each piece of a streamed answer. They are 94 % of the spans of a run.
const CODEX_NOISE: [&str; 2] = ["receiving", "handle_responses"];
/// Shorter spans of Codex describe only its own internal work.
const CODEX_MIN_NS: i64 = 50_000_000;

/// Whether a span is useful only to the agent's developers.
pub(super) fn is_noise(
    agent: Agent,
    name: &str,
    length_ns: i64,
    failed: bool,
    own: &[KeyValue],
) -> bool {
    agent == Agent::Codex
        && !failed
        && own.iter().all(|pair| !pair.key.starts_with(CODEX_TURN))
        && (CODEX_NOISE.contains(&name) || length_ns < CODEX_MIN_NS)
}

const CODEX_TURN: &str = "codex.turn.token_usage.";

/// Tokens of a span, if it stands for one request to a model or, for Codex, for a turn. Other spans repeat these tokens
/// in sums.
pub(super) fn span_usage(agent: Agent, name: &str, own: &[KeyValue]) -> Option<Usage> {
    let usage = match agent {
        Agent::ClaudeCode if name == "claude_code.llm_request" => claude(own),
        Agent::ClaudeCode => return None,
        Agent::Codex => {
            let of = |key: &str| whole(own, &format!("{CODEX_TURN}{key}"));
            Usage {
                input: of("input_tokens"),
                output: of("output_tokens"),
                cache_read: of("cached_input_tokens"),
                ..Usage::default()
            }
        }
        _ => {
            let operation = text(own, "gen_ai.operation.name")?;
            if !["chat", "text_completion", "generate_content"].contains(&operation) {
                return None;
            }
            let of = |key: &str| whole(own, &format!("gen_ai.usage.{key}"));
            let cache_write = of("cache_creation.input_tokens").or(of("cache_write.input_tokens"));
            Usage {
                input: of("input_tokens"),
                output: of("output_tokens"),
                cache_read: of("cache_read.input_tokens"),
                cache_write,
                cost: None,
            }
        }
    };
    told(usage)
}

/// The name under which a log record is stored. `None` if the record is not kept: only records are kept that report
/// what no hook reports.
pub(super) fn event(agent: Agent, name: &str, own: &[KeyValue]) -> Option<String> {
    let bare = name.strip_prefix("claude_code.").unwrap_or(name);
    let bare = bare.strip_prefix("cursor.").unwrap_or(bare).replacen("api.", "api_", 1);
    let is_completed = text(own, "event.kind") == Some("response.completed");
    let kept = match agent {
        Agent::ClaudeCode => matches!(&*bare, "api_request" | "api_error" | "tool_decision")
            .then(|| format!("claude_code.{bare}")),
        // Codex sends this record twice. One of the two has no name, and only one has the tokens.
        Agent::Codex if is_completed && whole(own, "input_token_count").is_some() => {
            Some("codex.response".to_owned())
        }
        Agent::Codex => (name == "codex.tool_decision").then(|| name.to_owned()),
        Agent::Gemini => matches!(name, "gemini_cli.api_response" | "gemini_cli.api_error")
            .then(|| name.to_owned()),
        Agent::Cursor => {
            matches!(&*bare, "api_request" | "api_error").then(|| format!("cursor.{bare}"))
        }
        Agent::Other => None,
    };
    // All names above are short. The limit protects the store if a name is added that is not.
    kept.filter(|kept| kept.len() <= SESSION_MAX_BYTES)
}

/// Tokens and cost of a log record.
pub(super) fn event_usage(agent: Agent, event: &str, own: &[KeyValue]) -> Option<Usage> {
    let usage = match (agent, event) {
        (Agent::ClaudeCode, "claude_code.api_request") => claude(own),
        (Agent::Codex, "codex.response") => Usage {
            input: whole(own, "input_token_count"),
            output: whole(own, "output_token_count"),
            cache_read: whole(own, "cached_token_count"),
            ..Usage::default()
        },
        (Agent::Gemini, "gemini_cli.api_response") => {
            let thoughts = whole(own, "thoughts_token_count").unwrap_or(0);
            Usage {
                input: whole(own, "input_token_count"),
                output: whole(own, "output_token_count").map(|output| output + thoughts),
                cache_read: whole(own, "cached_content_token_count"),
                ..Usage::default()
            }
        }
        (Agent::Cursor, "cursor.api_request") => {
            let of = |key: &str| whole(own, &format!("cursor.api.request.{key}"));
            let (cache_read, cache_write) = (of("cache_read_tokens"), of("cache_creation_tokens"));
            let input = with_cache(of("input_tokens"), cache_read, cache_write);
            Usage { input, output: of("output_tokens"), cache_read, cache_write, cost: None }
        }
        _ => return None,
    };
    told(usage)
}

/// Claude Code does not include cached tokens in its input tokens, so they are added. For Cursor this is assumed.
fn claude(own: &[KeyValue]) -> Usage {
    let (cache_read, cache_write) =
        (whole(own, "cache_read_tokens"), whole(own, "cache_creation_tokens"));
    Usage {
        input: with_cache(whole(own, "input_tokens"), cache_read, cache_write),
        output: whole(own, "output_tokens"),
        cache_read,
        cache_write,
        cost: number(own, "cost_usd"),
    }
}

fn with_cache(input: Option<i64>, read: Option<i64>, write: Option<i64>) -> Option<i64> {
    input.map(|input| input + read.unwrap_or(0) + write.unwrap_or(0))
}

fn told(usage: Usage) -> Option<Usage> {
    (usage != Usage::default()).then_some(usage)
}

/// What a counter counts: the attribute that names the kind of token, and whether the sender leaves cached tokens out
/// of its input tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    kind: Option<&'static str>,
    is_beside: bool,
}

/// The counter of this name, if it counts tokens or cost.
pub(super) fn counter(name: &str) -> Option<Counter> {
    let of = |kind, is_beside| Some(Counter { kind, is_beside });
    match name {
        "claude_code.token.usage" => of(Some("type"), true),
        "claude_code.cost.usage" => of(None, false),
        "gemini_cli.token.usage" => of(Some("type"), false),
        "gen_ai.client.token.usage" => of(Some("gen_ai.token.type"), false),
        "codex.turn.token_usage" => of(Some("token_type"), false),
        _ => None,
    }
}

impl Counter {
    /// What a point counts, and whether its value must also be added to the input. `None` for a sum of other points.
    pub(super) fn field(self, own: &[KeyValue]) -> Option<(Field, bool)> {
        let Some(kind) = self.kind else { return Some((Field::Cost, false)) };
        let field = match text(own, kind)? {
            "input" => Field::Input,
            // Thoughts are billed as output.
            "output" | "thought" => Field::Output,
            "cacheRead" | "cache_read" | "cache" | "cached_input" => Field::CacheRead,
            "cacheCreation" | "cache_creation" | "cache_write" => Field::CacheWrite,
            _ => return None,
        };
        let is_cache = matches!(field, Field::CacheRead | Field::CacheWrite);
        Some((field, self.is_beside && is_cache))
    }
}
