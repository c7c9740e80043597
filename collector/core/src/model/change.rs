//! The fold's output: whole values to store.

use std::sync::Arc;

use crate::model::id::SpanId;
use crate::model::span::Span;
use crate::model::summary::{SessionSummary, TurnSummary};

/// Something to store. Values are whole: the last one for an id wins.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Insert or replace a span.
    Span(Box<Span>),
    /// A reported span is final now, and otherwise unchanged: [`Span::settled`] becomes true.
    Settle(SpanKey),
    /// Remove a reported span. It turned out to be part of another span (a specific-only call whose generic half came
    /// late), or its conversation turned out to be a child. The turn row with this `span` is removed, too.
    Withdraw(SpanKey),
    /// Insert or replace a session row.
    Session(Box<SessionSummary>),
    /// Insert or replace a turn row.
    Turn(Box<TurnSummary>),
    /// A conversation now belongs to this root (itself, if it has no parent). If the root is another conversation, drop
    /// the session row and the turn rows that `conversation` had as a root.
    Bind {
        /// The conversation.
        conversation: Arc<str>,
        /// Its topmost ancestor.
        root: Arc<str>,
    },
    /// The collector may search the disk for evidence about a child conversation. It feeds what it finds as an Evidence
    /// hook.
    Ask(Question),
    /// This root conversation was evicted. Before its next event, its history must be replayed.
    Forget(Arc<str>),
}

/// Identifies a reported span by its id and conversation. Ids are spread at random, and a store may order spans by
/// conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanKey {
    /// Its id.
    pub id: SpanId,
    /// [`Span::conversation`].
    pub conversation: Arc<str>,
}

impl SpanKey {
    /// The key of `span`.
    #[must_use]
    pub fn of(span: &Span) -> Self {
        Self { id: span.id, conversation: Arc::clone(&span.conversation) }
    }
}

/// The evidence that would bind a child conversation to its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Parent conversation.
    pub parent: Arc<str>,
    /// The parent's own `transcript_path`; empty if unknown.
    pub transcript_path: String,
    /// Child conversations that may belong to this parent.
    pub candidates: Vec<Arc<str>>,
}
