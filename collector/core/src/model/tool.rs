//! Facts that one hook tells about a tool call. They are small values, never texts.

use std::sync::Arc;

use crate::model::fingerprint::ContentKey;

/// `hookspan.tool.class`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolClass {
    /// A shell command.
    Shell,
    /// Reads a file.
    Read,
    /// Looks for files or text.
    Search,
    /// Changes a file.
    Edit,
    /// Removes a file.
    Delete,
    /// A tool of an MCP server.
    Mcp,
    /// Hands work to another agent.
    Task,
    /// A pasted image, written by the editor itself.
    Attachment,
    /// Asks a person, and runs until the answer.
    Question,
    /// Anything else.
    #[default]
    Other,
}

impl ToolClass {
    /// The word in attributes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Read => "read",
            Self::Search => "search",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Mcp => "mcp",
            Self::Task => "task",
            Self::Attachment => "attachment",
            Self::Question => "question",
            Self::Other => "other",
        }
    }
}

/// The facts in one hook of a call. Every field but the name is optional, because any hook may be the only one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolFacts {
    /// `tool_use_id`, byte for byte; empty is absent.
    pub id: Option<Arc<str>>,
    /// Tool name, bare for MCP.
    pub tool: Arc<str>,
    /// Class.
    pub class: ToolClass,
    /// Digest of the input that both hook layers share: command, path, or input of an MCP tool; 0 if the hook has none.
    pub content: u64,
    /// Digest of name and input: the key of a call without an id.
    pub fallback: ContentKey,
    /// Bytes of the input as received.
    pub input_bytes: Option<u64>,
    /// Bytes of the output as received.
    pub output_bytes: Option<u64>,
    /// `duration` in milliseconds.
    pub duration_ms: Option<f64>,
    /// File the call is about, as sent.
    pub path: Option<Arc<str>>,
    /// Working directory.
    pub cwd: Option<Arc<str>>,
    /// The output itself reports a failure (`isError`, `success: false`, an error, a signal).
    pub is_error: bool,
    /// `is_interrupt`.
    pub interrupt: Option<bool>,
    /// Whether the body holds an error text.
    pub has_error_text: bool,
    /// `content_length` of a read.
    pub content_length: Option<i64>,
    /// Facts that only some calls have. They are kept apart, because tool facts use most of the fold's memory and are
    /// read often.
    pub more: Option<Box<ToolMore>>,
}

/// Facts that only shell commands, edits, searches, MCP tools, delegating and failed calls have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolMore {
    /// Name of the program, for a shell command that starts exactly one program.
    pub executable: Option<Arc<str>>,
    /// Shell sandbox.
    pub sandbox: Option<bool>,
    /// Shell timeout.
    pub timeout_ms: Option<i64>,
    /// Exit code of a shell command.
    pub exit_code: Option<i64>,
    /// Commit that the output of a `git commit` names, abbreviated as Git wrote it.
    pub commit: Option<Arc<str>>,
    /// Exit codes with which this shell command reports failed tests. `None` if the command does not run tests, or if
    /// something else can decide its exit code.
    pub tests: Option<TestCodes>,
    /// Address of the pull request that the command opened, from the command's output.
    pub pull_request: Option<Arc<str>>,
    /// Whether the agent called this MCP tool through another tool. The MCP tool's own hook then has a more precise
    /// duration than the hook of the other tool.
    pub wrapped: bool,
    /// The command continues in the background: the input requests it, or the result is a receipt.
    pub background: Option<bool>,
    /// `failure_type`.
    pub failure: Option<Arc<str>>,
    /// The change of an edit.
    pub edits: Option<Edits>,
    /// `output_mode` of a search.
    pub output_mode: Option<Arc<str>>,
    /// MCP server.
    pub server: Option<Box<Server>>,
    /// Facts of a delegating call.
    pub delegate: Option<Box<Delegate>>,
}

/// Exit codes with which a test runner reports failed tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestCodes {
    /// Any code except 0 and the shell's own codes.
    Any,
    /// Only these. Other codes mean that no test ran, or that the runner failed to start.
    Only(&'static [i64]),
}

impl TestCodes {
    /// From this exit code on, codes come from the shell itself: the program is missing, cannot be started, or was
    /// killed.
    const OF_THE_SHELL: i64 = 126;

    /// Whether `code` says that tests passed or failed; `None` if it says neither.
    #[must_use]
    pub fn passed(self, code: i64) -> Option<bool> {
        let failed = match self {
            Self::Any => (1..Self::OF_THE_SHELL).contains(&code),
            Self::Only(codes) => codes.contains(&code),
        };
        (code == 0 || failed).then_some(code == 0)
    }
}

/// Size of an edit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// Number of edits.
    pub count: i64,
    /// Lines added.
    pub added: i64,
    /// Lines removed.
    pub removed: i64,
    /// Digest of the replaced text and its replacement; 0 if the hook has neither.
    pub text: u64,
    /// Digest of the new text of a single edit; 0 if the hook does not have it.
    pub new: u64,
}

/// An MCP server as a hook names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// `mcp_server_name`.
    pub name: Option<String>,
    /// Host of its URL.
    pub address: Option<String>,
    /// Port of its URL.
    pub port: Option<i64>,
    /// Whether the server is started by a command (pipe) and not reached by URL (tcp).
    pub pipe: bool,
    /// Whether the body holds the command.
    pub has_command: bool,
}

/// A delegating call: it gives work to another agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delegate {
    /// `subagent_type`.
    pub agent: Option<String>,
    /// `run_in_background`.
    pub background: Option<bool>,
    /// Digest of the prompt, to compare with a child's task; 0 without one.
    pub task: u64,
    /// [`ToolFacts::fallback`] as text, for a call without an id.
    pub key: Option<String>,
    /// The subagent that the result names (Claude Code's `agentId`).
    pub subagent: Option<String>,
}

impl ToolFacts {
    /// The key of a delegating call among the delegations of its conversation.
    pub(crate) fn delegation(&self) -> Option<&str> {
        let fallback = || self.delegate()?.key.as_deref();
        self.id.as_deref().or_else(fallback).filter(|_| self.class == ToolClass::Task)
    }

    /// The subagent that the result of a delegating call names.
    pub(crate) fn subagent(&self) -> Option<&str> {
        self.delegate()?.subagent.as_deref()
    }

    /// The facts that only some calls have.
    pub(crate) fn more(&self) -> Option<&ToolMore> {
        self.more.as_deref()
    }

    /// Facts of a delegating call.
    pub(crate) fn delegate(&self) -> Option<&Delegate> {
        self.more()?.delegate.as_deref()
    }
}
