//! Decides when and why a turn ends, and which facts are late.

use std::collections::BTreeSet;

use crate::correlate::call_match::pair;
use crate::correlate::conversation::{Conversation, Turn};
use crate::correlate::fact::Fact;
use crate::correlate::snapshot::World;
use crate::correlate::tool_call::tool_facts;
use crate::model::config::Config;
use crate::model::event::EventKind;
use crate::model::span::EndReason;
use crate::model::time::Timestamp;

/// Why and when a turn closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Close {
    /// When the turn closed: the time of a hook, or the deadline.
    pub(crate) at: Timestamp,
    pub(crate) reason: EndReason,
}

/// Separates a turn's facts from late facts. The end of a delegation is never late, because a delegation may outlive
/// its turn.
pub(crate) fn split<'a>(
    root: &'a Conversation,
    facts: Vec<&'a Fact>,
    cutoff: Timestamp,
) -> (Vec<&'a Fact>, Vec<&'a Fact>) {
    if facts.last().is_none_or(|last| last.at <= cutoff) {
        return (facts, Vec::new());
    }
    let on_time = facts.iter().filter(|fact| fact.at <= cutoff);
    let begun: BTreeSet<&str> = on_time.filter_map(|fact| root.delegation_of(fact)).collect();
    let outlives = |fact: &Fact| root.delegation_of(fact).is_some_and(|key| begun.contains(key));
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
    // Hooks of one moment may arrive in any order. A stop just after the event that closed its turn is still the end of
    // that turn.
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
    let gaps: Vec<&[Timestamp]> = times
        .windows(2)
        .filter(|pair| pair[1].since(pair[0]) > config.generation_idle_ns)
        .collect();
    if gaps.is_empty() {
        return first;
    }
    let open = OpenCalls::of(facts);
    let idle = gaps.into_iter().find_map(|pair| {
        let idle = open.idle_after(pair[0], config);
        let is_idle = pair[1].since(pair[0]) > idle && !open.ends_after(pair[0]);
        is_idle.then(|| {
            let early = world.evicted && first.is_none() && pair[1] == world.clock;
            let reason = if early { EndReason::Evicted } else { EndReason::Idle };
            Close { at: pair[0].plus(idle), reason }
        })
    });
    idle.or(first)
}

/// Periods in which calls were open. A turn waits for them.
pub(super) struct OpenCalls {
    /// Beginning and end.
    calls: Vec<(Timestamp, Option<Timestamp>)>,
}

impl OpenCalls {
    pub(super) fn of(facts: &[&Fact]) -> Self {
        let tools: Vec<&Fact> =
            facts.iter().copied().filter(|fact| tool_facts(&fact.kind).is_some()).collect();
        let calls = pair(&tools);
        let calls = calls.iter().filter_map(|call| Some((call.opened()?, call.ended()))).collect();
        Self { calls }
    }

    fn at(&self, at: Timestamp) -> impl Iterator<Item = Option<Timestamp>> {
        let open = move |&&(begun, over): &&(Timestamp, Option<Timestamp>)| {
            begun <= at && over.is_none_or(|over| over > at)
        };
        self.calls.iter().filter(open).map(|(_, over)| *over)
    }

    /// Whether a call is open at `at`.
    pub(super) fn is_any_at(&self, at: Timestamp) -> bool {
        self.at(at).next().is_some()
    }

    /// After `at`, the turn is idle once nothing has happened for this long.
    fn idle_after(&self, at: Timestamp, config: &Config) -> i64 {
        match self.is_any_at(at) {
            true => config.session_idle_ns.max(config.generation_idle_ns),
            false => config.generation_idle_ns,
        }
    }

    /// Whether a call that is open at `at` ends later. If so, the turn was not idle.
    fn ends_after(&self, at: Timestamp) -> bool {
        self.at(at).any(|over| over.is_some())
    }
}
