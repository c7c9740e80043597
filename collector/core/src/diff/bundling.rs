//! Lets evicted settled turns share entries (bundles), so that the memory for a session is bounded however long it is.

use std::ops::Range;
use std::sync::Arc;

use crate::assemble::turn_totals::{MAX_LINKS, Tally};
use crate::correlate::conversation::{Conversation, Turn};
use crate::diff::bundle::Bundle;
use crate::diff::group::Group;
use crate::diff::lag::Lag;
use crate::diff::settled_turns::Past;

/// Sizes of bundles.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Number of turns per bundle. As many of the newest settled turns keep an entry of their own.
    turns: usize,
    /// Maximum number of hooks of a bundle. One late hook causes all of them to be read again.
    hooks: usize,
}

impl Size {
    /// Sizes that follow from the number of settled hooks kept in memory.
    pub(crate) fn of(settled_hooks: usize) -> Self {
        Self { turns: (settled_hooks / 16).max(4), hooks: (settled_hooks / 2).max(64) }
    }
}

impl Group {
    /// The first consecutive settled turns that may share an entry.
    pub(crate) fn next_bundle(
        &self,
        conversation: &Conversation,
        size: Size,
    ) -> Option<Range<usize>> {
        if conversation.sealed.singles() < size.turns * 2 {
            return None;
        }
        let mut from = 0;
        let (mut hooks, mut segment) = (0, None);
        let turns = conversation.turns.get(..self.settled_turns()).unwrap_or_default();
        for (at, turn) in turns.iter().enumerate() {
            let sealed = conversation.sealed.get(&turn.generation);
            let sealed = sealed.filter(|sealed| sealed.turns() == 1);
            let own = sealed.map(|sealed| sealed.hooks().len());
            let cut = self.segment_at(turn.start);
            let joins = own.is_some_and(|own| {
                at - from < size.turns
                    && hooks + own <= size.hooks
                    && segment.is_none_or(|s| s == cut)
            });
            if joins {
                hooks += own.unwrap_or_default();
            } else {
                if at > from + 1 {
                    return Some(from..at);
                }
                from = at + usize::from(own.is_none());
                hooks = own.unwrap_or_default();
            }
            segment = (from <= at).then_some(cut);
        }
        None
    }

    /// Number of turns before the entry at `position` in its segment.
    pub(crate) fn turns_before_in_segment(
        &self,
        conversation: &Conversation,
        position: usize,
    ) -> usize {
        let turn = conversation.turns.get(position);
        let segment = turn.and_then(|turn| self.segment_at(turn.start));
        let start = segment.map(|(start, _)| start).unwrap_or_default();
        let first = conversation.turns.partition_point(|turn| turn.start < start);
        conversation.turns_before(position).saturating_sub(conversation.turns_before(first))
    }

    /// Prepares for the facts of sealed turns. The caller adds these facts next.
    pub(crate) fn unseal(&mut self, name: &Arc<str>) {
        self.lag = Lag::default();
        self.sealed_turns = 0;
        if self.bundles.remove(name).is_some() {
            self.past = Past::default();
            self.forget_starts();
        }
    }

    /// Adds up the sums of turns that share an entry now.
    pub(crate) fn bundle(&mut self, places: Range<usize>, turns: &[Turn], before: usize) {
        let mut bundle: Option<Bundle> = None;
        for turn in turns {
            let Some(state) = self.turns.remove(&turn.generation) else { continue };
            let tally = Tally::of(&state.sum, &state.row, state.settle);
            let last = (state.row.trace, state.row.span, turn.start);
            match &mut bundle {
                None => bundle = Some(Bundle { tally, last }),
                Some(bundle) => {
                    bundle.tally.add(tally);
                    bundle.last = last;
                }
            }
        }
        let (Some(mut bundle), Some(first)) = (bundle, turns.first()) else { return };
        // A session links only to its first turns.
        bundle.tally.links.truncate(MAX_LINKS.saturating_sub(before));
        bundle.tally.links.shrink_to_fit();
        self.bundles.insert(first.generation.clone(), bundle);
        self.past.bundle(turns.len());
        self.forget_starts();
        let gone = turns.len().saturating_sub(1);
        if self.sealed_turns >= places.end {
            self.sealed_turns -= gone;
        } else {
            self.sealed_turns = self.sealed_turns.min(places.start);
        }
    }
}
