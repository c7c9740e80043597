//! Content of a span: which part of a hook it is, and its text.

/// Key of the old and new text of an edit as the hook after it tells them, where that differs from the input: a file that is written
/// over. For the pages of this machine; it is never exported or searched, since the input is.
pub const EDIT_CHANGES: &str = "hookspan.edit.changes";

/// Which part of a hook's body a content attribute is.
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
