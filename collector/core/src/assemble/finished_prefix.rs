//! The finished part of a long open turn, put aside so that a poll costs what changed and not what the turn holds.
//!
//! A call that has both its halves and ended a while ago does not change any more, so an open turn reads only what is
//! left. Everything here is a shortcut for values that are still provisional: whatever does not fit (a hook in the part
//! put aside, a late half of a call, the end of the turn) makes the turn be read again as a whole, and what leaves when
//! it closes always comes from such a reading.

use std::collections::BTreeMap;

use crate::assemble::turn_totals::Sum;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::fact::Fact;
use crate::correlate::tool_call::tool_facts;
use crate::model::event::EventKind;
use crate::model::fingerprint::Fingerprint;
use crate::model::summary::Parts;
use crate::model::time::Timestamp;
use crate::model::tool::ToolClass;

/// What was put aside, as far as the rest of the turn needs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// Facts before this index are put aside, but for `kept`.
    pub(crate) from: usize,
    /// Key of the last fact before `from`: another one there means that a fact came in late.
    pub(crate) edge: Option<(Timestamp, u8, u64)>,
    pub(crate) kept: Vec<usize>,
    /// The turn was seen alive at this time, without a gap before.
    pub(crate) alive: Timestamp,
    /// Equal thoughts so far.
    pub(crate) thoughts: BTreeMap<String, usize>,
    /// Ends, sorted.
    pub(crate) ends: Vec<Timestamp>,
    pub(crate) start: Option<Timestamp>,
    pub(crate) sum: Sum,
    pub(crate) tool_errors: u64,
    pub(crate) last_error: Option<(Timestamp, String)>,
    /// Where the time before `swept` went.
    pub(crate) parts: Parts,
    pub(crate) swept: Option<Timestamp>,
    /// When something put aside settles.
    pub(crate) recheck: Option<Timestamp>,
    /// What the spans put aside share with the rest.
    pub(crate) shared: Fingerprint,
}

impl Window {
    /// Whether the rest of the turn may be read alone.
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

    /// The facts that are left, in order.
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

/// Loose facts are read on every poll, so a call that has some cannot be put aside.
pub(crate) fn loose_is_plain(conversation: &Conversation, turn: &Turn) -> bool {
    turn.loose.iter().all(|&at| {
        let kind = &conversation.loose[at].kind;
        !matches!(kind, EventKind::Thought(_))
            && tool_facts(kind).is_none_or(|tool| tool.class == ToolClass::Task)
    })
}
