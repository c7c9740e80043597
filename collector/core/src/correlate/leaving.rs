//! How settled turns leave memory and come back: see [`SealedTurns`](crate::correlate::sealed_turns::SealedTurns).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::correlate::call_home::call_id;
use crate::correlate::conversation::Conversation;
use crate::correlate::fact::Fact;
use crate::correlate::sealed_turns::{Reload, Sealed, number};
use crate::correlate::turn_layout::Turn;
use crate::model::event::{Event, EventKind};
use crate::model::time::Timestamp;

/// A turn that is about to be evicted: its name and start, the hooks and conversations below it, and the number of
/// facts that are evicted with it.
pub(crate) struct Leaving {
    pub(crate) generation: Arc<str>,
    pub(crate) start: Timestamp,
    pub(crate) hooks: BTreeSet<u64>,
    pub(crate) children: Vec<Arc<str>>,
    pub(crate) facts: usize,
}

/// Parts that were evicted with some turns.
#[derive(Default)]
struct Gone {
    /// Indexes of loose facts.
    loose: BTreeSet<usize>,
    thoughts: BTreeSet<Timestamp>,
    facts: usize,
}

impl Conversation {
    /// Whether every fact of a turn can be reloaded with the same result. This is impossible for a fact whose time is
    /// not the wall clock's.
    pub(crate) fn is_sealable(&self, turn: &Turn) -> bool {
        !self.sealed.contains(&turn.generation)
            && self.facts(turn).iter().all(|fact| fact.is_by_the_clock())
    }

    /// Numbers of all its hooks.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = u64> {
        let lists = self.explicit.values().chain([&self.loose, &self.session, &self.tabs]);
        let evidence = self.evidence.as_ref().map(|(seq, _)| *seq);
        lists.flatten().map(|fact| fact.seq).chain(evidence)
    }

    /// Evicts the facts of turns. Returns the number of evicted facts, minus one for each turn.
    pub(crate) fn seal(&mut self, turns: Vec<Leaving>) -> usize {
        let mut gone = Gone::default();
        for leaving in turns {
            let name = &leaving.generation;
            let from = self.turns.partition_point(|turn| turn.start < leaving.start);
            if let Some(at) = self.turns[from..].iter().position(|turn| turn.generation == *name) {
                self.seal_turn(from + at, leaving, &mut gone);
            }
        }
        self.thoughts.retain(|at| !gone.thoughts.contains(at));
        let sealed = &self.sealed;
        if let Some(homes) = &mut self.homes {
            homes.retain(|_, (_, generation)| !sealed.contains(generation));
        }
        self.drop_loose(&gone.loose);
        self.held = self.held.saturating_sub(gone.facts);
        gone.facts
    }

    fn seal_turn(&mut self, at: usize, leaving: Leaving, gone: &mut Gone) {
        let Leaving { generation, mut hooks, children, .. } = leaving;
        let turn = self.turns[at].clone();
        let facts = self.facts(&turn);
        let (Some(first), Some(last)) = (facts.first(), facts.last()) else { return };
        let stop = facts.iter().find(|fact| matches!(fact.kind, EventKind::Stop(_)));
        let times = (first.at, last.at, stop.map(|stop| stop.at));
        hooks.extend(facts.iter().map(|fact| fact.seq));
        let is_thought = |fact: &&&Fact| matches!(fact.kind, EventKind::Thought(_));
        gone.thoughts.extend(facts.iter().filter(is_thought).map(|fact| fact.at));
        let ids = facts.iter().filter_map(|fact| call_id(&fact.kind));
        let calls: BTreeSet<Box<str>> =
            ids.filter(|_| self.homes.is_some()).map(Box::from).collect();
        let keys: BTreeSet<Box<str>> =
            facts.iter().filter_map(|fact| self.delegation_of(fact)).map(Box::from).collect();
        gone.facts += facts.len().saturating_sub(1);
        gone.loose.extend(&turn.loose);
        keys.iter().for_each(|key| drop(self.delegations.remove(key)));
        self.explicit.remove(&generation);
        self.turns[at].loose.clear();
        let number = number(&generation, turn.synthetic);
        let sealed = Sealed::new(times, number, &hooks, children);
        self.sealed.insert(generation, sealed, calls.iter().map(|id| &**id), turn.synthetic);
    }

    /// Bundles consecutive sealed turns into one entry. Returns by how many facts the count decreases, and the children
    /// below the turns. `None` if the turns cannot share an entry now.
    pub(crate) fn bundle(&mut self, places: Range<usize>) -> Option<(usize, Vec<Arc<str>>)> {
        let turns = self.turns.get(places.clone())?;
        let start = turns.first()?.start;
        let next = self.turns.get(places.end)?.start;
        // Turns in which a delegation began are not bundled, because the first fact after the delegation decides its
        // end.
        let begins_here = |at: &Timestamp| (start..next).contains(at);
        if self
            .delegations
            .values()
            .filter_map(|delegation| delegation.start)
            .any(|at| begins_here(&at))
        {
            return None;
        }
        let names: Vec<Arc<str>> = turns.iter().map(|turn| turn.generation.clone()).collect();
        let (freed, children) = self.sealed.bundle(&names)?;
        self.bundle_places(places, &names);
        self.thin_out(start, next);
        self.held = self.held.saturating_sub(freed);
        Some((freed, children))
    }

    /// Of the prompts and breaks in a period, keeps only those that earlier turns may need: the first ones.
    fn thin_out(&mut self, start: Timestamp, next: Timestamp) {
        let mut inside = self.prompts.split_off(&(start, 0));
        let mut after = inside.split_off(&(next, 0));
        // Prompts of two generations are kept, because the first prompt may be the previous turn's own.
        let mut names: Vec<Arc<str>> = Vec::new();
        inside.retain(|_, generation| {
            let is_first = names.len() < 2 && !names.contains(generation);
            names.extend(is_first.then(|| generation.clone()));
            is_first
        });
        self.prompts.append(&mut inside);
        self.prompts.append(&mut after);
        let from = self.breaks.partition_point(|(at, _)| *at < start);
        let to = self.breaks.partition_point(|(at, _)| *at < next);
        if to > from + 1 {
            self.breaks.drain(from + 1..to);
        }
    }

    /// The entry of the sealed turn that an event belongs to: by name, or by the event's time.
    pub(crate) fn sealed_turn_of(&self, event: &Event) -> Option<Arc<str>> {
        if self.sealed.is_empty() {
            return None;
        }
        if !event.generation.is_empty()
            && let Some(own) = self.sealed.entry_of(&event.generation)
        {
            return Some(own.clone());
        }
        let id = call_id(&event.kind).filter(|id| {
            // The first hook of a call belongs to a new call, so its id is not searched among evicted turns. Any other
            // hook belongs to an open call in memory, if there is one.
            let is_start = matches!(event.kind, EventKind::ToolStart(_));
            event.generation.is_empty() && !is_start && !self.placed.homes.contains_key(*id)
        });
        if let Some(turn) = id.and_then(|id| self.sealed.entry_of_call(id)) {
            return Some(turn.clone());
        }
        let mut steady = self.steady;
        let at = steady.time(event.at, event.boottime_ns);
        if !self.sealed.reach(at) || matches!(event.kind, EventKind::Evidence(_)) {
            return None;
        }
        let before = &self.turns[..self.turns.partition_point(|turn| turn.start <= at)];
        let last = before.last().filter(|turn| self.sealed.contains(&turn.generation));
        last.map(|turn| turn.generation.clone())
    }

    /// Removes a sealed turn's entry. The caller adds the turn's facts next.
    pub(crate) fn unseal(&mut self, name: &Arc<str>) -> Option<Sealed> {
        let sealed = self.sealed.take(name)?;
        if sealed.turns() > 1 {
            self.part_places(name, sealed.first);
        }
        self.held = self.held.saturating_sub(sealed.weight());
        self.reload = Some(Reload::of(name, &sealed));
        self.touch(sealed.first);
        Some(sealed)
    }

    /// Ends a reload. Call it after all reloaded facts were added.
    pub(crate) fn end_reload(&mut self) {
        self.reload = None;
    }
}
