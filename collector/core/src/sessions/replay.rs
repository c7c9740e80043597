//! Replays evicted hooks of the past that the fold needs again.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::Sessions;
use crate::correlate::parent_link::root;
use crate::model::change::Change;
use crate::model::event::Event;
use crate::model::time::Timestamp;

/// A history is long if it has more than this multiple of the hooks kept for settled turns.
const LONG: usize = 8;

/// Hands in hooks of the past. See [`Sessions::handle_history`] and [`Sessions::handle_missing`].
///
/// Their changes are in the store already and are left out. [`Self::finish`] returns changes that are not. While this value
/// exists, the fold accepts no other call.
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
/// sessions.poll_missing(&event); // the hooks have to be handed in
/// # }
/// ```
#[derive(Debug)]
#[must_use = "hand in the hooks, and then call `finish`"]
pub struct Replay<'a> {
    sessions: &'a mut Sessions,
    /// Changes that were pending before the replay.
    before: VecDeque<Change>,
    told: Vec<Change>,
    /// Whether it is a part of another.
    nested: bool,
    /// Conversations whose hooks came.
    own: BTreeSet<Arc<str>>,
    /// Another conversation belongs to these, so their changes are not in the store.
    moves_others: bool,
}

impl Sessions {
    /// Begins a replay of conversations that are not in memory: all their raw hooks before the next event, in the order of
    /// `seq`. Needed if [`Self::holds`] returns false and the raw log has such hooks.
    pub fn handle_history(&mut self) -> Replay<'_> {
        self.tell_new();
        self.replayed = Some(BTreeSet::new());
        let before = std::mem::take(&mut self.out);
        Replay::new(self, before, false)
    }

    /// Whether this many hooks are a long history. During a long history time must pass, so that settled turns are evicted. See
    /// [`Replay::handle_deadline`].
    #[must_use]
    pub const fn is_long(&self, hooks: usize) -> bool {
        hooks > self.config.settled_hooks.saturating_mul(LONG)
    }

    /// Begins to hand in the hooks that [`Self::poll_missing`] named for `event`, in the order in which it named them. `event`
    /// itself comes after [`Replay::finish`].
    pub fn handle_missing(&mut self, event: &Event) -> Replay<'_> {
        let nested = self.replayed.is_some();
        self.finish_round();
        let before = std::mem::take(&mut self.out);
        self.unseal(event);
        Replay::new(self, before, nested)
    }
}

impl Sessions {
    /// Derive new facts before the replay: changes during the replay count as stored, but these are not.
    fn tell_new(&mut self) {
        self.finish_round();
        if !(self.touched.is_empty() && self.dirty.is_empty()) {
            self.begin_round(None);
            self.finish_round();
        }
    }

    /// Whether time passes for a session: while a history is handed in, for that one alone. Hooks of others may still come that
    /// are older than the history.
    pub(super) fn has_time_pass(&self, root: &str) -> bool {
        self.replayed.as_ref().is_none_or(|own| own.contains(root))
    }

    /// Lets sessions end at the next deadline that would have ended while a history was handed in.
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

    /// Lets time pass in a long history, so that what has settled in it leaves memory. `now` must not lie after a hook that is
    /// still to come. No session ends meanwhile, and for other sessions no time passes.
    pub fn handle_deadline(&mut self, now: Timestamp) {
        self.sessions.handle_deadline(now);
        self.drain();
    }

    /// Like [`Sessions::poll_missing`], for an event of the history.
    #[must_use = "the hooks have to be handed in before the event"]
    pub fn poll_missing(&mut self, event: &Event) -> Vec<u64> {
        self.sessions.poll_missing(event)
    }

    /// Like [`Sessions::handle_missing`], for an event of the history.
    pub fn handle_missing(&mut self, event: &Event) -> Replay<'_> {
        self.sessions.handle_missing(event)
    }

    /// Ends it. Gives what may not be in the store: [`Change::Bind`], [`Change::Ask`] and [`Change::Forget`]; whatever is told of other
    /// sessions; and everything, once the hooks show that another conversation is a child of theirs, because its spans have
    /// another place now.
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

    /// What was to be told of a conversation before is older than what is told now.
    fn tell_earlier_changes(&mut self) {
        if self.before.is_empty() {
            return;
        }
        self.told = self.before.drain(..).chain(self.told.drain(..)).collect();
    }

    /// Whether a value belongs to a session of which no hooks were handed in: the store does not have it.
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
