//! All conversations that are still open: routing, binding of children, deadlines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub use crate::change::{Change, Question};
pub use crate::config::{Config, MAX_HELD, MAX_SESSION, TabMode, TraceMode};
use crate::conversation::Conversation;
use crate::fact::Fact;
use crate::group::{Group, Out};
use crate::link::{Children, Conversations, Links, Unclear, link, root};
use crate::{Event, EventKind, Timestamp};

/// The fold. See the crate's documentation for the calling order.
#[derive(Debug, Default)]
pub struct Sessions {
    config: Config,
    conversations: Conversations,
    links: Links,
    /// Children whose candidates have different parents.
    unclear: Unclear,
    /// Children by parent and subagent key.
    children: Children,
    groups: BTreeMap<Arc<str>, Group>,
    /// Root last told for each conversation.
    bound: BTreeMap<Arc<str>, Arc<str>>,
    /// Conversations with new facts, each once.
    touched: Vec<Arc<str>>,
    /// Roots to derive again.
    dirty: BTreeSet<Arc<str>>,
    /// While they are derived: how far time has passed, if it has.
    round: Option<Option<Timestamp>>,
    deadlines: BTreeSet<(Timestamp, Arc<str>)>,
    /// Something that decides about links has changed.
    relink: bool,
    /// Events held, and how many may be; `None` is [`MAX_EVENTS`].
    held: usize,
    max_events: Option<usize>,
    evicted: u64,
    left_out: u64,
    /// Time of the newest event.
    newest: Timestamp,
    /// Nothing is idle enough to be evicted before this.
    next_eviction: Timestamp,
    out: VecDeque<Change>,
}

/// Events held before idle sessions have to go. One takes about 0.9 KiB, with its part of the spans that were told of it
/// (the example `fold_speed` measures it), so this is 15 MB. A call has two to four.
pub const MAX_EVENTS: usize = 16_384;

/// A session that had an event within this time is at work. It is never evicted: its next event would only bring its whole
/// history back.
const AT_WORK_NS: i64 = 300_000_000_000;

/// ... unless it is between turns and small: then nothing ends for the sake of room, and bringing it back costs little.
const SMALL: usize = 4_096;

/// A session that is at work and had no event for this long costs more room than to bring it back costs time.
const PAUSE_NS: i64 = 10_000_000_000;

/// While nothing can go, it is not looked for more often than this.
const LOOK_NS: i64 = 250_000_000;

impl Sessions {
    /// An empty fold.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, ..Self::default() }
    }

    /// An empty fold that holds about `max_events` events at most, besides those of sessions at work. [`Self::new`] takes
    /// [`MAX_EVENTS`].
    #[must_use]
    pub fn with_bound(config: Config, max_events: usize) -> Self {
        Self { max_events: Some(max_events), ..Self::new(config) }
    }

    /// Sessions that had to leave before their time. What was open in them ended as [`crate::EndReason::Evicted`], and
    /// [`Change::Forget`] told so; with its history, a later event makes them whole again.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Events that found their session full: one with [`Config::session_hooks`] of them, or with an eighth more for prompts,
    /// responses, stops and the like; or that found [`Config::held_hooks`] and an eighth in all. They are left out of its tree, in which a call may miss its end; the raw log has them.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Events held.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Whether anything of `conversation` is held. If not, and the raw log has hooks of it (or of its root) before this
    /// event, hand those in first.
    #[must_use]
    pub fn holds(&self, conversation: &str) -> bool {
        self.conversations.contains_key(conversation)
    }

    /// Takes an event.
    pub fn handle(&mut self, event: Event) {
        self.finish_round();
        let nowhere = matches!(event.kind, EventKind::Malformed | EventKind::WorkspaceOpen);
        if event.conversation.is_empty() || nowhere {
            return;
        }
        if self.is_full_for(&event) {
            self.left_out += 1;
            self.newest = self.newest.max(event.at);
            if let Some(conversation) = self.conversations.get_mut(&event.conversation) {
                // It is at work all the same, and not to be evicted.
                conversation.last = conversation.last.max(event.at);
            }
            return;
        }
        let mut is_known = true;
        let conversation = match self.conversations.get_mut(&event.conversation) {
            Some(conversation) => conversation,
            None => {
                is_known = false;
                let id = &event.conversation;
                let new = || Conversation::new(id.clone(), event.host);
                self.conversations.entry(id.clone()).or_insert_with(new)
            }
        };
        let id = conversation.id.clone();
        conversation.meet(event.host);
        let before = (conversation.first, conversation.root_only);
        let generations = conversation.explicit.len();
        if !std::mem::replace(&mut conversation.touched, true) {
            self.touched.push(id.clone());
        }
        if let EventKind::Evidence(evidence) = event.kind {
            conversation.consider(event.seq, *evidence);
            self.relink = true;
            return;
        }
        if let Some(lineage) = event.lineage.clone() {
            self.relink |= conversation.lineage.is_none();
            conversation.lineage.get_or_insert(*lineage);
        }
        let at = conversation.steady.time(event.at, event.boottime_ns);
        let decides = decides_links(&event.kind);
        let thought = matches!(event.kind, EventKind::Thought(_)).then_some(at);
        let transcript = event.about.transcript_path.as_ref();
        let transcript_is_new = transcript.is_some() && conversation.transcript() != transcript;
        conversation.describe((at, event.seq), event.host, &event.about);
        self.newest = self.newest.max(at);
        let generation = event.generation.clone();
        self.held += usize::from(conversation.add(&generation, Fact::new(event, at)));
        let decides = decides || thought.is_some_and(|at| conversation.ends_delegation(at));
        // A new turn of a child may belong to a call that resumed it.
        let resumed = generations != conversation.explicit.len() && self.links.contains_key(&id);
        let ambiguous = self.links.get(&id).is_some_and(|link| link.key.is_none())
            || self.unclear.contains_key(&id);
        self.relink |= decides
            || ambiguous
            || resumed
            || transcript_is_new
            || before != (conversation.first, conversation.root_only)
            || !is_known;
    }

    /// Whether the session of an event, or all together, hold as much as they may.
    fn is_full_for(&self, event: &Event) -> bool {
        let Config { session_hooks: most, held_hooks: together, .. } = self.config;
        if self.held < most.min(together) || matches!(event.kind, EventKind::Evidence(_)) {
            return false;
        }
        let reserve = |most: usize| if holds_together(&event.kind) { most / 8 } else { 0 };
        if self.held >= together.saturating_add(reserve(together)) {
            return true;
        }
        let top = root(&self.links, &event.conversation);
        let count = |id| self.conversations.get(id).map_or(0, |member| member.count);
        let below = self.links.keys().filter(|member| root(&self.links, member) == top);
        let held = count(top) + below.map(count).sum::<usize>();
        held >= most.saturating_add(reserve(most))
    }

    /// Lets time pass. Effects carry the time of the deadline, not `now`, so calling late changes nothing.
    ///
    /// While a backlog is read (a journal after a stop, an import, a rebuild), pass the time of the last hook handed in;
    /// the wall clock would close turns whose other half is still in the backlog.
    pub fn handle_deadline(&mut self, now: Timestamp) {
        self.finish_round();
        // What is to be told anyway is told as of now, not once before and once after.
        self.begin_round(Some(now));
        while let Some((at, _)) = self.deadlines.first()
            && *at <= now
            && let Some((_, root)) = self.deadlines.pop_first()
        {
            if let Some(group) = self.groups.get_mut(&root) {
                group.deadline = None;
                self.dirty.insert(root);
            }
        }
    }

    /// When [`Self::handle_deadline`] next has something to do, once all changes have been polled.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The next change to store, until `None`.
    ///
    /// What has to be told is derived one session at a time, as it is asked for: the changes of a batch are never all in
    /// memory here.
    #[must_use]
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

    /// Notes what depends on new facts, to be brought up to date as of `now` if time has passed.
    fn begin_round(&mut self, now: Option<Timestamp>) {
        self.round = Some(now);
        let touched = std::mem::take(&mut self.touched);
        for id in &touched {
            if let Some(conversation) = self.conversations.get_mut(id) {
                conversation.touched = false;
                conversation.lay_out(&self.config);
            }
        }
        if std::mem::take(&mut self.relink) {
            self.link();
        }
        for id in touched {
            self.dirty.insert(root(&self.links, &id).clone());
        }
    }

    /// Brings one session up to date. False when none is left; then there is room again, too.
    fn go_on(&mut self) -> bool {
        let Some(now) = self.round else { return false };
        let Some(root) = self.dirty.pop_first() else {
            self.round = None;
            self.evict();
            return false;
        };
        self.derive_group(&root, now);
        true
    }

    /// For whoever goes on before all changes were polled.
    fn finish_round(&mut self) {
        while self.go_on() {}
    }

    /// Makes room: the longest idle sessions leave, as if their time had passed.
    fn evict(&mut self) {
        let most = self.config.held_hooks;
        let bound = self.max_events.unwrap_or(MAX_EVENTS).min(most);
        let crowded = self.held >= most;
        if !(crowded || self.held > bound) || self.newest < self.next_eviction {
            return;
        }
        self.next_eviction = self.newest.plus(LOOK_NS);
        let mut roots: BTreeMap<&Arc<str>, (Timestamp, usize)> = BTreeMap::new();
        for (id, conversation) in &self.conversations {
            let (last, events) =
                roots.entry(root(&self.links, id)).or_insert((conversation.last, 0));
            *last = (*last).max(conversation.last);
            *events += conversation.count;
        }
        let mut idle: Vec<(Timestamp, Arc<str>, bool)> = Vec::new();
        for (id, (last, events)) in roots {
            let quiet = events <= SMALL && self.groups.get(id).is_some_and(|group| group.quiet);
            let pause = self.newest.since(last);
            if quiet || pause >= AT_WORK_NS || (crowded && pause >= PAUSE_NS) {
                idle.push((last, id.clone(), quiet));
            }
        }
        idle.sort();
        for (last, id, quiet) in idle {
            let at_work = !quiet && self.newest.since(last) < AT_WORK_NS;
            if at_work && self.held <= most - most / 8 {
                continue;
            }
            let Some(group) = self.groups.get_mut(&id) else { continue };
            let config = &self.config;
            let idle = config.session_idle_ns.saturating_add(config.generation_idle_ns);
            let rest = config.flush_after_ns.saturating_add(config.settle_delay_ns);
            group.clock = group.clock.max(last.plus(idle).plus(rest).plus(AT_WORK_NS));
            // A quiet one just has its idle time at once: whether it stayed in memory shows nowhere, unless it comes back. Nor
            // does it of one that is idle by the clock, and only waits for time to be let pass.
            let idle_by_now = self.newest.since(last) > idle.saturating_add(rest);
            group.evicted = !quiet && !idle_by_now;
            group.force = !quiet;
            self.derive_group(&id, None);
            self.evicted += u64::from(!self.groups.contains_key(&id));
            // Some room to spare, so that not every event needs a look at all sessions.
            if self.held <= bound - bound / 8 {
                self.next_eviction = Timestamp(i64::MIN);
                return;
            }
        }
    }

    fn link(&mut self) {
        let (links, unclear) = link(&self.conversations);
        let same = links == self.links && unclear == self.unclear;
        if same && self.bound.len() == self.conversations.len() {
            return;
        }
        let old = std::mem::replace(&mut self.links, links);
        let old_unclear = std::mem::replace(&mut self.unclear, unclear);
        self.children.clear();
        for (child, link) in &self.links {
            for key in link.keys() {
                let place = (link.parent.clone(), key.clone());
                self.children.entry(place).or_default().push(child.clone());
            }
        }
        let ids: Vec<Arc<str>> = self.conversations.keys().cloned().collect();
        for id in ids {
            let now = root(&self.links, &id).clone();
            let was = self.bound.insert(id.clone(), now.clone());
            if was.as_ref() != Some(&now) {
                self.out.push_back(Change::Bind { conversation: id.clone(), root: now.clone() });
            }
            if was.as_ref() != Some(&now)
                || old.get(&id) != self.links.get(&id)
                || old_unclear.get(&id) != self.unclear.get(&id)
            {
                self.force(&now);
                if let Some(was) = was {
                    self.force(&was);
                }
            }
            if now != id
                && let Some(group) = self.groups.remove(&id)
            {
                let mut rest = group.withdraw_session(&mut self.out);
                self.groups.entry(now.clone()).or_default().inherited.append(&mut rest);
                self.deadlines.retain(|(_, root)| *root != id);
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
        if self.links.contains_key(id) || conversation.count == 0 {
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
            links: &self.links,
            unclear: &self.unclear,
            children: &self.children,
            changes: &mut self.out,
            moved: &mut moved,
        };
        let done = group.derive(id, changed, out);
        for (span, told) in moved {
            // Whoever has the conversation now tells the span again, or nobody does.
            let home = root(&self.links, &told.conversation).clone();
            if self.conversations.contains_key(&home) {
                self.groups.entry(home.clone()).or_default().inherited.insert(span, told);
                self.dirty.insert(home);
            }
        }
        if done {
            self.forget(id);
        } else if let Some(at) = self.groups.get(id).and_then(|group| group.deadline) {
            self.deadlines.insert((at, id.clone()));
        }
    }

    fn forget(&mut self, id: &Arc<str>) {
        let members: Vec<Arc<str>> = self
            .conversations
            .keys()
            .filter(|member| root(&self.links, member) == id)
            .cloned()
            .collect();
        for member in &members {
            let gone = self.conversations.remove(member);
            self.held = self.held.saturating_sub(gone.map_or(0, |gone| gone.count));
            self.links.remove(member);
            self.unclear.remove(member);
            self.bound.remove(member);
        }
        self.children.retain(|(parent, _), _| !members.contains(parent));
        self.groups.remove(id);
        self.out.push_back(Change::Forget(id.clone()));
    }
}

/// Whether an event says when a turn, a session or a subagent begins or ends, or what it took.
fn holds_together(kind: &EventKind) -> bool {
    use EventKind as K;
    matches!(
        kind,
        K::SessionStart { .. }
            | K::SessionEnd(_)
            | K::Prompt(_)
            | K::Response(_)
            | K::Stop(_)
            | K::SubagentStart(_)
            | K::SubagentStop(_)
    )
}

/// Whether an event changes whose child a conversation may be.
fn decides_links(kind: &EventKind) -> bool {
    use EventKind as K;
    match kind {
        K::Prompt(_) | K::Stop(_) | K::SubagentStart(_) | K::SubagentStop(_) => true,
        K::ToolStart(tool) | K::ToolEnd(tool) | K::ToolFailure(tool) => {
            tool.class == crate::tool::ToolClass::Task
        }
        _ => false,
    }
}
