//! What the fold tells: whole values to store.

use std::sync::Arc;

use crate::model::id::SpanId;
use crate::model::span::Span;
use crate::model::summary::{SessionSummary, TurnSummary};

/// Something to store. Values are whole: the last one for an id wins.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Insert or replace a span.
    Span(Box<Span>),
    /// A span that was told is final now, and nothing else about it has changed: [`Span::settled`] becomes true.
    Settle(SpanKey),
    /// A span that was shown turned out to be part of another one (a specific-only call whose generic half came late), or
    /// its conversation to be somebody's child. The turn row whose `span` it is goes with it.
    Withdraw(SpanKey),
    /// Insert or replace a session row.
    Session(Box<SessionSummary>),
    /// Insert or replace a turn row.
    Turn(Box<TurnSummary>),
    /// A conversation belongs to this root now (itself, when it has no parent). When the root is another conversation, the
    /// session row and the turn rows of `conversation` as a root of its own are to be dropped.
    Bind {
        /// The conversation.
        conversation: Arc<str>,
        /// Its topmost ancestor.
        root: Arc<str>,
    },
    /// Evidence about a child would settle a question; the collector may look for it on disk and feed an Evidence hook.
    Ask(Question),
    /// Nothing of this root conversation is held any more. A later event of it needs its history first.
    Forget(Arc<str>),
}

/// A span that was told, by what its id is derived from as far as a store needs that to find it: ids themselves are spread at
/// random, and a store may keep them by conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanKey {
    /// Its id.
    pub id: SpanId,
    /// [`Span::conversation`].
    pub conversation: Arc<str>,
}

impl SpanKey {
    /// What names `span`.
    #[must_use]
    pub fn of(span: &Span) -> Self {
        Self { id: span.id, conversation: Arc::clone(&span.conversation) }
    }
}

/// What would help to bind a child conversation to its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Parent conversation.
    pub parent: Arc<str>,
    /// The parent's own `transcript_path`; empty when it is not known.
    pub transcript_path: String,
    /// Child conversations that might belong to it.
    pub candidates: Vec<Arc<str>>,
}
