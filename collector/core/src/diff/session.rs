//! A root conversation with everything below it: deriving what to store, once per poll.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::assemble::draft::{Tree, What};
use crate::assemble::draft_turn::grow;
use crate::assemble::session_segment as segment;
use crate::assemble::session_segment::{Segment, Starts};
use crate::assemble::summaries::{status, summary};
use crate::assemble::turn_totals::Tally;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::parent_link::{Children, Conversations, Links, Unclear, root};
use crate::correlate::snapshot::World;
use crate::diff::advance_prefix::put_aside;
use crate::diff::lag::Lag;
use crate::diff::settled_turns::Past;
use crate::diff::stray::Stray;
use crate::diff::trace_position::{Place, Possible, stamp, trace};
use crate::diff::turn::{Shown, Told, TurnState, tell};
use crate::model::change::{Change, Question, SpanKey};
use crate::model::config::Config;
use crate::model::config::TraceMode;
use crate::model::event::Confidence;
use crate::model::fingerprint::{digest, mix};
use crate::model::id::{SpanId, TraceId};
use crate::model::span::{Span, SpanKind};
use crate::model::summary::SessionSummary;
use crate::model::time::Timestamp;

/// What is remembered of a group between two derivations.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) clock: Timestamp,
    /// Time passed early because room was needed.
    pub(crate) evicted: bool,
    /// Derive every turn again, whatever its stamp says.
    pub(crate) force: bool,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) lag: Lag,
    /// Settled turns may leave memory once so many events have been handled.
    pub(crate) next_seal: u64,
    /// Turns from the first on that have left memory. None of them is looked at again before one comes back.
    pub(crate) sealed_turns: usize,
    /// Turns above each conversation of the group, as they were told last.
    above: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Turns below which a child has news; true if a link has changed, so that the turn is read anew.
    stirred: BTreeMap<Arc<str>, bool>,
    /// Every turn has settled: nothing would end for the sake of room.
    pub(crate) quiet: bool,
    turns: BTreeMap<Arc<str>, TurnState>,
    /// Turns that time or a child may still change.
    watched: BTreeSet<Arc<str>>,
    past: Past,
    starts: Starts,
    /// The layout of turns that [`Self::turns`] was made for.
    layout: u64,
    /// Turns of children that could belong to more than one delegation, by conversation and generation.
    strays: BTreeMap<(Arc<str>, Arc<str>), Stray>,
    /// Spans outside turns, as last told: session, compaction, tab.
    around: BTreeMap<SpanId, Span>,
    session: Option<SessionSummary>,
    /// Spans that other groups told and that lie here now: to be told again, or withdrawn.
    pub(crate) inherited: Shown,
    /// The state in which evidence was asked for, by parent conversation and turn.
    asked: BTreeMap<(Arc<str>, Arc<str>), u64>,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            clock: Timestamp(i64::MIN),
            evicted: false,
            force: false,
            deadline: None,
            lag: Lag::default(),
            next_seal: 0,
            sealed_turns: 0,
            above: BTreeMap::new(),
            stirred: BTreeMap::new(),
            quiet: false,
            turns: BTreeMap::new(),
            watched: BTreeSet::new(),
            past: Past::default(),
            starts: Starts::default(),
            layout: 0,
            strays: BTreeMap::new(),
            around: BTreeMap::new(),
            session: None,
            inherited: Shown::new(),
            asked: BTreeMap::new(),
        }
    }
}

/// Where derivation reads from and writes to.
pub(crate) struct Out<'a> {
    pub(crate) config: &'a Config,
    pub(crate) conversations: &'a Conversations,
    pub(crate) links: &'a Links,
    pub(crate) unclear: &'a Unclear,
    pub(crate) children: &'a Children,
    /// Children of the group that several delegations fit.
    pub(crate) strays: &'a [Arc<str>],
    pub(crate) perhaps_children: &'a BTreeSet<Arc<str>>,
    pub(crate) changes: &'a mut VecDeque<Change>,
    /// Spans whose conversation belongs to another group now.
    pub(crate) moved: &'a mut Vec<(SpanId, Told)>,
}

/// What lies around turns, and how much was looked at for it.
struct Around {
    segments: Vec<Segment>,
    work: usize,
}

impl Group {
    /// Until when a derivation may wait; `None` if it is due.
    pub(crate) fn waits_until(&self, clock: Timestamp) -> Option<Timestamp> {
        self.lag.waits_until(clock)
    }

    /// Notes that a child has news.
    pub(crate) fn stir(&mut self, child: &Arc<str>) {
        for generation in self.above.get(child).into_iter().flatten() {
            self.stirred.entry(generation.clone()).or_default();
        }
    }

    /// How many turns from the first on are settled.
    pub(crate) const fn settled_turns(&self) -> usize {
        self.past.turns()
    }

    /// Whether nothing about a turn changes any more by itself.
    pub(crate) fn is_final(&self, generation: &Arc<str>) -> bool {
        let is_settled = |state: &TurnState| {
            state.window.is_none()
                && state.deadline.is_none_or(|at| at <= self.clock)
                && state.settle.is_some_and(|at| at <= self.clock)
        };
        !self.watched.contains(generation)
            && !self.stirred.contains_key(generation)
            && self.turns.get(generation).is_some_and(is_settled)
    }

    /// Lets go of what was told of a turn, but for its sums.
    pub(crate) fn seal(&mut self, generation: &Arc<str>, children: &[Arc<str>]) {
        if let Some(state) = self.turns.get_mut(generation) {
            state.shown = Shown::new();
            state.aside = Shown::new();
        }
        children.iter().for_each(|child| drop(self.above.remove(child)));
        self.asked.retain(|(conversation, turn), _| {
            turn != generation && !children.contains(conversation)
        });
    }

    /// Makes the next derivation tell everything again that is held of the group, if that is needed: `always`, or where a
    /// derivation may have waited.
    pub(crate) fn tell_again(&mut self, always: bool) -> bool {
        if !always && self.lag.is_light() {
            return false;
        }
        let strays = self.strays.values_mut().map(|stray| &mut stray.state);
        for state in self.turns.values_mut().chain(strays) {
            state.window = None;
            let told = state.shown.values_mut().chain(state.aside.values_mut());
            told.for_each(|told| told.signature = !told.signature);
            state.row.index = u64::MAX;
        }
        (self.force, self.session, self.lag) = (true, None, Lag::default());
        true
    }

    /// Notes that a child below a turn has another place.
    pub(crate) fn mark(&mut self, generation: Arc<str>) {
        self.stirred.insert(generation, true);
    }

    /// Tells everything that changed; of turns, those from `changed` on and those that are watched. True when nothing is
    /// left to do and the group may be forgotten.
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
        if std::mem::replace(&mut self.layout, conversation.layout) != conversation.layout {
            self.drop_vanished(conversation, &mut gone);
            self.past = Past::default();
            self.starts = Starts::default();
            self.sealed_turns = 0;
        }
        // Something between turns, which may part them or hold them together.
        let apart = changed == Timestamp(i64::MIN);
        if apart {
            self.past = Past::default();
        }
        let forced = std::mem::take(&mut self.force);
        if forced {
            self.strays.values_mut().for_each(|stray| stray.facts = 0);
        }
        let force = forced || self.turns.is_empty();
        let segments = match world.config.trace_mode {
            TraceMode::Generation => Vec::new(),
            TraceMode::Session => self.starts.of(world, conversation, changed),
        };
        let segment_of =
            |at: Timestamp| segments.partition_point(|start| *start <= at).saturating_sub(1);
        let unclear = world.unclear.get(id).map(|possible| Possible::of(possible, world));
        let changed = if force { Timestamp(i64::MIN) } else { changed };
        let stirred = std::mem::take(&mut self.stirred);
        let stale = self.stale(conversation, changed, &stirred);
        let mut work = stale.len();
        let mut derived: Vec<Arc<str>> = Vec::new();
        for index in stale {
            let turn = &conversation.turns[index];
            if conversation.sealed.contains_key(&turn.generation) {
                continue;
            }
            let (is_stirred, anew) = match stirred.get(&turn.generation) {
                Some(anew) => (true, *anew),
                None => (false, false),
            };
            let force = force || anew;
            let segment = segment_of(turn.start);
            let (trace, _) = self.place_of(world, id, turn, segment);
            let previous = index.checked_sub(1).and_then(|before| conversation.turns.get(before));
            let previous = previous.map(|turn| {
                let (trace, own) = self.place_of(world, id, turn, segment_of(turn.start));
                (trace, own, turn.start)
            });
            let place = Place {
                root: id.clone(),
                trace,
                index: index as u64 + 1,
                previous,
                segment,
                candidates: unclear.clone(),
                stray: false,
            };
            let stamp = stamp(conversation, turn, &place);
            if !force && !is_stirred && self.is_current(&turn.generation, stamp) {
                continue;
            }
            self.past.note(index);
            let mut old = self.turns.remove(&turn.generation);
            let window = old.as_mut().and_then(|old| old.window.take());
            let mark = mix(conversation.mark, digest(&[&place.trace.0]));
            let window = window.filter(|w| !force && w.fits(conversation, turn, mark, self.clock));
            let mut tree = grow(world, conversation, turn, window.as_ref());
            let aside = |id: &SpanId| old.as_ref().is_some_and(|old| old.aside.contains_key(id));
            if window.is_some()
                && (tree.close.is_some() || tree.nodes.iter().any(|node| aside(&node.id)))
            {
                tree = grow(world, conversation, turn, None);
            }
            work += tree.nodes.len() + tree.facts;
            derived.push(turn.generation.clone());
            let mut state = tell(&tree, world, (place, stamp), old, &mut gone, out.changes);
            for child in &state.below {
                self.above.entry(child.clone()).or_default().insert(turn.generation.clone());
            }
            self.ask(&tree, world, out.changes);
            let new = put_aside(&tree, world.config, self.clock, mark, |at| status(&tree, at));
            let kept = tree.window.is_some();
            if let Some((new, spans)) = new {
                for span in spans {
                    state.aside.extend(state.shown.remove_entry(&span));
                }
                state.window = Some(new);
            } else if kept {
                state.window = window;
            }
            if state.deadline.is_some() || state.settle.is_none() {
                self.watched.insert(turn.generation.clone());
            } else {
                self.watched.remove(&turn.generation);
            }
            self.turns.insert(turn.generation.clone(), state);
        }
        work += self.tell_strays(id, world, out.strays, &mut gone, out.changes);
        let around = self.tell_around(world, conversation, apart, &mut gone, out.changes);
        work += around.work;
        let here = |member: &Arc<str>| root(out.links, member) == id;
        for (span, told) in gone {
            let has = |state: &TurnState| {
                state.shown.contains_key(&span) || state.aside.contains_key(&span)
            };
            // A span that moved within the group was told by a turn of this derivation.
            let mut turns = derived.iter().filter_map(|generation| self.turns.get(generation));
            let is_shown = turns.any(has)
                || self.strays_above(&told.conversation, out.links).any(has)
                || (inherited.contains(&span) && self.turns_above(id, &told.conversation).any(has));
            if is_shown || self.around.contains_key(&span) {
                continue;
            }
            if here(&told.conversation) {
                let Told { conversation, .. } = told;
                out.changes.push_back(Change::Withdraw(SpanKey { id: span, conversation }));
            } else {
                out.moved.push((span, told));
            }
        }
        self.lag = Lag::after(work, self.clock);
        self.schedule(world, conversation, around.segments)
    }

    /// States of the turns that may show a span of `conversation`: all turns for the root `id` itself, else those above a child.
    fn turns_above<'a>(
        &'a self,
        id: &Arc<str>,
        conversation: &Arc<str>,
    ) -> impl Iterator<Item = &'a TurnState> {
        let own = (id == conversation).then(|| self.turns.values());
        let above = self.above.get(conversation).into_iter().flatten();
        own.into_iter().flatten().chain(above.filter_map(|turn| self.turns.get(turn)))
    }

    /// States of the strays that may show a span of `conversation`: those of the conversation and of all above it.
    fn strays_above<'a>(
        &'a self,
        conversation: &Arc<str>,
        links: &'a Links,
    ) -> impl Iterator<Item = &'a TurnState> {
        let first = (!self.strays.is_empty()).then(|| conversation.clone());
        let line =
            std::iter::successors(first, |child| links.get(child).map(|link| link.parent.clone()));
        line.flat_map(|child| {
            let turns = self.strays.range((child.clone(), Arc::from(""))..);
            turns.take_while(move |((of, _), _)| *of == child).map(|(_, stray)| &stray.state)
        })
    }

    /// Withdraws what only a root conversation has, when this one turns out to be a child. Gives back what else it told.
    pub(crate) fn withdraw_session(self, changes: &mut VecDeque<Change>) -> Shown {
        let mut rest = self.inherited;
        let strays = self.strays.into_values().map(|stray| stray.state);
        // `append` would build the whole map anew for each turn.
        for state in self.turns.into_values().chain(strays) {
            rest.extend(state.shown);
            rest.extend(state.aside);
        }
        rest.retain(|span, told| {
            let own = told.kind == SpanKind::Generation;
            if own {
                let conversation = Arc::clone(&told.conversation);
                changes.push_back(Change::Withdraw(SpanKey { id: *span, conversation }));
            }
            !own
        });
        changes.extend(self.around.values().map(|span| Change::Withdraw(SpanKey::of(span))));
        rest
    }

    /// Tells children that several delegations fit, each turn in a trace of its own. Gives what was looked at.
    fn tell_strays(
        &mut self,
        id: &Arc<str>,
        world: World<'_>,
        strays: &[Arc<str>],
        gone: &mut Shown,
        changes: &mut VecDeque<Change>,
    ) -> usize {
        let mut old = std::mem::take(&mut self.strays);
        let mut work = strays.len();
        for child in strays {
            let (Some(conversation), Some(link)) =
                (world.conversations.get(child), world.links.get(child))
            else {
                continue;
            };
            let mark = link.candidates.mark(world.conversations);
            work += link.candidates.kept.len();
            for turn in &conversation.turns {
                let key = (child.clone(), turn.generation.clone());
                let mut old = old.remove(&key);
                let is_same = |old: &mut Stray| old.is_current(conversation, mark, self.clock);
                if let Some(same) = old.take_if(is_same) {
                    self.strays.insert(key, same);
                    continue;
                }
                let place = Place {
                    root: id.clone(),
                    trace: TraceId::derive("generation", child, &turn.generation),
                    index: 0,
                    previous: None,
                    segment: 0,
                    candidates: Some(Possible::of(&link.candidates, world)),
                    stray: true,
                };
                let stamp = stamp(conversation, turn, &place);
                let tree = grow(world, conversation, turn, None);
                work += tree.nodes.len() + tree.facts;
                let state =
                    tell(&tree, world, (place, stamp), old.map(|old| old.state), gone, changes);
                self.strays.insert(key, Stray::new(state, conversation, mark));
            }
        }
        for stray in old.values_mut() {
            gone.extend(std::mem::take(&mut stray.state.shown));
        }
        work
    }

    /// Indexes of the turns that have to be looked at: those from `changed` on, those below which a child has news, and of
    /// the watched ones those whose time has come.
    fn stale(
        &self,
        conversation: &Conversation,
        changed: Timestamp,
        stirred: &BTreeMap<Arc<str>, bool>,
    ) -> Vec<usize> {
        let turns = &conversation.turns;
        let from = turns.partition_point(|turn| turn.start < changed);
        let is_due = |generation: &&Arc<str>| {
            let deadline = self.turns.get(*generation).map(|state| state.deadline);
            deadline.is_none_or(|at| at.is_some_and(|at| at <= self.clock))
        };
        let due = self.watched.iter().filter(is_due).chain(stirred.keys());
        // Most are where they were when they were told last.
        let told_at = |due: &Arc<str>| {
            let index = self.turns.get(due)?.row.index.checked_sub(1)?;
            let at = usize::try_from(index).ok()?;
            turns.get(at).filter(|turn| turn.generation == *due).map(|_| at)
        };
        let due = due.filter_map(|due| match told_at(due) {
            Some(at) => (at < from).then_some(at),
            // One that was never told lies at the end.
            None if turns[from..].iter().any(|turn| turn.generation == *due) => None,
            None => turns[..from].iter().rposition(|turn| turn.generation == *due),
        });
        let mut stale: Vec<usize> = due.collect();
        stale.sort_unstable();
        stale.dedup();
        stale.extend(from..turns.len());
        stale
    }

    /// The trace a turn lives in, and its own span.
    fn place_of(
        &self,
        world: World<'_>,
        id: &Arc<str>,
        turn: &Turn,
        segment: usize,
    ) -> (TraceId, SpanId) {
        match self.turns.get(&turn.generation).map(|state| &state.row) {
            Some(row) if world.config.trace_mode == TraceMode::Generation => (row.trace, row.span),
            _ => (
                trace(world.config, id, &turn.generation, segment),
                SpanId::derive(id, &turn.generation, SpanKind::Generation.as_str(), ""),
            ),
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
    }

    fn is_current(&self, generation: &Arc<str>, stamp: u64) -> bool {
        let Some(state) = self.turns.get(generation) else { return false };
        state.stamp == stamp && state.deadline.is_none_or(|at| at > self.clock)
    }

    /// Asks for evidence when subagents' conversations are not proven: at their stop, at the turn's end. Once for all of
    /// one conversation's in one turn, and again only when something about them has changed.
    fn ask(&mut self, tree: &Tree<'_>, world: World<'_>, changes: &mut VecDeque<Change>) {
        struct Unproven<'a> {
            parent: &'a Conversation,
            occasion: u64,
            candidates: Vec<Arc<str>>,
        }
        let mut open: BTreeMap<(&Arc<str>, &Arc<str>), Unproven<'_>> = BTreeMap::new();
        for node in &tree.nodes {
            let What::Agent(agent, link, child) = &node.what else { continue };
            let proven = link.is_some_and(|link| link.confidence >= Confidence::Transcript);
            if proven || (agent.stop.is_none() && tree.close.is_none()) {
                continue;
            }
            let parent = node.conversation;
            let state = u64::from(agent.stop.is_some()) * 2 + u64::from(tree.close.is_some());
            let unproven = open.entry((&parent.id, &node.generation)).or_insert_with(|| Unproven {
                parent,
                occasion: 0,
                candidates: Vec::new(),
            });
            unproven.occasion = mix(unproven.occasion, mix(node.signature, state));
            unproven.candidates.extend(child.iter().map(|c| c.id.clone()));
        }
        for ((id, generation), Unproven { parent, occasion, mut candidates }) in open {
            let asked = self.asked.insert((id.clone(), generation.clone()), occasion);
            if asked == Some(occasion) {
                continue;
            }
            let others = world.perhaps_children.iter();
            let others = others.filter_map(|id| world.conversations.get(id)).filter(|other| {
                !other.root_only
                    && other.workspace() == parent.workspace()
                    && world
                        .links
                        .get(&other.id)
                        .is_none_or(|l| l.confidence < Confidence::Transcript || l.key.is_none())
            });
            for other in others.take(64) {
                if other.id != parent.id && !candidates.contains(&other.id) {
                    candidates.push(other.id.clone());
                }
            }
            changes.push_back(Change::Ask(Question {
                parent: id.clone(),
                transcript_path: parent.transcript().map(ToString::to_string).unwrap_or_default(),
                candidates,
            }));
        }
    }

    /// Tells session spans, spans outside turns, and the session's row.
    fn tell_around(
        &mut self,
        world: World<'_>,
        conversation: &Conversation,
        apart: bool,
        gone: &mut Shown,
        changes: &mut VecDeque<Change>,
    ) -> Around {
        let clock = self.clock;
        let rest = conversation.turns.get(self.past.turns()..).unwrap_or_default();
        let states = rest.iter().filter_map(|turn| self.turns.get(&turn.generation));
        let rest: Vec<(Tally, bool)> = states
            .map(|state| {
                let settled = state.settle.is_some_and(|at| at <= clock);
                let tally = Tally::of(&state.sum, &state.row, state.settle);
                (tally, settled && state.deadline.is_none())
            })
            .collect();
        let tallies: Vec<&Tally> =
            self.past.tallies().iter().chain(rest.iter().map(|(tally, _)| tally)).collect();
        let segments = segment::segments(world, conversation, &tallies);
        let spans = segment::spans(world, conversation, &segments, &tallies);
        let mut row = summary(world, conversation, &segments, &tallies);
        // The last turn stays apart: the next one may still begin before it ended.
        let done = rest.split_last().filter(|_| !apart).map_or(&[][..], |(_, done)| done);
        for (tally, _) in done.iter().take_while(|(_, is_done)| *is_done) {
            if !self.past.take(tally, &segments) {
                break;
            }
        }
        row.tool_calls += self.strays.values().map(|stray| stray.state.sum.tool_calls).sum::<u64>();
        row.errors += self.strays.values().map(|stray| stray.state.sum.errors).sum::<u64>();
        let work = rest.len()
            + spans.len()
            + segments.len()
            + conversation.outside.len()
            + conversation.session.len()
            + conversation.tabs.len();
        let mut around = BTreeMap::new();
        for span in spans {
            let told = self.around.get_mut(&span.id);
            let settles = span.settled && told.as_ref().is_some_and(|told| !told.settled);
            // Compared but for that, since it alone has a change of its own.
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
                gone.insert(id, Told { conversation, kind, signature: 0, settled });
            }
        }
        if self.session.as_ref() != Some(&row) {
            changes.push_back(Change::Session(Box::new(row.clone())));
            self.session = Some(row);
        }
        Around { segments, work }
    }

    fn schedule(
        &mut self,
        world: World<'_>,
        conversation: &Conversation,
        segments: Vec<Segment>,
    ) -> bool {
        // What is not watched has settled.
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
            let rest = rest.iter().filter_map(|turn| self.turns.get(&turn.generation));
            let rest = rest.map(|state| state.sum.last);
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
