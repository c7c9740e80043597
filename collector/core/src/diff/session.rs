//! Derives the changes of a root conversation and all its descendants, once per poll.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::assemble::session_segment as segment;
use crate::assemble::session_segment::{Segment, Starts};
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::parent_link::{Children, Conversations, Links, Unclear, root};
use crate::correlate::snapshot::World;
use crate::diff::group::Group;
use crate::diff::lag::Lag;
use crate::diff::settled_turns::Past;
use crate::diff::turn::{Shown, Told, TurnState};
use crate::model::change::{Change, SpanKey};
use crate::model::config::Config;
use crate::model::id::SpanId;
use crate::model::time::Timestamp;

/// The inputs and outputs of a derivation.
pub(crate) struct Out<'a> {
    pub(crate) config: &'a Config,
    pub(crate) conversations: &'a Conversations,
    pub(crate) links: &'a Links,
    pub(crate) unclear: &'a Unclear,
    pub(crate) children: &'a Children,
    /// Children of the group that fit several delegations.
    pub(crate) strays: &'a [Arc<str>],
    pub(crate) perhaps_children: &'a BTreeSet<Arc<str>>,
    pub(crate) changes: &'a mut VecDeque<Change>,
    /// Spans whose conversation now belongs to another group.
    pub(crate) moved: &'a mut Vec<(SpanId, Told)>,
}

impl Group {
    /// Reports everything that changed. Reads the turns that start at `changed` or later, and the watched turns.
    /// Returns true if nothing can change any more and the group may be dropped.
    pub(crate) fn derive(&mut self, id: &Arc<str>, changed: Timestamp, out: Out<'_>) -> bool {
        let world = World {
            config: out.config,
            conversations: out.conversations,
            links: out.links,
            unclear: out.unclear,
            children: out.children,
            perhaps_children: out.perhaps_children,
            clock: self.clock,
            evicted: self.evicted,
        };
        let Some(conversation) = out.conversations.get(id) else { return false };
        let mut gone: Shown = std::mem::take(&mut self.inherited);
        let inherited: BTreeSet<SpanId> = gone.keys().copied().collect();
        self.note_layout(conversation, &mut gone);
        if changed == Timestamp(i64::MIN) {
            // An event between turns may divide a segment or join two, so all totals are computed again.
            self.past = Past::default();
        }
        let reach = self.reach(id, world, conversation, changed);
        let (derived, looked_at) =
            self.tell_turns(world, conversation, &reach, &mut gone, out.changes);
        let mut work = looked_at + self.tell_strays(id, world, out.strays, &mut gone, out.changes);
        let around = self.tell_around(world, conversation, &mut gone, out.changes);
        work += around.work;
        let told = Retold { id, links: out.links, derived: &derived, inherited: &inherited };
        for (span, old) in gone {
            if self.is_told_elsewhere(span, &old, &told) {
                continue;
            }
            if root(out.links, &old.conversation) == id {
                let Told { conversation, .. } = old;
                out.changes.push_back(Change::Withdraw(SpanKey { id: span, conversation }));
            } else {
                out.moved.push((span, old));
            }
        }
        self.lag = Lag::after(work, self.clock);
        self.schedule(world, conversation, &around.segments)
    }

    /// Whether a span that a turn reported before is now reported by another turn or group.
    fn is_told_elsewhere(&self, span: SpanId, old: &Told, told: &Retold<'_>) -> bool {
        let has =
            |state: &TurnState| state.shown.contains_key(&span) || state.aside.contains_key(&span);
        // If a span moved within the group, a turn of this derivation reported it.
        let mut turns = told.derived.iter().filter_map(|generation| self.turns.get(generation));
        turns.any(has)
            || self.strays_above(&old.conversation, told.links).any(has)
            || (told.inherited.contains(&span)
                && self.turns_above(told.id, &old.conversation).any(has))
            || self.around.contains_key(&span)
    }

    /// Drops the state that was built for another layout of turns.
    fn note_layout(&mut self, conversation: &Conversation, gone: &mut Shown) {
        if std::mem::replace(&mut self.layout, conversation.layout) != conversation.layout {
            self.drop_vanished(conversation, gone);
            self.past = Past::default();
            self.starts = Starts::default();
            self.sealed_turns = 0;
        }
    }

    fn drop_vanished(&mut self, conversation: &Conversation, gone: &mut Shown) {
        let alive: BTreeSet<&Arc<str>> =
            conversation.turns.iter().map(|turn| &turn.generation).collect();
        let watched = &mut self.watched;
        self.turns.retain(|generation, state| {
            let keep = alive.contains(generation);
            if !keep {
                watched.remove(generation);
                gone.extend(std::mem::take(&mut state.shown));
                gone.extend(std::mem::take(&mut state.aside));
            }
            keep
        });
        self.bundles.retain(|name, _| alive.contains(name));
    }

    /// Records the next time at which something changes without a new hook. Returns true if nothing can change any
    /// more.
    fn schedule(
        &mut self,
        world: World<'_>,
        conversation: &Conversation,
        segments: &[Segment],
    ) -> bool {
        // Turns that are not watched have settled.
        let watched = self.watched.iter().filter_map(|generation| self.turns.get(generation));
        let strays = self.strays.values().map(|stray| &stray.state);
        let turns: Vec<&TurnState> = watched.chain(strays).collect();
        let deadlines = turns.iter().filter_map(|state| state.deadline);
        let mut all: Vec<Timestamp> = deadlines.filter(|at| *at > self.clock).collect();
        all.extend(
            segments.iter().filter_map(|segment| segment.settle).filter(|at| *at > self.clock),
        );
        all.extend(segment::tab_deadline(world, conversation).filter(|at| *at > self.clock));
        let open = turns.iter().any(|state| state.settle.is_none());
        let passed = |at: Option<Timestamp>| at.is_none_or(|at| at <= self.clock);
        self.quiet = !open
            && turns.iter().all(|state| passed(state.settle) && passed(state.deadline))
            && passed(segment::tab_deadline(world, conversation));
        if all.is_empty() && !open {
            let rest = conversation.turns.get(self.past.turns()..).unwrap_or_default();
            let last = |turn: &Turn| match self.turns.get(&turn.generation) {
                Some(state) => Some(state.sum.last),
                None => self.bundles.get(&turn.generation).map(|bundle| bundle.tally.last),
            };
            let rest = rest.iter().filter_map(last);
            let last = self.past.tallies().iter().map(|past| past.last).chain(rest).max();
            let last = last.unwrap_or(conversation.last).max(conversation.last);
            let forget = last.plus(world.config.session_idle_ns + 1);
            if self.clock >= forget {
                return true;
            }
            all.push(forget);
        }
        self.deadline = all.into_iter().min();
        false
    }
}

/// Where a span may be reported now, if its turn no longer reports it.
struct Retold<'a> {
    id: &'a Arc<str>,
    links: &'a Links,
    /// Turns of this derivation.
    derived: &'a [Arc<str>],
    /// Spans that other groups reported before.
    inherited: &'a BTreeSet<SpanId>,
}
