//! Turns events into turns: finds which hooks belong together, and when a turn begins and ends. Does not read payloads.

pub(crate) mod call_home;
pub(crate) mod call_match;
pub(crate) mod claims;
pub(crate) mod conversation;
pub(crate) mod delegation;
pub(crate) mod delegation_match;
pub(crate) mod descendants;
pub(crate) mod event_time;
pub(crate) mod evidence;
pub(crate) mod fact;
pub(crate) mod handed_on;
pub(crate) mod leaving;
pub(crate) mod open_delegations;
pub(crate) mod parent_link;
pub(crate) mod said_at;
pub(crate) mod sealed_turns;
pub(crate) mod snapshot;
pub(crate) mod tool_call;
pub(crate) mod turn;
pub(crate) mod turn_boundaries;
pub(crate) mod turn_end;
pub(crate) mod turn_layout;
