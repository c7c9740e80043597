//! Derives the parts of a session outside its turns: session spans, spans outside turns, and the session's row.

use std::collections::{BTreeMap, VecDeque};

use crate::assemble::session_segment as segment;
use crate::assemble::session_segment::Segment;
use crate::assemble::summaries::summary;
use crate::assemble::turn_totals::Tally;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::snapshot::World;
use crate::diff::group::Group;
use crate::diff::turn::{Shown, Told};
use crate::model::change::{Change, SpanKey};
use crate::model::fingerprint::Fingerprint;
use crate::model::span::Span;

/// The parts outside turns, and the number of items read for them.
pub(super) struct Around {
    pub(super) segments: Vec<Segment>,
    pub(super) work: usize,
}

impl Group {
    /// Reports session spans, spans outside turns, and the session's row.
    pub(super) fn tell_around(
        &mut self,
        world: World<'_>,
        conversation: &Conversation,
        gone: &mut Shown,
        changes: &mut VecDeque<Change>,
    ) -> Around {
        let rest = self.tallies_after_past(conversation);
        let tallies: Vec<&Tally> =
            self.past.tallies().iter().chain(rest.iter().map(|(tally, _)| tally)).collect();
        let segments = segment::segments(world, conversation, &tallies);
        let spans = segment::spans(world, conversation, &segments, &tallies);
        let mut row = summary(world, conversation, &segments, &tallies);
        // The last turn is not counted as done, because a later hook may still begin a turn before the end of the last
        // one.
        let done = rest.split_last().map_or(&[][..], |(_, done)| done);
        for (tally, _) in done.iter().take_while(|(_, is_done)| *is_done) {
            if !self.past.take(tally, &segments) {
                break;
            }
        }
        self.cuts.clear();
        self.cuts.extend(segments.iter().map(|segment| (segment.start, segment.ended)));
        row.tool_calls += self.strays.values().map(|stray| stray.state.sum.tool_calls).sum::<u64>();
        row.errors += self.strays.values().map(|stray| stray.state.sum.errors).sum::<u64>();
        self.strays.values().for_each(|stray| row.work.add(&stray.state.sum.work));
        let work = rest.len()
            + spans.len()
            + segments.len()
            + conversation.outside.len()
            + conversation.session.len()
            + conversation.tabs.len();
        self.tell_spans_around(spans, gone, changes);
        if self.session.as_ref() != Some(&row) {
            changes.push_back(Change::Session(Box::new(row.clone())));
            self.session = Some(row);
        }
        Around { segments, work }
    }

    /// The totals of each turn after the settled ones, and whether the turn can still change.
    fn tallies_after_past(&self, conversation: &Conversation) -> Vec<(Tally, bool)> {
        let tally = |turn: &Turn| match self.turns.get(&turn.generation) {
            Some(state) => {
                let settled = state.settle.is_some_and(|at| at <= self.clock);
                let tally = Tally::of(&state.sum, &state.row, state.settle);
                Some((tally, settled && state.deadline.is_none()))
            }
            None => self.bundles.get(&turn.generation).map(|bundle| (bundle.tally.clone(), true)),
        };
        let rest = conversation.turns.get(self.past.turns()..).unwrap_or_default();
        rest.iter().filter_map(tally).collect()
    }

    fn tell_spans_around(
        &mut self,
        spans: Vec<Span>,
        gone: &mut Shown,
        changes: &mut VecDeque<Change>,
    ) {
        let mut around = BTreeMap::new();
        for span in spans {
            let told = self.around.get_mut(&span.id);
            let settles = span.settled && told.as_ref().is_some_and(|told| !told.settled);
            // This field is left out of the comparison, because it is reported by a change of its own.
            let same = told.is_some_and(|told| {
                told.settled |= settles;
                *told == span
            });
            if same && settles {
                changes.push_back(Change::Settle(SpanKey::of(&span)));
            } else if !same {
                changes.push_back(Change::Span(Box::new(span.clone())));
            }
            around.insert(span.id, span);
        }
        let old = std::mem::replace(&mut self.around, around);
        for (id, span) in old {
            if !self.around.contains_key(&id) {
                let Span { conversation, kind, settled, .. } = span;
                gone.insert(
                    id,
                    Told { conversation, kind, made_of: Fingerprint::INVALID, settled },
                );
            }
        }
    }
}
