//! Pairing: which hooks belong to one tool call.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::correlate::fact::Fact;
use crate::model::event::EventKind;
use crate::model::fingerprint::ContentKey;
use crate::model::time::Timestamp;
use crate::model::time::nanos;
use crate::model::tolerance::{DISORDER, REPEAT};
use crate::model::tool::{ToolClass, ToolFacts};

/// Of more calls of one content in one turn, only so many around the time of a hook are considered for it.
const NEAR: usize = 512;

/// One tool call, whatever part of its hooks arrived.
#[derive(Debug, Default)]
pub(crate) struct Call<'a> {
    /// Key of its span id.
    pub(crate) key: Cow<'a, str>,
    pub(crate) pre: Option<&'a Fact>,
    pub(crate) post: Option<&'a Fact>,
    pub(crate) before: Option<&'a Fact>,
    pub(crate) after: Option<&'a Fact>,
    /// Class, once all its hooks are known.
    class: ToolClass,
}

impl<'a> Call<'a> {
    /// Hooks in the order whose first answer wins: generic post, specific after, generic pre, specific before.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = &'a Fact> {
        [self.post, self.after, self.pre, self.before].into_iter().flatten()
    }

    /// The first answer of its hooks.
    pub(crate) fn find<T>(&self, get: impl Fn(&'a ToolFacts) -> Option<T>) -> Option<T> {
        self.hooks().find_map(|hook| tool_facts(&hook.kind).and_then(&get))
    }

    /// The duration its hooks report. Of a call that went through another tool, that of the call itself.
    pub(crate) fn duration_ms(&self) -> Option<f64> {
        let is_wrapped = self.find(|tool| tool.more()?.wrapped.then_some(())).is_some();
        let inner = self.after.filter(|_| is_wrapped).and_then(|fact| tool_facts(&fact.kind));
        inner.and_then(|tool| tool.duration_ms).or_else(|| self.find(|tool| tool.duration_ms))
    }

    /// Receipt of the hook that opened it.
    pub(crate) fn opened(&self) -> Option<Timestamp> {
        self.opening().map(|fact| fact.at)
    }

    /// Receipt of the hook that ended it; where the clock was set meanwhile, the time it had run for after [`Self::opened`].
    pub(crate) fn ended(&self) -> Option<Timestamp> {
        let closing = self.post.or(self.after)?;
        match self.opening().filter(|opening| closing.clock_step(opening).is_some()) {
            Some(opening) => Some(opening.at.plus(closing.since(opening))),
            None => Some(closing.at),
        }
    }

    /// By how much the clock was set while it ran, see [`Fact::clock_step`].
    pub(crate) fn clock_step(&self) -> Option<i64> {
        self.post.or(self.after)?.clock_step(self.opening()?)
    }

    fn opening(&self) -> Option<&'a Fact> {
        self.pre.or(self.before.filter(|fact| !matches!(fact.kind, EventKind::FileRead(_))))
    }

    pub(crate) fn first(&self) -> Timestamp {
        self.hooks().map(|fact| fact.at).min().unwrap_or_default()
    }

    pub(crate) fn class(&self) -> ToolClass {
        self.class
    }

    fn classify(&mut self) {
        let classes = || self.hooks().filter_map(|hook| tool_facts(&hook.kind)).map(|t| t.class);
        let attachment = classes().any(|class| class == ToolClass::Attachment);
        self.class =
            if attachment { ToolClass::Attachment } else { classes().next().unwrap_or_default() };
    }

    fn overlaps(&self, at: Timestamp) -> bool {
        self.pre.is_none_or(|pre| pre.at <= at.plus(DISORDER))
            && self.post.is_none_or(|post| post.at.plus(DISORDER) >= at)
    }

    fn slot(&mut self, kind: &EventKind) -> &mut Option<&'a Fact> {
        if is_start(kind) { &mut self.before } else { &mut self.after }
    }

    fn has(&self, kind: &EventKind) -> bool {
        if is_start(kind) { self.before.is_some() } else { self.after.is_some() }
    }
}

/// The call facts of a tool event of either layer.
pub(crate) fn tool_facts(kind: &EventKind) -> Option<&ToolFacts> {
    use EventKind as K;
    match kind {
        K::ToolStart(facts)
        | K::ToolEnd(facts)
        | K::ToolFailure(facts)
        | K::ShellStart(facts)
        | K::ShellEnd(facts)
        | K::McpStart(facts)
        | K::McpEnd(facts)
        | K::FileRead(facts)
        | K::FileEdit(facts) => Some(facts),
        _ => None,
    }
}

fn is_generic(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ToolStart(_) | EventKind::ToolEnd(_) | EventKind::ToolFailure(_))
}

fn is_start(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ShellStart(_) | EventKind::McpStart(_) | EventKind::FileRead(_))
}

/// Which class of generic call a specific event can belong to.
fn family(class: ToolClass) -> ToolClass {
    match class {
        ToolClass::Attachment | ToolClass::Delete => ToolClass::Edit,
        other => other,
    }
}

/// All calls among `facts`, which are in order, sorted by their first hook.
pub(crate) fn pair<'a>(facts: &[&'a Fact]) -> Vec<Call<'a>> {
    let mut calls = generic(facts);
    let known = calls.len();
    add_specific(facts, &mut calls);
    number(&mut calls[known..]);
    calls.iter_mut().for_each(Call::classify);
    let first = |call: &Call<'_>| call.hooks().map(|fact| fact.key()).min();
    if !calls.is_sorted_by_key(first) {
        calls.sort_by_cached_key(first);
    }
    calls
}

/// Calls of the generic layer: by id, or without one first in, first out by name and input.
fn generic<'a>(facts: &[&'a Fact]) -> Vec<Call<'a>> {
    let mut calls: Vec<Call<'a>> = Vec::with_capacity(facts.len() / 2 + 1);
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    let mut by_input: BTreeMap<ContentKey, Equals> = BTreeMap::new();
    for &fact in facts.iter().filter(|fact| is_generic(&fact.kind)) {
        let Some(tool) = tool_facts(&fact.kind) else { continue };
        let starts = matches!(fact.kind, EventKind::ToolStart(_));
        if let Some(id) = tool.id.as_deref() {
            let at = *by_id.entry(id).or_insert_with(|| push(&mut calls, Cow::Borrowed(id)));
            let slot = if starts { &mut calls[at].pre } else { &mut calls[at].post };
            slot.get_or_insert(fact);
            continue;
        }
        let equals = by_input.entry(tool.fallback).or_default();
        let repeated = equals.calls.iter().rev().take(NEAR).any(|&at| {
            let other = if starts { calls[at].pre } else { calls[at].post };
            other.is_some_and(|other| is_repeat(other, fact))
        });
        if repeated {
            continue;
        }
        let waiting = if starts { None } else { equals.first_without_end(&calls) };
        let at = waiting.unwrap_or_else(|| {
            let at =
                push(&mut calls, Cow::Owned(format!("{}#{}", tool.fallback, equals.calls.len())));
            equals.calls.push(at);
            at
        });
        *(if starts { &mut calls[at].pre } else { &mut calls[at].post }) = Some(fact);
    }
    calls
}

/// Calls of one name and input, in order.
#[derive(Default)]
struct Equals {
    calls: Vec<usize>,
    /// Those before this have an end.
    ended: usize,
}

impl Equals {
    fn first_without_end(&mut self, calls: &[Call<'_>]) -> Option<usize> {
        while self.calls.get(self.ended).is_some_and(|&at| calls[at].post.is_some()) {
            self.ended += 1;
        }
        self.calls.get(self.ended).copied()
    }
}

/// The calls around a time, of many in order.
fn near<'b>(equals: &'b [usize], calls: &[Call<'_>], at: Timestamp) -> &'b [usize] {
    if equals.len() <= NEAR {
        return equals;
    }
    let place = equals.partition_point(|&call| calls[call].first() < at);
    &equals[place.saturating_sub(NEAR / 2)..(place + NEAR / 2).min(equals.len())]
}

fn push<'a>(calls: &mut Vec<Call<'a>>, key: Cow<'a, str>) -> usize {
    calls.push(Call { key, ..Call::default() });
    calls.len() - 1
}

fn is_repeat(first: &Fact, second: &Fact) -> bool {
    second.at.since(first.at) <= REPEAT && first.kind == second.kind
}

/// Gives each specific event to the call it is about, or makes it a call of its own.
fn add_specific<'a>(facts: &[&'a Fact], calls: &mut Vec<Call<'a>>) {
    let mut specific = facts.iter().copied().filter(|fact| !is_generic(&fact.kind)).peekable();
    if specific.peek().is_none() {
        return;
    }
    let mut by_content: BTreeMap<(ToolClass, u64), Vec<usize>> = BTreeMap::new();
    let mut pathless: Vec<usize> = Vec::new();
    let mut lone_posts: Vec<usize> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let Some(tool) = call.find(Some) else { continue };
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
        match alone(fact, near(equals, calls, fact.at), calls, generic) {
            Found::Call(at) => *calls[at].slot(&fact.kind) = Some(fact),
            Found::Repeat => {}
            Found::New => {
                let at = push(calls, Cow::Owned(tool.fallback.to_string()));
                *calls[at].slot(&fact.kind) = Some(fact);
                equals.push(at);
            }
        }
    }
}

/// The call among `equals` that a specific event belongs to: the one with its duration, which both layers report to the last
/// bit, else one whose pre came before it and whose post did not.
fn whole(fact: &Fact, tool: &ToolFacts, equals: &[usize], calls: &[Call<'_>]) -> Option<usize> {
    let free = |at: &&usize| !calls[**at].has(&fact.kind);
    let same_duration = |at: &&usize| {
        let post = calls[**at].post.and_then(|post| tool_facts(&post.kind));
        tool.duration_ms.is_some() && post.is_some_and(|post| post.duration_ms == tool.duration_ms)
    };
    let overlaps = |at: &&usize| calls[**at].overlaps(fact.at);
    let opened = |at: &&usize| calls[**at].pre.is_some() && overlaps(at);
    let free = || equals.iter().filter(free);
    let found = free().filter(overlaps).find(same_duration).or_else(|| free().find(opened));
    found.or_else(|| free().find(same_duration)).copied()
}

/// Of a call without its pre nothing tells when it was opened, so the last hooks before its end are its own. `posts` are such
/// calls, last first. Gives back what is left.
fn give_to_lone_posts<'a>(
    facts: Vec<&'a Fact>,
    posts: &[usize],
    calls: &mut [Call<'a>],
) -> Vec<&'a Fact> {
    if posts.is_empty() || facts.is_empty() {
        return facts;
    }
    let mut free: Vec<Option<&Fact>> = Vec::with_capacity(facts.len());
    let mut by_content: BTreeMap<(ToolClass, u64, bool), Vec<usize>> = BTreeMap::new();
    let mut edits: Vec<usize> = Vec::new();
    let times: Vec<Timestamp> = facts.iter().map(|fact| fact.at).collect();
    for fact in facts {
        let Some(tool) = tool_facts(&fact.kind) else { continue };
        let key = (family(tool.class), tool.content, is_start(&fact.kind));
        by_content.entry(key).or_default().push(free.len());
        if matches!(fact.kind, EventKind::FileEdit(_)) {
            edits.push(free.len());
        }
        free.push(Some(fact));
    }
    for &at in posts {
        let call = &mut calls[at];
        let Some((post, tool)) = call.post.and_then(|post| Some((post, tool_facts(&post.kind)?)))
        else {
            continue;
        };
        let run = tool.duration_ms.map(|ms| post.at.plus(-nanos(ms)));
        for starts in [false, true] {
            let equals = by_content.get(&(family(tool.class), tool.content, starts));
            let equals = equals.map(Vec::as_slice).unwrap_or_default();
            let pathless = family(tool.class) == ToolClass::Edit && tool.path.is_none() && !starts;
            let fits = |index: &&usize| {
                let Some(fact) = free[**index] else { return false };
                // It ran after it was opened, and was over after it ran.
                let is_read = matches!(fact.kind, EventKind::FileRead(_));
                let until = run.filter(|_| starts && !is_read).unwrap_or(post.at);
                let from = run.filter(|_| !starts).unwrap_or(Timestamp(i64::MIN));
                !call.has(&fact.kind)
                    && (from.plus(-DISORDER)..=until.plus(DISORDER)).contains(&fact.at)
            };
            let found = before(equals, &times, post.at).iter().rev().find(fits);
            let edits = if pathless { before(&edits, &times, post.at) } else { &[] };
            let found = found.or_else(|| edits.iter().rev().find(fits));
            if let Some(fact) = found.and_then(|&index| free[index].take()) {
                *call.slot(&fact.kind) = Some(fact);
            }
        }
    }
    free.into_iter().flatten().collect()
}

/// Of many hooks in order, the last ones up to a time.
fn before<'b>(equals: &'b [usize], times: &[Timestamp], at: Timestamp) -> &'b [usize] {
    if equals.len() <= NEAR {
        return equals;
    }
    let place = equals.partition_point(|&hook| times[hook] <= at.plus(DISORDER));
    &equals[place.saturating_sub(NEAR)..place]
}

enum Found {
    Call(usize),
    /// A call has this event already.
    Repeat,
    New,
}

/// Where a specific event without a generic half goes: to a call of its kind that is open, unless it repeats one.
fn alone(fact: &Fact, equals: &[usize], calls: &[Call<'_>], generic: usize) -> Found {
    let free = |at: &&usize| !calls[**at].has(&fact.kind);
    // A start never joins an end that came before it.
    let fits = |at: &&usize| {
        **at >= generic
            && !is_start(&fact.kind)
            && calls[**at].before.is_some_and(|before| before.at <= fact.at.plus(DISORDER))
    };
    if let Some(&at) = equals.iter().filter(free).find(fits) {
        return Found::Call(at);
    }
    let repeats = |at: &usize| {
        let call = &calls[*at];
        let other = if is_start(&fact.kind) { call.before } else { call.after };
        (*at < generic && call.pre.is_some() && call.overlaps(fact.at) && other.is_some())
            || other.is_some_and(|other| is_repeat(other, fact))
    };
    if equals.iter().any(repeats) { Found::Repeat } else { Found::New }
}

/// Numbers equal calls without a generic half.
fn number(calls: &mut [Call<'_>]) {
    let mut seen: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    for call in calls {
        let count = seen.entry(call.key.clone()).or_default();
        call.key = Cow::Owned(format!("{}#{count}", call.key));
        *count += 1;
    }
}
