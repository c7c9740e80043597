//! Turns turns into spans: names, attributes, times, totals.

pub(crate) mod attributes;
pub(crate) mod draft;
pub(crate) mod draft_subagent;
pub(crate) mod draft_turn;
pub(crate) mod finished_prefix;
pub(crate) mod nested_agent;
pub(crate) mod provider;
pub(crate) mod repository_attributes;
pub(crate) mod session_segment;
pub(crate) mod span_builder;
pub(crate) mod summaries;
pub(crate) mod time_breakdown;
pub(crate) mod tool_span;
pub(crate) mod turn_totals;
pub(crate) mod work;
