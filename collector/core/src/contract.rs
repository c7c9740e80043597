//! The contract watch: which fields of Cursor's hooks hookspan has not seen before.

use std::borrow::Cow;

/// Field names that some hook of Cursor is known to send, whether hookspan reads them or not. Sorted.
const KNOWN: [&str; 86] = [
    "agent_message",
    "agent_transcript_path",
    "attachments",
    "cache_read_tokens",
    "cache_write_tokens",
    "changes",
    "command",
    "composer_mode",
    "content",
    "context",
    "context_tokens",
    "context_usage_percent",
    "context_window_size",
    "conversation_id",
    "cursor_version",
    "cwd",
    "description",
    "duration",
    "duration_ms",
    "edits",
    "error",
    "error_message",
    "exit_code",
    "failure_type",
    "file",
    "file_path",
    "final_status",
    "generation_id",
    "git_branch",
    "hook_event_name",
    "input_tokens",
    "is_background_agent",
    "is_first_compaction",
    "is_interrupt",
    "is_parallel_worker",
    "loop_count",
    "mcp_server_name",
    "mcp_server_url",
    "message_count",
    "messages_to_compact",
    "model",
    "model_id",
    "model_params",
    "modified_files",
    "output",
    "output_tokens",
    "params",
    "parent_conversation_id",
    "permission_mode",
    "prompt",
    "reason",
    "response",
    "result",
    "result_json",
    "sandbox",
    "server",
    "session_id",
    "status",
    "stop_hook_active",
    "subagent_id",
    "subagent_model",
    "subagent_type",
    "summary",
    "task",
    "text",
    "timeout",
    "timestamp",
    "tokens",
    "tool",
    "tool_call_count",
    "tool_call_id",
    "tool_input",
    "tool_name",
    "tool_output",
    "tool_response",
    "tool_use_id",
    "total_turns",
    "transcript_path",
    "trigger",
    "turn_id",
    "url",
    "user_email",
    "user_prompt",
    "workspace_folder",
    "workspace_root",
    "workspace_roots",
];
/// Of one hook, no more than this many are named.
const MOST: usize = 8;
/// Longest name that is told.
const LONGEST: usize = 64;

/// Names among `fields` that no hook is known to send, made plain: letters, digits, `_`, `-` and `.`, anything else `?`.
pub(crate) fn unseen<'a>(fields: impl Iterator<Item = &'a str>) -> Vec<Box<str>> {
    fields.filter(|name| !is_known(name)).take(MOST).map(|name| plain(name).into()).collect()
}

fn is_known(name: &str) -> bool {
    if KNOWN.binary_search(&name).is_ok() {
        return true;
    }
    name.bytes().any(|byte| byte.is_ascii_uppercase())
        && KNOWN.binary_search(&&*snake(name)).is_ok()
}

/// `camelCase` as `camel_case`.
fn snake(name: &str) -> Cow<'_, str> {
    let mut text = String::with_capacity(name.len() + 4);
    for letter in name.chars().take(LONGEST) {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text.into()
}

/// A name that may stand in a list: what a payload says is not trusted.
pub(crate) fn plain(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.chars().take(LONGEST).map(|c| if allowed(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_sorted_and_found_in_both_spellings() {
        assert!(KNOWN.is_sorted());
        assert!(unseen(KNOWN.into_iter()).is_empty());
        assert!(unseen(["conversationId", "toolUseId", "hookEventName"].into_iter()).is_empty());
    }

    #[test]
    fn a_new_name_is_told_plain_short_and_not_without_end() {
        let long = "x".repeat(500);
        let names = ["model", "new_field", "<b>\n", &long];
        let told = unseen(names.into_iter());
        assert_eq!(told.iter().map(|name| name.len()).collect::<Vec<_>>(), [9, 4, 64]);
        assert_eq!((&*told[0], &*told[1]), ("new_field", "?b??"));
        assert_eq!(unseen(std::iter::repeat_n("other", 100)).len(), 8);
    }
}
