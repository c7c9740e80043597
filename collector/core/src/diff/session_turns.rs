//! Decides which turns of a session are read again, and reports their changes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::assemble::draft::Tree;
use crate::assemble::draft_turn::grow;
use crate::assemble::summaries::status;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::snapshot::World;
use crate::diff::advance_prefix::put_aside;
use crate::diff::group::Group;
use crate::diff::trace_position::{Place, Possible, fingerprint, trace};
use crate::diff::turn::{Shown, TurnState, tell};
use crate::model::change::Change;
use crate::model::config::TraceMode;
use crate::model::fingerprint::{Fingerprint, Made};
use crate::model::id::{SpanId, TraceId};
use crate::model::span::SpanKind;
use crate::model::time::Timestamp;

/// The scope of a derivation.
pub(super) struct Reach {
    id: Arc<str>,
    /// Turns that start at this time or later are read.
    changed: Timestamp,
    /// All turns are read again.
    force: bool,
    /// Turns whose descendants have new facts. The value is true if the turn must be read again.
    stirred: BTreeMap<Arc<str>, bool>,
    /// Starts of the segments, if spans depend on them.
    segments: Vec<Timestamp>,
    /// The delegations that the whole conversation may belong to.
    unclear: Option<Possible>,
}

impl Reach {
    fn segment_of(&self, at: Timestamp) -> usize {
        self.segments.partition_point(|start| *start <= at).saturating_sub(1)
    }
}

impl Group {
    pub(super) fn reach(
        &mut self,
        id: &Arc<str>,
        world: World<'_>,
        conversation: &Conversation,
        changed: Timestamp,
    ) -> Reach {
        let forced = std::mem::take(&mut self.force);
        if forced {
            self.strays.values_mut().for_each(|stray| stray.facts = 0);
        }
        let force = forced || (self.turns.is_empty() && self.bundles.is_empty());
        let segments = match world.config.trace_mode {
            TraceMode::Generation => Vec::new(),
            TraceMode::Session => self.starts.of(world, conversation, changed),
        };
        Reach {
            id: id.clone(),
            changed: if force { Timestamp(i64::MIN) } else { changed },
            force,
            stirred: std::mem::take(&mut self.stirred),
            segments,
            unclear: world.unclear.get(id).map(|possible| Possible::of(possible, world)),
        }
    }

    /// Reports the changed turns. Returns them, and the number of items read.
    pub(super) fn tell_turns(
        &mut self,
        world: World<'_>,
        conversation: &Conversation,
        reach: &Reach,
        gone: &mut Shown,
        changes: &mut VecDeque<Change>,
    ) -> (Vec<Arc<str>>, usize) {
        let stale = self.stale(conversation, reach);
        let mut work = stale.len();
        let mut derived: Vec<Arc<str>> = Vec::new();
        for index in stale {
            let turn = &conversation.turns[index];
            if conversation.sealed.contains(&turn.generation) {
                continue;
            }
            let stirred = reach.stirred.get(&turn.generation);
            let force = reach.force || stirred.is_some_and(|anew| *anew);
            let place = self.place(world, conversation, index, reach);
            let made_of = fingerprint(conversation, turn, &place);
            if !force && stirred.is_none() && self.is_current(&turn.generation, made_of) {
                continue;
            }
            self.past.note(index);
            let news = (place, made_of, force);
            work += self.tell_turn(world, (conversation, turn), news, gone, changes);
            derived.push(turn.generation.clone());
        }
        (derived, work)
    }

    /// Reads a turn and reports it. Returns the number of items read.
    fn tell_turn(
        &mut self,
        world: World<'_>,
        (conversation, turn): (&Conversation, &Turn),
        (place, made_of, force): (Place, Fingerprint, bool),
        gone: &mut Shown,
        changes: &mut VecDeque<Change>,
    ) -> usize {
        let mut old = self.turns.remove(&turn.generation);
        let window = old.as_mut().and_then(|old| old.window.take());
        let shared = Fingerprint::of(Made::Window).and(conversation.described).trace(place.trace);
        let window = window.filter(|w| !force && w.fits(conversation, turn, shared, self.clock));
        let mut tree = grow(world, conversation, turn, window.as_ref());
        let aside = |id: &SpanId| old.as_ref().is_some_and(|old| old.aside.contains_key(id));
        let is_aside = |tree: &Tree<'_>| tree.nodes.iter().any(|node| aside(&node.id));
        if window.is_some() && (tree.close.is_some() || is_aside(&tree)) {
            tree = grow(world, conversation, turn, None);
        }
        let mut state = tell(&tree, world, (place, made_of), old, gone, changes);
        for child in &state.below {
            self.above.entry(child.clone()).or_default().insert(turn.generation.clone());
        }
        self.ask(&tree, world, changes);
        let new = put_aside(&tree, world.config, self.clock, shared, |at| status(&tree, at));
        let (work, kept) = (tree.nodes.len() + tree.facts, tree.window.is_some());
        if let Some((new, spans)) = new {
            for span in spans {
                state.aside.extend(state.shown.remove_entry(&span));
            }
            state.window = Some(new);
        } else if kept {
            state.window = window;
        }
        self.watch(&turn.generation, &state);
        self.turns.insert(turn.generation.clone(), state);
        work
    }

    /// Watches a turn if it may still change by time or by a child.
    fn watch(&mut self, generation: &Arc<str>, state: &TurnState) {
        if state.deadline.is_some() || state.settle.is_none() {
            self.watched.insert(generation.clone());
        } else {
            self.watched.remove(generation);
        }
    }

    /// Indexes of the turns to read: turns that start at `changed` or later, turns whose descendants have new facts,
    /// and watched turns that are due.
    fn stale(&self, conversation: &Conversation, reach: &Reach) -> Vec<usize> {
        let turns = &conversation.turns;
        let from = turns.partition_point(|turn| turn.start < reach.changed);
        let is_due = |generation: &&Arc<str>| {
            let deadline = self.turns.get(*generation).map(|state| state.deadline);
            deadline.is_none_or(|at| at.is_some_and(|at| at <= self.clock))
        };
        let due = self.watched.iter().filter(is_due).chain(reach.stirred.keys());
        // Most turns have the same index as in the last report, so that index is tried first.
        let told_at = |due: &Arc<str>| {
            let before = self.turns.get(due)?.row.index.checked_sub(1)?;
            conversation.position_of(due, usize::try_from(before).ok()?)
        };
        let due = due.filter_map(|due| match told_at(due) {
            Some(at) => (at < from).then_some(at),
            // A turn that was never reported is at the end.
            None if turns[from..].iter().any(|turn| turn.generation == *due) => None,
            None => turns[..from].iter().rposition(|turn| turn.generation == *due),
        });
        let mut stale: Vec<usize> = due.collect();
        stale.sort_unstable();
        stale.dedup();
        stale.extend(from..turns.len());
        stale
    }

    /// The place of the turn at `index` in its session.
    fn place(
        &self,
        world: World<'_>,
        conversation: &Conversation,
        index: usize,
        reach: &Reach,
    ) -> Place {
        let turn = &conversation.turns[index];
        let (trace, ..) = self.place_of(world, turn, reach);
        let previous = index.checked_sub(1).and_then(|before| conversation.turns.get(before));
        Place {
            root: reach.id.clone(),
            trace,
            index: conversation.turns_before(index) as u64 + 1,
            previous: previous.map(|turn| self.place_of(world, turn, reach)),
            segment: reach.segment_of(turn.start),
            candidates: reach.unclear.clone(),
            stray: false,
        }
    }

    /// A turn's trace, its own span, and its start. For a bundle: those of its last turn.
    fn place_of(
        &self,
        world: World<'_>,
        turn: &Turn,
        reach: &Reach,
    ) -> (TraceId, SpanId, Timestamp) {
        let (known, start) = match self.bundles.get(&turn.generation).map(|bundle| bundle.last) {
            Some((trace, span, start)) => (Some((trace, span)), start),
            None => {
                let state = self.turns.get(&turn.generation);
                (state.map(|state| (state.row.trace, state.row.span)), turn.start)
            }
        };
        let own = || SpanId::derive(&reach.id, &turn.generation, SpanKind::Generation.as_str(), "");
        let (told, span) = known.map_or_else(|| (None, own()), |(trace, span)| (Some(trace), span));
        let told = told.filter(|_| world.config.trace_mode == TraceMode::Generation);
        let segment = || reach.segment_of(start);
        let trace =
            told.unwrap_or_else(|| trace(world.config, &reach.id, &turn.generation, segment()));
        (trace, span, start)
    }

    fn is_current(&self, generation: &Arc<str>, made_of: Fingerprint) -> bool {
        let Some(state) = self.turns.get(generation) else { return false };
        made_of.is(state.made_of) && state.deadline.is_none_or(|at| at > self.clock)
    }
}
