//! The meaning of a hook in our terms.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

pub use crate::model::parent_evidence::{Confidence, Evidence, LinkSource};
use crate::model::repository::RepositoryState;
use crate::model::summary::Tokens;
use crate::model::time::Timestamp;
use crate::model::tool::ToolFacts;

/// A hook, interpreted. Holds facts and sizes; texts stay in the raw body.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Position in the raw log.
    pub seq: u64,
    /// Wall clock of receipt.
    pub at: Timestamp,
    /// [`crate::Hook::boottime_ns`].
    pub boottime_ns: Option<NonZeroU64>,
    /// `conversation_id`, else `session_id`; empty if the payload has neither.
    pub conversation: Arc<str>,
    /// Normalised generation id; empty when the event belongs to whatever turn is open.
    pub generation: Arc<str>,
    /// Event name for counters: ours for a known event (`preToolUse`), as sent (at most 64 characters) otherwise.
    pub name: Cow<'static, str>,
    /// Whose hook it is.
    pub host: Host,
    /// Facts that every event may have besides its own fields.
    pub about: About,
    /// Unknown fields, as `name:shape`, made safe: at most 8 names of at most 64 characters.
    pub unseen: Vec<Box<str>>,
    /// Unknown words in fields that hold one word of a list, as `event.field=word`.
    pub unseen_values: Vec<Box<str>>,
    /// The body is damaged. Only the part before the damage was read.
    pub damaged: bool,
    /// The parent a hook itself names for its conversation.
    pub lineage: Option<Box<Lineage>>,
    /// What happened.
    pub kind: EventKind,
}

/// Which program ran the hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// Cursor, IDE or CLI.
    #[default]
    Cursor,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// VS Code Copilot.
    Copilot,
    /// Windsurf.
    Windsurf,
    /// Copilot CLI.
    CopilotCli,
    /// Gemini CLI.
    Gemini,
    /// An unknown program: nothing in the hook names it.
    Unknown,
}

impl Host {
    /// How strongly an event of this host proves the host of its whole conversation. All hosts imitate Claude Code's
    /// events. One event with a host's own field decides for the conversation, and Cursor's version number weighs most.
    pub(crate) const fn weight(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Claude => 1,
            Self::Codex | Self::Copilot | Self::Windsurf | Self::CopilotCli | Self::Gemini => 2,
            Self::Cursor => 3,
        }
    }

    /// The word in span names, `gen_ai.agent.name` and lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cursor => "cursor",
            Self::Claude => "claude-code",
            Self::Codex => "codex",
            Self::Copilot => "vscode-copilot",
            Self::Windsurf => "windsurf",
            Self::CopilotCli => "copilot",
            Self::Gemini => "gemini",
            Self::Unknown => "unknown",
        }
    }
}

/// The envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// `model` as sent; empty is absent.
    pub model: Option<Arc<str>>,
    /// `model_id` and `model_params`, where either is sent.
    pub labels: Option<Box<Labels>>,
    /// `cursor_version`.
    pub cursor_version: Option<Arc<str>>,
    /// Folder of the project in its plain spelling (see [`crate::path`]): the first of `workspace_roots`, else the
    /// `cwd` of other hosts. If that folder is a worktree, its repository's folder.
    pub workspace: Option<Arc<str>>,
    /// The workspace root, if it is not `workspace`, see [`Self::root`].
    pub(crate) own_root: Option<Arc<str>>,
    /// `transcript_path`.
    pub transcript_path: Option<Arc<str>>,
    /// The first root is on another machine. A folder of the same name on this machine is a different folder.
    pub remote: bool,
}

impl About {
    /// The workspace root that contains the file of this hook, else the first root. If that root is a worktree, the
    /// worktree itself.
    #[must_use]
    pub fn root(&self) -> Option<&Arc<str>> {
        self.own_root.as_ref().or(self.workspace.as_ref())
    }
}

/// Facts about the model that only some events have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// `model_id`.
    pub id: Option<String>,
    /// `model_params` as JSON.
    pub params: Option<String>,
}

/// A child conversation's parent, by explicit ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// The parent conversation; empty if the hook names only the call.
    pub parent: String,
    /// The subagent's id there.
    pub subagent: String,
}

/// The closed set of what can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// `workspaceOpen`: no ids, no span.
    WorkspaceOpen,
    /// `sessionStart`.
    SessionStart {
        /// `is_background_agent`.
        background: Option<bool>,
        /// `composer_mode`.
        mode: Option<String>,
    },
    /// `sessionEnd`.
    SessionEnd(Box<SessionEnd>),
    /// `beforeSubmitPrompt`.
    Prompt(Box<Prompt>),
    /// `preToolUse`.
    ToolStart(Box<ToolFacts>),
    /// `postToolUse`.
    ToolEnd(Box<ToolFacts>),
    /// `postToolUseFailure`.
    ToolFailure(Box<ToolFacts>),
    /// `beforeShellExecution`.
    ShellStart(Box<ToolFacts>),
    /// `afterShellExecution`.
    ShellEnd(Box<ToolFacts>),
    /// `beforeMCPExecution`.
    McpStart(Box<ToolFacts>),
    /// `afterMCPExecution`.
    McpEnd(Box<ToolFacts>),
    /// `beforeReadFile`.
    FileRead(Box<ToolFacts>),
    /// `afterFileEdit`.
    FileEdit(Box<ToolFacts>),
    /// `afterAgentResponse`.
    Response(Box<Response>),
    /// `afterAgentThought`.
    Thought(Box<Thought>),
    /// `stop`.
    Stop(Box<Stop>),
    /// `subagentStart`.
    SubagentStart(Box<SubagentFacts>),
    /// `subagentStop`.
    SubagentStop(Box<SubagentFacts>),
    /// `preCompact`.
    Compaction(Box<Compaction>),
    /// A compaction is over (`PostCompact` of Claude Code and Codex).
    CompactionEnd,
    /// The agent asks a person something in the middle of a call (`Elicitation`), or the person has answered.
    Question {
        /// `ElicitationResult`.
        answered: bool,
    },
    /// Calls of a batch that were refused (`PostToolBatch` of Claude Code).
    ToolBatch(Vec<ToolFacts>),
    /// `beforeTabFileRead`.
    TabRead {
        /// File.
        path: Option<String>,
    },
    /// `afterTabFileEdit`.
    TabEdit {
        /// File.
        path: Option<String>,
        /// Lines added.
        added: i64,
        /// Lines removed.
        removed: i64,
    },
    /// An event name hookspan does not know: kept, counted, attached to the open turn.
    Unknown {
        /// The name as sent.
        name: String,
        /// Digest of the body, to recognise a repeated delivery.
        body: u64,
        /// Whether no known host sends an event of this name.
        is_new: bool,
    },
    /// A body that could not be read: kept, counted.
    Malformed,
    /// Proof of whose child a conversation is, found by the collector.
    Evidence(Box<Evidence>),
    /// What the collector saw of the workspace's repository.
    Repository(Box<RepositoryState>),
}

/// `sessionEnd`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionEnd {
    /// `reason`.
    pub reason: Option<String>,
    /// `final_status`.
    pub final_status: Option<String>,
    /// `duration_ms`.
    pub duration_ms: Option<i64>,
    /// `is_background_agent`.
    pub background: Option<bool>,
}

/// `beforeSubmitPrompt`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Bytes of the prompt.
    pub bytes: u64,
    /// Its first 200 characters.
    pub preview: Option<String>,
    /// Number of attachments.
    pub attachments: i64,
    /// Their types, sorted, unique.
    pub attachment_types: Vec<String>,
    /// `composer_mode`.
    pub mode: Option<String>,
}

/// `afterAgentResponse`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// `~` + hash of the text.
    pub key: String,
    /// Bytes of the text.
    pub bytes: u64,
    /// Token counts, where the host sends them.
    pub tokens: Tokens,
    /// `tokens` of the oldest payloads: one number for all of them.
    pub total: Option<u64>,
    /// `duration_ms`.
    pub duration_ms: Option<f64>,
}

/// `afterAgentThought`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thought {
    /// The step number at the end of its generation id; without one, `~` and a hash of the text.
    pub key: String,
    /// Whether `key` is a step.
    pub step: bool,
    /// Digest of the text.
    pub text: u64,
    /// Bytes of the text.
    pub bytes: u64,
    /// `duration_ms`.
    pub duration_ms: Option<f64>,
}

/// `stop`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// `status`.
    pub status: Option<String>,
    /// `loop_count`.
    pub loop_count: Option<i64>,
    /// Token counts, where the host sends them.
    pub tokens: Tokens,
    /// The error, if the host reports one: a short word of the host.
    pub error: Option<String>,
}

/// `subagentStart` and `subagentStop`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubagentFacts {
    /// `subagent_id`.
    pub id: Option<String>,
    /// `tool_call_id`: the call that asked for it.
    pub call: Option<String>,
    /// `child_conversation_id`.
    pub child: Option<String>,
    /// `subagent_type`.
    pub agent: Option<String>,
    /// `subagent_model`.
    pub model: Option<String>,
    /// `~` + hash of type and task: the key of a subagent without an id.
    pub fallback: String,
    /// Digest of the task; 0 without one.
    pub task: u64,
    /// Whether the body holds a task, a summary, a description.
    pub has: (bool, bool, bool),
    /// `status`.
    pub status: Option<String>,
    /// `duration_ms`.
    pub duration_ms: Option<f64>,
    /// `git_branch`.
    pub branch: Option<String>,
    /// `is_parallel_worker`.
    pub parallel: Option<bool>,
    /// `message_count`.
    pub messages: Option<i64>,
    /// `tool_call_count`.
    pub tool_calls: Option<i64>,
}

impl SubagentFacts {
    /// The subagent's key among the delegations of its conversation, if the hook names one.
    pub(crate) fn key(&self) -> &str {
        self.named().unwrap_or(&self.fallback)
    }

    /// The id that identifies the subagent: the id of its call, else its own id.
    pub(crate) fn named(&self) -> Option<&str> {
        self.call.as_deref().or(self.id.as_deref())
    }
}

/// `preCompact`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compaction {
    /// `~` + hash of trigger and context tokens.
    pub key: String,
    /// `trigger`.
    pub trigger: Option<String>,
    /// `context_usage_percent`.
    pub usage_percent: Option<f64>,
    /// `context_tokens`.
    pub context_tokens: Option<i64>,
    /// `context_window_size`.
    pub window_size: Option<i64>,
    /// `message_count`.
    pub messages: Option<i64>,
    /// `messages_to_compact`.
    pub to_compact: Option<i64>,
    /// `is_first_compaction`.
    pub first: Option<bool>,
}
