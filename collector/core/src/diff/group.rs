//! State of a root conversation and all its descendants (a group), kept between two derivations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::assemble::session_segment::Starts;
use crate::correlate::parent_link::Links;
use crate::diff::bundle::Bundle;
use crate::diff::lag::Lag;
use crate::diff::settled_turns::Past;
use crate::diff::stray::Stray;
use crate::diff::turn::{Shown, TurnState};
use crate::model::change::{Change, SpanKey};
use crate::model::fingerprint::Fingerprint;
use crate::model::id::SpanId;
use crate::model::span::{Span, SpanKind};
use crate::model::summary::SessionSummary;
use crate::model::time::Timestamp;

/// State of a group between two derivations.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) clock: Timestamp,
    /// Time was advanced early, to free memory.
    pub(crate) evicted: bool,
    /// Derive every turn again, even with an unchanged fingerprint.
    pub(crate) force: bool,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) lag: Lag,
    /// Number of handled events after which settled turns may leave memory.
    pub(crate) next_seal: u64,
    /// Number of turns, from the first, that were evicted. They are not read again until one of them comes back.
    pub(crate) sealed_turns: usize,
    /// The turns above each conversation of the group, as last reported.
    pub(super) above: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Turns whose descendants have new facts. True if a link has changed, so that the turn must be read again.
    pub(super) stirred: BTreeMap<Arc<str>, bool>,
    /// Every turn has settled, so an eviction ends nothing.
    pub(crate) quiet: bool,
    pub(super) turns: BTreeMap<Arc<str>, TurnState>,
    /// Turns that time or a child may still change.
    pub(super) watched: BTreeSet<Arc<str>>,
    /// Turns that share an entry, by the name of the entry.
    pub(super) bundles: BTreeMap<Arc<str>, Bundle>,
    pub(super) past: Past,
    pub(super) starts: Starts,
    /// The segments as last computed: start, and the hook that ended them.
    pub(super) cuts: Vec<(Timestamp, Option<Timestamp>)>,
    /// The layout of turns for which [`Self::turns`] was built.
    pub(super) layout: u64,
    /// Turns of children that fit several delegations, by conversation and generation.
    pub(super) strays: BTreeMap<(Arc<str>, Arc<str>), Stray>,
    /// Spans outside turns, as last reported: session, compaction, tab.
    pub(super) around: BTreeMap<SpanId, Span>,
    pub(super) session: Option<SessionSummary>,
    /// Spans that other groups reported and that belong here now. They must be reported again or withdrawn.
    pub(crate) inherited: Shown,
    /// The state at the last question for evidence, by parent conversation and turn.
    pub(super) asked: BTreeMap<(Arc<str>, Arc<str>), Fingerprint>,
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
            bundles: BTreeMap::new(),
            starts: Starts::default(),
            cuts: Vec::new(),
            layout: 0,
            strays: BTreeMap::new(),
            around: BTreeMap::new(),
            session: None,
            inherited: Shown::new(),
            asked: BTreeMap::new(),
        }
    }
}

impl Group {
    /// How long a derivation may wait; `None` if it is due.
    pub(crate) fn waits_until(&self, clock: Timestamp) -> Option<Timestamp> {
        self.lag.waits_until(clock)
    }

    /// Notes that a child has new facts.
    pub(crate) fn stir(&mut self, child: &Arc<str>) {
        for generation in self.above.get(child).into_iter().flatten() {
            self.stirred.entry(generation.clone()).or_default();
        }
    }

    /// Number of settled turns, from the first.
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

    /// Drops the reported spans of a turn, but keeps its sums.
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

    /// Makes the next derivation report the whole group again: if `always`, or if a derivation may have waited.
    pub(crate) fn tell_again(&mut self, always: bool) -> bool {
        if !always && self.lag.is_light() {
            return false;
        }
        let strays = self.strays.values_mut().map(|stray| &mut stray.state);
        for state in self.turns.values_mut().chain(strays) {
            state.window = None;
            let told = state.shown.values_mut().chain(state.aside.values_mut());
            told.for_each(|told| told.made_of = Fingerprint::INVALID);
            state.row.index = u64::MAX;
        }
        (self.force, self.session, self.lag) = (true, None, Lag::default());
        true
    }

    /// Notes that a child below a turn has another place.
    pub(crate) fn mark(&mut self, generation: Arc<str>) {
        self.stirred.insert(generation, true);
    }

    /// Drops state that was kept per turn entry.
    pub(super) fn forget_starts(&mut self) {
        self.starts = Starts::default();
    }

    /// Start of a turn's segment as last computed, and whether the turn lies after the hook that ended it.
    pub(super) fn segment_at(&self, start: Timestamp) -> Option<(Timestamp, bool)> {
        let at = self.cuts.partition_point(|(begin, _)| *begin <= start);
        let (begin, ended) = self.cuts.get(at.checked_sub(1)?)?;
        Some((*begin, ended.is_some_and(|ended| start > ended)))
    }

    /// States of the turns that may show a span of `conversation`: all turns for the root `id` itself, else those above a child.
    pub(super) fn turns_above<'a>(
        &'a self,
        id: &Arc<str>,
        conversation: &Arc<str>,
    ) -> impl Iterator<Item = &'a TurnState> {
        let own = (id == conversation).then(|| self.turns.values());
        let above = self.above.get(conversation).into_iter().flatten();
        own.into_iter().flatten().chain(above.filter_map(|turn| self.turns.get(turn)))
    }

    /// States of the strays that may show a span of `conversation`: those of the conversation and of all above it.
    pub(super) fn strays_above<'a>(
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

    /// Withdraws the spans that only a root conversation has, because this conversation is now a child. Returns its other
    /// reported spans.
    pub(crate) fn withdraw_session(self, changes: &mut VecDeque<Change>) -> Shown {
        let mut rest = self.inherited;
        let strays = self.strays.into_values().map(|stray| stray.state);
        // `append` would rebuild the whole map for each turn.
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
}
