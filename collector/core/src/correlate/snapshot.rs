//! The state of all conversations at one moment: the input of everything that assembles spans.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::correlate::parent_link::{Children, Conversations, Links, Unclear};
use crate::model::config::Config;
use crate::model::time::Timestamp;

/// Everything that a tree of spans is built from.
#[derive(Clone, Copy)]
pub(crate) struct World<'a> {
    pub(crate) config: &'a Config,
    pub(crate) conversations: &'a Conversations,
    pub(crate) links: &'a Links,
    pub(crate) unclear: &'a Unclear,
    /// Children by parent and subagent key.
    pub(crate) children: &'a Children,
    /// Conversations without an event that only a root can have.
    pub(crate) perhaps_children: &'a BTreeSet<Arc<str>>,
    /// The time up to which this group is complete.
    pub(crate) clock: Timestamp,
    /// Whether the clock was moved ahead to free memory.
    pub(crate) evicted: bool,
}
