//! Content of a span: its place in a hook, and its text.

/// Key of an edit's old and new text from the hook after it, if that differs from the input (an overwritten file). Only for
/// pages on this machine: unlike the input it is never exported or searched.
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
    /// The text: JSON in the form the attribute wants when `json`, else plain.
    pub text: String,
    /// Whether `text` is a JSON document.
    pub json: bool,
}
