//! Limits the fold's memory: evicts idle sessions, and drops events if evicting is not enough.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Sessions;
use crate::correlate::parent_link::root;
use crate::model::change::Change;
use crate::model::event::{Event, EventKind};
use crate::model::time::Timestamp;
use crate::model::tolerance::{AT_WORK, LOOK, PAUSE};

/// If more events than this are in memory, idle sessions are evicted. An event takes about 0.9 KiB including its share
/// of reported spans (measured by the example `fold_speed`), so this is 15 MB. A call has two to four events.
pub const MAX_EVENTS: usize = 16_384;

/// Maximum number of conversations in memory. A conversation with an open turn takes 19 to 21 KiB, so this is about 170
/// MB. Beyond it the sessions that are idle longest are evicted, even busy ones, but not sessions of more than 4,096
/// events. Beyond twice this number, events of new conversations are dropped.
pub const MAX_CONVERSATIONS: usize = 8_192;

/// If more conversations than this are in memory, idle sessions are evicted. A quarter of [`MAX_CONVERSATIONS`].
const MANY_CONVERSATIONS: usize = 2_048;

/// A session with at most this many events may be evicted between turns at once: nothing ends because of it, and
/// reloading the session is cheap.
const SMALL: usize = 4_096;

/// Checking this many conversations costs almost nothing.
const FEW: usize = 512;

/// Counters of the fold's memory.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Events in memory.
    pub(super) held: usize,
    /// The configured maximum; `None` means [`MAX_EVENTS`].
    max_events: Option<usize>,
    pub(super) evicted: u64,
    pub(super) left_out: u64,
    /// Evicted turns that were reloaded for a late hook.
    pub(super) reloaded: u64,
    /// Number of items read so far.
    pub(super) work: u64,
    /// Events handled.
    pub(super) handled: u64,
    /// Before this time, no session is idle for long enough.
    next_look: Timestamp,
    /// The next check waits until this many events were handled, because a check reads every session.
    next_look_at: u64,
    /// The last check above [`MAX_CONVERSATIONS`] found too few sessions to evict. The next check waits until this many
    /// events were handled.
    barren_until: u64,
}

impl Room {
    pub(super) fn with_bound(max_events: usize) -> Self {
        Self { max_events: Some(max_events), ..Self::default() }
    }
}

/// A session that may be evicted. Candidates are ordered by idle time, the longest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Idle {
    last: Timestamp,
    root: Arc<str>,
    /// Whether the session is small and its eviction ends nothing.
    quiet: bool,
}

impl Sessions {
    /// Whether an event's session, or all sessions together, have reached their limit.
    pub(super) fn is_full_for(&self, event: &Event) -> bool {
        let (most, together) = (self.config.session_hooks, self.config.held_hooks);
        if matches!(event.kind, EventKind::Evidence(_)) {
            return false;
        }
        if self.conversations.len() >= 2 * MAX_CONVERSATIONS
            && !self.conversations.contains_key(&event.conversation)
        {
            return true;
        }
        if self.room.held < most.min(together) {
            return false;
        }
        let reserve = |most: usize| if is_lifecycle(&event.kind) { most / 8 } else { 0 };
        if self.room.held >= together.saturating_add(reserve(together)) {
            return true;
        }
        let top = root(&self.kinship.links, &event.conversation);
        let count = |id| self.conversations.get(id).map_or(0, |member| member.held);
        let held: usize = self.kinship.family(top).iter().map(count).sum();
        held >= most.saturating_add(reserve(most))
    }

    /// Counts a dropped event and marks its turn. The session still counts as busy.
    pub(super) fn leave_out(&mut self, event: &Event) {
        self.room.left_out += 1;
        self.newest = self.newest.max(event.at);
        if let Some(conversation) = self.conversations.get_mut(&event.conversation) {
            conversation.last = conversation.last.max(event.at);
            conversation.lose(&event.generation);
            if !std::mem::replace(&mut conversation.touched, true) {
                self.touched.push(conversation.id.clone());
            }
        }
    }

    /// Whether it is time to search for sessions to evict.
    pub(super) fn needs_room(&self) -> bool {
        let most = self.config.held_hooks;
        let (held, count) = (self.room.held, self.conversations.len());
        let over = held >= most || held > self.bound() || count > MANY_CONVERSATIONS;
        let is_soon =
            self.newest < self.room.next_look || self.room.handled < self.room.next_look_at;
        let is_barren = self.room.handled < self.room.barren_until;
        let waits = if count > MAX_CONVERSATIONS && held < most { is_barren } else { is_soon };
        over && !waits
    }

    /// The number of events above which idle sessions are evicted.
    fn bound(&self) -> usize {
        self.room.max_events.unwrap_or(MAX_EVENTS).min(self.config.held_hooks)
    }

    /// Evicts the longest idle sessions, as if their idle time had passed.
    pub(super) fn evict(&mut self) {
        if !self.needs_room() {
            return;
        }
        let (most, bound) = (self.config.held_hooks, self.bound());
        let (held, count) = (self.room.held, self.conversations.len());
        let crowded = held >= most || count > MAX_CONVERSATIONS;
        self.room.next_look = self.newest.plus(LOOK);
        self.room.work += count as u64;
        for Idle { last, root, quiet } in self.idle(crowded, count > MAX_CONVERSATIONS) {
            let at_work = !quiet && self.newest.since(last) < AT_WORK;
            let (held, count) = (self.room.held, self.conversations.len());
            let spare = held <= most - most / 8 && count <= MAX_CONVERSATIONS / 8 * 7;
            if at_work && spare {
                continue;
            }
            self.evict_one(&root, last, quiet);
            // Frees a little more than needed. Otherwise every event would cause a check of all sessions.
            let (held, count) = (self.room.held, self.conversations.len());
            if held <= bound - bound / 8 && count <= MANY_CONVERSATIONS / 8 * 7 {
                self.room.next_look = Timestamp(i64::MIN);
                return;
            }
        }
        let many = self.conversations.len().saturating_sub(FEW) as u64;
        self.room.next_look_at = self.room.handled + many / 8;
        if self.conversations.len() > MAX_CONVERSATIONS {
            self.room.barren_until = self.room.next_look_at;
        }
    }

    /// Sessions that may be evicted. If `crowded`, a short pause is enough. If `anyone`, every small session may be
    /// evicted.
    fn idle(&self, crowded: bool, anyone: bool) -> Vec<Idle> {
        let mut roots: BTreeMap<&Arc<str>, (Timestamp, usize)> = BTreeMap::new();
        for (id, conversation) in &self.conversations {
            let top = root(&self.kinship.links, id);
            let (last, events) = roots.entry(top).or_insert((conversation.last, 0));
            *last = (*last).max(conversation.last);
            *events += conversation.count;
        }
        let mut idle: Vec<Idle> = Vec::new();
        for (root, (last, events)) in roots {
            let quiet = events <= SMALL && self.groups.get(root).is_some_and(|group| group.quiet);
            let pause = self.newest.since(last);
            let paused = pause >= AT_WORK || (crowded && pause >= PAUSE);
            if quiet || paused || (anyone && events <= SMALL) {
                idle.push(Idle { last, root: root.clone(), quiet });
            }
        }
        idle.sort();
        idle
    }

    /// Derives a session as of a time at which everything in it has ended, so that it is dropped.
    fn evict_one(&mut self, id: &Arc<str>, last: Timestamp, quiet: bool) {
        let Some(group) = self.groups.get_mut(id) else { return };
        let config = &self.config;
        let idle = config.session_idle_ns.saturating_add(config.generation_idle_ns);
        let rest = config.flush_after_ns.saturating_add(config.settle_delay_ns);
        group.clock = group.clock.max(last.plus(idle).plus(rest).plus(AT_WORK));
        // A session between turns is evicted as if its idle time were over. The difference is visible only if the
        // session continues later. A session that is idle by the clock but was not closed yet is treated in the same
        // way.
        let idle_by_now = self.newest.since(last) > idle.saturating_add(rest);
        group.evicted = !quiet && !idle_by_now;
        group.force = !quiet;
        self.derive_group(id, None);
        self.room.evicted += u64::from(!self.groups.contains_key(id));
    }

    /// Removes a session from memory.
    pub(super) fn forget(&mut self, id: &Arc<str>) {
        for member in self.kinship.family(id) {
            let gone = self.conversations.remove(&member);
            let held = gone.as_ref().map_or(0, |gone| gone.held);
            self.room.held = self.room.held.saturating_sub(held);
            for child in gone.iter().flat_map(|gone| gone.sealed.children()) {
                self.sealed_children.remove(child);
            }
            self.bundled.remove(&member);
            let delegated = gone.is_some_and(|gone| !gone.delegations.is_empty());
            self.kinship.forget(&member, delegated);
        }
        self.groups.remove(id);
        self.out.push_back(Change::Forget(id.clone()));
    }
}

/// Whether an event is a lifecycle event: one that begins, ends or concludes a turn, a session or a subagent.
fn is_lifecycle(kind: &EventKind) -> bool {
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
