//! What a person may set.

use crate::model::tolerance;

/// What a user may configure. The configuration page of the documentation explains each setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// A trace per turn, or one per session segment.
    pub trace_mode: TraceMode,
    /// Whether session spans exist.
    pub session_span: bool,
    /// Whether response spans exist.
    pub llm_spans: bool,
    /// Handling of Tab events.
    pub tab: TabMode,
    /// A segment ends after this long without events, nanoseconds.
    pub session_idle_ns: i64,
    /// A turn ends after this long without events, nanoseconds.
    pub generation_idle_ns: i64,
    /// A closed turn waits this long for late hooks before it settles, nanoseconds.
    pub settle_delay_ns: i64,
    /// In a turn open for longer than this, finished parts settle early, nanoseconds; 0 = never.
    pub flush_after_ns: i64,
    /// Number of hooks of settled turns that are kept in memory per session. Once there are twice as many hooks, the
    /// oldest settled turns are evicted.
    pub settled_hooks: usize,
    /// Maximum number of hooks that one session, root and children, keeps in memory. Only turns that do not settle can
    /// reach it. Further hooks are dropped, see [`crate::Sessions::left_out`].
    pub session_hooks: usize,
    /// Maximum number of hooks that all sessions together keep in memory. Beyond it the fold evicts sessions that
    /// paused, even in the middle of a turn. If no session paused, the fold drops further hooks.
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
        Self {
            trace_mode: TraceMode::Generation,
            session_span: true,
            llm_spans: true,
            tab: TabMode::Rollup,
            session_idle_ns: tolerance::SESSION_IDLE,
            generation_idle_ns: tolerance::GENERATION_IDLE,
            settle_delay_ns: tolerance::SETTLE_DELAY,
            flush_after_ns: tolerance::FLUSH_AFTER,
            settled_hooks: SETTLED_HOOKS,
            session_hooks: MAX_SESSION,
            held_hooks: MAX_HELD,
        }
    }
}

/// Default of [`Config::settled_hooks`]: 1,024 hooks, about 1 MB. A late hook nearly always belongs to one of the last
/// turns. With four times as many, each hook of a session with subagents would cost three times as much, because links
/// are searched for among all hooks in memory.
const SETTLED_HOOKS: usize = 1_024;

/// Default of [`Config::session_hooks`]: 131,072 hooks, about 121 MB. Lifecycle events (prompts, responses, stops,
/// starts and ends) get 12.5 % more room.
pub const MAX_SESSION: usize = 131_072;

/// Default of [`Config::held_hooks`]: twice the limit of one session. Beyond it the fold evicts sessions that paused
/// for ten seconds, the longest idle first. If no session paused, it drops hooks. Lifecycle events get 12.5 % more
/// room.
pub const MAX_HELD: usize = 2 * MAX_SESSION;
