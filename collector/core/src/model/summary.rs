//! Rows of lists: one per session and per turn, maintained as events arrive.

use std::sync::Arc;

use crate::model::id::{SpanId, TraceId};
use crate::model::outcome::{self, OutcomeWord, Work};
use crate::model::repository::Repository;
use crate::model::span::EndReason;
use crate::model::time::Timestamp;

/// A session: the topmost conversation and everything below it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// Root `conversation_id`.
    pub root: Arc<str>,
    /// State, for the list.
    pub state: SessionState,
    /// First event of the root conversation, as received. The session's span may begin earlier, because a start may be
    /// computed from a duration.
    pub started_at: Timestamp,
    /// Last event.
    pub last_at: Timestamp,
    /// End of the last segment, when it has ended.
    pub ended_at: Option<Timestamp>,
    /// Folder of the project, see [`crate::event::About::workspace`].
    pub workspace: Option<Arc<str>>,
    /// Model of the last turn that named one.
    pub model: Option<Arc<str>>,
    /// `ide`, `cli` or `unknown`. `tab` stands for the completions of one workspace; they are not a session and appear
    /// in no list.
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
    /// Spans that count as errors, see [`crate::Status::counts`].
    pub errors: u64,
    /// Turns with at least one error.
    pub errored_turns: u64,
    /// Time inside turns, nanoseconds.
    pub active_ns: i64,
    /// Sum over turns; `None` when no turn reported any.
    pub tokens: Option<Tokens>,
    /// Repository state from the start of its first turn to the end of its last.
    pub repository: Option<Box<Repository>>,
    /// What its calls did.
    pub work: Work,
}

impl SessionSummary {
    /// The outcome of the session in words. Empty if nothing is known.
    #[must_use]
    pub fn outcome(&self) -> Vec<OutcomeWord> {
        let runs = matches!(self.state, SessionState::Running | SessionState::ToolOpen);
        let over = !runs && self.generations > 0;
        outcome::words(&self.work, self.repository.as_deref(), over)
    }
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// A turn is open.
    Running,
    /// A turn is open, and a call in it runs or waits for approval.
    ToolOpen,
    /// The last turn ended; the person acts next.
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

/// Token counts, each if it was reported: an unreported count is not 0. `input` already includes both cache parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Input, cache included.
    pub input: Option<u64>,
    /// Output.
    pub output: Option<u64>,
    /// Read from cache.
    pub cache_read: Option<u64>,
    /// Written to cache.
    pub cache_write: Option<u64>,
}

impl Tokens {
    /// `None` if nothing is reported.
    #[must_use]
    pub fn said(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// These counts. A missing count is taken from `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            input: self.input.or(others.input),
            output: self.output.or(others.output),
            cache_read: self.cache_read.or(others.cache_read),
            cache_write: self.cache_write.or(others.cache_write),
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Self {
            input: sum(self.input, more.input),
            output: sum(self.output, more.output),
            cache_read: sum(self.cache_read, more.cache_read),
            cache_write: sum(self.cache_write, more.cache_write),
        }
    }

    /// Input plus output; `None` if neither is reported.
    #[must_use]
    pub fn total(self) -> Option<u64> {
        let output = Self { input: self.output, ..Self::default() };
        self.plus(output).input
    }
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
    /// First event of the turn, as received. The turn's span may begin earlier: it covers its children, and a child's
    /// start may be computed from a duration.
    pub started_at: Timestamp,
    /// End, `None` while it runs.
    pub ended_at: Option<Timestamp>,
    /// Why it ended.
    pub end_reason: Option<EndReason>,
    /// Prompt, at most 200 characters.
    pub prompt: Option<String>,
    /// Model label.
    pub model: Option<Arc<str>>,
    /// `completed`, `aborted` or `error`, from Cursor.
    pub status: Option<String>,
    /// Tool calls at any depth.
    pub tool_calls: u64,
    /// Spans that count as errors, itself included.
    pub errors: u64,
    /// Tokens, once.
    pub tokens: Option<Tokens>,
    /// Where the time went.
    pub parts: Parts,
    /// What was seen of the workspace's repository.
    pub repository: Option<Box<Repository>>,
    /// What its calls did.
    pub work: Work,
}

/// Where a turn's time went, in nanoseconds. Computed by a sweep over the leaf spans that shares parallel time evenly,
/// so the parts add up to the turn's duration. The parts of several turns add up to the sum of their durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Thoughts.
    pub thinking: i64,
    /// Responses: from the end of the previous event, unless Cursor reports their duration.
    pub responding: i64,
    /// Tools of no other category.
    pub tools: i64,
    /// Shell commands.
    pub shell: i64,
    /// MCP calls.
    pub mcp: i64,
    /// Edits.
    pub edits: i64,
    /// Subagents, while none of their own calls runs.
    pub subagent: i64,
    /// Time between the two hooks of a call in which the call did not run. A person may have been asked. Hooks that ran
    /// during this time are included.
    pub wait: i64,
    /// Like `wait`, but time in which only hooks can have run: between hooks of a call that belong to one moment, and
    /// around calls that need no approval (reading, searching).
    pub hooks: i64,
    /// The rest: the model's time, and time for which no hook tells anything.
    pub other: i64,
}

impl Parts {
    /// Every part with its name, in the order of a legend.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, i64); 10] {
        [
            ("thinking", self.thinking),
            ("responding", self.responding),
            ("tools", self.tools),
            ("shell", self.shell),
            ("mcp", self.mcp),
            ("edits", self.edits),
            ("subagent", self.subagent),
            ("wait", self.wait),
            ("hooks", self.hooks),
            ("other", self.other),
        ]
    }

    /// The whole.
    #[must_use]
    pub fn total(&self) -> i64 {
        self.named().iter().fold(0, |sum, (_, part)| sum.saturating_add(*part))
    }
}

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, more: Self) {
        self.thinking += more.thinking;
        self.responding += more.responding;
        self.tools += more.tools;
        self.shell += more.shell;
        self.mcp += more.mcp;
        self.edits += more.edits;
        self.subagent += more.subagent;
        self.wait += more.wait;
        self.hooks += more.hooks;
        self.other += more.other;
    }
}

impl std::iter::Sum for Parts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, parts| {
            sum += parts;
            sum
        })
    }
}

impl TurnSummary {
    /// Duration in nanoseconds. `None` while the turn runs, and if only its stop is known.
    #[must_use]
    pub fn length_ns(&self) -> Option<i64> {
        Some(self.ended_at?.since(self.started_at)).filter(|ns| *ns > 0)
    }
}

/// Where a session's time went, nanoseconds: [`Self::turns`] and [`Self::idle`] add up to [`Self::whole`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionParts {
    /// Sum over its turns.
    pub turns: Parts,
    /// Time outside any turn.
    pub idle: i64,
    /// From the session's first event to its last, or the end of its last turn.
    pub whole: i64,
}

impl SessionParts {
    /// Computes where the time of a session went, from the session and all its turns.
    #[must_use]
    pub fn of(session: &SessionSummary, turns: &[TurnSummary]) -> Self {
        let starts = turns.iter().map(|turn| turn.started_at);
        let ends = turns.iter().map(|turn| turn.started_at.plus(turn.parts.total()));
        let first = starts.fold(session.started_at, Timestamp::min);
        let last = ends.fold(session.last_at, Timestamp::max);
        let turns: Parts = turns.iter().map(|turn| turn.parts).sum();
        // If turns overlap (two clocks, a single event), their sum is used as the whole.
        let whole = last.since(first).max(turns.total());
        Self { turns, idle: whole - turns.total(), whole }
    }
}
