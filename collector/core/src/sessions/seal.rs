//! Evicts settled turns of long sessions, together with the conversations below them. If a late hook arrives for such a
//! turn, the turn is reloaded first.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Sessions;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::leaving::Leaving;
use crate::correlate::parent_link::{below_turn, turn_of_key};
use crate::diff::bundling::Size;
use crate::diff::group::Group;
use crate::model::event::Event;

/// Delegations that a child may belong to, as long as this is undecided. Turns with such delegations stay in memory.
#[derive(Default)]
struct Wanted {
    delegations: BTreeSet<(Arc<str>, Box<str>)>,
    /// Parents whose delegations are all undecided.
    parents: BTreeSet<Arc<str>>,
}

impl Sessions {
    /// Numbers of the raw hooks that must be passed to [`Self::handle_missing`] before `event`, because their turn was
    /// evicted. Empty if there are none.
    #[must_use = "the hooks have to be handed in before the event"]
    pub fn poll_missing(&mut self, event: &Event) -> Vec<u64> {
        let Some((root, generation)) = self.sealed_turn_of(event) else { return Vec::new() };
        if self.round.is_none() {
            self.begin_round(None);
        }
        self.finish_round();
        if self.groups.get(&root).is_some_and(|group| group.lag.fresh > 0) {
            // The derivation of this group may have been delayed. It must report now, because changes during the reload
            // are not reported.
            self.derive_group(&root, None);
        }
        let conversation = self.conversations.get(&root);
        let sealed = conversation.and_then(|conversation| conversation.sealed.get(&generation));
        sealed.map(|sealed| sealed.hooks()).unwrap_or_default()
    }

    /// Prepares for the hooks that [`Self::poll_missing`] returned.
    pub(super) fn unseal(&mut self, event: &Event) {
        let Some((root, generation)) = self.sealed_turn_of(event) else { return };
        let Some(conversation) = self.conversations.get_mut(&root) else { return };
        if let Some(sealed) = conversation.unseal(&generation) {
            self.room.held = self.room.held.saturating_sub(sealed.weight());
            self.room.reloaded += 1;
            sealed.children.iter().for_each(|child| drop(self.sealed_children.remove(child)));
            if !conversation.sealed.has_bundles() {
                self.bundled.remove(&root);
            }
            self.kinship.link_soon();
            if let Some(group) = self.groups.get_mut(&root) {
                group.unseal(&generation);
            }
            self.reloading = Some(root);
        }
    }

    /// Call this after all hooks that [`Self::poll_missing`] returned, and that still exist, were handled.
    pub(super) fn end_reload(&mut self) {
        let root = self.reloading.take();
        if let Some(conversation) = root.and_then(|root| self.conversations.get_mut(&root)) {
            conversation.end_reload();
        }
    }

    /// Number of evicted turns that were reloaded for a late hook.
    #[must_use]
    pub const fn reloads(&self) -> u64 {
        self.room.reloaded
    }

    fn sealed_turn_of(&self, event: &Event) -> Option<(Arc<str>, Arc<str>)> {
        if let Some(above) = self.sealed_children.get(&event.conversation) {
            return Some(above.clone());
        }
        if let Some(conversation) = self.conversations.get(&event.conversation) {
            return Some((conversation.id.clone(), conversation.sealed_turn_of(event)?));
        }
        self.bundle_of_child(&event.conversation)
    }

    /// Session and entry of a child that was evicted with a bundle.
    pub(super) fn bundle_of_child(&self, child: &str) -> Option<(Arc<str>, Arc<str>)> {
        self.bundled.iter().find_map(|root| {
            let bundle = self.conversations.get(root)?.sealed.bundle_of_child(child)?;
            Some((root.clone(), bundle.clone()))
        })
    }

    /// Evicts settled turns of a session, the oldest first, if the session holds far more hooks than configured.
    pub(super) fn seal(&mut self, root: &Arc<str>) {
        let keep = self.config.settled_hooks;
        let Some(group) = self.groups.get_mut(root) else { return };
        if self.room.held <= keep.saturating_mul(2) || self.room.handled < group.next_seal {
            return;
        }
        // A check reads every turn.
        group.next_seal = self.room.handled + (keep as u64 / 2).max(1);
        let count = |id: &Arc<str>| self.conversations.get(id).map_or(0, |member| member.held);
        let held: usize = self.kinship.family(root).iter().map(count).sum();
        if held <= keep.saturating_mul(2) {
            return;
        }
        let (leaving, next) = self.leaving(root, held - keep);
        if let Some(group) = self.groups.get_mut(root) {
            group.sealed_turns = next;
        }
        self.let_go(root, leaving);
        self.bundle(root);
    }

    /// Bundles the oldest evicted turns.
    fn bundle(&mut self, root: &Arc<str>) {
        let size = Size::of(self.config.settled_hooks);
        let (Some(conversation), Some(group)) =
            (self.conversations.get_mut(root), self.groups.get_mut(root))
        else {
            return;
        };
        while let Some(places) = group.next_bundle(conversation, size) {
            let before = group.turns_before_in_segment(conversation, places.start);
            let turns: Vec<Turn> = conversation.turns[places.clone()].to_vec();
            let Some((freed, children)) = conversation.bundle(places.clone()) else { return };
            group.bundle(places, &turns, before);
            children.iter().for_each(|child| drop(self.sealed_children.remove(child)));
            self.room.held = self.room.held.saturating_sub(freed);
            self.bundled.insert(root.clone());
        }
    }

    /// The oldest turns that may be evicted, with at most `excess` facts, and the number of evicted turns afterwards.
    fn leaving(&self, root: &Arc<str>, mut excess: usize) -> (Vec<Leaving>, usize) {
        let (Some(conversation), Some(group)) =
            (self.conversations.get(root), self.groups.get(root))
        else {
            return (Vec::new(), 0);
        };
        let wanted = self.wanted();
        let mut all = Vec::new();
        let first = group.sealed_turns.min(group.settled_turns());
        let mut next = first;
        let settled = conversation.turns.get(first..group.settled_turns()).unwrap_or_default();
        for (at, turn) in settled.iter().enumerate() {
            if excess == 0 {
                break;
            }
            if conversation.sealed.contains(&turn.generation) {
                next += usize::from(next == first + at);
                continue;
            }
            match self.may_leave(conversation, group, turn, &wanted) {
                Some(leaving) => {
                    next += usize::from(next == first + at);
                    excess = excess.saturating_sub(leaving.facts);
                    all.push(leaving);
                }
                // Turns without a name are numbered, and the numbers must be given in order.
                None if !conversation.loose.is_empty() => break,
                None => {}
            }
        }
        (all, next)
    }

    fn may_leave(
        &self,
        conversation: &Conversation,
        group: &Group,
        turn: &Turn,
        wanted: &Wanted,
    ) -> Option<Leaving> {
        if !group.is_final(&turn.generation) || !conversation.is_sealable(turn) {
            return None;
        }
        let facts = conversation.facts(turn);
        let mut leaving = Leaving {
            generation: turn.generation.clone(),
            start: turn.start,
            hooks: BTreeSet::new(),
            children: Vec::new(),
            facts: facts.len(),
        };
        let keys: BTreeSet<&str> =
            facts.iter().filter_map(|fact| conversation.delegation_of(fact)).collect();
        let below = below_turn(&turn.generation);
        for key in keys.into_iter().chain([&*below]) {
            let place = (conversation.id.clone(), Box::from(key));
            // No call names a child that is linked to the turn itself.
            let is_home = turn_of_key(key).is_some()
                || conversation.home(key).is_none_or(|home| home == turn.generation);
            if !is_home || wanted.has(&place) {
                return None;
            }
            for child in self.kinship.children.get(&place).into_iter().flatten() {
                for member in self.kinship.family(child) {
                    let link = self.kinship.links.get(&member)?;
                    if link.key.is_none()
                        || !link.resumed.is_empty()
                        || wanted.parents.contains(&member)
                    {
                        return None;
                    }
                    let below = self.conversations.get(&member)?;
                    leaving.hooks.extend(below.hooks());
                    leaving.facts += below.held;
                    leaving.children.push(member);
                }
            }
        }
        Some(leaving)
    }

    fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::default();
        let undecided = self.kinship.links.values().filter(|link| link.key.is_none());
        let undecided = undecided.map(|link| (Some(&link.parent), &link.candidates));
        let unclear = self.kinship.unclear.values().map(|candidates| (None, candidates));
        for (parent, candidates) in undecided.chain(unclear) {
            wanted.delegations.extend(candidates.kept.iter().cloned());
            if candidates.count > candidates.kept.len() {
                wanted.parents.extend(parent.cloned());
                wanted.parents.extend(candidates.kept.iter().map(|(parent, _)| parent.clone()));
            }
        }
        wanted
    }

    fn let_go(&mut self, root: &Arc<str>, leaving: Vec<Leaving>) {
        for Leaving { generation, children, .. } in &leaving {
            for child in children {
                self.let_child_go(child);
                let above = (root.clone(), generation.clone());
                self.sealed_children.insert(child.clone(), above);
            }
            if let Some(group) = self.groups.get_mut(root) {
                group.seal(generation, children);
            }
        }
        let Some(conversation) = self.conversations.get_mut(root) else { return };
        let delegated = !conversation.delegations.is_empty();
        self.room.held = self.room.held.saturating_sub(conversation.seal(leaving));
        if delegated && conversation.delegations.is_empty() {
            self.kinship.note_no_delegations();
        }
    }

    fn let_child_go(&mut self, child: &Arc<str>) {
        let Some(gone) = self.conversations.remove(child) else { return };
        self.room.held = self.room.held.saturating_sub(gone.held);
        self.kinship.forget(child, !gone.delegations.is_empty());
    }
}

impl Wanted {
    fn has(&self, place: &(Arc<str>, Box<str>)) -> bool {
        self.parents.contains(&place.0) || self.delegations.contains(place)
    }
}
