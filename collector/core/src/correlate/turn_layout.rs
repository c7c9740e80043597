//! The turns of a conversation in order, and the state that decides the turn of the next fact.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::time::Timestamp;

/// The entry of one turn, or of several turns that share an entry.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) generation: Arc<str>,
    /// No hook names the turn. Its generation is a made-up name.
    pub(crate) synthetic: bool,
    pub(crate) start: Timestamp,
    /// Indexes of its loose facts.
    pub(crate) loose: Vec<usize>,
}

/// The number of loose facts that have a turn, and the state that decides the turn of the next one.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// Loose facts before this index are assigned.
    pub(super) count: usize,
    /// State of each turn.
    pub(super) turns: Vec<Opened>,
    /// For each call id: the time of the loose fact that opened the call, and the generation that the fact belongs to.
    pub(super) homes: BTreeMap<Box<str>, (Timestamp, Arc<str>)>,
    /// Named turns that have a place.
    pub(super) named: BTreeSet<Arc<str>>,
    /// Number of turns with a made-up name.
    pub(super) synthetic: usize,
}

/// The state of a turn that matters for loose facts.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(super) last: Timestamp,
    /// Time of its stop.
    pub(super) closed: Option<Timestamp>,
    /// Index of the loose prompt that opened it.
    pub(super) prompt: Option<usize>,
}
