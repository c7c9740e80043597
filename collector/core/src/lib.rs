//! The pure half of hookspan: hook payloads go in, sessions and spans come out.
//!
//! ```text
//! Hook (bytes) --normalise--> Event (our words) --Sessions::handle--> Change (spans, turns, sessions)
//! ```
//!
//! Nothing here reads a clock, a file, the environment or a random number, and nothing here can fail. Odd input becomes
//! [`EventKind::Malformed`] or [`EventKind::Unknown`] and is kept. What a caller must know:
//!
//! * Feed hooks in the order of their `seq`. The result depends on the *set* of hooks and on the times they carry, and
//!   not on how they are divided into batches.
//! * Time passes only through [`Sessions::handle_deadline`].
//! * Drain [`Sessions::poll_change`] after each batch. A [`Change`] carries whole values, so storing one twice is
//!   harmless.
//! * Payload text is not copied into spans. A span names the hooks that hold its content ([`ContentRef`]), and
//!   [`content::extract`] reads the text from the raw body when a page or an exporter needs it.

pub mod sessions;
mod model;
mod read;
mod correlate;
mod assemble;
mod diff;

pub use model::{event, hook, id, outcome, path, price, repository, span, summary, time, tool};

/// References to the content of spans, and how to read the content from a raw hook.
pub mod content {
    pub use crate::model::content::{Content, EDIT_CHANGES, Field};
    pub use crate::read::content::extract;
}

pub use model::change::{Change, SpanKey};
pub use model::config::Config;
pub use model::event::{Confidence, Event, EventKind, Evidence, Host, LinkSource};
pub use model::hook::{Hook, HookSource};
pub use model::id::{SpanId, TraceId};
pub use model::span::{
    Attribute, Class, ContentRef, End, EndReason, ErrorType, Link, Span, SpanEvent, SpanKind,
    Status, Value,
};
pub use model::summary::{Parts, SessionParts, SessionState, SessionSummary, Tokens, TurnSummary};
pub use model::time::Timestamp;
pub use read::reader::{Reader, normalise, workspace_roots};
pub use sessions::{Replay, Sessions};
