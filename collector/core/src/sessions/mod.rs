//! Holds all open conversations: routes events, keeps deadlines, and decides what to report next.

mod kinship;
mod replay;
mod room;
mod seal;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::correlate::conversation::Conversation;
use crate::correlate::fact::Fact;
use crate::correlate::parent_link::{Conversations, root};
use crate::diff::group::Group;
use crate::diff::session::Out;
pub use crate::model::change::{Change, Question};
pub use crate::model::config::{Config, MAX_HELD, MAX_SESSION, TabMode, TraceMode};
use crate::model::event::{Event, EventKind};
use crate::model::time::Timestamp;
use kinship::Kinship;
pub use replay::Replay;
use room::Room;
pub use room::{MAX_CONVERSATIONS, MAX_EVENTS};

/// The fold.
///
/// How to call it, for each event:
///
/// 1. If the fold does not [hold](Self::holds) the event's conversation, and the raw log has earlier hooks of that
///    conversation or of its root, pass those hooks to [`Self::handle_history`].
/// 2. If [`Self::poll_missing`] returns hooks, pass those hooks to [`Self::handle_missing`].
/// 3. Pass the event to [`Self::handle`], in the order of `seq`.
///
/// And for each batch:
///
/// 4. Let time pass with [`Self::handle_deadline`].
/// 5. Call [`Self::poll_change`] until it returns `None`, and store all changes in one transaction with the hooks.
/// 6. Ask [`Self::poll_deadline`] when to call again if no event arrives.
///
/// A `handle_*` method takes input. A `poll_*` method returns output that the caller must act on. If a replay's changes
/// were not stored, call [`Self::handle_restart`]: the next poll then reports what may be missing from the store.
#[derive(Debug, Default)]
pub struct Sessions {
    config: Config,
    conversations: Conversations,
    kinship: Kinship,
    groups: BTreeMap<Arc<str>, Group>,
    /// Conversations with new facts, each once.
    touched: Vec<Arc<str>>,
    /// Roots whose derivation is due.
    dirty: BTreeSet<Arc<str>>,
    /// `Some` while a round of derivations runs. It holds the time up to which the round derives, or `None` if no time
    /// has passed.
    round: Option<Option<Timestamp>>,
    deadlines: BTreeSet<(Timestamp, Arc<str>)>,
    room: Room,
    /// Conversations evicted together with a settled turn, each with its session and the entry of the turn.
    sealed_children: BTreeMap<Arc<str>, (Arc<str>, Arc<str>)>,
    /// Sessions with bundles: evicted turns that share entries.
    bundled: BTreeSet<Arc<str>>,
    /// The session whose evicted turn is being reloaded.
    reloading: Option<Arc<str>>,
    /// Conversations whose past hooks are being replayed. During a replay no session ends, and time passes only for
    /// these conversations.
    replayed: Option<BTreeSet<Arc<str>>>,
    /// Sessions whose end became due during a replay.
    over: BTreeSet<Arc<str>>,
    /// Time of the newest event.
    newest: Timestamp,
    out: VecDeque<Change>,
}

impl Sessions {
    /// An empty fold.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, ..Self::default() }
    }

    /// An empty fold that holds about `max_events` events. Sessions at work may hold more. [`Self::new`] uses
    /// [`MAX_EVENTS`].
    #[must_use]
    pub fn with_bound(config: Config, max_events: usize) -> Self {
        Self { room: Room::with_bound(max_events), ..Self::new(config) }
    }

    /// Number of sessions evicted to free memory. Their open spans end with reason [`crate::EndReason::Evicted`], and
    /// the caller receives [`Change::Forget`]. To continue an evicted session, replay its raw hooks before its next
    /// event.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.room.evicted
    }

    /// Number of events dropped because a limit was reached: [`Config::session_hooks`] in one session, or
    /// [`Config::held_hooks`] in all sessions together. Lifecycle events (prompt, response, stop) get 12.5 % more room.
    /// Dropped events stay in the raw log, but their spans may lack an end.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.room.left_out
    }

    /// Number of facts, spans, turns and conversations read so far. This number does not depend on the machine. Tests
    /// use it to check that a hook does not cost more in a longer stream.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.room.work
    }

    /// Number of events in memory.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.room.held
    }

    /// The configured waiting times and memory limits.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether `conversation` or its session is in memory. If not, and the raw log has earlier hooks of the
    /// conversation or its root, replay those first, see [`Self::handle_history`]. If it is in memory, see
    /// [`Self::poll_missing`].
    #[must_use]
    pub fn holds(&self, conversation: &str) -> bool {
        self.conversations.contains_key(conversation)
            || self.sealed_children.contains_key(conversation)
            || self.bundle_of_child(conversation).is_some()
    }

    /// Takes an event.
    pub fn handle(&mut self, event: Event) {
        self.finish_round();
        let nowhere = matches!(event.kind, EventKind::Malformed | EventKind::WorkspaceOpen);
        if event.conversation.is_empty() || nowhere {
            return;
        }
        // The state of a repository alone does not create a session. Otherwise a deleted session could come back.
        if matches!(event.kind, EventKind::Repository(_))
            && !self.conversations.contains_key(&event.conversation)
        {
            return;
        }
        self.kinship.note_event();
        self.room.handled += 1;
        if self.is_full_for(&event) {
            self.leave_out(&event);
            return;
        }
        self.file(event);
    }

    fn file(&mut self, event: Event) {
        let conversation = match self.conversations.get_mut(&event.conversation) {
            Some(conversation) => conversation,
            None => {
                let id = event.conversation.clone();
                self.kinship.note_new(&id);
                let new = || Conversation::new(id.clone(), event.host);
                self.conversations.entry(id.clone()).or_insert_with(new)
            }
        };
        conversation.meet(event.host);
        let before = conversation.kin_facts();
        if !std::mem::replace(&mut conversation.touched, true) {
            self.touched.push(conversation.id.clone());
        }
        if let EventKind::Evidence(evidence) = event.kind {
            conversation.consider(event.seq, *evidence);
            self.kinship.relink = true;
            return;
        }
        if let Some(lineage) = event.lineage.clone() {
            self.kinship.relink |= conversation.lineage.is_none();
            conversation.lineage.get_or_insert(*lineage);
        }
        let at = conversation.steady.time(event.at, event.boottime_ns);
        let decides = decides_links(&event.kind);
        let thought = matches!(event.kind, EventKind::Thought(_)).then_some(at);
        conversation.describe((at, event.seq), event.host, &event.about);
        self.newest = self.newest.max(at);
        let generation = event.generation.clone();
        let root = conversation.roots.place(event.about.root());
        if matches!(event.kind, EventKind::ToolBatch(_)) {
            for fact in Fact::all(event, at) {
                self.room.held += conversation.add(&generation, fact.in_root(root));
            }
        } else {
            let fact = Fact::new(event, at).in_root(root);
            self.room.held += conversation.add(&generation, fact);
        }
        let decides = decides || thought.is_some_and(|at| conversation.ends_delegation(at));
        let after = conversation.kin_facts();
        self.kinship.note_facts(&conversation.id, &before, &after, decides);
    }

    /// Lets time pass. Its effects carry the time of the deadline and not `now`, so a late call changes nothing.
    ///
    /// While a backlog is read (a journal after a stop, an import, a rebuild), pass the time of the last hook that was
    /// handled. The wall clock would close turns whose other half is still in the backlog.
    pub fn handle_deadline(&mut self, now: Timestamp) {
        self.finish_round();
        let due = self.deadlines.iter().take_while(|(at, _)| *at <= now);
        let due: Vec<_> = due.filter(|(_, root)| self.has_time_pass(root)).cloned().collect();
        for deadline in due {
            self.deadlines.remove(&deadline);
            let (_, root) = deadline;
            if let Some(group) = self.groups.get_mut(&root) {
                group.deadline = None;
                self.dirty.insert(root);
            }
        }
        // One report, as of now. Without this there would be two: one as of the deadline and one as of now.
        self.begin_round(Some(now));
    }

    /// When [`Self::handle_deadline`] must be called next. Ask after all changes were polled.
    #[must_use = "come back then"]
    pub fn poll_deadline(&self) -> Option<Timestamp> {
        let first = self.deadlines.first().map(|(at, _)| *at);
        [first, self.kinship.due()].into_iter().flatten().min()
    }

    /// The next change to store. Call it until it returns `None`.
    ///
    /// Sessions are derived one at a time while changes are polled, so the changes of a batch are never all in memory.
    #[must_use = "a change has to be stored"]
    pub fn poll_change(&mut self) -> Option<Change> {
        while self.out.is_empty() {
            if self.round.is_none() {
                self.begin_round(None);
            }
            if !self.go_on() && self.out.is_empty() {
                return None;
            }
        }
        self.out.pop_front()
    }

    /// Marks everything that depends on new facts. If time has passed, these parts are derived as of `now`.
    fn begin_round(&mut self, now: Option<Timestamp>) {
        self.round = Some(now);
        let touched = std::mem::take(&mut self.touched);
        for id in &touched {
            if let Some(conversation) = self.conversations.get_mut(id) {
                conversation.touched = false;
                let layout = conversation.layout;
                conversation.lay_out(&self.config);
                // Children without a known delegation are linked to turns, so a changed layout may move them.
                self.kinship.relink |= self.kinship.loose && layout != conversation.layout;
            }
        }
        self.bind_new();
        if self.kinship.is_due(now) {
            self.link(now);
        }
        for id in touched {
            self.note_touched(&id);
        }
    }

    /// Marks the session of a conversation with new facts, and the turns above the conversation.
    fn note_touched(&mut self, id: &Arc<str>) {
        let root = root(&self.kinship.links, id).clone();
        if let Some(conversation) = self.conversations.get_mut(id) {
            let fresh = std::mem::take(&mut conversation.fresh);
            if let Some(group) = self.groups.get_mut(&root) {
                group.lag.fresh += fresh;
                if root != *id {
                    group.stir(id);
                }
            }
        }
        self.dirty.insert(root);
    }

    /// Derives one session. Returns false if no session is due. Then it evicts sessions if memory is short.
    fn go_on(&mut self) -> bool {
        let Some(now) = self.round else { return false };
        let Some(root) = self.dirty.pop_first() else {
            let is_crowded = self.conversations.len() > MAX_CONVERSATIONS;
            if is_crowded && self.replayed.is_none() && self.kinship.relink && self.needs_room() {
                // The links must be current: a child without its link would be evicted as a session of its own.
                self.link(now);
                return true;
            }
            self.round = None;
            if self.replayed.is_none() {
                self.evict();
            }
            return false;
        };
        let now = now.filter(|_| self.has_time_pass(&root));
        if self.waits(&root, now) {
            return true;
        }
        if self.kinship.relink && now.is_some_and(|now| self.may_settle_with_kin(&root, now)) {
            self.link(now);
        }
        self.derive_group(&root, now);
        true
    }

    /// Whether an expensive session waits for more new facts. The wait also ends when enough time has passed.
    fn waits(&mut self, root: &Arc<str>, now: Option<Timestamp>) -> bool {
        let Some(group) = self.groups.get_mut(root) else { return false };
        let clock = now.unwrap_or(group.clock).max(group.clock);
        let Some(until) = group.waits_until(clock) else { return false };
        if group.deadline.is_none_or(|at| at > until) {
            if let Some(at) = group.deadline.replace(until) {
                self.deadlines.remove(&(at, root.clone()));
            }
            self.deadlines.insert((until, root.clone()));
        }
        true
    }

    /// Completes a round of which not all changes were polled.
    fn finish_round(&mut self) {
        while self.go_on() {}
    }

    /// Call this after a replay whose changes were not stored. The next poll repeats the changes that the store may not
    /// have: everything in memory if `always`, otherwise the changes of expensive sessions, whose derivations may have
    /// been delayed.
    pub fn handle_restart(&mut self, always: bool) {
        self.finish_round();
        for (root, group) in &mut self.groups {
            if group.tell_again(always) {
                self.dirty.insert(root.clone());
            }
        }
    }

    fn force(&mut self, root: &Arc<str>) {
        self.dirty.insert(root.clone());
        if let Some(group) = self.groups.get_mut(root) {
            group.force = true;
        }
    }

    fn derive_group(&mut self, id: &Arc<str>, now: Option<Timestamp>) {
        let Some(conversation) = self.conversations.get_mut(id) else { return };
        if self.kinship.links.contains_key(id) || conversation.count == 0 {
            return;
        }
        let changed = conversation.take_changed();
        let group = self.groups.entry(id.clone()).or_default();
        group.clock = group.clock.max(now.unwrap_or(group.clock));
        if let Some(at) = group.deadline.take() {
            self.deadlines.remove(&(at, id.clone()));
        }
        let mut moved = Vec::new();
        let out = Out {
            config: &self.config,
            conversations: &self.conversations,
            links: &self.kinship.links,
            unclear: &self.kinship.unclear,
            children: &self.kinship.children,
            strays: self.kinship.strays.get(id).map(Vec::as_slice).unwrap_or_default(),
            perhaps_children: &self.kinship.perhaps_children,
            changes: &mut self.out,
            moved: &mut moved,
        };
        let done = group.derive(id, changed, out);
        self.room.work += group.lag.work() as u64;
        for (span, told) in moved {
            // The group that now has the conversation reports the span again. If there is no such group, no group
            // reports it.
            let home = root(&self.kinship.links, &told.conversation).clone();
            if self.conversations.contains_key(&home) {
                self.groups.entry(home.clone()).or_default().inherited.insert(span, told);
                self.dirty.insert(home);
            }
        }
        if done {
            if self.replayed.is_some() {
                self.over.insert(id.clone());
            } else {
                self.forget(id);
                return;
            }
        }
        if let Some(at) = self.groups.get(id).and_then(|group| group.deadline) {
            self.deadlines.insert((at, id.clone()));
        }
        if self.reloading.is_none() {
            self.seal(id);
        }
    }
}

/// Whether an event changes whose child a conversation may be.
fn decides_links(kind: &EventKind) -> bool {
    use EventKind as K;
    match kind {
        K::Prompt(_) | K::Stop(_) | K::SubagentStart(_) | K::SubagentStop(_) => true,
        K::ToolStart(tool) | K::ToolEnd(tool) | K::ToolFailure(tool) => {
            tool.class == crate::model::tool::ToolClass::Task
        }
        _ => false,
    }
}
