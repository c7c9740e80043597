//! Totals over the settled turns of a session.

use crate::assemble::session_segment::Segment;
use crate::assemble::turn_totals::Tally;
use crate::model::time::Timestamp;

/// Totals of the turns at the beginning of a session that no longer change, by segment. They keep the cost of a poll
/// independent of the session's length. If one of these turns changes after all, the totals are computed again.
#[derive(Debug, Default)]
pub(crate) struct Past {
    tallies: Vec<Tally>,
    /// Start of the segment of the last total.
    segment: Timestamp,
    turns: usize,
}

impl Past {
    /// Number of turns in it.
    pub(crate) const fn turns(&self) -> usize {
        self.turns
    }

    pub(crate) fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// Records that the turn at `index` has changed.
    pub(crate) fn note(&mut self, index: usize) {
        if index < self.turns {
            *self = Self::default();
        }
    }

    /// Records that this number of turns now share one entry.
    pub(crate) fn bundle(&mut self, turns: usize) {
        self.turns = (self.turns + 1).saturating_sub(turns);
    }

    /// Adds the next turn. Returns false if the turn lies in no segment. A turn after the hook that ended its segment
    /// gets a total of its own, because the order of turn and hook matters.
    pub(crate) fn take(&mut self, turn: &Tally, segments: &[Segment]) -> bool {
        let at = segments.partition_point(|segment| segment.start <= turn.start);
        let Some(segment) = at.checked_sub(1).map(|at| &segments[at]) else { return false };
        let is_behind_end = segment.ended.is_some_and(|ended| turn.start > ended);
        match self.tallies.last_mut() {
            Some(last) if self.segment == segment.start && !is_behind_end => {
                last.add(turn.clone());
            }
            _ => self.tallies.push(turn.clone()),
        }
        self.segment = segment.start;
        self.turns += 1;
        true
    }
}
