//! Finds out which host sent a hook, by names and fields that only that host uses. If there are none, the host is
//! unknown.

use crate::model::event::Host;
use crate::model::hook::Hook;
use crate::read::payload::Fields;

/// Names of events that only Gemini CLI has.
const GEMINI: [&str; 8] = [
    "BeforeAgent",
    "AfterAgent",
    "BeforeTool",
    "AfterTool",
    "BeforeModel",
    "AfterModel",
    "BeforeToolSelection",
    "PreCompress",
];
/// Names of events that only Copilot CLI has.
const COPILOT: [&str; 4] =
    ["userPromptSubmitted", "agentStop", "errorOccurred", "userPromptTransformed"];
/// Names of events that only Claude Code has. Hosts that imitate Claude Code do not send them.
const CLAUDE: [&str; 13] = [
    "MessageDisplay",
    "StopFailure",
    "PostToolBatch",
    "Elicitation",
    "ElicitationResult",
    "PermissionDenied",
    "InstructionsLoaded",
    "ConfigChange",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "UserPromptExpansion",
    "CwdChanged",
];
/// The folder in which each host keeps its transcripts.
const FOLDERS: [(&str, Host); 4] = [
    ("/.codex/", Host::Codex),
    ("/.gemini/", Host::Gemini),
    ("/.claude/", Host::Claude),
    ("copilot", Host::Copilot),
];

/// The host of a hook. `sent` is the event's name as sent; `in_body` says whether the name stood in the body.
pub(crate) fn host(hook: &Hook, fields: &Fields<'_>, sent: &str, in_body: bool) -> Host {
    let is_imitator = in_body && sent.starts_with(|c: char| c.is_ascii_uppercase());
    // `conversationId` means Cursor if the event's name has Cursor's form. Other hosts use the same field name.
    let talks = fields.raw("conversation_id").is_some()
        && (!is_imitator || fields.has_own("conversation_id"));
    let cursor = talks || fields.first(&["cursor_version", "workspace_roots"]).is_some();
    if cursor || hook.context.cursor_version.is_some() {
        return Host::Cursor;
    }
    if fields.first(&["trajectory_id", "agent_action_name"]).is_some() {
        return Host::Windsurf;
    }
    if GEMINI.contains(&sent) {
        return Host::Gemini;
    }
    if COPILOT.contains(&sent) || is_copilot_cli(fields) {
        return Host::CopilotCli;
    }
    // The oldest payloads have no name and no id. Then our own entry in Cursor's configuration identifies Cursor.
    if !is_imitator {
        return Host::Cursor;
    }
    if fields.raw("session_id").is_none() {
        return Host::Unknown;
    }
    imitated(fields, sent)
}

/// Which host sent an event whose name is one of Claude Code's. Several other hosts use the same event names.
fn imitated(fields: &Fields<'_>, sent: &str) -> Host {
    let transcript = fields.text("transcript_path").unwrap_or_default().replace('\\', "/");
    if let Some((_, host)) = FOLDERS.iter().find(|(folder, _)| transcript.contains(folder)) {
        return *host;
    }
    if CLAUDE.contains(&sent) || fields.raw("prompt_id").is_some() {
        return Host::Claude;
    }
    if fields.raw("turn_id").is_some() {
        return Host::Codex;
    }
    // Copilot's own transcripts lie in a folder of that name, see above.
    if fields.raw("timestamp").is_some() && transcript.is_empty() {
        return Host::Copilot;
    }
    // Fields that only Claude Code had when this was written. Another host that sends them names its own folder as
    // well.
    let of_claude = ["permission_mode", "agent_id", "stop_hook_active", "tool_use_id"];
    if transcript.is_empty() && fields.first(&of_claude).is_some() {
        return Host::Claude;
    }
    Host::Unknown
}

/// Copilot CLI sends the time as milliseconds since 1970 (others send a date) and calls a session `sessionId`.
fn is_copilot_cli(fields: &Fields<'_>) -> bool {
    let number = |raw: &str| !raw.is_empty() && raw.bytes().all(|byte| byte.is_ascii_digit());
    fields.has_own("sessionId") && fields.raw("timestamp").is_some_and(|at| number(at.get()))
}
