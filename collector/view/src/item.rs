//! Parts of a session in JSON that the API and the commands write in the same way.

use std::sync::Arc;

use hookspan_core::outcome::OutcomeWord;
use hookspan_core::repository::Repository;
use hookspan_core::{SessionSummary, Tokens};
use schemars::JsonSchema;
use serde::Serialize;

use crate::source::SessionMarks;

/// The outcome of the session, as far as hooks and the repository tell.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OutcomeItem {
    /// tests_failed, tests_passed, pull_request, committed, left_open, unchanged; empty if nothing is known
    words: Vec<&'static str>,
    /// Calls that changed or deleted a file.
    edits: u64,
    /// Test commands that passed.
    tests_passed: u64,
    /// Test commands that failed.
    tests_failed: u64,
    /// Address of the last pull request that was opened.
    pull_request: Option<String>,
}

impl OutcomeItem {
    /// The outcome of `session`.
    #[must_use]
    pub fn of(session: &SessionSummary) -> Self {
        let work = &session.work;
        Self {
            words: session.outcome().into_iter().map(OutcomeWord::as_str).collect(),
            edits: work.edits,
            tests_passed: work.tests_passed,
            tests_failed: work.tests_failed,
            pull_request: work.pull_request.as_deref().map(str::to_owned),
        }
    }
}

/// The state of the workspace's Git repository, from the first look to the last.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RepositoryItem {
    /// Address of the remote, without credentials.
    url: Option<String>,
    from_branch: Option<String>,
    from_commit: Option<String>,
    branch: Option<String>,
    commit: Option<String>,
    /// Commits made in between, the oldest first. A commit that is known only from a command's output is abbreviated.
    commits: Vec<String>,
}

impl From<Box<Repository>> for RepositoryItem {
    fn from(seen: Box<Repository>) -> Self {
        let text = |text: Option<Arc<str>>| text.map(|text| text.to_string());
        Self {
            url: text(seen.url),
            from_branch: text(seen.from_branch),
            from_commit: text(seen.from_commit),
            branch: text(seen.branch),
            commit: text(seen.commit),
            commits: seen.commits.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Tokens, each null if no hook reported it. `input` includes both cache parts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TokenCounts {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
}

impl From<Tokens> for TokenCounts {
    fn from(tokens: Tokens) -> Self {
        let Tokens { input, output, cache_read, cache_write } = tokens;
        Self { input, output, cache_read, cache_write }
    }
}

/// What people added to a session.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct MarkItem {
    starred: bool,
    /// In alphabetical order; at most 16.
    tags: Vec<String>,
    /// Plain text; empty if there is none.
    note: String,
}

impl From<SessionMarks> for MarkItem {
    fn from(SessionMarks { starred, tags, note }: SessionMarks) -> Self {
        Self { starred, tags, note }
    }
}
