//! The turns of a conversation in order, and what the place of the next fact depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::time::Timestamp;

/// A stretch of work between prompt and stop, or several that share an entry.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) generation: Arc<str>,
    pub(crate) synthetic: bool,
    pub(crate) start: Timestamp,
    /// Its loose facts, as indexes.
    pub(crate) loose: Vec<usize>,
}

/// How far loose facts have a place, and what those of the next ones depend on.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// Loose facts before this index have one.
    pub(super) count: usize,
    /// Of each turn.
    pub(super) turns: Vec<Opened>,
    /// By call id, when a loose fact of it came and the generation that it was given to.
    pub(super) homes: BTreeMap<Box<str>, (Timestamp, Arc<str>)>,
    /// Turns that name themselves and have a place.
    pub(super) named: BTreeSet<Arc<str>>,
    pub(super) synthetic: usize,
}

/// A turn, as far as it matters for loose facts.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(super) last: Timestamp,
    pub(super) closed: Option<Timestamp>,
    /// Index of the loose prompt that opened it.
    pub(super) prompt: Option<usize>,
    /// The last loose hook of a call in it opened one: the turn waits for its end.
    pub(super) waits: bool,
}
