//! State of children that fit several delegations. Each of their turns has its own trace.

use crate::correlate::conversation::Conversation;
use crate::diff::turn::TurnState;
use crate::model::fingerprint::Fingerprint;
use crate::model::time::Timestamp;

/// A turn of such a child, as last reported.
#[derive(Debug)]
pub(crate) struct Stray {
    pub(crate) state: TurnState,
    /// What that report was made from: the number of the child's facts, its description, and its candidates.
    pub(crate) facts: usize,
    described: Fingerprint,
    candidates: Fingerprint,
}

impl Stray {
    pub(crate) fn new(state: TurnState, child: &Conversation, candidates: Fingerprint) -> Self {
        Self { state, facts: child.count, described: child.described, candidates }
    }

    pub(crate) fn is_current(
        &self,
        child: &Conversation,
        candidates: Fingerprint,
        clock: Timestamp,
    ) -> bool {
        self.facts == child.count
            && self.described.is(child.described)
            && self.candidates.is(candidates)
            && self.state.deadline.is_none_or(|at| at > clock)
    }
}
