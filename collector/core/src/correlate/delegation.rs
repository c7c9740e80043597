//! A delegation: work given to another agent, as hooks describe it.

use crate::correlate::fact::Fact;
use crate::model::event::EventKind;
use crate::model::time::{Timestamp, nanos};

/// The facts of a delegation that help to find its conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delegation {
    /// The first hook which says that the delegation has begun.
    pub(crate) start: Option<Timestamp>,
    /// Start computed from the reported duration. Used only if no hook reported the start: if hooks are delivered late
    /// together, the computed start lies before the turn.
    pub(crate) computed_start: Option<Timestamp>,
    pub(crate) stop: Option<Timestamp>,
    /// `subagentStart` arrived, so a stop is expected.
    pub(crate) announced: bool,
    pub(crate) background: bool,
    pub(crate) model: Option<String>,
    /// Digest of the agent's task and type, if known.
    pub(crate) task: u64,
    pub(crate) agent: Option<Box<str>>,
    /// The child's conversation, if a hook names it.
    pub(crate) child: Option<Box<str>>,
    /// The subagent that the result of the call names.
    pub(crate) subagent: Option<Box<str>>,
}

impl Delegation {
    /// Adds the facts of a hook.
    pub(crate) fn tell(&mut self, fact: &Fact) {
        use EventKind as K;
        let (ended, duration_ms) = match &fact.kind {
            K::SubagentStop(agent) => (true, agent.duration_ms),
            K::ToolEnd(tool) | K::ToolFailure(tool) => (true, tool.duration_ms),
            _ => (false, None),
        };
        let earliest = |known: Option<Timestamp>, new| [known, new].into_iter().flatten().min();
        if ended {
            let computed = duration_ms.map(|ms| fact.at.plus(-nanos(ms)));
            self.computed_start = earliest(self.computed_start, computed);
            self.stop = self.stop.max(Some(fact.at));
        } else {
            self.start = earliest(self.start, Some(fact.at));
        }
        let (agent, task) = match &fact.kind {
            K::SubagentStart(facts) | K::SubagentStop(facts) => {
                if let Some(child) = &facts.child {
                    self.child.get_or_insert_with(|| child.as_str().into());
                }
                (facts.agent.as_deref(), facts.task)
            }
            K::ToolEnd(tool) => {
                if let Some(subagent) = tool.subagent() {
                    self.subagent.get_or_insert_with(|| subagent.into());
                }
                (None, 0)
            }
            K::ToolStart(tool) => {
                let delegate = tool.delegate();
                let background = delegate.and_then(|delegate| delegate.background);
                self.background |= background == Some(true);
                let agent = delegate.and_then(|delegate| delegate.agent.as_deref());
                (agent, delegate.map_or(0, |delegate| delegate.task))
            }
            _ => (None, 0),
        };
        if self.task == 0 {
            self.task = task;
        }
        if self.agent.is_none() {
            self.agent = plain_type(agent);
        }
        if let K::SubagentStart(facts) = &fact.kind {
            self.announced = true;
            if self.model.is_none() {
                self.model = facts.model.clone();
            }
        }
    }
}

/// An agent's type, however it is spelled: `generalPurpose` is `general-purpose`.
pub(crate) fn plain_type(agent: Option<&str>) -> Option<Box<str>> {
    let plain: String = agent?.chars().filter(|c| c.is_alphanumeric()).collect();
    let plain = plain.to_lowercase();
    (!plain.is_empty() && plain != "unspecified").then(|| plain.into())
}
