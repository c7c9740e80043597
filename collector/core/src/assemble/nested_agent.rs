//! Subagents of subagents, if their hooks name only the root. Claude Code sends `SubagentStart` and `SubagentStop` of
//! every subagent with the session's id. Only the result of a call tells which call started the subagent.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::correlate::conversation::Conversation;
use crate::correlate::tool_call::Call;
use crate::correlate::turn::Agent;
use crate::model::time::Timestamp;

/// A subagent with the conversation and the turn of its own hooks. The id of its span is made from these, no matter
/// below which call the span stands.
pub(crate) struct Owned<'a> {
    pub(crate) conversation: &'a Conversation,
    pub(crate) generation: Arc<str>,
    pub(crate) agent: Option<Agent<'a>>,
}

/// Subagents that are named in results of calls below other subagents.
#[derive(Default)]
pub(crate) struct Nested<'a> {
    /// Times of those results.
    named: BTreeMap<&'a str, Timestamp>,
    /// A result after this time is too late for spans that settled with the turn.
    cutoff: Timestamp,
    /// Subagents that wait for their calls.
    waiting: BTreeMap<String, Owned<'a>>,
}

impl<'a> Nested<'a> {
    pub(crate) fn new(named: BTreeMap<&'a str, Timestamp>, cutoff: Timestamp) -> Self {
        Self { named, cutoff, waiting: BTreeMap::new() }
    }

    /// Whether the result of a nested call names this subagent before the subagent's span has settled.
    fn is_named(&self, agent: &Agent<'_>, delay: i64) -> bool {
        let settled = agent.over().map_or(self.cutoff, |over| self.cutoff.max(over.plus(delay)));
        let named = self.named.get(&*agent.key).filter(|_| agent.call.is_none());
        named.is_some_and(|at| *at <= settled)
    }

    /// The waiting subagent that a call's result names.
    pub(crate) fn take(&mut self, call: &Call<'_>) -> Option<Owned<'a>> {
        if self.waiting.is_empty() {
            return None;
        }
        self.waiting.remove(call.find(|tool| tool.subagent())?)
    }

    /// Removes from `agents` the subagents that belong below other subagents' calls. Returns their keys.
    pub(crate) fn keep(
        &mut self,
        (conversation, generation): (&'a Conversation, &Arc<str>),
        agents: &mut Vec<Agent<'a>>,
        delay: i64,
    ) -> Vec<String> {
        if self.named.is_empty() {
            return Vec::new();
        }
        let nested: Vec<Agent<'a>> =
            agents.extract_if(.., |agent| self.is_named(agent, delay)).collect();
        let keys = nested.iter().map(|agent| agent.key.clone()).collect();
        for agent in nested {
            let (key, generation) = (agent.key.clone(), generation.clone());
            self.waiting.insert(key, Owned { conversation, generation, agent: Some(agent) });
        }
        keys
    }

    /// Takes a waiting subagent whose call did not appear in the tree.
    pub(crate) fn left(&mut self, key: &str) -> Option<Owned<'a>> {
        self.waiting.remove(key)
    }
}
