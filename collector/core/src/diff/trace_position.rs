//! A turn's place in its session: trace, order, segment.

use std::sync::Arc;

use crate::assemble::session_segment as segment;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::parent_link::Candidates;
use crate::correlate::snapshot::World;
use crate::model::config::Config;
use crate::model::config::TraceMode;
use crate::model::fingerprint::mix;
use crate::model::id::{SpanId, TraceId};
use crate::model::span::{Link, SpanKind};
use crate::model::time::Timestamp;

/// A turn's place in its session.
pub(crate) struct Place {
    pub(crate) root: Arc<str>,
    pub(crate) trace: TraceId,
    pub(crate) index: u64,
    pub(crate) previous: Option<(TraceId, SpanId, Timestamp)>,
    pub(crate) segment: usize,
    /// The delegations that an unbound child may belong to.
    pub(crate) candidates: Option<Possible>,
    /// It is told below another root, which its candidates share.
    pub(crate) stray: bool,
}

/// The delegations that an unbound child may belong to.
#[derive(Clone, Debug)]
pub(crate) struct Possible {
    /// How many there are.
    pub(crate) count: usize,
    /// Links to the subagent spans of those that are kept.
    pub(crate) links: Vec<Link>,
}

impl Possible {
    pub(crate) fn of(candidates: &Candidates, world: World<'_>) -> Self {
        let mut links: Vec<Link> = Vec::new();
        for (parent, key) in &candidates.kept {
            let Some(conversation) = world.conversations.get(parent) else { continue };
            let Some(generation) = conversation.home(key) else { continue };
            let Some(trace) = trace_of_call(conversation, key, world) else { continue };
            let start = conversation.delegations.get(key).and_then(|delegation| delegation.start);
            links.push(Link {
                trace,
                span: SpanId::derive(parent, &generation, SpanKind::Subagent.as_str(), key),
                kind: "subagent_candidate",
                at: start.unwrap_or_default(),
            });
        }
        links.sort_by_key(|link| (link.at, link.span));
        Self { count: candidates.count, links }
    }
}

/// The trace of a delegating call at any depth: that of the turn of the root which it lies below.
pub(crate) fn trace_of_call<'a>(
    mut conversation: &'a Conversation,
    mut key: &'a str,
    world: World<'a>,
) -> Option<TraceId> {
    while let Some(link) = world.links.get(&conversation.id) {
        key = link.key.as_deref()?;
        conversation = world.conversations.get(&link.parent)?;
    }
    let generation = conversation.home(key)?;
    let segment = match world.config.trace_mode {
        TraceMode::Generation => 0,
        TraceMode::Session => {
            let turn = conversation.turns.iter().rfind(|turn| turn.generation == generation)?;
            let segments = segment::starts(world, conversation);
            segments.partition_point(|start| *start <= turn.start).saturating_sub(1)
        }
    };
    Some(trace(world.config, &conversation.id, &generation, segment))
}

/// The trace a turn lives in.
pub(crate) fn trace(
    config: &Config,
    root: &Arc<str>,
    generation: &Arc<str>,
    segment: usize,
) -> TraceId {
    match config.trace_mode {
        TraceMode::Generation => TraceId::derive("generation", root, generation),
        TraceMode::Session => TraceId::derive("session", root, &segment.to_string()),
    }
}

/// Changes whenever the turn's own facts or its place do.
pub(crate) fn stamp(conversation: &Conversation, turn: &Turn, place: &Place) -> u64 {
    let explicit = conversation.explicit.get(&turn.generation).map_or(0, Vec::len);
    let mut stamp = mix(explicit as u64, turn.loose.len() as u64);
    for &index in &turn.loose {
        stamp = mix(stamp, conversation.loose[index].seq);
    }
    let number = |at: Option<Timestamp>| at.map_or(0, |at| at.0 as u64);
    stamp = mix(stamp, number(conversation.next_prompt(turn)));
    stamp = mix(stamp, number(conversation.session_end_after(turn.start)));
    stamp = mix(stamp, place.index);
    stamp = mix(stamp, place.segment as u64);
    stamp = mix(stamp, conversation.mark);
    let lost = conversation.lost(&turn.generation);
    if lost > 0 {
        stamp = mix(stamp, lost);
    }
    place
        .previous
        .map_or(stamp, |(_, span, at)| mix(mix(stamp, u64::from_be_bytes(span.0)), at.0 as u64))
}
