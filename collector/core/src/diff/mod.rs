//! Finds what changed since the last report, so that the cost of a poll depends on the changes alone.

pub(crate) mod advance_prefix;
pub(crate) mod bundle;
pub(crate) mod bundling;
pub(crate) mod group;
pub(crate) mod lag;
pub(crate) mod questions;
pub(crate) mod session;
pub(crate) mod session_around;
pub(crate) mod session_strays;
pub(crate) mod session_turns;
pub(crate) mod settled_turns;
pub(crate) mod stray;
pub(crate) mod trace_position;
pub(crate) mod turn;
