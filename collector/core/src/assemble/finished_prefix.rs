//! The window: the finished part of a long open turn. It is kept apart, so that the cost of a poll depends on what
//! changed and not on the length of the turn.
//!
//! A call with both halves that ended a while ago no longer changes, so for an open turn only the rest is read. The
//! window affects only provisional values. If a hook does not fit (it lies in the finished part, is the late half of a
//! call, or ends the turn), the whole turn is read again. The final values, at the end of the turn, always come from
//! such a full reading.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::assemble::turn_totals::Sum;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::fact::Fact;
use crate::correlate::tool_call::tool_facts;
use crate::model::event::EventKind;
use crate::model::fingerprint::Fingerprint;
use crate::model::summary::Parts;
use crate::model::time::Timestamp;
use crate::model::tool::ToolClass;

/// The facts about the finished part that are needed to read the rest of the turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// Facts before this index are finished, except `kept`.
    pub(crate) from: usize,
    /// Key of the last fact before `from`. If another fact stands there now, a fact arrived late.
    pub(crate) edge: Option<(Timestamp, u8, u64)>,
    /// Indexes of facts before `from` that are still read.
    pub(crate) kept: Vec<usize>,
    /// The turn was active at this time, without an idle gap before.
    pub(crate) alive: Timestamp,
    /// Number of equal thoughts so far.
    pub(crate) thoughts: BTreeMap<String, usize>,
    /// Ends of finished nodes, sorted.
    pub(crate) ends: Vec<Timestamp>,
    /// Earliest start of a finished node.
    pub(crate) start: Option<Timestamp>,
    pub(crate) sum: Sum,
    pub(crate) tool_errors: u64,
    /// Commits that commands told of.
    pub(crate) commits: Vec<Arc<str>>,
    pub(crate) last_error: Option<(Timestamp, String)>,
    /// Breakdown of the time before `swept`.
    pub(crate) parts: Parts,
    pub(crate) swept: Option<Timestamp>,
    /// When something in the finished part settles.
    pub(crate) recheck: Option<Timestamp>,
    /// Fingerprint of values that the finished spans share with the rest of the turn.
    pub(crate) shared: Fingerprint,
}

impl Window {
    /// Whether the rest of the turn may be read without the finished part.
    pub(crate) fn fits(
        &self,
        conversation: &Conversation,
        turn: &Turn,
        shared: Fingerprint,
        clock: Timestamp,
    ) -> bool {
        let facts = conversation.explicit.get(&turn.generation).map(Vec::as_slice);
        let last = self.from.checked_sub(1).and_then(|at| facts?.get(at)).map(Fact::key);
        self.shared.is(shared)
            && last == self.edge
            && self.recheck.is_none_or(|at| at > clock)
            && loose_is_plain(conversation, turn)
    }

    /// The remaining facts, in order.
    pub(crate) fn facts<'a>(&self, conversation: &'a Conversation, turn: &Turn) -> Vec<&'a Fact> {
        let explicit = conversation.explicit.get(&turn.generation);
        let explicit = explicit.map(Vec::as_slice).unwrap_or_default();
        let mut facts: Vec<&Fact> = self.kept.iter().filter_map(|&at| explicit.get(at)).collect();
        facts.extend(explicit.get(self.from..).unwrap_or_default());
        if !turn.loose.is_empty() {
            facts.extend(turn.loose.iter().map(|&at| &conversation.loose[at]));
            facts.sort_by_key(|fact| fact.key());
        }
        facts
    }

    /// The last end not after `at`.
    pub(crate) fn end_before(&self, at: Timestamp) -> Option<Timestamp> {
        let count = self.ends.partition_point(|end| *end <= at);
        count.checked_sub(1).map(|last| self.ends[last])
    }
}

/// Whether a turn's loose facts allow a window. Loose facts are read on every poll, so a thought or a call made from
/// them cannot be in a window.
pub(crate) fn loose_is_plain(conversation: &Conversation, turn: &Turn) -> bool {
    turn.loose.iter().all(|&at| {
        let kind = &conversation.loose[at].kind;
        !matches!(kind, EventKind::Thought(_))
            && tool_facts(kind).is_none_or(|tool| tool.class == ToolClass::Task)
    })
}
