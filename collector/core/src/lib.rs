//! The pure half of hookspan: hook payloads in, sessions and spans out.
//!
//! ```text
//! Hook (bytes) --normalise--> Event (our words) --Sessions::handle--> Change (spans, turns, sessions)
//! ```
//!
//! Nothing here reads a clock, a file, the environment or a random number, and nothing here can fail: odd input becomes
//! [`EventKind::Malformed`] or [`EventKind::Unknown`], and is kept. What a caller must know:
//!
//! * Feed hooks in the order of their `seq`. The result depends on the *set* of hooks and on the times they carry; how
//!   they are cut into batches never shows.
//! * Time passes only through [`Sessions::handle_deadline`].
//! * Drain [`Sessions::poll_change`] after each batch: a [`Change`] carries whole values, so storing one twice is harmless.
//! * Payload text is not copied into spans. A span names the hooks that hold its content ([`ContentRef`]), and
//!   [`content::extract`] reads it back from the raw body when a person or an exporter asks.

pub mod hook;
pub mod time;
pub mod event;
pub mod id;
pub mod span;
pub mod summary;
pub mod sessions;
pub mod content;
pub mod tool;
pub mod model;
mod split;
mod steady;
mod config;
mod change;
mod evidence;
mod reader;
mod kinds;
mod contract;
mod payload;
mod digest;
mod fact;
mod call;
mod conversation;
mod turn;
mod open_delegations;
mod link;
mod tree;
mod below;
mod close;
mod grow;
mod delegate;
mod window;
mod aside;
mod words;
mod shell;
mod attributes;
mod build;
mod parts;
pub mod price;
mod tally;
mod segment;
mod past;
mod rows;
mod place;
mod tell;
mod lag;
mod stray;
mod group;

pub use change::{Change, SpanKey};
pub use config::Config;
pub use event::{Confidence, Event, EventKind, Evidence, Host, LinkSource};
pub use hook::{Hook, HookSource};
pub use id::{SpanId, TraceId};
pub use reader::{Reader, normalise};
pub use sessions::Sessions;
pub use span::{
    Attribute, Class, ContentRef, End, EndReason, ErrorType, Link, Span, SpanEvent, SpanKind,
    Status, Value,
};
pub use summary::{Parts, SessionParts, SessionState, SessionSummary, Tokens, TurnSummary};
pub use time::Timestamp;
