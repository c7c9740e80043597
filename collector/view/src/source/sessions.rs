//! Sessions and turns: how they are read, filtered and ordered.

use hookspan_core::price::Usage;
use hookspan_core::{SessionState, SessionSummary, TurnSummary};

use crate::Result;
use crate::source::spans::LineFilter;

/// Sessions, their turns, and the store's position. Every call is short (it runs on a thread for blocking work) and
/// bounded by its arguments.
pub trait Sessions {
    /// The epoch, which changes when the store is rebuilt, and the newest committed revision.
    fn position(&self) -> Result<Position>;
    /// Sessions written after revision `since`, newest activity first, at most `limit`.
    fn changed(&self, since: u64, limit: usize) -> Result<Vec<SessionSummary>>;
    /// Sessions in the filter's order, at most `limit`, strictly after `before` (a cursor: the sort key of
    /// the last one and its root).
    fn sessions(
        &self,
        filter: &SessionFilter,
        before: Option<(i64, String)>,
        limit: usize,
    ) -> Result<Vec<SessionSummary>>;
    /// One session by root conversation id.
    fn session(&self, root: &str) -> Result<Option<SessionSummary>>;
    /// Its turns in order.
    fn turns(&self, root: &str) -> Result<Vec<TurnSummary>>;
    /// Tokens by model over the turns of a session.
    fn usage_of(&self, root: &str) -> Result<Vec<(Option<String>, Usage)>>;
}

/// Where the store stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Changes when the store is rebuilt. Short ASCII text without a colon.
    pub epoch: String,
    /// Revision of the last transaction.
    pub rev: u64,
}

/// Filters of the session list. A session must match all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// State.
    pub state: Option<SessionState>,
    /// The first prompt, the workspace or the id contains this text.
    pub text: Option<String>,
    /// The session must have this project and be active in this period, and one of its turns must have this model. One
    /// of its spans must have the tool, kind, status and duration. A session is active in a period if it began at or
    /// before the period's end and something happened in it at or after the period's start.
    pub spans: LineFilter,
    /// Whether the editor's completions are included. They are not sessions. Set when everything of a project is
    /// deleted.
    pub completions: bool,
    /// Order.
    pub sort: SessionSort,
    /// Whether the smallest or oldest session comes first.
    pub ascending: bool,
}

impl SessionFilter {
    /// Whether a session comes after a cursor in this order: the sort key of the last one and its root.
    #[must_use]
    pub fn is_after(&self, session: &SessionSummary, cursor: &(i64, String)) -> bool {
        let place = (self.sort.key(session), &*session.root);
        let last = (cursor.0, cursor.1.as_str());
        if self.ascending { place > last } else { place < last }
    }
}

/// Order of a session list; the largest comes first, unless it is ascending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionSort {
    /// Latest activity.
    #[default]
    Last,
    /// Start.
    Start,
    /// Time in turns.
    Active,
    /// Errors.
    Errors,
    /// Tool calls.
    Calls,
    /// Tokens, in and out.
    Tokens,
}

impl SessionSort {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Last, Self::Start, Self::Active, Self::Errors, Self::Calls, Self::Tokens];

    /// The word in a URL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Start => "start",
            Self::Active => "active",
            Self::Errors => "errors",
            Self::Calls => "calls",
            Self::Tokens => "tokens",
        }
    }

    /// The sort key of `session`.
    #[must_use]
    pub fn key(self, session: &SessionSummary) -> i64 {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        match self {
            Self::Last => session.last_at.0,
            Self::Start => session.started_at.0,
            Self::Active => session.active_ns,
            Self::Errors => count(session.errors),
            Self::Calls => count(session.tool_calls),
            Self::Tokens => session.tokens.and_then(hookspan_core::Tokens::total).map_or(0, count),
        }
    }
}
