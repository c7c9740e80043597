//! The names of hooks.

/// The hooks that this program knows by name. Their numbers are stored in the journal and never change.
///
/// Source: <https://cursor.com/docs/hooks>. The last two are Claude Code's names, which Cursor maps to its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "each is the hook of that name")]
pub enum Event {
    SessionStart = 1,
    SessionEnd = 2,
    BeforeSubmitPrompt = 3,
    PreToolUse = 4,
    PostToolUse = 5,
    PostToolUseFailure = 6,
    BeforeShellExecution = 7,
    AfterShellExecution = 8,
    BeforeMcpExecution = 9,
    AfterMcpExecution = 10,
    BeforeReadFile = 11,
    AfterFileEdit = 12,
    AfterAgentResponse = 13,
    AfterAgentThought = 14,
    Stop = 15,
    SubagentStart = 16,
    SubagentStop = 17,
    PreCompact = 18,
    BeforeTabFileRead = 19,
    AfterTabFileEdit = 20,
    WorkspaceOpen = 21,
    UserPromptSubmit = 22,
    Notification = 23,
}

impl Event {
    /// The event with this name. The case of the first letter does not matter.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        // This is a match and not a table: a table of slices contains pointers, and pointers need a writable segment in
        // the program file.
        let (first, rest) = name.split_first()?;
        Some(match (first.to_ascii_lowercase(), rest) {
            (b's', b"essionStart") => Self::SessionStart,
            (b's', b"essionEnd") => Self::SessionEnd,
            (b'b', b"eforeSubmitPrompt") => Self::BeforeSubmitPrompt,
            (b'p', b"reToolUse") => Self::PreToolUse,
            (b'p', b"ostToolUse") => Self::PostToolUse,
            (b'p', b"ostToolUseFailure") => Self::PostToolUseFailure,
            (b'b', b"eforeShellExecution") => Self::BeforeShellExecution,
            (b'a', b"fterShellExecution") => Self::AfterShellExecution,
            (b'b', b"eforeMCPExecution") => Self::BeforeMcpExecution,
            (b'a', b"fterMCPExecution") => Self::AfterMcpExecution,
            (b'b', b"eforeReadFile") => Self::BeforeReadFile,
            (b'a', b"fterFileEdit") => Self::AfterFileEdit,
            (b'a', b"fterAgentResponse") => Self::AfterAgentResponse,
            (b'a', b"fterAgentThought") => Self::AfterAgentThought,
            (b's', b"top") => Self::Stop,
            (b's', b"ubagentStart") => Self::SubagentStart,
            (b's', b"ubagentStop") => Self::SubagentStop,
            (b'p', b"reCompact") => Self::PreCompact,
            (b'b', b"eforeTabFileRead") => Self::BeforeTabFileRead,
            (b'a', b"fterTabFileEdit") => Self::AfterTabFileEdit,
            (b'w', b"orkspaceOpen") => Self::WorkspaceOpen,
            (b'u', b"serPromptSubmit") => Self::UserPromptSubmit,
            (b'n', b"otification") => Self::Notification,
            _ => return None,
        })
    }
}
