//! Collects the fold's changes for one transaction. The last change for an id wins.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use hookspan_core::sessions::Question;
use hookspan_core::{Change, SessionSummary, Span, SpanId, SpanKey, TurnSummary};

/// A change of a span.
#[derive(Debug)]
pub(super) enum Told {
    /// The whole span.
    Whole(Box<Span>),
    /// The stored span is final.
    Final(SpanKey),
}

/// The changes of a batch. Each hook of a running turn changes the turn, but the turn is written only once per batch.
#[derive(Debug, Default)]
pub struct Changes {
    /// In the order of their last change. A span that was changed again later is `None`.
    pub(super) spans: Vec<Option<Told>>,
    places: HashMap<SpanId, usize, RandomState>,
    pub(super) withdrawn: Vec<SpanKey>,
    pub(super) sessions: BTreeMap<Arc<str>, Box<SessionSummary>>,
    pub(super) turns: BTreeMap<(Arc<str>, SpanId), Box<TurnSummary>>,
    /// In the order of the changes, because a conversation may be bound more than once.
    pub(super) bound: Vec<(Arc<str>, Arc<str>)>,
    pub(super) forgotten: BTreeSet<Arc<str>>,
    questions: Vec<Question>,
}

impl Changes {
    /// Takes a change.
    pub fn push(&mut self, change: Change) {
        match change {
            Change::Span(span) => {
                let id = span.id;
                self.drop_span(id);
                self.put(id, Told::Whole(span));
            }
            Change::Settle(key) => {
                let id = key.id;
                let told = match self.drop_span(id) {
                    Some(Told::Whole(mut span)) => {
                        span.settled = true;
                        Told::Whole(span)
                    }
                    _ => Told::Final(key),
                };
                self.put(id, told);
            }
            Change::Withdraw(key) => {
                self.drop_span(key.id);
                // If the span is a turn, its row in `turn` is removed too.
                self.turns.remove(&(Arc::clone(&key.conversation), key.id));
                self.withdrawn.push(key);
            }
            Change::Session(session) => {
                self.sessions.insert(Arc::clone(&session.root), session);
            }
            Change::Turn(turn) => {
                self.turns.insert((Arc::clone(&turn.root), turn.span), turn);
            }
            Change::Bind { conversation, root } => {
                self.forgotten.remove(&root);
                if conversation != root {
                    // Rows that were written for a child while its parent was unknown now belong to the parent.
                    self.sessions.remove(&conversation);
                    self.turns.retain(|(of, _), _| *of != conversation);
                }
                self.bound.push((conversation, root));
            }
            Change::Ask(question) => self.questions.push(question),
            Change::Forget(root) => {
                self.forgotten.insert(root);
            }
        }
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
            && self.withdrawn.is_empty()
            && self.sessions.is_empty()
            && self.turns.is_empty()
            && self.bound.is_empty()
            && self.forgotten.is_empty()
    }

    /// Questions to answer after the commit.
    pub fn take_questions(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.questions)
    }

    fn put(&mut self, id: SpanId, told: Told) {
        self.places.insert(id, self.spans.len());
        self.spans.push(Some(told));
    }

    fn drop_span(&mut self, id: SpanId) -> Option<Told> {
        self.places.remove(&id).and_then(|place| self.spans.get_mut(place)?.take())
    }
}
