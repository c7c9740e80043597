//! Keeps the links between conversations up to date: decides when to search for them again, and marks what a changed
//! link affects.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Sessions;
use crate::correlate::conversation::KinFacts;
use crate::correlate::parent_link::{
    CROWD, Children, Link, Linked, Links, Strays, Unclear, link, root, turn_of_key,
};
use crate::model::change::Change;
use crate::model::time::Timestamp;
use crate::model::tolerance::LINK_WAIT;

/// A search for links reads every conversation and delegation. If there are fewer of them than this, links are searched
/// after every change.
const LIGHT: usize = 512;
/// If there are more, links are searched only after one eighth of them is new, or [`LINK_WAIT`] per item has passed.
const SHARE: usize = 8;

/// Links between conversations, and the input of the last search.
#[derive(Debug, Default)]
pub(super) struct Kinship {
    pub(super) links: Links,
    pub(super) unclear: Unclear,
    /// Children by parent and subagent key.
    pub(super) children: Children,
    /// Children by parent.
    below: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// Children that several delegations of one parent fit, by root.
    pub(super) strays: Strays,
    /// Conversations without any event that only a root can have.
    pub(super) perhaps_children: BTreeSet<Arc<str>>,
    /// Last reported root of each conversation.
    bound: BTreeMap<Arc<str>, Arc<str>>,
    /// Conversations whose root was not reported yet.
    new: Vec<Arc<str>>,
    /// An input of the search has changed.
    pub(super) relink: bool,
    /// A child is linked to a turn because no delegation is known.
    pub(super) loose: bool,
    /// Conversations with delegations.
    delegating: usize,
    /// A child names a parent that is not in memory.
    waits: bool,
    /// How many items the last search read, how many events arrived since, and when it ran.
    work: usize,
    since: usize,
    looked_at: Timestamp,
}

impl Kinship {
    pub(super) fn note_event(&mut self) {
        self.since += 1;
    }

    pub(super) fn note_new(&mut self, id: &Arc<str>) {
        self.new.push(id.clone());
        self.perhaps_children.insert(id.clone());
        // An earlier conversation may have named this one as its parent, so links must be searched again.
        self.relink |= self.waits;
    }

    /// Notes what an event has changed about a conversation. `decides` tells that the event changes whose child a
    /// conversation may be.
    pub(super) fn note_facts(
        &mut self,
        id: &Arc<str>,
        before: &KinFacts,
        after: &KinFacts,
        decides: bool,
    ) {
        if after.root_only && !before.root_only {
            self.perhaps_children.remove(id);
        }
        self.delegating += usize::from(after.delegations > 0 && before.delegations == 0);
        let linked = self.links.get(id);
        // A child's new turn may belong to a call that resumed that child.
        let resumed = linked.is_some() && before.generations != after.generations;
        let several = linked.map_or_else(
            || self.unclear.get(id).map(|candidates| candidates.count),
            |link| link.key.is_none().then_some(link.candidates.count),
        );
        let undecided = several.is_some_and(|count| count <= CROWD);
        let could_be_child = !after.root_only || linked.is_some() || !before.root_only;
        let moved = before.first != after.first
            || before.root_only != after.root_only
            || before.workspace != after.workspace;
        self.relink |= before.transcript != after.transcript
            || (decides && after.delegations > 0)
            || (self.delegating > 0 && could_be_child && (moved || decides))
            || (after.delegations > 0 && before.workspace != after.workspace)
            || undecided
            || resumed;
    }

    /// Whether a search is due.
    pub(super) fn is_due(&self, now: Option<Timestamp>) -> bool {
        self.relink
            && (self.work < LIGHT
                || self.since.saturating_mul(SHARE) >= self.work
                || self.due().zip(now).is_some_and(|(due, now)| due <= now))
    }

    /// Latest time of the next search.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let wait = LINK_WAIT.saturating_mul(i64::try_from(self.work).unwrap_or(i64::MAX));
        self.relink.then(|| self.looked_at.plus(wait))
    }

    /// A conversation and all below it.
    pub(super) fn family(&self, top: &Arc<str>) -> Vec<Arc<str>> {
        let mut members = vec![top.clone()];
        let mut next = 0;
        while let Some(children) = members.get(next).map(|member| self.below.get(member)) {
            members.extend(children.into_iter().flatten().cloned());
            next += 1;
        }
        members
    }

    /// Makes the next round search for links, no matter what it costs.
    pub(super) fn link_soon(&mut self) {
        self.relink = true;
        self.work = 0;
    }

    pub(super) fn note_no_delegations(&mut self) {
        self.delegating = self.delegating.saturating_sub(1);
    }

    pub(super) fn forget(&mut self, member: &Arc<str>, delegated: bool) {
        self.delegating = self.delegating.saturating_sub(usize::from(delegated));
        if let Some(link) = self.links.remove(member) {
            self.unplace(member, &link);
        }
        self.unclear.remove(member);
        self.bound.remove(member);
        self.below.remove(member);
        self.strays.remove(member);
        self.perhaps_children.remove(member);
        let from = (member.clone(), Box::from(""));
        let own = self.children.range(from..).take_while(|((parent, _), _)| parent == member);
        let own: Vec<_> = own.map(|(place, _)| place.clone()).collect();
        own.iter().for_each(|place| drop(self.children.remove(place)));
    }

    /// Replaces the links. Returns the differences.
    fn replace(&mut self, linked: Linked, now: Option<Timestamp>) -> Relinked {
        self.relink = false;
        (self.work, self.since, self.waits) = (linked.work, 0, linked.waits);
        self.looked_at = now.unwrap_or(self.looked_at);
        let old = std::mem::replace(&mut self.links, linked.links);
        let old_unclear = std::mem::replace(&mut self.unclear, linked.unclear);
        let unclear = different(&old_unclear, &self.unclear);
        let links: Vec<(Arc<str>, Option<Link>)> = different(&old, &self.links)
            .into_iter()
            .map(|child| (child.clone(), old.get(&child).cloned()))
            .collect();
        for (child, old) in &links {
            if let Some(old) = old {
                self.unplace(child, old);
            }
            if let Some(link) = self.links.get(child) {
                for key in link.keys() {
                    let place = (link.parent.clone(), key.clone());
                    insert_sorted(self.children.entry(place).or_default(), child);
                }
                insert_sorted(self.below.entry(link.parent.clone()).or_default(), child);
            }
        }
        let hangs = |link: &Link| link.keys().any(|key| turn_of_key(key).is_some());
        self.loose = self.links.values().any(hangs);
        // A child for which not even the turn is known is reported separately.
        let is_stray = |link: &Link| link.keys().next().is_none();
        if !links.is_empty() && (!self.strays.is_empty() || self.links.values().any(is_stray)) {
            self.strays.clear();
            for (child, _) in self.links.iter().filter(|(_, link)| is_stray(link)) {
                let top = root(&self.links, child).clone();
                self.strays.entry(top).or_default().push(child.clone());
            }
        }
        Relinked { links, unclear }
    }

    /// Removes a child from the place that its link gave it.
    fn unplace(&mut self, child: &Arc<str>, link: &Link) {
        for key in link.keys() {
            let place = (link.parent.clone(), key.clone());
            if let Some(children) = self.children.get_mut(&place) {
                remove_sorted(children, child);
                if children.is_empty() {
                    self.children.remove(&place);
                }
            }
        }
        if let Some(siblings) = self.below.get_mut(&link.parent) {
            remove_sorted(siblings, child);
            if siblings.is_empty() {
                self.below.remove(&link.parent);
            }
        }
    }
}

/// Changes of new links.
struct Relinked {
    /// Children whose link changed, with the old link.
    links: Vec<(Arc<str>, Option<Link>)>,
    /// Children whose candidates changed.
    unclear: Vec<Arc<str>>,
}

/// Keys whose values differ, in order. Both maps are read once.
fn different<T: PartialEq>(
    old: &BTreeMap<Arc<str>, T>,
    new: &BTreeMap<Arc<str>, T>,
) -> Vec<Arc<str>> {
    let mut changed = Vec::new();
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return changed,
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        if before.map(|(_, value)| value) != after.map(|(_, value)| value) {
            changed.extend(before.or(after).map(|(key, _)| key.clone()));
        }
    }
}

fn insert_sorted(list: &mut Vec<Arc<str>>, id: &Arc<str>) {
    if let Err(at) = list.binary_search(id) {
        list.insert(at, id.clone());
    }
}

fn remove_sorted(list: &mut Vec<Arc<str>>, id: &Arc<str>) {
    if let Ok(at) = list.binary_search(id) {
        list.remove(at);
    }
}

impl Sessions {
    /// Reports new conversations as roots. A link may change this later.
    pub(super) fn bind_new(&mut self) {
        for id in std::mem::take(&mut self.kinship.new) {
            if self.conversations.contains_key(&id) && !self.kinship.bound.contains_key(&id) {
                self.kinship.bound.insert(id.clone(), id.clone());
                self.out.push_back(Change::Bind { conversation: id.clone(), root: id });
            }
        }
    }

    /// Searches for links again, and marks everything that changed links affect.
    pub(super) fn link(&mut self, now: Option<Timestamp>) {
        let linked = link(&self.conversations);
        self.room.work += linked.work as u64;
        let Relinked { links, unclear } = self.kinship.replace(linked, now);
        for (child, old) in &links {
            let new = self.kinship.links.get(child).cloned();
            old.iter().chain(&new).for_each(|link| self.mark(link));
        }
        // A changed link moves the child and the child's descendants.
        let moved: BTreeSet<Arc<str>> =
            links.iter().flat_map(|(child, _)| self.kinship.family(child)).collect();
        self.room.work += moved.len() as u64;
        for id in moved {
            if !self.conversations.contains_key(&id) {
                continue;
            }
            let now = root(&self.kinship.links, &id).clone();
            let was = self.kinship.bound.insert(id.clone(), now.clone());
            if was.as_ref() != Some(&now) {
                self.out.push_back(Change::Bind { conversation: id.clone(), root: now.clone() });
                self.remark(&id);
            }
            self.dirty.insert(now.clone());
            self.dirty.extend(was);
            if now != id {
                self.give_up_group(&id, &now);
            }
        }
        for id in unclear {
            if !self.conversations.contains_key(&id) {
                continue;
            }
            let top = root(&self.kinship.links, &id).clone();
            self.force(&top);
        }
    }

    /// Marks the turns above a conversation whose root has changed. The conversation's own link may be unchanged.
    fn remark(&mut self, id: &Arc<str>) {
        if let Some(link) = self.kinship.links.get(id).cloned() {
            self.mark(&link);
        }
    }

    /// Drops the session of a conversation that turned out to be a child.
    fn give_up_group(&mut self, id: &Arc<str>, root: &Arc<str>) {
        let Some(group) = self.groups.remove(id) else { return };
        if let Some(at) = group.deadline {
            self.deadlines.remove(&(at, id.clone()));
        }
        let rest = group.withdraw_session(&mut self.out);
        self.groups.entry(root.clone()).or_default().inherited.extend(rest);
    }

    /// Marks the turns of the root that a link affects. If no hook with an id tells which turn that is, all turns are
    /// read again.
    fn mark(&mut self, link: &Link) {
        let keys = link.keys().map(|key| (link.parent.clone(), key.clone()));
        let mut above: Vec<(Arc<str>, Box<str>)> = keys.collect();
        let mut seen: BTreeSet<(Arc<str>, Box<str>)> = above.iter().cloned().collect();
        while let Some((conversation, key)) = above.pop() {
            if let Some(link) = self.kinship.links.get(&conversation) {
                for key in link.keys() {
                    let place = (link.parent.clone(), key.clone());
                    if seen.insert(place.clone()) {
                        above.push(place);
                    }
                }
                continue;
            }
            let home = match turn_of_key(&key) {
                Some(turn) => Some(turn.into()),
                None => self.conversations.get(&conversation).and_then(|c| c.home(&key)),
            };
            match (home, self.groups.get_mut(&conversation)) {
                (Some(home), Some(group)) => group.mark(home),
                (None, Some(group)) => group.force = true,
                (_, None) => {}
            }
        }
    }

    /// Whether something in the session could settle at `now` although its links may still change.
    pub(super) fn may_settle_with_kin(&self, root: &Arc<str>, now: Timestamp) -> bool {
        let Some(conversation) = self.conversations.get(root) else { return false };
        let has_kin = !conversation.root_only
            || !conversation.delegations.is_empty()
            || self.kinship.below.contains_key(root);
        let is_due = self.groups.get(root).is_some_and(|group| group.deadline.is_none())
            || conversation.last.plus(self.config.settle_delay_ns) <= now;
        has_kin && is_due
    }
}
