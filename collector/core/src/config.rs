//! What a person may set.

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
    /// Hooks held of one session, root and children; what comes on top is left out. See [`crate::Sessions::left_out`].
    pub session_hooks: usize,
    /// Hooks held of all sessions together. Those that paused leave first, even in mid-turn; what comes when none did is left
    /// out, too.
    pub held_hooks: usize,
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
            session_hooks: MAX_SESSION,
            held_hooks: MAX_HELD,
        }
    }
}

/// Events held of one session, however long it is at work: 121 MB. It is full then. An eighth more is kept for what holds it
/// together: prompts, responses, stops, starts and ends.
pub const MAX_SESSION: usize = 131_072;

/// Events held of all sessions together, whoever is at work: twice what one may hold. Beyond it sessions leave that paused for ten
/// seconds, the longest idle first; while nobody did, hooks are left out, but for the eighth as above.
pub const MAX_HELD: usize = 2 * MAX_SESSION;
