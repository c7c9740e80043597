//! Reads the fields of each kind of event, by the event's name.

use crate::model::bounded::{ID_BYTES, cut};
use crate::model::event::{
    Compaction, EventKind, Prompt, Response, SessionEnd, Stop, SubagentFacts, Thought,
};
use crate::model::fingerprint::{content_key, digest};
use crate::model::path::without_host;
use crate::model::summary::Tokens;
use crate::model::tool::ToolFacts;
use crate::read::interner::Words;
use crate::read::payload::{Fields, Raw, array, object, text};

/// Our name for an event, from any host's spelling.
pub(crate) fn known(sent: &str) -> Option<&'static str> {
    const NAMES: [&str; 21] = [
        "workspaceOpen",
        "sessionStart",
        "sessionEnd",
        "beforeSubmitPrompt",
        "preToolUse",
        "postToolUse",
        "postToolUseFailure",
        "beforeShellExecution",
        "afterShellExecution",
        "beforeMCPExecution",
        "afterMCPExecution",
        "beforeReadFile",
        "afterFileEdit",
        "afterAgentResponse",
        "afterAgentThought",
        "stop",
        "subagentStart",
        "subagentStop",
        "preCompact",
        "beforeTabFileRead",
        "afterTabFileEdit",
    ];
    const OTHERS: [(&str, &str); 17] = [
        ("UserPromptSubmit", "beforeSubmitPrompt"),
        ("pre_user_prompt", "beforeSubmitPrompt"),
        ("post_cascade_response", "afterAgentResponse"),
        ("pre_run_command", "beforeShellExecution"),
        ("post_run_command", "afterShellExecution"),
        ("pre_mcp_tool_use", "beforeMCPExecution"),
        ("post_mcp_tool_use", "afterMCPExecution"),
        ("pre_read_code", "beforeReadFile"),
        ("post_write_code", "afterFileEdit"),
        ("SubagentStarted", "subagentStart"),
        ("userPromptSubmitted", "beforeSubmitPrompt"),
        ("agentStop", "stop"),
        ("BeforeAgent", "beforeSubmitPrompt"),
        ("AfterAgent", "stop"),
        ("BeforeTool", "preToolUse"),
        ("AfterTool", "postToolUse"),
        ("PreCompress", "preCompact"),
    ];
    let (first, rest) = (sent.get(..1)?, sent.get(1..)?);
    NAMES
        .into_iter()
        .find(|name| name.get(1..) == Some(rest) && name[..1].eq_ignore_ascii_case(first))
        .or_else(|| OTHERS.into_iter().find(|(other, _)| *other == sent).map(|(_, name)| name))
}

/// `own` holds the event's own fields, and `envelope` holds all fields. They differ only for Windsurf.
pub(crate) fn kind(
    name: &str,
    (own, envelope): (&Fields<'_>, &Fields<'_>),
    in_body: bool,
    words: &mut Words,
) -> Option<EventKind> {
    let kind = match name {
        "workspaceOpen" => EventKind::WorkspaceOpen,
        "sessionStart" => EventKind::SessionStart {
            background: own.flag("is_background_agent"),
            mode: own.word("composer_mode").map(|text| cut(text, 64)),
        },
        "sessionEnd" => EventKind::SessionEnd(Box::new(session_end(own))),
        "beforeSubmitPrompt" => EventKind::Prompt(Box::new(prompt(own))),
        "preToolUse" => EventKind::ToolStart(Box::new(ToolFacts::generic(own, words))),
        "postToolUse" => {
            let facts = Box::new(ToolFacts::generic(own, words));
            let is_over = facts.interrupt == Some(true);
            let has_failed = is_over || facts.more().is_some_and(|more| more.failure.is_some());
            if has_failed { EventKind::ToolFailure(facts) } else { EventKind::ToolEnd(facts) }
        }
        "postToolUseFailure" => EventKind::ToolFailure(Box::new(ToolFacts::generic(own, words))),
        "beforeShellExecution" => EventKind::ShellStart(Box::new(ToolFacts::shell(own, words))),
        "afterShellExecution" => EventKind::ShellEnd(Box::new(ToolFacts::shell(own, words))),
        "beforeMCPExecution" => EventKind::McpStart(Box::new(ToolFacts::mcp(own, words))),
        "afterMCPExecution" => EventKind::McpEnd(Box::new(ToolFacts::mcp(own, words))),
        "beforeReadFile" => EventKind::FileRead(Box::new(ToolFacts::file(own, "Read", words))),
        "afterFileEdit" => EventKind::FileEdit(Box::new(ToolFacts::file(own, "Write", words))),
        "afterAgentResponse" => EventKind::Response(Box::new(response(own))),
        "afterAgentThought" => EventKind::Thought(Box::new(thought(own))),
        // Without an envelope, `stop` ends the session: the oldest beta used it in this sense.
        "stop" if !in_body && envelope.raw("status").is_none() => {
            EventKind::SessionEnd(Box::new(session_end(own)))
        }
        "stop" => EventKind::Stop(Box::new(stop(own))),
        "subagentStart" => EventKind::SubagentStart(Box::new(subagent(own, true))),
        "subagentStop" => EventKind::SubagentStop(Box::new(subagent(own, false))),
        "preCompact" => EventKind::Compaction(Box::new(compaction(own))),
        "beforeTabFileRead" => EventKind::TabRead { path: path(own) },
        "afterTabFileEdit" => {
            let edits = ToolFacts::file(own, "Write", words)
                .more()
                .and_then(|more| more.edits)
                .unwrap_or_default();
            EventKind::TabEdit { path: path(own), added: edits.added, removed: edits.removed }
        }
        _ => return None,
    };
    Some(kind)
}

fn path(fields: &Fields<'_>) -> Option<String> {
    fields.said("file_path").map(|sent| cut(without_host(&sent).into_owned(), 4_096))
}

fn session_end(fields: &Fields<'_>) -> SessionEnd {
    SessionEnd {
        reason: fields.word("reason").map(|text| cut(text, 64)),
        final_status: fields.word("final_status").map(|text| cut(text, 64)),
        duration_ms: fields.int("duration_ms"),
        background: fields.flag("is_background_agent"),
    }
}

fn prompt(fields: &Fields<'_>) -> Prompt {
    let sent = fields.first(&["prompt", "user_prompt"]).and_then(text).unwrap_or_default();
    let attachments = fields.raw("attachments").map(array).unwrap_or_default();
    let mut types: Vec<String> =
        attachments.iter().filter_map(|one| attachment_type(*one)).collect();
    types.sort();
    types.dedup();
    types.truncate(16);
    Prompt {
        bytes: sent.len() as u64,
        preview: preview(&sent),
        attachments: i64::try_from(attachments.len()).unwrap_or(i64::MAX),
        attachment_types: types,
        mode: fields.word("composer_mode").map(|text| cut(text, 64)),
    }
}

fn attachment_type(attachment: Raw<'_>) -> Option<String> {
    let mut store = String::new();
    object(attachment, &mut store)?.word("type").map(|text| cut(text, 64))
}

fn preview(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.chars().take(200).collect())
}

fn tokens(fields: &Fields<'_>) -> Tokens {
    Tokens {
        input: fields.count("input_tokens"),
        output: fields.count("output_tokens"),
        cache_read: fields.count("cache_read_tokens"),
        cache_write: fields.count("cache_write_tokens"),
    }
}

fn response(fields: &Fields<'_>) -> Response {
    let sent = fields.first(&["text", "response"]).and_then(text).unwrap_or_default();
    Response {
        key: content_key(&[&sent]),
        bytes: sent.len() as u64,
        tokens: tokens(fields),
        total: fields.count("tokens"),
        duration_ms: fields.number("duration_ms"),
    }
}

fn thought(fields: &Fields<'_>) -> Thought {
    let sent = fields.text("text").unwrap_or_default();
    Thought {
        key: content_key(&[&sent]),
        step: false,
        text: digest(&[sent.as_bytes()]),
        bytes: sent.len() as u64,
        duration_ms: fields.number("duration_ms").filter(|duration| *duration >= 0.0),
    }
}

fn stop(fields: &Fields<'_>) -> Stop {
    Stop {
        status: fields.word("status").map(|text| cut(text, 64)),
        loop_count: fields.int("loop_count"),
        tokens: tokens(fields),
        error: None,
    }
}

fn subagent(fields: &Fields<'_>, start: bool) -> SubagentFacts {
    let word = |names: &[&str], max| {
        names.iter().find_map(|name| fields.word(name)).map(|text| cut(text, max))
    };
    let agent = word(&["subagent_type", "agent_type", "agent_name"], 128);
    let task = fields.first(&["task", "prompt"]).and_then(text);
    let fallback =
        content_key(&[agent.as_deref().unwrap_or_default(), task.as_deref().unwrap_or_default()]);
    let has_summary = fields.first(&["summary", "result", "last_assistant_message"]).is_some();
    SubagentFacts {
        id: ["subagent_id", "agent_id"]
            .iter()
            .find_map(|name| fields.word(name))
            .map(|id| cut(id, ID_BYTES)),
        call: fields.word("tool_call_id").map(|id| cut(id, ID_BYTES)),
        child: fields.word("child_conversation_id").map(|id| cut(id, ID_BYTES)),
        model: if start { word(&["subagent_model", "model"], 128) } else { None },
        fallback,
        task: task.as_deref().map_or(0, |task| digest(&[task.as_bytes()])),
        has: (task.is_some(), has_summary, fields.raw("description").is_some()),
        agent,
        status: word(&["status", "final_status"], 64),
        duration_ms: ["duration_ms", "duration"]
            .iter()
            .find_map(|name| fields.number(name))
            .filter(|duration| *duration >= 0.0),
        branch: word(&["git_branch", "branch"], 256),
        parallel: fields.flag("is_parallel_worker"),
        messages: amount(fields, "message_count"),
        tool_calls: amount(fields, "tool_call_count"),
    }
}

/// A count that is not negative.
fn amount(fields: &Fields<'_>, name: &str) -> Option<i64> {
    fields.int(name).filter(|count| *count >= 0)
}

fn compaction(fields: &Fields<'_>) -> Compaction {
    let trigger = fields.word("trigger").map(|text| cut(text, 64));
    let context_tokens = amount(fields, "context_tokens");
    let count = context_tokens.map(|count| count.to_string()).unwrap_or_default();
    Compaction {
        key: content_key(&[trigger.as_deref().unwrap_or_default(), &count]),
        trigger,
        usage_percent: fields.number("context_usage_percent"),
        context_tokens,
        window_size: amount(fields, "context_window_size"),
        messages: amount(fields, "message_count"),
        to_compact: amount(fields, "messages_to_compact"),
        first: fields.flag("is_first_compaction"),
    }
}
