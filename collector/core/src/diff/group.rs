//! The state of a group (a root conversation and all its descendants) between two derivations.

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
    /// The time as of which the group was last derived.
    pub(crate) clock: Timestamp,
    /// Whether the clock was moved ahead to free memory.
    pub(crate) evicted: bool,
    /// Whether the next derivation reads every turn again, even turns whose fingerprint has not changed.
    pub(crate) force: bool,
    /// The next time at which something changes without a new hook.
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) lag: Lag,
    /// Number of handled events after which settled turns may leave memory.
    pub(crate) next_seal: u64,
    /// Number of turns at the beginning of the session that were evicted. They are read again only after one of them is
    /// reloaded.
    pub(crate) sealed_turns: usize,
    /// The last reported turns above each conversation of the group.
    pub(super) above: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Turns whose descendants have new facts. The value is true if a link has changed and the turn must be read again.
    pub(super) stirred: BTreeMap<Arc<str>, bool>,
    /// Whether every turn has settled, so that evicting the group ends nothing.
    pub(crate) quiet: bool,
    /// The root's turns as last reported, by generation.
    pub(super) turns: BTreeMap<Arc<str>, TurnState>,
    /// Turns that may still change by time or by a child.
    pub(super) watched: BTreeSet<Arc<str>>,
    /// Turns that share an entry, by the name of the entry.
    pub(super) bundles: BTreeMap<Arc<str>, Bundle>,
    pub(super) past: Past,
    pub(super) starts: Starts,
    /// The segments as last computed: the start of each, and the time of the hook that ended it.
    pub(super) cuts: Vec<(Timestamp, Option<Timestamp>)>,
    /// The version of the layout for which [`Self::turns`] was built.
    pub(super) layout: u64,
    /// Turns of children that fit several delegations, by conversation and generation.
    pub(super) strays: BTreeMap<(Arc<str>, Arc<str>), Stray>,
    /// Spans outside turns, as last reported: session, compaction, tab.
    pub(super) around: BTreeMap<SpanId, Span>,
    /// The session's row as last reported.
    pub(super) session: Option<SessionSummary>,
    /// Spans that another group reported and that now belong to this one. They must be reported again or withdrawn.
    pub(crate) inherited: Shown,
    /// The state in which evidence was last asked for, by parent conversation and turn.
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
    /// Time until which the next derivation may wait; `None` if it is due now.
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

    /// Whether a turn can no longer change by time.
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

    /// Drops the reported spans of a turn and keeps its totals.
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

    /// Makes the next derivation report the whole group again. It does so if `always`, or if the last derivation may
    /// have been delayed.
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

    /// Marks a turn because a child below it was moved.
    pub(crate) fn mark(&mut self, generation: Arc<str>) {
        self.stirred.insert(generation, true);
    }

    /// Drops the state that is kept per entry of turns.
    pub(super) fn forget_starts(&mut self) {
        self.starts = Starts::default();
    }

    /// Start of the segment that a turn belongs to, and whether the turn lies after the hook that ended the segment.
    pub(super) fn segment_at(&self, start: Timestamp) -> Option<(Timestamp, bool)> {
        let at = self.cuts.partition_point(|(begin, _)| *begin <= start);
        let (begin, ended) = self.cuts.get(at.checked_sub(1)?)?;
        Some((*begin, ended.is_some_and(|ended| start > ended)))
    }

    /// States of the turns that may contain a span of `conversation`: all turns if it is the root `id`, otherwise the
    /// turns above that child.
    pub(super) fn turns_above<'a>(
        &'a self,
        id: &Arc<str>,
        conversation: &Arc<str>,
    ) -> impl Iterator<Item = &'a TurnState> {
        let own = (id == conversation).then(|| self.turns.values());
        let above = self.above.get(conversation).into_iter().flatten();
        own.into_iter().flatten().chain(above.filter_map(|turn| self.turns.get(turn)))
    }

    /// States of the strays that may contain a span of `conversation`: strays of the conversation itself and of all
    /// conversations above it.
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

    /// Withdraws the spans that only a root conversation has. Called when this conversation turns out to be a child.
    /// Returns its other reported spans.
    pub(crate) fn withdraw_session(self, changes: &mut VecDeque<Change>) -> Shown {
        let mut rest = self.inherited;
        let strays = self.strays.into_values().map(|stray| stray.state);
        // `append` would rebuild the whole map once per turn.
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
