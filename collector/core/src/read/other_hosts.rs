//! Maps events that Cursor does not have to our events.

use crate::model::bounded::{ID_BYTES, cut_str};
use crate::model::event::{EventKind, Host, Stop};
use crate::model::tool::{ToolFacts, ToolMore};
use crate::read::interner::Words;
use crate::read::payload::{Fields, array, object, text};

/// Known events that tell nothing about turns, calls or agents. Pages show them, and they are not reported as unknown.
const NOTED: [&str; 28] = [
    "MessageDisplay",
    "Notification",
    "PermissionRequest",
    "PostToolBatch",
    "InstructionsLoaded",
    "ConfigChange",
    "CwdChanged",
    "FileChanged",
    "TaskCreated",
    "TaskCompleted",
    "TeammateIdle",
    "WorktreeCreate",
    "WorktreeRemove",
    "UserPromptExpansion",
    "Setup",
    "BeforeModel",
    "AfterModel",
    "BeforeToolSelection",
    "errorOccurred",
    "notification",
    "permissionRequest",
    "preMcpToolCall",
    "userPromptTransformed",
    "post_read_code",
    "pre_write_code",
    "post_setup_worktree",
    "post_cascade_response_with_transcript",
    "SubagentStop",
];
/// Maximum number of calls read from one batch.
const MAX_BATCH: usize = 15;

/// Whether an event name is known although it has no kind of its own.
pub(crate) fn is_noted(sent: &str) -> bool {
    NOTED.contains(&sent)
}

/// What another host's event means, if that differs from Cursor's event of a similar name. `Err` if the event's name is
/// known and the event tells nothing.
pub(crate) fn kind(
    sent: &str,
    host: Host,
    fields: &Fields<'_>,
    words: &mut Words,
) -> Option<Result<EventKind, ()>> {
    if host == Host::Cursor {
        return None;
    }
    let kind = match sent {
        "StopFailure" => EventKind::Stop(Box::new(Stop {
            status: Some("error".to_owned()),
            error: ["error", "error_type"]
                .iter()
                .find_map(|name| fields.word(name))
                .filter(|error| is_word(error)),
            ..Stop::default()
        })),
        "PostCompact" => EventKind::CompactionEnd,
        "Elicitation" => EventKind::Question { answered: false },
        "ElicitationResult" => EventKind::Question { answered: true },
        "PermissionDenied" => {
            let facts = ToolFacts::generic(fields, words);
            EventKind::ToolFailure(Box::new(denied(facts, words)))
        }
        "PostToolBatch" => match refused(fields, words) {
            calls if calls.is_empty() => return Some(Err(())),
            calls => EventKind::ToolBatch(calls),
        },
        // Claude Code's internal helpers have neither a type nor a start event.
        "SubagentStop" if fields.text("agent_type").is_some_and(|agent| agent.is_empty()) => {
            return Some(Err(()));
        }
        _ => return None,
    };
    Some(Ok(kind))
}

/// Whether a text looks like one word from a list, and not like a sentence. Only such a word may leave the machine.
fn is_word(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn denied(facts: ToolFacts, words: &mut Words) -> ToolFacts {
    let more = facts.more.map(|more| *more).unwrap_or_default();
    let failure = Some(words.get("permission_denied"));
    ToolFacts { more: Some(Box::new(ToolMore { failure, ..more })), ..facts }
}

/// The calls of a batch that a person or a rule refused. No other event reports them.
fn refused(fields: &Fields<'_>, words: &mut Words) -> Vec<ToolFacts> {
    let calls = fields.raw("tool_calls").map(array).unwrap_or_default();
    let mut refused = Vec::new();
    for call in calls {
        let mut store = String::new();
        let Some(call) = object(call, &mut store) else { continue };
        let answer = call.raw("tool_response").and_then(text);
        if !answer.is_some_and(|answer| is_refusal(&answer)) || call.said("tool_use_id").is_none() {
            continue;
        }
        if refused.len() < MAX_BATCH {
            let facts = ToolFacts::generic(&call, words);
            refused.push(denied(facts, words));
        }
    }
    refused
}

/// Whether an answer is the text that the host gives the model for a refused call.
fn is_refusal(answer: &str) -> bool {
    let starts = ["Permission to use ", "Permission for this action has been denied"];
    let head = cut_str(answer, ID_BYTES);
    starts.iter().any(|start| head.starts_with(start))
        || head.contains("doesn't want to proceed with this tool use")
        || head.contains("doesn't want to take this action right now")
}
