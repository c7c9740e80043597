//! Turns the bytes of a hook into an [`Event`](crate::model::event::Event), in every dialect.

pub(crate) mod commit;
pub(crate) mod content;
pub(crate) mod event_kind;
pub(crate) mod host;
pub(crate) mod interner;
pub(crate) mod json_scan;
pub(crate) mod known_fields;
pub(crate) mod known_values;
pub(crate) mod line_diff;
pub(crate) mod other_hosts;
pub(crate) mod payload;
pub(crate) mod pull_request;
pub(crate) mod reader;
pub(crate) mod repair;
pub(crate) mod shell;
pub(crate) mod test_command;
pub(crate) mod tool_facts;
