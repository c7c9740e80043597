//! Divides a conversation into turns. A fact that names its generation belongs to that turn. Any other fact (a loose
//! fact) belongs to the turn that was open at its time, or opens a turn.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::correlate::call_home::call_id;
use crate::correlate::conversation::{Conversation, MAX_REPEATS};
use crate::correlate::evidence::is_repeat;
use crate::correlate::fact::Fact;
use crate::correlate::sealed_turns::{Sealed, numbered};
use crate::correlate::turn_end::OpenCalls;
use crate::correlate::turn_layout::{Opened, Placed, Turn};
use crate::model::config::Config;
use crate::model::event::EventKind;
use crate::model::time::Timestamp;
use crate::model::tolerance::{DISORDER, REPEAT};

impl Conversation {
    /// Divides the facts into turns. Earlier turns stay, unless new facts may change them.
    pub(crate) fn lay_out(&mut self, config: &Config) {
        self.session_idle_ns = config.session_idle_ns;
        self.resolve_delegations();
        let begun = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.moved) {
            self.begin_anew();
        } else {
            begun.iter().for_each(|generation| self.place_turn(generation));
        }
        for index in self.placed.count..self.loose.len() {
            self.place_loose(index, config);
        }
        self.placed.count = self.loose.len();
    }

    /// Whether a fact of a generation may change to which turns loose facts belong. Usually all loose facts are older
    /// than the fact. Then a fact of an existing turn affects none of them, and a new turn affects only those just
    /// before it.
    pub(super) fn moves_loose(&mut self, generation: &Arc<str>, fact: &Fact) -> bool {
        let is_stop = |fact: &Fact| matches!(fact.kind, EventKind::Stop(_));
        if self.loose.is_empty() && !is_stop(fact) {
            return false;
        }
        let facts = self.explicit.get(generation).map(Vec::as_slice).unwrap_or_default();
        let slack = if facts.is_empty() { DISORDER } else { 0 };
        let begins_earlier = facts.first().is_some_and(|first| fact.key() < first.key());
        let mut was_closed = false;
        if is_stop(fact) {
            let first_stop = facts.iter().find(|fact| is_stop(fact)).map(|stop| stop.at);
            if first_stop.is_none_or(|first| fact.at < first) {
                // A stop that names the turn decides when the turn ends. A stop without a generation may have come
                // first and is replaced.
                let is_it = |turn: &Turn| turn.generation == *generation;
                // A turn that began in this batch is not in `turns` yet, so searching for it would be useless.
                let may_have_place =
                    self.placed.named.contains(generation) || generation.starts_with('~');
                let turn = may_have_place.then(|| self.turns.iter().rposition(is_it)).flatten();
                let closed = turn.and_then(|at| self.placed.turns[at].closed.replace(fact.at));
                was_closed = closed.is_some() && closed != first_stop;
            }
        }
        let Some(last) = self.loose.last() else { return false };
        let named = call_id(&fact.kind).is_some_and(|id| self.placed.homes.contains_key(id));
        begins_earlier || named || was_closed || last.at.plus(slack) >= fact.at
    }

    /// Starts over with the named turns.
    fn begin_anew(&mut self) {
        self.layout += 1;
        let opened =
            self.explicit.iter().filter_map(|(generation, facts)| self.opened(generation, facts));
        let sealed =
            self.sealed.iter().map(|(generation, sealed)| self.reopened(generation, sealed));
        let mut turns: Vec<(Turn, Opened)> = opened.chain(sealed).collect();
        turns.sort_by(|(a, _), (b, _)| (a.start, &a.generation).cmp(&(b.start, &b.generation)));
        self.outside.clear();
        self.placed = Placed::default();
        self.placed.named.extend(turns.iter().map(|(turn, _)| turn.generation.clone()));
        self.placed.synthetic = self.sealed.numbers();
        (self.turns, self.placed.turns) = turns.into_iter().unzip();
    }

    /// Assigns the first unassigned loose fact to the turn that was open then.
    fn place_loose(&mut self, index: usize, config: &Config) {
        let fact = &self.loose[index];
        let at = fact.at;
        // Both halves of a pair belong together, however long the time between them.
        let id: Option<Box<str>> = self.call_of(fact).map(Into::into);
        let is_stop = matches!(fact.kind, EventKind::Stop(_));
        let is_start = matches!(fact.kind, EventKind::ToolStart(_));
        let generation = match self.place(index, config) {
            Place::In(turn) => {
                let open = &mut self.placed.turns[turn];
                open.last = open.last.max(at);
                if is_stop && open.closed.is_none() {
                    open.closed = Some(at);
                }
                let turn = &mut self.turns[turn];
                turn.loose.push(index);
                self.changed = self.changed.min(turn.start);
                turn.generation.clone()
            }
            Place::Outside => {
                self.outside.push(index);
                self.changed = Timestamp(i64::MIN);
                return;
            }
            Place::Opens => {
                let generation = numbered(self.placed.synthetic as u64);
                self.placed.synthetic += 1;
                let turn = Turn {
                    generation: generation.clone(),
                    synthetic: true,
                    start: at,
                    loose: vec![index],
                };
                let prompt = matches!(fact.kind, EventKind::Prompt(_)).then_some(index);
                let open = Opened { last: at, closed: is_stop.then_some(at), prompt };
                let place = self.turns.partition_point(|other| other.start <= at);
                self.turns.insert(place, turn);
                self.placed.turns.insert(place, open);
                self.changed = self.changed.min(at);
                generation
            }
        };
        // An id identifies a call only while the call is open. A later start with the same id belongs to another call.
        if let Some(id) = id
            && (is_start || !self.placed.homes.contains_key(&id))
        {
            self.placed.homes.insert(id, (at, generation));
        }
    }

    /// Drops loose facts of evicted turns. The facts behind them move up.
    pub(super) fn drop_loose(&mut self, gone: &BTreeSet<usize>) {
        let sealed = &self.sealed;
        self.placed.homes.retain(|_, (_, generation)| !sealed.contains(generation));
        if gone.is_empty() {
            return;
        }
        let mut places: Vec<Option<usize>> = Vec::with_capacity(self.loose.len());
        let mut index = 0;
        self.loose.retain(|_| {
            let stays = !gone.contains(&places.len());
            places.push(stays.then_some(index));
            index += usize::from(stays);
            stays
        });
        let place = |old: &usize| places.get(*old).copied().flatten();
        self.placed.count = places[..self.placed.count].iter().flatten().count();
        for turn in &mut self.turns {
            turn.loose = turn.loose.iter().filter_map(place).collect();
        }
        for open in &mut self.placed.turns {
            open.prompt = open.prompt.as_ref().and_then(place);
        }
        self.outside = self.outside.iter().filter_map(place).collect();
    }

    /// Replaces consecutive turns by one entry under the first turn's name.
    pub(super) fn bundle_places(&mut self, places: Range<usize>, names: &[Arc<str>]) {
        for name in names.iter().skip(1) {
            self.placed.named.remove(name);
        }
        let gone = || places.start + 1..places.end;
        self.turns.drain(gone());
        let bundled = self.placed.turns.drain(gone());
        let (last, closed) = bundled.fold((Timestamp(i64::MIN), None), |(last, _), open| {
            (last.max(open.last), open.closed)
        });
        if let Some(open) = self.placed.turns.get_mut(places.start) {
            open.last = open.last.max(last);
            open.closed = closed;
        }
    }

    /// Removes the shared entry of several turns that are being reloaded.
    pub(super) fn part_places(&mut self, name: &Arc<str>, start: Timestamp) {
        self.placed.named.remove(name);
        let from = self.turns.partition_point(|turn| turn.start < start);
        let is_it = |turn: &Turn| turn.generation == *name;
        if let Some(at) = self.turns[from..].iter().position(is_it) {
            self.turns.remove(from + at);
            self.placed.turns.remove(from + at);
        }
    }

    /// Inserts one turn by its first fact.
    fn place_turn(&mut self, generation: &Arc<str>) {
        let facts = self.explicit.get(generation);
        let Some((turn, open)) = facts.and_then(|facts| self.opened(generation, facts)) else {
            return;
        };
        if !self.placed.named.insert(generation.clone())
            && let Some(at) = self.turns.iter().rposition(|turn| turn.generation == *generation)
        {
            self.turns.remove(at);
            self.placed.turns.remove(at);
        }
        let key = |turn: &Turn| (turn.start, turn.generation.clone());
        let at = self.turns.partition_point(|other| key(other) < key(&turn));
        self.turns.insert(at, turn);
        self.placed.turns.insert(at, open);
    }

    /// The turn in which a fact's call is open.
    fn home_of(&self, fact: &Fact) -> Option<&Arc<str>> {
        let id = self.call_of(fact)?;
        let is_start = matches!(fact.kind, EventKind::ToolStart(_));
        let homes =
            [self.homes.as_ref().and_then(|homes| homes.get(id)), self.placed.homes.get(id)];
        let near = |at: Timestamp| !is_start || fact.at.since(at).saturating_abs() <= REPEAT;
        let homes = homes.into_iter().flatten().filter(|(at, _)| near(*at));
        homes.max_by_key(|(at, _)| (*at <= fact.at.plus(DISORDER), *at)).map(|(_, home)| home)
    }

    /// The last turn, if the fact repeats a fact of that turn.
    fn turn_of_repeat(&self, fact: &Fact) -> Option<usize> {
        let last = self.turns.len().checked_sub(1)?;
        let loose = self.turns[last].loose.iter().rev().take(MAX_REPEATS);
        let mut loose = loose.map(|&index| &self.loose[index]);
        loose.any(|other| is_repeat(other, fact)).then_some(last)
    }

    fn place(&self, index: usize, config: &Config) -> Place {
        let fact = &self.loose[index];
        let (turns, opened) = (&self.turns, &self.placed.turns);
        if let Some(home) = self.home_of(fact)
            && let Some(at) = turns.iter().rposition(|turn| turn.generation == *home)
        {
            return Place::In(at);
        }
        let before = turns.partition_point(|turn| turn.start <= fact.at);
        let last = before.checked_sub(1);
        if let EventKind::Prompt(prompt) = &fact.kind {
            if let Some(at) = last
                && opened[at].closed.is_none_or(|closed| fact.at <= closed)
                && let Some(index) = opened[at].prompt
                && let EventKind::Prompt(other) = &self.loose[index].kind
                && other == prompt
                && fact.at.since(self.loose[index].at) <= REPEAT
            {
                return Place::In(at);
            }
            return Place::Opens;
        }
        if let Some(at) = self.turn_of_repeat(fact) {
            return Place::In(at);
        }
        let is_open = |at: usize| {
            self.is_awake(at, fact.at, config)
                && opened[at].closed.is_none_or(|at| fact.at.since(at) <= config.settle_delay_ns)
                && !self.ended_between(turns[at].start, fact.at, config)
        };
        if let Some(at) = last
            && is_open(at)
        {
            return Place::In(at);
        }
        if turns.get(before).is_some_and(|next| next.start.since(fact.at) <= DISORDER) {
            return Place::In(before);
        }
        if opens_turn(&fact.kind) { Place::Opens } else { Place::Outside }
    }

    /// Whether a turn is not idle yet at `at`. It waits longer while a call is open, whether or not the call's hooks
    /// name the turn.
    fn is_awake(&self, turn: usize, at: Timestamp, config: &Config) -> bool {
        let last = self.last_before(turn, at);
        let silence = at.since(last);
        silence <= config.generation_idle_ns
            || silence <= config.session_idle_ns
                && OpenCalls::of(&self.facts(&self.turns[turn])).is_any_at(last)
    }

    /// The last fact of an open turn that is not after `at`.
    fn last_before(&self, turn: usize, at: Timestamp) -> Timestamp {
        let last = self.placed.turns[turn].last;
        let Some(facts) = self.explicit.get(&self.turns[turn].generation) else { return last };
        let until = facts.partition_point(|fact| fact.at <= at);
        until.checked_sub(1).map_or(last, |i| last.max(facts[i].at))
    }

    fn ended_between(&self, start: Timestamp, at: Timestamp, config: &Config) -> bool {
        self.session_end_after(start).is_some_and(|end| at.since(end) > config.settle_delay_ns)
    }
}

impl Conversation {
    /// A turn made from the facts that name it. Any fact with a generation proves that the turn exists.
    fn opened(&self, generation: &Arc<str>, facts: &[Fact]) -> Option<(Turn, Opened)> {
        let start = facts.first()?.at;
        let stop = facts.iter().find(|fact| matches!(fact.kind, EventKind::Stop(_)));
        let synthetic = self.sealed.is_numbered(generation);
        let turn = Turn { generation: generation.clone(), synthetic, start, loose: Vec::new() };
        let closed = stop.map(|fact| fact.at);
        Some((turn, Opened { last: start, closed, prompt: None }))
    }

    fn reopened(&self, generation: &Arc<str>, sealed: &Sealed) -> (Turn, Opened) {
        let is_ours = sealed.turns() == 1 && self.sealed.is_numbered(generation);
        let (start, synthetic) = (sealed.first, is_ours);
        let turn = Turn { generation: generation.clone(), synthetic, start, loose: Vec::new() };
        (turn, Opened { last: sealed.last, closed: sealed.closed, prompt: None })
    }
}

enum Place {
    In(usize),
    Opens,
    Outside,
}

/// Whether an event without a generation is enough to open a turn.
fn opens_turn(kind: &EventKind) -> bool {
    use EventKind as K;
    !matches!(
        kind,
        K::Unknown { .. }
            | K::Malformed
            | K::WorkspaceOpen
            | K::Evidence(_)
            | K::Repository(_)
            | K::SessionStart { .. }
            | K::SessionEnd(_)
            | K::TabRead { .. }
            | K::TabEdit { .. }
            | K::Compaction(_)
            | K::CompactionEnd
            | K::Question { .. }
    )
}
