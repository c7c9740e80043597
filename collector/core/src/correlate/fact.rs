//! An event as the fold keeps it: small, and in an order that does not depend on arrival.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::model::event::{About, Event, EventKind, Labels};
use crate::model::time::Timestamp;
use crate::model::tolerance::CLOCK_STEP;

/// One event inside a conversation.
#[derive(Debug)]
pub(crate) struct Fact {
    /// When it happened, see [`Steady`](crate::correlate::event_time::Steady).
    pub(crate) at: Timestamp,
    /// Wall clock of receipt.
    wall: Timestamp,
    boottime_ns: Option<NonZeroU64>,
    pub(crate) seq: u64,
    /// [`Event::damaged`].
    pub(crate) damaged: bool,
    /// Index among several facts of one hook; 0 for a single fact.
    part: u8,
    /// Place of its [root](crate::model::event::About::root) in [`Roots`]; 0 without a root.
    root: u8,
    /// Model label as sent.
    pub(crate) model: Option<Arc<str>>,
    pub(crate) labels: Option<Box<Labels>>,
    pub(crate) kind: EventKind,
}

/// The roots that the facts of a conversation name. A fact holds only a place in this list: facts use most of the fold's
/// memory, and the roots of a conversation hardly differ.
#[derive(Debug, Default)]
pub(crate) struct Roots(Vec<Arc<str>>);

impl Roots {
    /// The place of a root. 0 without a root, and for a root beyond the first 255.
    pub(crate) fn place(&mut self, root: Option<&Arc<str>>) -> u8 {
        let Some(root) = root else { return 0 };
        let same = |known: &Arc<str>| Arc::ptr_eq(known, root) || known == root;
        let place = self.0.iter().position(same).unwrap_or(self.0.len());
        let Ok(number) = u8::try_from(place + 1) else { return 0 };
        if place == self.0.len() {
            self.0.push(root.clone());
        }
        number
    }

    /// The root of a fact.
    pub(crate) fn of(&self, fact: &Fact) -> Option<&Arc<str>> {
        self.0.get(usize::from(fact.root).checked_sub(1)?)
    }
}

impl Fact {
    /// The fact of an event that happened `at`.
    pub(crate) fn new(event: Event, at: Timestamp) -> Self {
        let Event { at: wall, boottime_ns, seq, damaged, about, kind, .. } = event;
        let About { model, labels, .. } = about;
        Self { at, wall, boottime_ns, seq, damaged, part: 0, root: 0, model, labels, kind }
    }

    /// The fact with its root, see [`Roots::place`].
    pub(crate) fn in_root(self, root: u8) -> Self {
        Self { root, ..self }
    }

    /// The facts of an event that describes several calls.
    pub(crate) fn all(mut event: Event, at: Timestamp) -> Vec<Self> {
        let EventKind::ToolBatch(calls) = &mut event.kind else { return Vec::new() };
        let calls = std::mem::take(calls).into_iter().zip(1..);
        let fact = |(facts, part)| {
            let kind = EventKind::ToolFailure(Box::new(facts));
            Self { part, ..Self::new(Event { kind, ..event.clone() }, at) }
        };
        calls.map(fact).collect()
    }

    /// How far the wall clock was set between `earlier` and this fact, in nanoseconds; negative if it was set back.
    /// `None` if it was not set, or if that is unknown. Not every hook has the time since boot, and that time (which
    /// includes sleep) restarts with each boot.
    pub(crate) fn clock_step(&self, earlier: &Self) -> Option<i64> {
        let step = self.wall.since(earlier.wall).saturating_sub(self.ran(earlier)?);
        (step.saturating_abs() > CLOCK_STEP).then_some(step)
    }

    /// Nanoseconds from `earlier` to this fact. If the wall clock was set between them, this is measured by the time
    /// since boot.
    pub(crate) fn since(&self, earlier: &Self) -> i64 {
        let ran = self.clock_step(earlier).and_then(|_| self.ran(earlier));
        ran.unwrap_or_else(|| self.at.since(earlier.at))
    }

    /// Nanoseconds from `earlier` to this fact, measured by the time since boot, which includes sleep.
    fn ran(&self, earlier: &Self) -> Option<i64> {
        let ran = self.boottime_ns?.get().checked_sub(earlier.boottime_ns?.get())?;
        i64::try_from(ran).ok()
    }

    /// Whether the fact's time is the wall clock's.
    pub(crate) fn is_by_the_clock(&self) -> bool {
        self.at == self.wall
    }

    /// The order of facts: by time. Facts of equal time are in the logical order of their events, no matter in which
    /// order they arrived.
    pub(crate) fn key(&self) -> (Timestamp, u8, u64) {
        (self.at, rank(&self.kind).saturating_add(self.part.saturating_mul(16)), self.seq)
    }
}

fn rank(kind: &EventKind) -> u8 {
    use EventKind as K;
    match kind {
        K::WorkspaceOpen | K::Prompt(_) => 0,
        K::SessionStart { .. } => 1,
        K::ToolStart(_) => 2,
        K::SubagentStart(_) => 3,
        K::ShellStart(_) | K::McpStart(_) | K::FileRead(_) => 4,
        K::ShellEnd(_) | K::McpEnd(_) | K::FileEdit(_) => 5,
        K::ToolEnd(_) | K::ToolFailure(_) | K::ToolBatch(_) => 6,
        K::Thought(_) => 7,
        K::Response(_) => 8,
        K::SubagentStop(_) => 9,
        K::Compaction(_)
        | K::CompactionEnd
        | K::Question { .. }
        | K::TabRead { .. }
        | K::TabEdit { .. } => 10,
        K::Unknown { .. } | K::Malformed | K::Evidence(_) | K::Repository(_) => 10,
        K::Stop(_) => 11,
        K::SessionEnd(_) => 12,
    }
}

/// The delegation that an event describes.
pub(crate) fn delegation(kind: &EventKind) -> Option<&str> {
    use EventKind as K;
    match kind {
        K::SubagentStart(agent) | K::SubagentStop(agent) => Some(agent.key()),
        K::ToolStart(tool) | K::ToolEnd(tool) | K::ToolFailure(tool) => tool.delegation(),
        _ => None,
    }
}

/// Inserts a fact in order. False if that hook is there already.
pub(crate) fn insert(facts: &mut Vec<Fact>, fact: Fact) -> bool {
    let key = fact.key();
    // The usual place is the end.
    if facts.last().is_none_or(|last| last.key() < key) {
        facts.push(fact);
        return true;
    }
    match facts.binary_search_by(|other| other.key().cmp(&key)) {
        Ok(_) => false,
        Err(at) => {
            facts.insert(at, fact);
            true
        }
    }
}
