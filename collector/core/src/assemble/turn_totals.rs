//! Totals of turns, from which the session's totals are computed.

use std::sync::Arc;

use crate::model::outcome::Work;
use crate::model::repository::Repository;
use crate::model::span::Link;
use crate::model::summary::{Tokens, TurnSummary};
use crate::model::time::Timestamp;

/// Maximum number of links from a session to its turns. The oldest are kept.
pub(crate) const MAX_LINKS: usize = 128;

/// What one turn adds to its session's totals.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub(crate) start: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) tool_calls: u64,
    pub(crate) errors: u64,
    pub(crate) subagents: u64,
    pub(crate) open: bool,
    pub(crate) tool_open: bool,
    pub(crate) last_error: Option<String>,
    pub(crate) idle: bool,
    pub(crate) failed: bool,
    /// The turn begins with a prompt.
    pub(crate) begins: bool,
    pub(crate) work: Work,
}

/// Totals of one turn or of consecutive turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) start: Timestamp,
    pub(crate) last: Timestamp,
    /// When the last of these turns settles; `None` if that is unknown for one of them.
    pub(crate) settle: Option<Timestamp>,
    /// Whether the first turn begins with a prompt.
    pub(crate) begins: bool,
    pub(crate) generations: u64,
    pub(crate) tool_calls: u64,
    pub(crate) errors: u64,
    pub(crate) errored_turns: u64,
    pub(crate) subagents: u64,
    pub(crate) active_ns: i64,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) repository: Option<Box<Repository>>,
    pub(crate) work: Work,
    /// From the first turn that has one.
    pub(crate) prompt: Option<String>,
    /// Model of the last turn that names one. `last_error` is the error of the last turn that has one.
    pub(crate) model: Option<Arc<str>>,
    pub(crate) last_error: Option<String>,
    /// From the last turn.
    pub(crate) open: bool,
    pub(crate) tool_open: bool,
    pub(crate) failed: bool,
    /// Links to each turn, in order.
    pub(crate) links: Vec<Link>,
}

impl Tally {
    pub(crate) fn of(sum: &Sum, row: &TurnSummary, settle: Option<Timestamp>) -> Self {
        let link = Link { trace: row.trace, span: row.span, kind: "generation", at: sum.start };
        Self {
            start: sum.start,
            last: sum.last,
            settle,
            begins: sum.begins,
            generations: 1,
            tool_calls: sum.tool_calls,
            errors: sum.errors,
            errored_turns: u64::from(sum.errors > 0),
            subagents: sum.subagents,
            active_ns: row.ended_at.unwrap_or(sum.last).since(row.started_at).max(0),
            tokens: row.tokens,
            repository: row.repository.clone(),
            work: sum.work.clone(),
            prompt: row.prompt.clone(),
            model: row.model.clone(),
            last_error: sum.last_error.clone(),
            open: sum.open,
            tool_open: sum.tool_open,
            failed: sum.failed,
            links: vec![link],
        }
    }

    /// Adds the totals of later turns.
    pub(crate) fn add(&mut self, later: Self) {
        self.start = self.start.min(later.start);
        self.last = self.last.max(later.last);
        self.settle = self.settle.zip(later.settle).map(|(a, b)| a.max(b));
        self.generations += later.generations;
        self.tool_calls += later.tool_calls;
        self.errors += later.errors;
        self.errored_turns += later.errored_turns;
        self.subagents += later.subagents;
        self.active_ns = self.active_ns.saturating_add(later.active_ns);
        self.tokens = total([self.tokens, later.tokens].into_iter());
        self.work.add(&later.work);
        self.repository = together(self.repository.take(), later.repository);
        self.prompt = self.prompt.take().or(later.prompt);
        self.model = later.model.or(self.model.take());
        self.last_error = later.last_error.or(self.last_error.take());
        (self.open, self.tool_open, self.failed) = (later.open, later.tool_open, later.failed);
        let room = MAX_LINKS.saturating_sub(self.links.len());
        self.links.extend(later.links.into_iter().take(room));
    }
}

/// The state of the repository over two consecutive groups of turns.
pub(crate) fn together(
    one: Option<Box<Repository>>,
    later: Option<Box<Repository>>,
) -> Option<Box<Repository>> {
    match (one, later) {
        (Some(one), Some(later)) => Some(Box::new(one.then(*later))),
        (one, later) => one.or(later),
    }
}

/// The sum of token counts; `None` if there are none.
pub(crate) fn total(all: impl Iterator<Item = Option<Tokens>>) -> Option<Tokens> {
    all.flatten().reduce(Tokens::plus)
}
