//! Replays past hooks of evicted conversations and turns.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::Sessions;
use crate::correlate::parent_link::root;
use crate::model::change::Change;
use crate::model::event::Event;
use crate::model::time::Timestamp;

/// A history counts as long if it has more hooks than this many times the number kept for settled turns.
const LONG: usize = 8;

/// Takes hooks of the past. See [`Sessions::handle_history`] and [`Sessions::handle_missing`].
///
/// Changes that follow from these hooks are already in the store, so they are not reported. [`Self::finish`] returns
/// the changes that the store does not have. While this value exists, the fold accepts no other call.
///
/// ```compile_fail,E0499
/// # fn example(mut sessions: hookspan_core::Sessions, old: hookspan_core::Event, new: hookspan_core::Event) {
/// let mut replay = sessions.handle_history();
/// replay.handle(old);
/// sessions.handle(new); // the history is not finished
/// replay.finish();
/// # }
/// ```
///
/// ```compile_fail
/// # #![deny(unused_must_use)]
/// # fn example(mut sessions: hookspan_core::Sessions, event: hookspan_core::Event) {
/// sessions.poll_missing(&event); // the hooks have to be passed to handle_missing
/// # }
/// ```
#[derive(Debug)]
#[must_use = "hand in the hooks, and then call `finish`"]
pub struct Replay<'a> {
    sessions: &'a mut Sessions,
    /// Changes that were waiting to be polled when the replay began.
    before: VecDeque<Change>,
    told: Vec<Change>,
    /// Whether this replay is a part of another one.
    nested: bool,
    /// Conversations whose hooks were passed to this replay.
    own: BTreeSet<Arc<str>>,
    /// Another conversation turned out to be a child of the replayed ones. The store then lacks their changes.
    moves_others: bool,
}

impl Sessions {
    /// Begins a replay of conversations that are not in memory. Pass all their raw hooks before the next event, in the
    /// order of `seq`. Needed if [`Self::holds`] returns false and the raw log has such hooks.
    pub fn handle_history(&mut self) -> Replay<'_> {
        self.tell_new();
        self.replayed = Some(BTreeSet::new());
        let before = std::mem::take(&mut self.out);
        Replay::new(self, before, false)
    }

    /// Whether this number of hooks makes a long history. While a long history is replayed, time must pass so that
    /// settled turns are evicted. See [`Replay::handle_deadline`].
    #[must_use]
    pub const fn is_long(&self, hooks: usize) -> bool {
        hooks > self.config.settled_hooks.saturating_mul(LONG)
    }

    /// Begins to take the hooks that [`Self::poll_missing`] returned for `event`. Pass them in the order in which they
    /// were returned. `event` itself is handled after [`Replay::finish`].
    pub fn handle_missing(&mut self, event: &Event) -> Replay<'_> {
        let nested = self.replayed.is_some();
        self.finish_round();
        let before = std::mem::take(&mut self.out);
        self.unseal(event);
        Replay::new(self, before, nested)
    }
}

impl Sessions {
    /// Derives new facts before the replay. The store lacks their changes, whereas changes during the replay count as
    /// stored.
    fn tell_new(&mut self) {
        self.finish_round();
        if !(self.touched.is_empty() && self.dirty.is_empty()) {
            self.begin_round(None);
            self.finish_round();
        }
    }

    /// Whether time passes for a session. During a replay time passes only for the replayed conversations: other
    /// sessions may still receive hooks that are older than the history.
    pub(super) fn has_time_pass(&self, root: &str) -> bool {
        self.replayed.as_ref().is_none_or(|own| own.contains(root))
    }

    /// Marks the sessions whose end became due during the replay. They end at the next deadline.
    fn end_what_is_over(&mut self) {
        for id in std::mem::take(&mut self.over) {
            let Some(group) = self.groups.get_mut(&id) else { continue };
            if group.deadline.is_none() {
                group.deadline = Some(group.clock);
                self.deadlines.insert((group.clock, id));
            }
        }
    }
}

impl<'a> Replay<'a> {
    fn new(sessions: &'a mut Sessions, before: VecDeque<Change>, nested: bool) -> Self {
        let (told, own) = (Vec::new(), BTreeSet::new());
        Self { sessions, before, told, nested, own, moves_others: false }
    }

    /// Takes an event of the past.
    pub fn handle(&mut self, event: Event) {
        self.own.insert(Arc::clone(&event.conversation));
        if let Some(own) = &mut self.sessions.replayed {
            own.insert(Arc::clone(&event.conversation));
        }
        self.sessions.handle(event);
    }

    /// Lets time pass within a long history, so that settled turns can be evicted. `now` must not be later than a hook
    /// that still follows. No session ends during the replay, and time does not pass for other sessions.
    pub fn handle_deadline(&mut self, now: Timestamp) {
        self.sessions.handle_deadline(now);
        self.drain();
    }

    /// Like [`Sessions::poll_missing`], for an event within the history.
    #[must_use = "the hooks have to be handed in before the event"]
    pub fn poll_missing(&mut self, event: &Event) -> Vec<u64> {
        self.sessions.poll_missing(event)
    }

    /// Like [`Sessions::handle_missing`], for an event within the history.
    pub fn handle_missing(&mut self, event: &Event) -> Replay<'_> {
        self.sessions.handle_missing(event)
    }

    /// Ends the replay. Returns the changes that the store may not have: [`Change::Bind`], [`Change::Ask`] and
    /// [`Change::Forget`], and all changes of other sessions. If the hooks show that another conversation is a child of
    /// the replayed ones, it returns all changes, because spans of that child have moved.
    #[must_use = "the store does not have these changes"]
    pub fn finish(mut self) -> Vec<Change> {
        self.drain();
        std::mem::take(&mut self.told)
    }

    fn drain(&mut self) {
        while let Some(change) = self.sessions.poll_change() {
            // Report links before the spans that they move.
            if let Change::Bind { conversation, root } = &change
                && !(self.nested || self.moves_others)
                && conversation != root
                && !self.own.contains(conversation)
            {
                self.moves_others = true;
                self.tell_earlier_changes();
            }
            let is_new = matches!(change, Change::Bind { .. } | Change::Ask(_) | Change::Forget(_));
            let of_others = self.is_of_others(&change);
            if of_others && self.nested {
                self.before.push_back(change);
            } else if of_others || is_new || self.moves_others {
                if of_others {
                    self.tell_earlier_changes();
                }
                self.told.push(change);
            }
        }
    }

    /// Changes from before the replay are older than those from the replay, so they are reported first.
    fn tell_earlier_changes(&mut self) {
        if self.before.is_empty() {
            return;
        }
        self.told = self.before.drain(..).chain(self.told.drain(..)).collect();
    }

    /// Whether a value belongs to a session that is not being replayed. The store does not have such a value.
    fn is_of_others(&self, change: &Change) -> bool {
        let conversation = match change {
            Change::Span(span) => &span.conversation,
            Change::Settle(span) | Change::Withdraw(span) => &span.conversation,
            Change::Session(row) => &row.root,
            Change::Turn(row) => &row.root,
            Change::Bind { .. } | Change::Ask(_) | Change::Forget(_) => return false,
        };
        let top = root(&self.sessions.kinship.links, conversation);
        let all = self.sessions.replayed.as_ref().unwrap_or(&self.own);
        !(all.contains(conversation) || all.contains(top))
    }
}

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        self.drain();
        self.sessions.end_reload();
        if !self.nested {
            self.sessions.replayed = None;
            self.sessions.end_what_is_over();
        }
        self.sessions.out.append(&mut self.before);
    }
}
