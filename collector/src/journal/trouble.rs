//! Keeps track of failed housekeeping: the problem in words, and the time of the next attempt.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookspan_core::Timestamp;

use super::JournalError;
use crate::clock;

/// Longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// What the follower does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// Reading segments.
    Read,
    /// Making them durable.
    Sync,
    /// Keeping the names in order: rolling the journal, or making a new one.
    Roll,
    /// Taking over what shims spilled.
    Spill,
    /// Deleting segments that are stored.
    Delete,
    /// Keeping the journal within its bound.
    Bound,
}

/// A task that fails at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The task.
    pub task: Task,
    /// How the last attempt failed.
    pub error: String,
    /// When the first attempt failed.
    pub since: Timestamp,
}

impl Problem {
    /// What the failure means for hooks.
    fn meaning(&self) -> &'static str {
        match self.task {
            Task::Read => "hooks in it wait there",
            Task::Sync => "a power cut may lose the newest hooks",
            Task::Roll => "hooks are still stored, and the journal grows",
            Task::Spill => "hooks wait in the run-time directory",
            Task::Delete => "stored hooks still use disk space",
            Task::Bound => "hooks are still stored, and the journal may grow beyond its limit",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}; trying again", self.error, self.meaning())
    }
}

/// How long a task has been failing, and when to try again. Each wait is twice as long as the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    failing: Option<Failing>,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    since: Instant,
    wait: Duration,
    again_at: Instant,
}

impl Pause {
    /// Whether it may be tried now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.failing.is_none_or(|failing| now >= failing.again_at)
    }

    /// How long the task has been failing; `None` if the last attempt succeeded.
    pub(super) fn failing_for(&self, now: Instant) -> Option<Duration> {
        self.failing.map(|failing| now.duration_since(failing.since))
    }

    /// Time until the next attempt; `None` if the last attempt succeeded.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        self.failing.map(|failing| failing.again_at.saturating_duration_since(now))
    }

    /// Notes a failed attempt. The first wait is `shortest`.
    pub(super) fn failed(&mut self, now: Instant, shortest: Duration) {
        let (since, wait) = match self.failing {
            Some(failing) => (failing.since, (failing.wait * 2).min(LONGEST_WAIT)),
            None => (now, shortest),
        };
        self.failing = Some(Failing { since, wait, again_at: now + wait });
    }

    /// An attempt worked.
    pub(super) fn worked(&mut self) {
        self.failing = None;
    }
}

/// Tasks that fail at present.
#[derive(Debug)]
pub(super) struct Troubles {
    shortest_wait: Duration,
    failing: BTreeMap<Task, (Pause, Problem)>,
    /// The problems, readable from other threads.
    shown: Arc<[Problem]>,
}

impl Troubles {
    pub(super) fn new(shortest_wait: Duration) -> Self {
        Self { shortest_wait, failing: BTreeMap::new(), shown: Arc::default() }
    }

    /// Whether `task` may be tried now.
    pub(super) fn is_due(&self, task: Task, now: Instant) -> bool {
        self.failing.get(&task).is_none_or(|(pause, _)| pause.is_due(now))
    }

    /// Notes the result of an attempt. If the same failure repeats, it is logged once.
    pub(super) fn note(&mut self, task: Task, done: Result<(), JournalError>, now: Instant) {
        match done {
            Ok(()) => {
                let Some((_, problem)) = self.failing.remove(&task) else { return };
                tracing::info!(was = problem.error, "journal.works_again");
            }
            Err(error) => {
                let error = error.to_string();
                let known = self.failing.get(&task);
                if known.is_some_and(|(_, problem)| problem.error == error) {
                    self.wait(task, now);
                    return;
                }
                tracing::warn!(error, "journal.trouble");
                let since = known.map_or_else(clock::now, |(_, problem)| problem.since);
                let pause = known.map_or_else(Pause::default, |(pause, _)| *pause);
                self.failing.insert(task, (pause, Problem { task, error, since }));
                self.wait(task, now);
            }
        }
        self.shown = self.failing.values().map(|(_, problem)| problem.clone()).collect();
    }

    /// Tasks that fail at present.
    pub(super) fn shown(&self) -> Arc<[Problem]> {
        Arc::clone(&self.shown)
    }

    fn wait(&mut self, task: Task, now: Instant) {
        let shortest = self.shortest_wait;
        if let Some((pause, _)) = self.failing.get_mut(&task) {
            pause.failed(now, shortest);
        }
    }
}
