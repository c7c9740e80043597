//! What lists show: one row per session and per turn, maintained as events arrive.

use std::sync::Arc;

use crate::{EndReason, SpanId, Timestamp, TraceId};

/// A session: the topmost conversation with all that happened below it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// Root `conversation_id`.
    pub root: Arc<str>,
    /// State, for the list.
    pub state: SessionState,
    /// First event of the root conversation, as received. The session's span may begin earlier: it covers what a duration
    /// computes.
    pub started_at: Timestamp,
    /// Last event.
    pub last_at: Timestamp,
    /// End of the last segment, when it has ended.
    pub ended_at: Option<Timestamp>,
    /// First workspace root, as sent.
    pub workspace: Option<Arc<str>>,
    /// Model of the last turn that named one.
    pub model: Option<Arc<str>>,
    /// `ide`, `cli` or `unknown`.
    pub surface: &'static str,
    /// `cursor_version`, or the host's name for other agents.
    pub cursor_version: Option<Arc<str>>,
    /// First prompt, at most 200 characters.
    pub first_prompt: Option<String>,
    /// Last error's fixed text.
    pub last_error: Option<String>,
    /// Turns of the root conversation.
    pub generations: u64,
    /// Tool calls at any depth, without the delegating ones.
    pub tool_calls: u64,
    /// Subagents at any depth.
    pub subagents: u64,
    /// Spans with status error.
    pub errors: u64,
    /// Turns with at least one error.
    pub errored_turns: u64,
    /// Time inside turns, nanoseconds.
    pub active_ns: i64,
    /// Sum over turns; `None` when no turn reported any.
    pub tokens: Option<Tokens>,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// A turn is open.
    Running,
    /// A turn is open and so is a call in it: running, or waiting for approval.
    ToolOpen,
    /// The last turn ended; the person is next.
    YourTurn,
    /// `sessionEnd` arrived.
    Done,
    /// The last turn or the session ended in an error.
    Errored,
    /// Nothing arrived for `session_idle`.
    Stale,
}

impl SessionState {
    /// Every state, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Running, Self::ToolOpen, Self::YourTurn, Self::Done, Self::Errored, Self::Stale];

    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::ToolOpen => "tool_open",
            Self::YourTurn => "your_turn",
            Self::Done => "done",
            Self::Errored => "errored",
            Self::Stale => "stale",
        }
    }

    /// The inverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// Token counts. `input` already includes both cache parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Input, cache included.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Read from cache.
    pub cache_read: u64,
    /// Written to cache.
    pub cache_write: u64,
}

/// A turn of a root conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnSummary {
    /// Root `conversation_id`.
    pub root: Arc<str>,
    /// Generation id; synthetic ones included.
    pub generation: Arc<str>,
    /// The turn's own span.
    pub span: SpanId,
    /// The trace it lives in.
    pub trace: TraceId,
    /// 1-based order in the session.
    pub index: u64,
    /// First event of the turn, as received. Its span may begin earlier: it covers its children, also those whose start
    /// was computed from a duration.
    pub started_at: Timestamp,
    /// End, `None` while it runs.
    pub ended_at: Option<Timestamp>,
    /// Why it ended.
    pub end_reason: Option<EndReason>,
    /// Prompt, at most 200 characters.
    pub prompt: Option<String>,
    /// Model label.
    pub model: Option<Arc<str>>,
    /// `completed`, `aborted`, `error` as Cursor said.
    pub status: Option<String>,
    /// Tool calls at any depth.
    pub tool_calls: u64,
    /// Spans with status error, itself included.
    pub errors: u64,
    /// Tokens, once.
    pub tokens: Option<Tokens>,
    /// Where the time went.
    pub parts: Parts,
}

/// Where a turn's time went, nanoseconds. A sweep over leaf spans, parallel time shared evenly, so the parts add up to the
/// turn's duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Thoughts.
    pub thinking: i64,
    /// Tools that are none of the others.
    pub tools: i64,
    /// Shell commands.
    pub shell: i64,
    /// MCP calls.
    pub mcp: i64,
    /// Edits.
    pub edits: i64,
    /// Subagents, where none of their own calls runs.
    pub subagent: i64,
    /// Between the two hooks of a call but not running: approvals and other hooks.
    pub wait: i64,
    /// The rest: the model, or nothing we can see.
    pub other: i64,
}
