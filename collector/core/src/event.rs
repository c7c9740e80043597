//! What a hook means, in our words. `normalise` is total: every dialect, every damage.

use crate::{Hook, Timestamp};

/// A hook, interpreted.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Position in the raw log.
    pub seq: u64,
    /// Wall clock of receipt.
    pub at: Timestamp,
    /// `conversation_id`, else `session_id`; empty when the payload has no identity at all.
    pub conversation: String,
    /// Normalised generation id; empty when the event belongs to whatever turn is open.
    pub generation: String,
    /// What happened.
    pub kind: EventKind,
}

/// Placeholder; the closed set of what can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// An event name hookspan does not know: kept, counted, attached to the open turn.
    Unknown {
        /// The name as sent.
        name: String,
    },
    /// A body that could not be read: kept, counted.
    Malformed,
}

/// Reads a hook. Never fails; see [`EventKind::Malformed`].
#[must_use]
pub fn normalise(hook: &Hook) -> Event {
    Event {
        seq: hook.seq,
        at: hook.observed_at,
        conversation: String::new(),
        generation: String::new(),
        kind: EventKind::Malformed,
    }
}
