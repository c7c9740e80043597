//! Assigns hooks of the specific layer (`beforeShellExecution` and similar), which carry no id, to the call that they
//! describe. Without such a call the hook becomes its own call.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{NEAR, near};
use crate::correlate::evidence::{family, is_repeat, same_duration, same_edit, same_name};
use crate::correlate::fact::Fact;
use crate::correlate::tool_call::{Call, is_generic, is_start, tool_facts};
use crate::model::event::EventKind;
use crate::model::time::{Timestamp, nanos};
use crate::model::tolerance::DISORDER;
use crate::model::tool::{Edits, ToolClass, ToolFacts};

/// Indexes of calls or hooks, by the content that they describe.
type ByContent = BTreeMap<(ToolClass, u64), Vec<usize>>;

/// Assigns each specific hook to its call, or makes it its own call.
pub(super) fn add<'a>(facts: &[&'a Fact], calls: &mut Vec<Call<'a>>) {
    let mut specific = facts.iter().copied().filter(|fact| !is_generic(&fact.kind)).peekable();
    if specific.peek().is_none() {
        return;
    }
    let mut by_content = ByContent::new();
    let mut pathless: Vec<usize> = Vec::new();
    let mut lone_posts: Vec<usize> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let Some(tool) = call.said() else { continue };
        by_content.entry((family(tool.class), tool.content)).or_default().push(at);
        if family(tool.class) == ToolClass::Edit && call.find(|tool| tool.path.as_ref()).is_none() {
            pathless.push(at);
        }
        if call.pre.is_none() {
            lone_posts.push(at);
        }
    }
    let generic = calls.len();
    let mut rest: Vec<&Fact> = Vec::new();
    for fact in specific {
        let Some(tool) = tool_facts(&fact.kind) else { continue };
        let equals = by_content.get(&(family(tool.class), tool.content)).map(Vec::as_slice);
        let equals = near(equals.unwrap_or_default(), calls, fact.at);
        let found = whole(fact, tool, equals, calls).or_else(|| {
            let is_edit = matches!(fact.kind, EventKind::FileEdit(_));
            let pathless = if is_edit { near(&pathless, calls, fact.at) } else { &[] };
            whole(fact, tool, pathless, calls)
        });
        match found {
            Some(at) => *calls[at].slot(&fact.kind) = Some(fact),
            None => rest.push(fact),
        }
    }
    lone_posts.sort_by_key(|&at| std::cmp::Reverse(calls[at].post.map(|post| post.key())));
    for fact in give_to_lone_posts(rest, &lone_posts, calls) {
        let Some(tool) = tool_facts(&fact.kind) else { continue };
        let equals = by_content.entry((family(tool.class), tool.content)).or_default();
        match alone(fact, tool, near(equals, calls, fact.at), calls, generic) {
            Found::Call(at) => *calls[at].slot(&fact.kind) = Some(fact),
            Found::Repeat => {}
            Found::New => {
                equals.push(calls.len());
                let key = Cow::Owned(tool.fallback.to_string());
                let mut call = Call::named(key);
                *call.slot(&fact.kind) = Some(fact);
                calls.push(call);
            }
        }
    }
}

/// The call among `equals` that a specific hook belongs to. First choice: the call with exactly the same duration,
/// which both layers report to the last bit. Otherwise: a call whose pre hook came before this hook and whose post hook
/// did not. For edits, a call with the same text is preferred, and a call with another text is the last choice.
fn whole(fact: &Fact, tool: &ToolFacts, equals: &[usize], calls: &[Call<'_>]) -> Option<usize> {
    let free = |at: &&usize| {
        let call = &calls[**at];
        !call.has(&fact.kind) && call.said().is_none_or(|other| may_be_one(other, tool))
    };
    let equal_length = |at: &&usize| {
        same_duration(tool.duration_ms, Call::measured(calls[**at].post)) == Some(true)
    };
    let overlaps = |at: &&usize| calls[**at].overlaps(fact.at);
    let opened = |at: &&usize| calls[**at].pre.is_some() && overlaps(at);
    let text = |at: &usize| same_edit(calls[*at].find(edits)?, edits(tool)?);
    let equal_text = |at: &&usize| text(at) == Some(true);
    let no_text = |at: &&usize| text(at).is_none();
    let free = || equals.iter().filter(free);
    if tool.duration_ms.is_none() && edits(tool).is_none() {
        // Only the order can speak for a call.
        return free().find(opened).copied();
    }
    let found = free().filter(overlaps).find(equal_length);
    let found = found.or_else(|| free().filter(opened).find(equal_text));
    let found = found.or_else(|| free().filter(opened).find(no_text));
    // If a call already has this edit, the hook is a copy and belongs to no other call.
    let is_copy = |at: &usize| calls[*at].after.is_some_and(|other| is_repeat(other, fact));
    let found = found.or_else(|| free().find(opened).filter(|_| !equals.iter().any(is_copy)));
    found.or_else(|| free().find(equal_length)).copied()
}

/// For MCP tools, names are compared, too: different tools often have equal or missing inputs.
fn may_be_one(one: &ToolFacts, other: &ToolFacts) -> bool {
    (other.class != ToolClass::Mcp && other.content != 0) || same_name(one, other) != Some(false)
}

fn edits(tool: &ToolFacts) -> Option<Edits> {
    tool.more()?.edits
}

/// Gives hooks to calls that have only a post hook. The start of such a call is unknown, so the last hooks before its
/// end belong to it. `posts` are these calls, last first. Returns the hooks that are left.
fn give_to_lone_posts<'a>(
    facts: Vec<&'a Fact>,
    posts: &[usize],
    calls: &mut [Call<'a>],
) -> Vec<&'a Fact> {
    if posts.is_empty() || facts.is_empty() {
        return facts;
    }
    let mut left = Left::of(facts);
    for &at in posts {
        left.give_end(&mut calls[at]);
    }
    left.close_openings();
    for &at in posts {
        left.give_opening(&mut calls[at]);
    }
    let Left { free, closed, .. } = left;
    let mut rest: Vec<&Fact> = free.into_iter().flatten().chain(closed).collect();
    rest.sort_by_key(|fact| fact.key());
    rest
}

/// Specific hooks that match no complete call.
struct Left<'a> {
    /// The hooks. A hook is taken out when it is assigned.
    free: Vec<Option<&'a Fact>>,
    /// The time of each hook, assigned or not.
    times: Vec<Timestamp>,
    /// Indexes of hooks that open a call.
    starts: ByContent,
    /// Indexes of all other hooks.
    ends: ByContent,
    /// Indexes of `afterFileEdit` hooks, for calls that have no path.
    edits: Vec<usize>,
    /// Opening hooks of other calls, which ended before a lone post hook arrived.
    closed: Vec<&'a Fact>,
}

impl<'a> Left<'a> {
    fn of(facts: Vec<&'a Fact>) -> Self {
        let times = facts.iter().map(|fact| fact.at).collect();
        let (starts, ends) = (ByContent::new(), ByContent::new());
        let mut left =
            Self { free: Vec::new(), times, starts, ends, edits: Vec::new(), closed: Vec::new() };
        for (index, fact) in facts.into_iter().enumerate() {
            left.free.push(Some(fact));
            let Some(tool) = tool_facts(&fact.kind) else { continue };
            let place = (family(tool.class), tool.content);
            let list = if is_start(&fact.kind) { &mut left.starts } else { &mut left.ends };
            list.entry(place).or_default().push(index);
            if matches!(fact.kind, EventKind::FileEdit(_)) {
                left.edits.push(index);
            }
        }
        left
    }

    /// Assigns the last matching end hook to a lone post hook. The end hook must lie between the call's start (the post
    /// hook minus its duration) and the post hook. Both hooks must have the same duration.
    fn give_end(&mut self, call: &mut Call<'a>) {
        let Some((post, tool)) = lone_post(call) else { return };
        let from = tool.duration_ms.map_or(Timestamp(i64::MIN), |ms| post.at.plus(-nanos(ms)));
        let fits = |index: &&usize| {
            let Some(fact) = self.free[**index] else { return false };
            same_duration(Call::measured(Some(fact)), tool.duration_ms) != Some(false)
                && tool_facts(&fact.kind).is_some_and(|own| may_be_one(own, tool))
                && (from.plus(-DISORDER)..=post.at.plus(DISORDER)).contains(&fact.at)
                && !call.has(&fact.kind)
        };
        let equals = self.ends.get(&(family(tool.class), tool.content));
        let equals = equals.map(Vec::as_slice).unwrap_or_default();
        let found = before(equals, &self.times, post.at).iter().rev().find(fits);
        let pathless = family(tool.class) == ToolClass::Edit && tool.path.is_none();
        let edits = if pathless { before(&self.edits, &self.times, post.at) } else { &[] };
        let found = found.or_else(|| edits.iter().rev().find(fits)).copied();
        if let Some(fact) = found.and_then(|index| self.free[index].take()) {
            *call.slot(&fact.kind) = Some(fact);
        }
    }

    /// Removes the openings of calls whose end hook matches no post hook, because these calls have already ended.
    fn close_openings(&mut self) {
        for (place, ends) in &self.ends {
            let Some(starts) = self.starts.get(place) else { continue };
            for &end in ends {
                let Some(fact) = self.free[end] else { continue };
                let run = Call::measured(Some(fact)).map_or(0, nanos);
                let began = fact.at.plus(DISORDER - run);
                let until = starts.partition_point(|&start| self.times[start] <= began);
                let opening = starts[until.saturating_sub(NEAR)..until].iter().rev();
                let is_one = |start: &Fact| {
                    let tools = tool_facts(&start.kind).zip(tool_facts(&fact.kind));
                    tools.is_some_and(|(own, tool)| may_be_one(own, tool))
                };
                let opening = opening.copied().find(|&start| self.free[start].is_some_and(is_one));
                self.closed.extend(opening.and_then(|start| self.free[start].take()));
            }
        }
    }

    /// Assigns the last matching opening hook to a lone post hook. The opening must come before the call's start, which
    /// is the post hook minus its duration. The opening of a file read may also come later.
    fn give_opening(&mut self, call: &mut Call<'a>) {
        let Some((post, tool)) = lone_post(call) else { return };
        let run = tool.duration_ms.map(|ms| post.at.plus(-nanos(ms)));
        let fits = |index: &&usize| {
            let Some(fact) = self.free[**index] else { return false };
            let is_read = matches!(fact.kind, EventKind::FileRead(_));
            let until = run.filter(|_| !is_read).unwrap_or(post.at);
            fact.at <= until.plus(DISORDER)
                && tool_facts(&fact.kind).is_some_and(|own| may_be_one(own, tool))
                && !call.has(&fact.kind)
        };
        let equals = self.starts.get(&(family(tool.class), tool.content));
        let equals = equals.map(Vec::as_slice).unwrap_or_default();
        let found = before(equals, &self.times, post.at).iter().rev().find(fits).copied();
        if let Some(fact) = found.and_then(|index| self.free[index].take()) {
            *call.slot(&fact.kind) = Some(fact);
        }
    }
}

fn lone_post<'a>(call: &Call<'a>) -> Option<(&'a Fact, &'a ToolFacts)> {
    let post = call.post?;
    Some((post, tool_facts(&post.kind)?))
}

/// If there are more than [`NEAR`] hooks, keeps only the last [`NEAR`] of those up to `at`.
fn before<'b>(equals: &'b [usize], times: &[Timestamp], at: Timestamp) -> &'b [usize] {
    if equals.len() <= NEAR {
        return equals;
    }
    let place = equals.partition_point(|&hook| times[hook] <= at.plus(DISORDER));
    &equals[place.saturating_sub(NEAR)..place]
}

enum Found {
    Call(usize),
    /// A call already has this hook.
    Repeat,
    New,
}

/// Decides about a specific hook without a generic half. An end joins the first open call of its kind. Any other hook
/// repeats a hook of a call, or begins a new call.
fn alone(
    fact: &Fact,
    tool: &ToolFacts,
    equals: &[usize],
    calls: &[Call<'_>],
    generic: usize,
) -> Found {
    let is_one = |at: &&usize| calls[**at].said().is_none_or(|other| may_be_one(other, tool));
    let free = |at: &&usize| !calls[**at].has(&fact.kind);
    // A start never belongs to a call whose end came before it.
    let fits = |at: &&usize| {
        **at >= generic
            && !is_start(&fact.kind)
            && calls[**at].before.is_some_and(|before| before.at <= fact.at.plus(DISORDER))
    };
    if let Some(&at) = equals.iter().filter(free).filter(is_one).find(fits) {
        return Found::Call(at);
    }
    let repeats = |at: &&usize| {
        let call = &calls[**at];
        let other = if is_start(&fact.kind) { call.before } else { call.after };
        let Some(other) = other else { return false };
        let within = **at < generic && call.pre.is_some() && call.overlaps(fact.at);
        let within = within && !is_start(&fact.kind);
        // Two durations are two calls.
        (within && same_duration(Call::measured(Some(other)), tool.duration_ms) != Some(false))
            || is_repeat(other, fact)
            // The call may have the later one of two copies, because an end takes the nearest hook before it.
            || is_repeat(fact, other)
    };
    if equals.iter().filter(is_one).any(|at| repeats(&at)) { Found::Repeat } else { Found::New }
}

/// Numbers equal calls without a generic half.
pub(super) fn number(calls: &mut [Call<'_>]) {
    let mut seen: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    for call in calls {
        let count = seen.entry(call.key.clone()).or_default();
        call.key = Cow::Owned(format!("{}#{count}", call.key));
        *count += 1;
    }
}
