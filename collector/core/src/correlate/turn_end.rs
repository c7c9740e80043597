//! When and why a turn is over, and what came too late for it.

use crate::correlate::conversation::{Conversation, Turn, call_id};
use crate::correlate::fact::Fact;
use crate::correlate::snapshot::World;
use crate::model::event::EventKind;
use crate::model::span::EndReason;
use crate::model::time::Timestamp;

/// Why and when a turn closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Close {
    /// The moment that closed it: a hook's, or the deadline's own.
    pub(crate) at: Timestamp,
    pub(crate) reason: EndReason,
}

/// Parts facts from those that came too late. What runs in the background outlives its turn and is never late.
pub(crate) fn split(facts: Vec<&Fact>, cutoff: Timestamp) -> (Vec<&Fact>, Vec<&Fact>) {
    if facts.last().is_none_or(|last| last.at <= cutoff) {
        return (facts, Vec::new());
    }
    let background: Vec<&str> = facts
        .iter()
        .filter(|fact| fact.at <= cutoff)
        .filter_map(|fact| match &fact.kind {
            EventKind::ToolStart(tool) => {
                let delegate = tool.delegate()?;
                tool.id.as_deref().filter(|_| delegate.background == Some(true))
            }
            _ => None,
        })
        .collect();
    let outlives = |fact: &Fact| call_id(&fact.kind).is_some_and(|id| background.contains(&id));
    facts.into_iter().partition(|fact| fact.at <= cutoff || outlives(fact))
}

/// Decides whether the turn is closed, as of the world's clock.
pub(crate) fn close(
    world: World<'_>,
    root: &Conversation,
    turn: &Turn,
    (facts, since): (&[&Fact], Timestamp),
    below: &[Timestamp],
) -> Option<Close> {
    let config = world.config;
    let stop = facts.iter().find(|fact| matches!(fact.kind, EventKind::Stop(_))).map(|f| f.at);
    let prompt = root.next_prompt(turn).map(|at| Close { at, reason: EndReason::Superseded });
    let ended =
        root.session_end_after(turn.start).map(|at| Close { at, reason: EndReason::Stopped });
    let around = [prompt, ended].into_iter().flatten().min_by_key(|close| close.at);
    let stop = stop.map(|at| Close { at, reason: EndReason::Matched });
    // The hooks of one instant come in any order: a stop just behind what closed its turn is still its end.
    let first = match (stop, around) {
        (Some(stop), Some(around)) if stop.at > around.at.plus(config.settle_delay_ns) => {
            Some(around)
        }
        (Some(stop), _) => Some(stop),
        (None, around) => around,
    };
    let until = first.map_or(world.clock, |close| close.at);
    let last = facts.iter().map(|f| f.at).chain(below.iter().copied()).max().unwrap_or(since);
    if until.max(last).since(since) <= config.generation_idle_ns {
        return first;
    }
    let mut times: Vec<Timestamp> =
        facts.iter().map(|fact| fact.at).chain(below.iter().copied()).collect();
    times.push(since);
    times.retain(|at| *at >= since && first.is_none_or(|close| *at <= close.at));
    times.sort_unstable();
    times.push(until);
    let gap = times.windows(2).find(|pair| pair[1].since(pair[0]) > config.generation_idle_ns);
    let idle = gap.map(|pair| {
        let early = world.evicted && first.is_none() && pair[1] == world.clock;
        let reason = if early { EndReason::Evicted } else { EndReason::Idle };
        Close { at: pair[0].plus(config.generation_idle_ns), reason }
    });
    idle.or(first)
}
