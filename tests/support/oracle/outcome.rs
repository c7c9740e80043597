//! What came of a session: tests, edits, commits, a pull request.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::{Check, number, text};
use super::truth::{Call, Deed, Layers, Session, Tool};

/// What came of a session.
#[derive(Debug, Default)]
struct Outcome {
    edits: i64,
    passed: i64,
    failed: i64,
    words: BTreeSet<&'static str>,
    /// Two test runs with different results ended at nearly the same time, so that nobody can say which was the last.
    is_close: bool,
}

impl Outcome {
    fn of(session: &Session) -> Self {
        const CLOSE_MS: u64 = 2_000;
        let calls: Vec<&Call> = session.all_calls().filter(|call| !call.hangs).collect();
        let of = |deed: Deed| calls.iter().filter(move |call| call.deed() == deed);
        // Only the generic hooks tell an exit code.
        let tests = of(Deed::Tests).filter(|_| session.layers != Layers::Specific);
        let mut tests: Vec<(u64, bool)> =
            tests.map(|call| (call.start + call.duration, !call.failed)).collect();
        tests.sort_unstable();
        let passed = tests.iter().filter(|(_, passed)| *passed).count() as i64;
        let mut words = BTreeSet::new();
        let mut is_close = false;
        if let Some((at, passed)) = tests.last() {
            words.insert(if *passed { "tests_passed" } else { "tests_failed" });
            is_close = tests.iter().any(|(other, had)| had != passed && at - other < CLOSE_MS);
        }
        let is_done = |deed: Deed| of(deed).any(|call| !call.failed);
        if is_done(Deed::PullRequest) {
            words.insert("pull_request");
        }
        if is_done(Deed::Commit) {
            words.insert("committed");
        }
        let edits = calls.iter().filter(|call| call.edit.is_some()).count() as i64;
        let is_clear = session.all_calls().all(|call| matches!(call.tool, Tool::Read | Tool::Grep));
        if is_clear {
            words.insert("unchanged");
        }
        Self { edits, passed, failed: tests.len() as i64 - passed, words, is_close }
    }
}

impl Check<'_> {
    /// What came of a session: counted from what was decided, by the words of `docs/figures.md`.
    pub(super) fn outcome(&mut self, what: &str, item: &Value, session: &Session) {
        let truth = Outcome::of(session);
        for (name, wanted) in
            [("edits", truth.edits), ("tests_passed", truth.passed), ("tests_failed", truth.failed)]
        {
            self.found.equal(&format!("{what} {name}"), &number(&item[name]), &wanted);
        }
        let got: BTreeSet<String> =
            item["words"].as_array().into_iter().flatten().map(text).collect();
        if !truth.is_close {
            let wanted = truth.words.iter().map(|word| (*word).to_owned()).collect();
            self.found.equal(&format!("{what} words"), &got, &wanted);
        }
    }
}
