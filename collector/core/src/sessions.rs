//! All conversations that are still open: routing, binding of children, deadlines.

use std::sync::Arc;

use crate::{Event, SessionSummary, Span, SpanId, Timestamp, TurnSummary};

/// What a person may set; see `telemetry` for meaning and defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// A trace per turn, or one per session segment.
    pub trace_mode: TraceMode,
    /// Whether session spans exist.
    pub session_span: bool,
    /// Whether response spans exist.
    pub llm_spans: bool,
    /// What becomes of Tab events.
    pub tab: TabMode,
    /// A segment ends after this long without events, nanoseconds.
    pub session_idle_ns: i64,
    /// A turn ends after this long without events, nanoseconds.
    pub generation_idle_ns: i64,
    /// A closed turn waits this long for stragglers before it settles, nanoseconds.
    pub settle_delay_ns: i64,
    /// Settled children of a turn open longer than this leave early, nanoseconds; 0 = never.
    pub flush_after_ns: i64,
}

/// `trace.mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceMode {
    /// A trace per turn, linked, plus a session trace.
    #[default]
    Generation,
    /// A trace per session segment.
    Session,
}

/// `tab`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TabMode {
    /// No spans.
    Off,
    /// One span per minute.
    #[default]
    Rollup,
    /// One zero-length span per event.
    Span,
}

impl Default for Config {
    fn default() -> Self {
        const SECOND: i64 = 1_000_000_000;
        Self {
            trace_mode: TraceMode::Generation,
            session_span: true,
            llm_spans: true,
            tab: TabMode::Rollup,
            session_idle_ns: 3_600 * SECOND,
            generation_idle_ns: 1_800 * SECOND,
            settle_delay_ns: 2 * SECOND,
            flush_after_ns: 60 * SECOND,
        }
    }
}

/// Something to store. Values are whole: the last one for an id wins.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Insert or replace a span.
    Span(Box<Span>),
    /// A span that was shown turned out to be part of another one (a specific-only call whose generic half came late).
    Withdraw(SpanId),
    /// Insert or replace a session row.
    Session(Box<SessionSummary>),
    /// Insert or replace a turn row.
    Turn(Box<TurnSummary>),
    /// A conversation belongs to this root now (itself, when it has no parent).
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

/// What would help to bind a child conversation to its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Parent conversation.
    pub parent: Arc<str>,
    /// The parent's own `transcript_path`.
    pub transcript_path: String,
    /// Child conversations that might belong to it.
    pub candidates: Vec<Arc<str>>,
}

/// The fold. See the crate's documentation for the calling order.
#[derive(Debug, Default)]
pub struct Sessions {
    _config: Config,
}

impl Sessions {
    /// An empty fold.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { _config: config }
    }

    /// Whether anything of `conversation` is held. If not, and the raw log has hooks of it (or of its root) before this
    /// event, hand those in first.
    #[must_use]
    pub fn holds(&self, _conversation: &str) -> bool {
        false
    }

    /// Takes an event.
    pub fn handle(&mut self, _event: Event) {}

    /// Lets time pass. Effects carry the time of the deadline, not `now`, so calling late changes nothing.
    pub fn handle_deadline(&mut self, _now: Timestamp) {}

    /// When [`Self::handle_deadline`] next has something to do.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Timestamp> {
        None
    }

    /// The next change to store, until `None`.
    #[must_use]
    pub fn poll_change(&mut self) -> Option<Change> {
        None
    }
}
