//! The delegations of a conversation: which hooks describe each one, and when it has ended.

use crate::correlate::call_home::call_id;
use crate::correlate::conversation::{Conversation, MAX_REPEATS};
use crate::correlate::delegation::Delegation;
use crate::correlate::delegation_match::{Resolved, resolve, tells};
use crate::correlate::fact::{Fact, delegation};
use crate::model::event::EventKind;
use crate::model::time::Timestamp;
use crate::model::tolerance::{DISORDER, REPEAT};

impl Conversation {
    /// The latest possible end of a foreground delegation that began at `start`. The parent waits for such a
    /// delegation, so the parent's next action shows that it has ended.
    pub(crate) fn over(&self, start: Timestamp, delegation: &Delegation) -> Option<Timestamp> {
        if delegation.background {
            return None;
        }
        let after = |times: &[Timestamp], start| {
            times.get(times.partition_point(|&at| at <= start)).copied()
        };
        let thought = after(&self.thoughts, start.plus(DISORDER)).filter(|_| !delegation.announced);
        [self.break_after(start), thought].into_iter().flatten().min()
    }

    /// The first stop or prompt after `start` that is not a repeated delivery of an earlier one.
    fn break_after(&self, start: Timestamp) -> Option<Timestamp> {
        let first = self.breaks.partition_point(|(at, _)| *at <= start);
        let is_new = |index: &usize| {
            let (at, said) = self.breaks[*index];
            let earlier = self.breaks[..*index].iter().rev().take(MAX_REPEATS);
            let mut earlier = earlier.take_while(|(other, _)| at.since(*other) <= REPEAT);
            !earlier.any(|(_, other)| *other == said)
        };
        (first..self.breaks.len()).find(is_new).map(|index| self.breaks[index].0)
    }

    /// Whether a thought at `at` may end a delegation, because a delegation began since the previous thought. May
    /// return true although no delegation ends; that only costs time.
    pub(crate) fn ends_delegation(&self, at: Timestamp) -> bool {
        if self.delegations.is_empty() {
            return false;
        }
        let thoughts = self.thoughts.partition_point(|time| *time < at);
        let breaks = self.breaks.partition_point(|(time, _)| *time < at);
        let thought = thoughts.checked_sub(1).map(|last| self.thoughts[last]);
        let sign = thought.max(breaks.checked_sub(1).map(|last| self.breaks[last].0));
        sign.is_none_or(|sign| self.delegated.plus(DISORDER) >= sign)
    }

    /// Adds a hook's facts about a delegation.
    pub(super) fn note_delegation(&mut self, fact: &Fact) {
        use EventKind as K;
        let Some(key) = delegation(&fact.kind) else { return };
        let ends = !matches!(fact.kind, K::SubagentStart(_) | K::ToolStart(_));
        if !ends {
            self.delegated = self.delegated.max(fact.at);
        }
        self.names_children |=
            matches!(&fact.kind, K::SubagentStop(agent) if agent.child.is_some());
        self.vague |= match &fact.kind {
            K::SubagentStart(agent) | K::SubagentStop(agent) => {
                let other = agent.id.as_deref().is_some_and(|id| id != key);
                other || agent.named().is_none() || !self.delegations.contains_key(key)
            }
            K::ToolEnd(_) | K::ToolFailure(_) => !self.delegations.contains_key(key),
            _ => false,
        };
        if self.vague {
            self.unresolved = true;
        } else {
            self.delegations.entry(key.into()).or_default().tell(fact);
        }
    }

    /// Matches delegations again, if some hooks name theirs incompletely.
    pub(super) fn resolve_delegations(&mut self) {
        if !std::mem::take(&mut self.unresolved) {
            return;
        }
        let named = self.explicit.iter();
        let named = named.flat_map(|(turn, facts)| facts.iter().map(|fact| (&**turn, fact)));
        let facts = named.chain(self.loose.iter().map(|fact| ("", fact)));
        let mut facts: Vec<(&str, &Fact)> = facts.filter(|(_, fact)| tells(&fact.kind)).collect();
        facts.sort_by_key(|(_, fact)| fact.key());
        let Resolved { delegations, names, aliases } = resolve(&facts);
        (self.delegations, self.aliases) = (delegations, aliases);
        if self.names != names {
            self.names = names;
            // A hook without a turn belongs to the turn of its delegation, so its turn may change.
            self.move_turns();
        }
    }

    /// The delegation that a fact describes.
    pub(crate) fn delegation_of<'a>(&'a self, fact: &'a Fact) -> Option<&'a str> {
        match self.names.get(&fact.seq) {
            Some(name) => Some(name),
            None => delegation(&fact.kind),
        }
    }

    /// The call or subagent that a fact names or was matched with.
    pub(crate) fn call_of<'a>(&'a self, fact: &'a Fact) -> Option<&'a str> {
        match self.names.get(&fact.seq) {
            Some(name) => Some(name),
            None => call_id(&fact.kind),
        }
    }
}
