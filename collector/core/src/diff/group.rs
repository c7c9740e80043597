//! What is remembered of a root conversation, with everything below it, between two derivations.

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

/// What is remembered of a group between two derivations.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) clock: Timestamp,
    /// Time passed early because room was needed.
    pub(crate) evicted: bool,
    /// Derive every turn again, whatever its fingerprint says.
    pub(crate) force: bool,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) lag: Lag,
    /// Number of handled events after which settled turns may leave memory.
    pub(crate) next_seal: u64,
    /// Turns from the first on that have left memory. None of them is looked at again before one comes back.
    pub(crate) sealed_turns: usize,
    /// Turns above each conversation of the group, as they were told last.
    pub(super) above: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Turns below which a child has news; true if a link has changed, so that the turn is read anew.
    pub(super) stirred: BTreeMap<Arc<str>, bool>,
    /// Every turn has settled: nothing would end for the sake of room.
    pub(crate) quiet: bool,
    pub(super) turns: BTreeMap<Arc<str>, TurnState>,
    /// Turns that time or a child may still change.
    pub(super) watched: BTreeSet<Arc<str>>,
    /// Turns that share an entry, by the name of the entry.
    pub(super) bundles: BTreeMap<Arc<str>, Bundle>,
    pub(super) past: Past,
    pub(super) starts: Starts,
    /// The segments, as they were cut last: when they begin, and the hook that ended them.
    pub(super) cuts: Vec<(Timestamp, Option<Timestamp>)>,
    /// The layout of turns that [`Self::turns`] was made for.
    pub(super) layout: u64,
    /// Turns of children that could belong to more than one delegation, by conversation and generation.
    pub(super) strays: BTreeMap<(Arc<str>, Arc<str>), Stray>,
    /// Spans outside turns, as last told: session, compaction, tab.
    pub(super) around: BTreeMap<SpanId, Span>,
    pub(super) session: Option<SessionSummary>,
    /// Spans that other groups told and that lie here now: to be told again, or withdrawn.
    pub(crate) inherited: Shown,
    /// The state in which evidence was asked for, by parent conversation and turn.
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

    /// Lets go of what was made for the entries of turns one by one.
    pub(super) fn forget_starts(&mut self) {
        self.starts = Starts::default();
    }

    /// When the segment of a turn begins, as it was cut last, and whether the turn lies behind the hook that ended it.
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
}
