//! A turn's place in its session: trace, order, segment.

use std::sync::Arc;

use crate::assemble::session_segment as segment;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::parent_link::{Candidates, turn_of_key};
use crate::correlate::snapshot::World;
use crate::model::config::Config;
use crate::model::config::TraceMode;
use crate::model::fingerprint::{Fingerprint, Made};
use crate::model::id::{SpanId, TraceId};
use crate::model::span::{Link, SpanKind};
use crate::model::time::Timestamp;

/// A turn's place in its session.
pub(crate) struct Place {
    pub(crate) root: Arc<str>,
    pub(crate) trace: TraceId,
    /// Number of the turn in its session, from 1.
    pub(crate) index: u64,
    /// Trace, span and start of the previous turn.
    pub(crate) previous: Option<(TraceId, SpanId, Timestamp)>,
    /// Index of the turn's segment.
    pub(crate) segment: usize,
    /// The delegations that a child without a known parent may belong to.
    pub(crate) candidates: Option<Possible>,
    /// The turn is reported below another root: all candidates for its parent are in that root's group.
    pub(crate) stray: bool,
}

/// The delegations that a child without a known parent may belong to.
#[derive(Clone, Debug)]
pub(crate) struct Possible {
    /// Number of delegations.
    pub(crate) count: usize,
    /// Links to the subagent spans of the kept delegations.
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

/// The trace in which a delegating call is shown. For a call in a child, at any depth, this is the trace of the root's
/// turn above the child.
pub(crate) fn trace_of_call<'a>(
    mut conversation: &'a Conversation,
    mut key: &'a str,
    world: World<'a>,
) -> Option<TraceId> {
    while let Some(link) = world.links.get(&conversation.id) {
        key = link.key.as_deref().or(link.below.as_deref())?;
        conversation = world.conversations.get(&link.parent)?;
    }
    let generation = match turn_of_key(key) {
        Some(turn) => turn.into(),
        None => conversation.home(key)?,
    };
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

/// The trace of a turn.
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

/// Fingerprint of a turn's own facts and its place. The turn's descendants are not included: new facts of a child mark
/// the turn directly.
pub(crate) fn fingerprint(conversation: &Conversation, turn: &Turn, place: &Place) -> Fingerprint {
    let explicit = conversation.explicit.get(&turn.generation).map_or(0, Vec::len);
    let loose = turn.loose.iter().map(|&index| conversation.loose[index].seq);
    let made_of = Fingerprint::of(Made::Turn)
        .with(explicit as u64)
        .with(turn.loose.len() as u64)
        .with_all(loose)
        .maybe(conversation.next_prompt(turn))
        .maybe(conversation.session_end_after(turn.start))
        .with(place.index)
        .with(place.segment as u64)
        .and(conversation.described)
        .with(conversation.lost(&turn.generation));
    place.previous.map_or(made_of, |(_, span, at)| made_of.span(span).time(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlate::fact::Fact;
    use crate::model::event::Host;
    use crate::model::hook::Hook;
    use crate::read::reader::normalise;

    /// Adds a hook one second after the previous one.
    fn add(conversation: &mut Conversation, seq: u64, hook: &str) {
        let body = format!(r#"{{"conversation_id":"c","hook_event_name":{hook}}}"#).into_bytes();
        let observed_at = Timestamp(seq as i64 * 1_000);
        let event = normalise(&Hook { seq, observed_at, body, ..Hook::default() });
        let (generation, at) = (event.generation.clone(), event.at);
        conversation.describe((at, seq), event.host, &event.about);
        conversation.add(&generation, Fact::new(event, at));
        conversation.lay_out(&Config::default());
    }

    fn place(index: u64, segment: usize) -> Place {
        Place {
            root: Arc::from("c"),
            trace: TraceId([0; 16]),
            index,
            previous: None,
            segment,
            candidates: None,
            stray: false,
        }
    }

    #[test]
    fn the_fingerprint_of_a_turn_covers_its_facts_and_its_place() {
        let of = |conversation: &Conversation, place: &Place| {
            fingerprint(conversation, &conversation.turns[0], place)
        };
        let mut conversation = Conversation::new(Arc::from("c"), Host::Cursor);
        add(&mut conversation, 1, r#""beforeSubmitPrompt","generation_id":"g","prompt":"go""#);
        let mut last = of(&conversation, &place(1, 0));
        assert!(last.is(of(&conversation, &place(1, 0))), "the same twice");
        let mut seq = 1;
        for (what, hook) in [
            ("a fact", r#""preToolUse","generation_id":"g","tool_name":"Read","tool_use_id":"t""#),
            ("a loose fact", r#""beforeReadFile","file_path":"/w/a""#),
            ("the version", r#""preCompact","generation_id":"h","cursor_version":"3.1.4""#),
            ("the next prompt", r#""beforeSubmitPrompt","generation_id":"h","prompt":"go on""#),
            ("the end of the session", r#""sessionEnd","reason":"closed""#),
        ] {
            seq += 1;
            add(&mut conversation, seq, hook);
            let now = of(&conversation, &place(1, 0));
            assert!(!now.is(last), "{what}");
            last = now;
        }
        conversation.lose(&Arc::from("g"));
        let lost = of(&conversation, &place(1, 0));
        assert!(!lost.is(last), "a lost fact");
        let previous = Some((TraceId([0; 16]), SpanId([1; 8]), Timestamp(1)));
        let later = Some((TraceId([0; 16]), SpanId([1; 8]), Timestamp(2)));
        let places = [
            place(1, 0),
            place(2, 0),
            place(1, 1),
            Place { previous, ..place(1, 0) },
            Place { previous: later, ..place(1, 0) },
        ];
        for (at, one) in places.iter().enumerate() {
            let others = places.iter().skip(at + 1);
            let one = of(&conversation, one);
            assert!(others.into_iter().all(|other| !one.is(of(&conversation, other))), "{at}");
        }
    }
}
