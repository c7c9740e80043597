//! Joins hooks that no id and no equal input has joined: halves of a call that hold different facts, or whose input was
//! rewritten on the way. Two halves are one call if nothing speaks against it. The call records what joined them.

use std::collections::BTreeMap;

use super::NEAR;
use crate::correlate::evidence::{Strength, family, same_content, same_duration, same_name};
use crate::correlate::fact::Fact;
use crate::correlate::tool_call::{Call, tool_facts};
use crate::model::time::{Timestamp, nanos};
use crate::model::tolerance::DISORDER;
use crate::model::tool::{ToolClass, ToolFacts};

/// Joins the remaining hooks. First, each end without a beginning joins a call without an end. Then calls of the
/// specific layer (index `specific` and above) join each other, then calls of the generic layer.
pub(super) fn join(calls: &mut Vec<Call<'_>>, specific: usize) {
    let lone = |call: &Call<'_>| call.pre.is_none() && call.post.is_some();
    let open = |call: &Call<'_>| call.pre.is_some() && call.post.is_none();
    let mut gone = vec![false; calls.len()];
    if calls[..specific].iter().any(lone) && calls[..specific].iter().any(open) {
        let (from, into) = (indexes(calls, 0, specific, lone), indexes(calls, 0, specific, open));
        join_each(calls, &from, &into, &mut gone, end_of);
    }
    let ends = |call: &Call<'_>| call.before.is_none();
    let starts = |call: &Call<'_>| call.after.is_none();
    if calls[specific..].iter().any(ends) && calls[specific..].iter().any(starts) {
        let all = calls.len();
        let (from, into) =
            (indexes(calls, specific, all, ends), indexes(calls, specific, all, starts));
        join_each(calls, &from, &into, &mut gone, other_half);
    }
    let bare = |call: &Call<'_>| call.before.is_none() || call.after.is_none();
    if specific < calls.len() && calls[..specific].iter().any(bare) {
        let from = indexes(calls, specific, calls.len(), |_| true);
        let into = indexes(calls, 0, specific, bare);
        join_each(calls, &from, &into, &mut gone, other_layer);
    }
    let mut at = 0;
    calls.retain(|_| {
        at += 1;
        !gone[at - 1]
    });
}

/// Indexes of calls by class, in order of each call's first hook. Only calls of one class may be joined.
type Places = BTreeMap<ToolClass, Vec<usize>>;

fn indexes(calls: &[Call<'_>], from: usize, to: usize, is: impl Fn(&Call<'_>) -> bool) -> Places {
    let mut places = Places::new();
    for at in (from..to).filter(|&at| is(&calls[at])) {
        let class = calls[at].said().map_or(ToolClass::Other, |tool| family(tool.class));
        places.entry(class).or_default().push(at);
    }
    places.values_mut().for_each(|list| list.sort_by_key(|&at| calls[at].first()));
    places
}

/// Joins each call of `from` to the call of `into` with the strongest evidence; among equals, to the oldest.
fn join_each<'a>(
    calls: &mut [Call<'a>],
    from: &Places,
    into: &Places,
    gone: &mut [bool],
    evidence: fn(&Call<'_>, &Call<'_>) -> Option<Found>,
) {
    for (&class, list) in from {
        for &at in list.iter().filter(|&&at| !gone[at]).collect::<Vec<_>>() {
            // Unknown tools may be joined with all others: a hook may lack the tool's name, and MCP tools may be named like
            // ordinary tools.
            let mut classes = vec![class];
            match class {
                ToolClass::Other => classes.extend(into.keys().filter(|other| **other != class)),
                _ => classes.push(ToolClass::Other),
            }
            let lists = classes.iter().filter_map(|class| into.get(class));
            let near = lists.flat_map(|list| {
                let until = last(&calls[at]).plus(DISORDER);
                let until = list.partition_point(|&to| calls[to].first() <= until);
                &list[until.saturating_sub(NEAR)..until]
            });
            let fits = near.filter(|&&to| to != at && !gone[to]).filter_map(|&to| {
                let Found { rank, strength } = evidence(&calls[at], &calls[to])?;
                Some(((rank, calls[to].first(), to), strength))
            });
            if let Some(((_, _, to), strength)) = fits.min_by_key(|(key, _)| *key) {
                let part = std::mem::take(&mut calls[at]);
                gone[at] = true;
                merge(&mut calls[to], part, strength);
            }
        }
    }
}

/// Evidence that joins two parts of a call.
struct Found {
    /// The lowest value goes first.
    rank: u8,
    strength: Strength,
}

fn last(call: &Call<'_>) -> Timestamp {
    call.hooks().map(|fact| fact.at).max().unwrap_or_default()
}

fn merge<'a>(call: &mut Call<'a>, part: Call<'a>, strength: Strength) {
    let has_id = |call: &Call<'_>| call.find(|tool| tool.id.as_ref()).is_some();
    // Either half's id names the call.
    if has_id(&part) && !has_id(call) {
        call.key = part.key.clone();
    }
    call.pre = call.pre.or(part.pre);
    call.post = call.post.or(part.post);
    call.before = call.before.or(part.before);
    call.after = call.after.or(part.after);
    call.strength = call.strength.max(part.strength).max(strength);
}

fn facts(hook: Option<&Fact>) -> Option<&ToolFacts> {
    tool_facts(&hook?.kind)
}

/// Whether both calls have a hook in the same role.
fn collide(one: &Call<'_>, other: &Call<'_>) -> bool {
    (one.before.is_some() && other.before.is_some())
        || (one.after.is_some() && other.after.is_some())
}

/// Evidence from input and duration. An equal duration counts as the stronger evidence, because it tells calls with
/// equal inputs apart.
fn weigh(same_content: Option<bool>, same_length: Option<bool>) -> Option<Found> {
    let (rank, strength) = match (same_content, same_length) {
        (Some(true), Some(true)) => (0, Strength::Exact),
        (None, Some(true)) => (0, Strength::Duration),
        (Some(true), _) => (1, Strength::Exact),
        (Some(false), Some(true)) => (2, Strength::Duration),
        (None, _) => (3, Strength::Order),
        (Some(false), _) => return None,
    };
    Some(Found { rank, strength })
}

/// `end` has no beginning and `call` has no end. They are one call if names, ids, inputs and times allow it.
fn end_of(end: &Call<'_>, call: &Call<'_>) -> Option<Found> {
    let (post, pre) = (facts(end.post)?, facts(call.pre)?);
    let run = end.post?.at.plus(-post.duration_ms.map_or(0, nanos));
    if (post.id.is_some() && pre.id.is_some())
        || same_name(post, pre) == Some(false)
        || run.plus(DISORDER) < call.pre?.at
        || collide(end, call)
    {
        return None;
    }
    let same_length = same_duration(post.duration_ms, Call::measured(call.after));
    weigh(same_content(post, pre), same_length)
}

/// Evidence that two calls of the specific layer are halves of one call: the end holds fewer facts than the beginning,
/// or names the tool differently.
fn other_half(end: &Call<'_>, call: &Call<'_>) -> Option<Found> {
    let (after, before) = (facts(end.after)?, facts(call.before)?);
    let run = end.after?.at.plus(-after.duration_ms.map_or(0, nanos));
    if end.before.is_some()
        || call.after.is_some()
        || matches!(before.class, ToolClass::Read)
        || family(after.class) != family(before.class)
        || same_name(after, before) == Some(false)
        || run.plus(DISORDER) < call.before?.at
    {
        return None;
    }
    weigh(same_content(after, before), None)
}

/// Evidence that a call of the specific layer and a call of the generic layer are one call: one of them lies inside the
/// other.
fn other_layer(part: &Call<'_>, call: &Call<'_>) -> Option<Found> {
    let (own, tool) = (part.said()?, call.said()?);
    let content = same_content(own, tool);
    if collide(part, call) {
        return None;
    }
    if call.is_background() && part.before.is_none() && content == Some(true) {
        // Background work ends long after its call.
        let begun = call.post.is_some_and(|post| part.first() >= post.at);
        return begun.then_some(Found { rank: 1, strength: Strength::Exact });
    }
    let same_length = same_duration(Call::measured(part.after), Call::measured(call.post));
    if !part.hooks().all(|fact| call.overlaps(fact.at)) || same_length == Some(false) {
        return None;
    }
    // A different input is accepted only if the whole specific call lies between the two generic hooks.
    let whole = call.pre.is_some() && call.post.is_some();
    let found = weigh(content, same_length.filter(|_| whole))?;
    // The specific layer uses one name for all tools of a kind, except MCP tools.
    let renamed = family(own.class) == family(tool.class) && own.class != ToolClass::Mcp;
    let is_said = found.strength != Strength::Order && renamed;
    (same_name(own, tool) != Some(false) || is_said).then_some(found)
}
