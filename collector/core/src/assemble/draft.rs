//! A draft of one root turn and everything below it: nodes that become spans. `draft_turn.rs` builds it.

use std::sync::Arc;

use crate::assemble::finished_prefix::Window;
use crate::assemble::nested_agent::Nested;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::fact::Fact;
use crate::correlate::parent_link::Link;
use crate::correlate::tool_call::Call;
use crate::correlate::turn::{Agent, Reading};
use crate::correlate::turn_end::Close;
use crate::model::event::{Compaction, Response, Stop, Thought};
use crate::model::fingerprint::Fingerprint;
use crate::model::id::{SpanId, SpanIds};
use crate::model::span::{End, SpanKind};
use crate::model::summary::Tokens;
use crate::model::time::Timestamp;

/// A node: the draft of a span.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) id: SpanId,
    pub(crate) kind: SpanKind,
    pub(crate) conversation: &'a Conversation,
    pub(crate) generation: Arc<str>,
    pub(crate) parent: Option<usize>,
    pub(crate) start: Timestamp,
    pub(crate) end: Option<End>,
    pub(crate) start_inferred: bool,
    pub(crate) end_inferred: bool,
    /// The node has no end event of its own.
    pub(crate) incomplete: bool,
    /// The node arrived after its turn settled, so it settles separately.
    pub(crate) late: bool,
    /// The node does not keep its turn open, because it is late or runs in the background.
    pub(crate) detached: bool,
    /// When the node becomes final, if known.
    pub(crate) settle: Option<Timestamp>,
    /// The node of the subagent that did this work.
    pub(crate) agent: Option<usize>,
    pub(crate) depth: u32,
    pub(crate) what: What<'a>,
    /// Fingerprint of the hooks from which its span is made.
    pub(crate) made_of: Fingerprint,
}

impl Node<'_> {
    /// Whether the node is a child without a known delegation.
    pub(crate) fn is_loose(&self) -> bool {
        matches!(&self.what, What::Agent(agent, _, Some(_)) if agent.key.is_empty())
    }

    /// Whether the node's duration is unknown: it has no end of its own, or it comes from a single hook without a
    /// duration.
    pub(crate) fn length_is_unknown(&self) -> bool {
        self.end.is_some_and(|end| {
            let inferred = self.start_inferred || self.end_inferred;
            self.incomplete || (inferred && end.at <= self.start)
        })
    }
}

/// The content of a node.
#[derive(Debug)]
pub(crate) enum What<'a> {
    Turn,
    Call(Call<'a>),
    Thought(&'a Fact, &'a Thought),
    /// A response. If this response carries the turn's usage, its token counts.
    Response(&'a Fact, &'a Response, Option<Tokens>),
    /// A subagent, the link that leads to its conversation, and that conversation.
    Agent(Agent<'a>, Option<&'a Link>, Option<&'a Conversation>),
    Compaction(&'a Fact, &'a Compaction),
}

/// The tree of a root turn.
pub(crate) struct Tree<'a> {
    pub(crate) root: &'a Conversation,
    pub(crate) turn: &'a Turn,
    /// Nodes, parents before children. The first is the turn itself.
    pub(crate) nodes: Vec<Node<'a>>,
    /// The summary of the turn's facts, without the facts that became nodes.
    pub(crate) reading: Reading<'a>,
    /// A stop that arrived after the turn settled. Its tokens count in lists, but the turn's span no longer changes.
    pub(crate) late_stop: Option<&'a Stop>,
    pub(crate) close: Option<Close>,
    /// Number of facts read for the tree.
    pub(crate) facts: usize,
    /// The finished part of the turn. It is not among the nodes.
    pub(crate) window: Option<&'a Window>,
    /// Subagents that are placed below calls of other subagents.
    pub(crate) nested: Nested<'a>,
    /// Derives the ids of nodes.
    pub(crate) ids: SpanIds,
    /// Start of the turn by its own events. Children may have extended the turn's node to an earlier start.
    pub(crate) turn_start: Timestamp,
    pub(crate) settle: Option<Timestamp>,
    /// The next time at which something changes without a new hook.
    pub(crate) deadline: Option<Timestamp>,
}
