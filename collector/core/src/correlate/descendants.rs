//! Walks the descendants of a conversation: its children, by their delegations.

use std::collections::{BTreeMap, BTreeSet};

use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::fact::Fact;
use crate::correlate::parent_link::below_turn;
use crate::correlate::snapshot::World;
use crate::model::event::EventKind;
use crate::model::time::Timestamp;

/// Maximum depth of children. Deeper ones are placed at the last level.
pub(crate) const MAX_DEPTH: u32 = 16;

/// What is known from the facts of a conversation's descendants, at any depth.
#[derive(Default)]
pub(crate) struct Below<'a> {
    /// Times of all facts.
    pub(crate) times: Vec<Timestamp>,
    /// Subagents that the results of calls name, with the time of the first such result.
    pub(crate) named: BTreeMap<&'a str, Timestamp>,
}

impl<'a> Below<'a> {
    fn take(&mut self, fact: &'a Fact) {
        self.times.push(fact.at);
        if let EventKind::ToolEnd(tool) = &fact.kind
            && let Some(subagent) = tool.subagent()
        {
            let first = self.named.entry(subagent).or_insert(fact.at);
            *first = fact.at.min(*first);
        }
    }
}

/// Reads the facts of all descendants.
pub(crate) fn gather<'a>(
    world: World<'a>,
    (conversation, generation): (&'a Conversation, &str),
    facts: &[&'a Fact],
    below: &mut Below<'a>,
    depth: u32,
) {
    if depth >= MAX_DEPTH || world.children.is_empty() {
        return;
    }
    let loose = loose_children(world, conversation, generation).map(|child| (child, ""));
    for (child, key) in children_of(world, conversation, facts).into_iter().chain(loose) {
        for turn in turns_for(world, child, key) {
            let facts = child.facts(turn);
            facts.iter().for_each(|fact| below.take(fact));
            gather(world, (child, &turn.generation), &facts, below, depth + 1);
        }
    }
}

/// Children that are linked to the turn and not to a delegation, because their delegation is not known.
pub(crate) fn loose_children<'a>(
    world: World<'a>,
    conversation: &Conversation,
    generation: &str,
) -> impl Iterator<Item = &'a Conversation> {
    let found = if world.children.is_empty() {
        None
    } else {
        world.children.get(&(conversation.id.clone(), below_turn(generation)))
    };
    found.into_iter().flatten().filter_map(move |child| world.conversations.get(child))
}

/// The child conversations that these facts delegate to.
pub(crate) fn children_of<'a>(
    world: World<'a>,
    conversation: &'a Conversation,
    facts: &[&'a Fact],
) -> Vec<(&'a Conversation, &'a str)> {
    let mut keys: Vec<&'a str> = Vec::new();
    let mut seen: BTreeSet<&'a str> = BTreeSet::new();
    for fact in facts {
        keys.extend(conversation.delegation_of(fact).filter(|key| seen.insert(key)));
    }
    let children = |key: &'a str| {
        children_by_key(world, conversation, key).map(move |child| (child, base(key)))
    };
    keys.into_iter().flat_map(children).collect()
}

pub(crate) fn children_by_key<'a>(
    world: World<'a>,
    conversation: &Conversation,
    key: &str,
) -> impl Iterator<Item = &'a Conversation> {
    let found = world.children.get(&(conversation.id.clone(), Box::from(base(key))));
    found.into_iter().flatten().filter_map(move |child| world.conversations.get(child))
}

/// A subagent's key without its number. Keys of equal subagents without an id are numbered.
pub(crate) fn base(key: &str) -> &str {
    key.rsplit_once('#').filter(|_| key.starts_with('~')).map_or(key, |(base, _)| base)
}

/// The turns of a child that belong to the delegation `key`: all of them, unless other delegations resumed the child.
pub(crate) fn turns_for<'a>(
    world: World<'a>,
    child: &'a Conversation,
    key: &'a str,
) -> impl Iterator<Item = &'a Turn> {
    let link = world.links.get(&child.id).filter(|link| !link.resumed.is_empty());
    child.turns.iter().filter(move |turn| link.is_none_or(|l| l.key_at(turn.start) == Some(key)))
}

/// First and last fact of a child in the turns of a delegation.
pub(crate) fn lifetime(
    world: World<'_>,
    child: &Conversation,
    key: &str,
) -> Option<(Timestamp, Timestamp)> {
    if world.links.get(&child.id).is_none_or(|link| link.resumed.is_empty()) {
        return Some((child.first, child.last_sign()));
    }
    let turns = turns_for(world, child, key);
    let facts = turns.flat_map(|turn| child.facts(turn)).map(|fact| fact.at);
    facts.fold(None, |seen, at| {
        let (first, last) = seen.unwrap_or((at, at));
        Some((first.min(at), last.max(at)))
    })
}
