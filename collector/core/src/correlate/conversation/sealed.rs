//! Turns that are final and leave memory. Of each, its numbers in the raw log stay, so that its hooks can be read again when
//! one more of them comes late.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Conversation, Turn, call_id};
use crate::correlate::fact::{Fact, insert};
use crate::model::event::{Event, EventKind};
use crate::model::fingerprint::digest;
use crate::model::time::Timestamp;

/// What is kept of a turn whose facts have left memory.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// Time of its first and last fact, and of its stop.
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) closed: Option<Timestamp>,
    /// Numbers of its hooks, and of those below it.
    hooks: Box<[u8]>,
    /// Children whose conversations left with it.
    pub(crate) children: Box<[Arc<str>]>,
}

impl Sealed {
    /// Its hooks in the raw log, in order.
    pub(crate) fn hooks(&self) -> Vec<u64> {
        let (mut all, mut last, mut gap, mut shift) = (Vec::new(), 0_u64, 0_u64, 0);
        for &byte in &self.hooks {
            gap |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                last = last.wrapping_add(gap);
                all.push(last);
                (gap, shift) = (0, 0);
            }
        }
        all
    }
}

/// Numbers in order as the gaps between them, seven bits a byte: one or two bytes a hook.
fn pack(numbers: &BTreeSet<u64>) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(numbers.len() * 2);
    let mut last = 0;
    for &number in numbers {
        let mut gap = number - last;
        last = number;
        while gap > 0x7f {
            bytes.push((gap & 0x7f) as u8 | 0x80);
            gap >>= 7;
        }
        bytes.push(gap as u8);
    }
    bytes.into_boxed_slice()
}

/// A turn that is about to leave: its name and start, the hooks and the conversations below it, and how many facts leave.
pub(crate) struct Leaving {
    pub(crate) generation: Arc<str>,
    pub(crate) start: Timestamp,
    pub(crate) hooks: BTreeSet<u64>,
    pub(crate) children: Vec<Arc<str>>,
    pub(crate) facts: usize,
}

/// What has left with some turns.
#[derive(Default)]
struct Gone {
    /// Indexes of loose facts.
    loose: BTreeSet<usize>,
    thoughts: BTreeSet<Timestamp>,
    facts: usize,
}

/// A turn whose hooks are read again, and which of them are still to come.
#[derive(Debug)]
pub(super) struct Reload {
    generation: Arc<str>,
    hooks: BTreeSet<u64>,
}

impl Reload {
    /// The turn of a hook that is read again.
    pub(super) fn takes(&mut self, seq: u64) -> Option<Arc<str>> {
        self.hooks.remove(&seq).then(|| self.generation.clone())
    }
}

impl Conversation {
    /// Whether every fact of a turn can be read again to the same effect: one whose time the clock does not say cannot.
    pub(crate) fn is_sealable(&self, turn: &Turn) -> bool {
        !self.sealed.contains_key(&turn.generation)
            && self.facts(turn).iter().all(|fact| fact.is_by_the_clock())
    }

    /// Numbers of all its hooks.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = u64> {
        let lists = self.explicit.values().chain([&self.loose, &self.session, &self.tabs]);
        let evidence = self.evidence.as_ref().map(|(seq, _)| *seq);
        lists.flatten().map(|fact| fact.seq).chain(evidence)
    }

    /// Lets go of the facts of turns. Returns how many facts left, less one for each turn.
    pub(crate) fn seal(&mut self, turns: Vec<Leaving>) -> usize {
        let mut gone = Gone::default();
        for leaving in turns {
            let name = &leaving.generation;
            let from = self.turns.partition_point(|turn| turn.start < leaving.start);
            if let Some(at) = self.turns[from..].iter().position(|turn| turn.generation == *name) {
                self.seal_turn(from + at, leaving, &mut gone);
            }
        }
        self.thoughts.retain(|at| !gone.thoughts.contains(at));
        let sealed = &self.sealed;
        if let Some(homes) = &mut self.homes {
            homes.retain(|_, (_, generation)| !sealed.contains_key(generation));
        }
        self.drop_loose(&gone.loose);
        self.held = self.held.saturating_sub(gone.facts);
        gone.facts
    }

    fn seal_turn(&mut self, at: usize, leaving: Leaving, gone: &mut Gone) {
        let Leaving { generation, mut hooks, children, .. } = leaving;
        let turn = self.turns[at].clone();
        let facts = self.facts(&turn);
        let (Some(first), Some(last)) = (facts.first(), facts.last()) else { return };
        let stop = facts.iter().find(|fact| matches!(fact.kind, EventKind::Stop(_)));
        let (first, last, closed) = (first.at, last.at, stop.map(|stop| stop.at));
        hooks.extend(facts.iter().map(|fact| fact.seq));
        let is_thought = |fact: &&&Fact| matches!(fact.kind, EventKind::Thought(_));
        gone.thoughts.extend(facts.iter().filter(is_thought).map(|fact| fact.at));
        let ids = facts.iter().filter_map(|fact| call_id(&fact.kind));
        let calls: BTreeSet<u64> = ids.map(|id| digest(&[id.as_bytes()])).collect();
        let keys: BTreeSet<Box<str>> =
            facts.iter().filter_map(|fact| delegation(&fact.kind)).map(Box::from).collect();
        gone.facts += facts.len().saturating_sub(1);
        gone.loose.extend(&turn.loose);
        if self.homes.is_some() {
            self.sealed_calls.extend(calls.into_iter().map(|call| (call, generation.clone())));
        }
        keys.iter().for_each(|key| drop(self.delegations.remove(key)));
        self.explicit.remove(&generation);
        if turn.synthetic {
            self.numbered.insert(generation.clone());
        }
        self.turns[at].loose.clear();
        self.sealed_until = self.sealed_until.max(last);
        let (hooks, children) = (pack(&hooks), children.into_boxed_slice());
        self.sealed.insert(generation, Sealed { first, last, closed, hooks, children });
    }

    /// The sealed turn that an event belongs to, or that lies at its time.
    pub(crate) fn sealed_turn_of(&self, event: &Event) -> Option<Arc<str>> {
        if self.sealed.is_empty() {
            return None;
        }
        if self.sealed.contains_key(&event.generation) {
            return Some(event.generation.clone());
        }
        let id = call_id(&event.kind).filter(|_| event.generation.is_empty());
        let call = id.and_then(|id| self.sealed_calls.get(&digest(&[id.as_bytes()])));
        if let Some(turn) = call.filter(|turn| self.sealed.contains_key(*turn)) {
            return Some(turn.clone());
        }
        let mut steady = self.steady;
        let at = steady.time(event.at, event.boottime_ns);
        if at > self.sealed_until || matches!(event.kind, EventKind::Evidence(_)) {
            return None;
        }
        let before = &self.turns[..self.turns.partition_point(|turn| turn.start <= at)];
        let last = before.last().filter(|turn| self.sealed.contains_key(&turn.generation));
        last.map(|turn| turn.generation.clone())
    }

    /// Makes room for the facts of a sealed turn, which come next.
    pub(crate) fn unseal(&mut self, generation: &Arc<str>) -> Option<Sealed> {
        let sealed = self.sealed.remove(generation)?;
        let hooks = sealed.hooks().into_iter().collect();
        self.held = self.held.saturating_sub(1);
        self.reload = Some(Reload { generation: generation.clone(), hooks });
        self.touch(sealed.first);
        Some(sealed)
    }

    /// What is read again has been handed in.
    pub(crate) fn end_reload(&mut self) {
        self.reload = None;
    }

    /// Files a fact that is read again with its turn, whether or not it names the turn.
    pub(super) fn put_back(&mut self, generation: &Arc<str>, fact: Fact) -> bool {
        if let Some(homes) = &mut self.homes {
            super::note_home(homes, &fact, generation);
        }
        self.touch(fact.at);
        insert(self.explicit.entry(generation.clone()).or_default(), fact)
    }
}

/// The delegation that an event tells of.
pub(crate) fn delegation(kind: &EventKind) -> Option<&str> {
    use EventKind as K;
    match kind {
        K::SubagentStart(agent) | K::SubagentStop(agent) => Some(agent.key()),
        K::ToolStart(tool) | K::ToolEnd(tool) | K::ToolFailure(tool) => tool.delegation(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_without_loss() {
        let numbers = [0, 1, 2, 129, 130, 70_000, u64::MAX];
        let hooks = pack(&numbers.into_iter().collect());
        let at = Timestamp::default();
        let sealed = Sealed { first: at, last: at, closed: None, hooks, children: Box::default() };
        assert_eq!(sealed.hooks(), numbers);
    }
}
