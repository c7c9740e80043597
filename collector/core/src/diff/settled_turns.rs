//! The settled turns of a session, taken together.

use crate::assemble::session_segment::Segment;
use crate::assemble::turn_totals::Tally;
use crate::model::time::Timestamp;

/// The first turns of a session, which do not change any more, taken together by segment: a poll costs what changed and not
/// what the session holds. A turn of them that changes all the same makes them be taken together anew.
#[derive(Debug, Default)]
pub(crate) struct Past {
    tallies: Vec<Tally>,
    /// Start of the segment that the last tally lies in.
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

    /// The turn at `index` has changed.
    pub(crate) fn note(&mut self, index: usize) {
        if index < self.turns {
            *self = Self::default();
        }
    }

    /// Of the turns in it, so many share one entry now.
    pub(crate) fn bundle(&mut self, turns: usize) {
        self.turns = (self.turns + 1).saturating_sub(turns);
    }

    /// Takes in the next turn. False if it lies in no segment. One after the hook that ended its segment stays by itself: the
    /// order of the two counts.
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
