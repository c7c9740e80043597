//! One root turn with everything below it, as spans to be. How it grows: `draft_turn.rs`.

use std::sync::Arc;

use crate::assemble::finished_prefix::Window;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::fact::Fact;
use crate::correlate::parent_link::Link;
use crate::correlate::tool_call::Call;
use crate::correlate::turn::{Agent, Reading};
use crate::correlate::turn_end::Close;
use crate::model::event::{Compaction, Response, Stop, Thought};
use crate::model::fingerprint::Fingerprint;
use crate::model::id::SpanId;
use crate::model::span::{End, SpanKind};
use crate::model::summary::Tokens;
use crate::model::time::Timestamp;

/// A span to be.
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
    /// Never ended by itself.
    pub(crate) incomplete: bool,
    /// Settles apart from its turn because it came after it.
    pub(crate) late: bool,
    /// Does not hold its turn: late, or in the background.
    pub(crate) detached: bool,
    /// When it is final, once that is known.
    pub(crate) settle: Option<Timestamp>,
    /// The subagent it runs in, as a node.
    pub(crate) agent: Option<usize>,
    pub(crate) depth: u32,
    pub(crate) what: What<'a>,
    /// Of the hooks that its span is made from.
    pub(crate) made_of: Fingerprint,
}

impl Node<'_> {
    /// Whether it is a child of which no delegation is known.
    pub(crate) fn is_loose(&self) -> bool {
        matches!(&self.what, What::Agent(agent, _, Some(_)) if agent.key.is_empty())
    }

    /// Whether nothing tells how long it took: it never ended by itself, or one hook alone tells of it and no length.
    pub(crate) fn length_is_unknown(&self) -> bool {
        self.end.is_some_and(|end| {
            let inferred = self.start_inferred || self.end_inferred;
            self.incomplete || (inferred && end.at <= self.start)
        })
    }
}

/// What a node is about.
#[derive(Debug)]
pub(crate) enum What<'a> {
    Turn,
    Call(Call<'a>),
    Thought(&'a Fact, &'a Thought),
    /// A response, and the turn's usage if it is the one that carries it.
    Response(&'a Fact, &'a Response, Option<Tokens>),
    Agent(Agent<'a>, Option<&'a Link>, Option<&'a Conversation>),
    Compaction(&'a Fact, &'a Compaction),
}

/// A root turn, grown.
pub(crate) struct Tree<'a> {
    pub(crate) root: &'a Conversation,
    pub(crate) turn: &'a Turn,
    /// Parents before children; the first is the turn itself.
    pub(crate) nodes: Vec<Node<'a>>,
    /// The turn's own reading, without calls and other parts, which became nodes.
    pub(crate) reading: Reading<'a>,
    /// A stop that came after the turn had left. Its tokens count in rows; the span is not touched any more.
    pub(crate) late_stop: Option<&'a Stop>,
    pub(crate) close: Option<Close>,
    /// Facts that were read for it.
    pub(crate) facts: usize,
    /// What is put aside and not among the nodes.
    pub(crate) window: Option<&'a Window>,
    /// Start of the turn by its own events, before it was widened.
    pub(crate) turn_start: Timestamp,
    pub(crate) settle: Option<Timestamp>,
    /// When time alone would change something next.
    pub(crate) deadline: Option<Timestamp>,
}
