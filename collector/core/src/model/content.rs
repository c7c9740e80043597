//! Content of a span: its place in a hook, and its text.

/// Attribute key for the old and new text of an edit, read from the hook after the edit. Present only if these texts
/// differ from the call's input (an overwritten file). Only pages on this machine read it: unlike the input, it is
/// never exported or searched.
pub const EDIT_CHANGES: &str = "hookspan.edit.changes";

/// The part of a hook's body that a content attribute holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `prompt` of beforeSubmitPrompt, as a user message.
    Prompt,
    /// `text` of afterAgentResponse, as an assistant message.
    Response,
    /// `text` of afterAgentThought, as a reasoning part.
    Thought,
    /// `tool_input`, or what a specific event gives instead (`command`, `edits`, `file_path`).
    ToolInput,
    /// `tool_output`, `output`, `result_json`, `error_message`: what the call returned.
    ToolOutput,
    /// `task` of a subagent, as a user message.
    Task,
    /// `summary` of a subagent, as an assistant message.
    Summary,
    /// `description` of a subagent.
    Description,
    /// `command` of an MCP server.
    McpCommand,
    /// Cursor's own error text.
    ErrorMessage,
}

/// Content as read from a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The text. If `json` is set, it is JSON in the form that the attribute needs; otherwise it is plain text.
    pub text: String,
    /// Whether `text` is a JSON document.
    pub json: bool,
}
