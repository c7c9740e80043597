//! Finds fields in Cursor's hooks that hookspan does not know.

use std::borrow::Cow;

/// Field names that Cursor's hooks are known to send, whether hookspan reads them or not. Sorted by length.
const KNOWN: [&str; 88] = [
    "cwd",
    "url",
    "file",
    "task",
    "text",
    "tool",
    "edits",
    "error",
    "model",
    "output",
    "params",
    "prompt",
    "reason",
    "result",
    "server",
    "status",
    "tokens",
    "changes",
    "command",
    "content",
    "context",
    "sandbox",
    "summary",
    "timeout",
    "trigger",
    "turn_id",
    "duration",
    "model_id",
    "response",
    "exit_code",
    "file_path",
    "timestamp",
    "tool_name",
    "git_branch",
    "loop_count",
    "session_id",
    "tool_input",
    "user_email",
    "attachments",
    "description",
    "duration_ms",
    "result_json",
    "subagent_id",
    "tool_output",
    "tool_use_id",
    "total_turns",
    "user_prompt",
    "failure_type",
    "final_status",
    "input_tokens",
    "is_interrupt",
    "model_params",
    "tool_call_id",
    "agent_message",
    "composer_mode",
    "error_message",
    "generation_id",
    "message_count",
    "output_tokens",
    "subagent_type",
    "tool_response",
    "context_tokens",
    "cursor_version",
    "mcp_server_url",
    "modified_files",
    "subagent_model",
    "workspace_root",
    "conversation_id",
    "hook_event_name",
    "mcp_server_name",
    "permission_mode",
    "tool_call_count",
    "transcript_path",
    "workspace_roots",
    "stop_hook_active",
    "workspace_folder",
    "cache_read_tokens",
    "cache_write_tokens",
    "is_parallel_worker",
    "context_window_size",
    "is_background_agent",
    "is_first_compaction",
    "messages_to_compact",
    "parent_tool_call_id",
    "agent_transcript_path",
    "child_conversation_id",
    "context_usage_percent",
    "parent_conversation_id",
];
/// Hash table of [`KNOWN`] by [`tag`]: index plus 1, stored at the first free place from [`slot`] on.
const SLOTS: [u8; 256] = {
    let mut slots = [0; 256];
    let mut index = 0;
    while index < KNOWN.len() {
        let mut at = slot(tag(KNOWN[index]));
        while slots[at] != 0 {
            at = (at + 1) % slots.len();
        }
        index += 1;
        slots[at] = index as u8;
    }
    slots
};
/// Maximum number of names per hook.
const MOST: usize = 8;
/// Longest reported name.
const LONGEST: usize = 64;

/// A small hash: equal for equal names, different for nearly all others.
pub(crate) const fn tag(name: &str) -> u32 {
    match name.as_bytes() {
        [] => 0,
        bytes @ [first, .., last] => {
            let middle = bytes[bytes.len() / 2];
            u32::from_le_bytes([*first, middle, *last, bytes.len() as u8])
        }
        [only] => *only as u32,
    }
}

/// Names in `fields` that no known hook sends, as `name:shape`. A name keeps its letters, digits, `_`, `-` and `.`;
/// every other character becomes `?`.
pub(crate) fn unseen<'a>(fields: impl Iterator<Item = (&'a str, &'static str)>) -> Vec<Box<str>> {
    let new = fields.filter(|(name, _)| !is_known(name)).take(MOST);
    new.map(|(name, shape)| format!("{}:{shape}", plain(name)).into()).collect()
}

fn is_known(name: &str) -> bool {
    let listed = |name: &str| is_listed(name, tag(name));
    listed(name) || (name.bytes().any(|byte| byte.is_ascii_uppercase()) && listed(&snake(name)))
}

/// Whether `name` with this tag is known in this exact spelling. Called for each field of each hook.
pub(crate) fn is_listed(name: &str, tag: u32) -> bool {
    let mut at = slot(tag);
    // A third of the places is used, so a free place is always near.
    while let Some(index) = usize::from(SLOTS[at]).checked_sub(1) {
        if KNOWN[index] == name {
            return true;
        }
        at = (at + 1) % SLOTS.len();
    }
    false
}

const fn slot(tag: u32) -> usize {
    (tag.wrapping_mul(0x9e37_79b1) >> 24) as usize
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

/// A name made safe for a list, because payloads are not trusted.
pub(crate) fn plain(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.chars().take(LONGEST).map(|c| if allowed(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_sorted_and_found_in_both_spellings() {
        assert!(KNOWN.is_sorted_by_key(|name| (name.len(), *name)));
        let text = |name| (name, "text");
        assert!(unseen(KNOWN.into_iter().map(text)).is_empty());
        let camel = ["conversationId", "toolUseId", "hookEventName"];
        assert!(unseen(camel.into_iter().map(text)).is_empty());
    }

    #[test]
    fn a_new_name_is_told_plain_short_and_not_without_end() {
        let long = "x".repeat(500);
        let names = ["model", "new_field", "<b>\n", &long];
        let told = unseen(names.into_iter().map(|name| (name, "list")));
        assert_eq!(told.iter().map(|name| name.len()).collect::<Vec<_>>(), [14, 9, 69]);
        assert_eq!((&*told[0], &*told[1]), ("new_field:list", "?b??:list"));
        assert_eq!(unseen(std::iter::repeat_n(("other", "text"), 100)).len(), 8);
    }
}
