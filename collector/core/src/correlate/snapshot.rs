//! What is known of all conversations at one moment: the input of everything that assembles spans.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::correlate::parent_link::{Children, Conversations, Links, Unclear};
use crate::model::config::Config;
use crate::model::time::Timestamp;

/// What a tree is made from.
#[derive(Clone, Copy)]
pub(crate) struct World<'a> {
    pub(crate) config: &'a Config,
    pub(crate) conversations: &'a Conversations,
    pub(crate) links: &'a Links,
    pub(crate) unclear: &'a Unclear,
    /// Children by parent and subagent key.
    pub(crate) children: &'a Children,
    /// Conversations that did nothing yet that only a root does.
    pub(crate) perhaps_children: &'a BTreeSet<Arc<str>>,
    /// How far time has passed for this group.
    pub(crate) clock: Timestamp,
    /// Whether it passed early because room was needed.
    pub(crate) evicted: bool,
}
