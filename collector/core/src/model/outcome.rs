//! What came of a turn or a session: tests, edits, commits, a pull request. `docs/figures.md` defines each word.

use std::sync::Arc;

use crate::model::repository::Repository;
use crate::model::time::Timestamp;

/// What the calls of a turn or a session did, as far as hooks tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Calls that changed or deleted a file, and did not fail.
    pub edits: u64,
    /// Calls that may have changed something that no hook tells: shell commands, MCP tools, unknown tools.
    pub unclear: u64,
    /// Test commands that ended with exit code 0.
    pub tests_passed: u64,
    /// Test commands that ended with an exit code that reports a failure.
    pub tests_failed: u64,
    /// The last test command whose result was read as passed or failed.
    pub last_test: Option<TestRun>,
    /// Address of the last pull request that a command opened.
    pub pull_request: Option<Arc<str>>,
}

/// A test command whose result is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestRun {
    /// When it ended.
    pub at: Timestamp,
    /// Whether its exit code is 0.
    pub passed: bool,
}

impl Work {
    /// Adds a test command with a known result.
    pub fn test(&mut self, run: TestRun) {
        *(if run.passed { &mut self.tests_passed } else { &mut self.tests_failed }) += 1;
        self.last_test = self.last_test.max(Some(run));
    }

    /// Adds what was done later.
    pub(crate) fn add(&mut self, later: &Self) {
        self.edits += later.edits;
        self.unclear += later.unclear;
        self.tests_passed += later.tests_passed;
        self.tests_failed += later.tests_failed;
        self.last_test = self.last_test.max(later.last_test);
        self.pull_request = later.pull_request.clone().or(self.pull_request.take());
    }
}

/// A word of an outcome. A session may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutcomeWord {
    /// The test command that ended last failed.
    TestsFailed,
    /// The test command that ended last passed.
    TestsPassed,
    /// A command opened a pull request.
    PullRequest,
    /// Something was committed.
    Committed,
    /// Files were changed, and nothing was committed by the end of the last turn.
    LeftOpen,
    /// No call of the session can have changed a file.
    Unchanged,
}

impl OutcomeWord {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::TestsFailed,
        Self::TestsPassed,
        Self::PullRequest,
        Self::Committed,
        Self::LeftOpen,
        Self::Unchanged,
    ];

    /// The inverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }

    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TestsFailed => "tests_failed",
            Self::TestsPassed => "tests_passed",
            Self::PullRequest => "pull_request",
            Self::Committed => "committed",
            Self::LeftOpen => "left_open",
            Self::Unchanged => "unchanged",
        }
    }
}

/// The words for `work`. `over` is false while a turn runs. Then it is too early for "left open" and "unchanged".
pub(crate) fn words(work: &Work, seen: Option<&Repository>, over: bool) -> Vec<OutcomeWord> {
    use OutcomeWord as W;
    let committed = seen.is_some_and(|seen| !seen.commits.is_empty());
    let looked = seen.is_some_and(|seen| seen.commit.is_some());
    let done = committed || work.pull_request.is_some();
    let tests = work.last_test.map(|run| if run.passed { W::TestsPassed } else { W::TestsFailed });
    let others = [
        (work.pull_request.is_some(), W::PullRequest),
        (committed, W::Committed),
        (over && looked && !done && work.edits > 0, W::LeftOpen),
        (over && !done && work.edits == 0 && work.unclear == 0, W::Unchanged),
    ];
    let others = others.into_iter().filter_map(|(is_so, word)| is_so.then_some(word));
    tests.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use OutcomeWord as W;

    fn run(at: i64, passed: bool) -> TestRun {
        TestRun { at: Timestamp(at), passed }
    }

    #[test]
    fn the_test_command_that_ended_last_decides_in_any_order() {
        let (mut one, mut two) = (Work::default(), Work::default());
        one.test(run(5, false));
        two.test(run(3, true));
        let (mut forth, mut back) = (one.clone(), two.clone());
        forth.add(&two);
        back.add(&one);
        assert_eq!(forth, back);
        assert_eq!((forth.tests_passed, forth.tests_failed), (1, 1));
        assert_eq!(words(&forth, None, true), [W::TestsFailed, W::Unchanged]);
    }

    #[test]
    fn what_nobody_saw_is_no_outcome() {
        let edited = Work { edits: 1, ..Work::default() };
        let unclear = Work { unclear: 1, ..Work::default() };
        let seen = Repository { commit: Some("1a".into()), ..Repository::default() };
        let made = Repository { commits: vec!["2b".into()], ..Repository::default() };
        for (work, seen, over, expected) in [
            (&edited, None, true, &[][..]),
            (&edited, Some(&seen), true, &[W::LeftOpen]),
            (&edited, Some(&seen), false, &[]),
            (&edited, Some(&made), true, &[W::Committed]),
            (&unclear, Some(&seen), true, &[]),
            (&Work::default(), None, true, &[W::Unchanged]),
            (&Work::default(), None, false, &[]),
        ] {
            assert_eq!(words(work, seen, over), expected, "{work:?} {seen:?} {over}");
        }
        let opened = Work { pull_request: Some("https://git.example/o/r/pull/1".into()), ..edited };
        assert_eq!(words(&opened, Some(&seen), true), [W::PullRequest]);
    }
}
