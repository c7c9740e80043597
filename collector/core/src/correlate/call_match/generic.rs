//! Calls of the generic layer: `preToolUse` with `postToolUse` or `postToolUseFailure`.
//!
//! An id identifies a call only together with the tool, and only while the call is open: some programs give two tools
//! one id, and some models number the calls of every answer from zero.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::NEAR;
use crate::correlate::evidence::{is_repeat, may_be_one_tool, same_content};
use crate::correlate::fact::Fact;
use crate::correlate::tool_call::{Call, is_generic, tool_facts};
use crate::model::event::EventKind;
use crate::model::fingerprint::ContentKey;
use crate::model::time::nanos;
use crate::model::tolerance::{DISORDER, REPEAT};
use crate::model::tool::ToolFacts;

/// Maximum number of calls with one id that a hook is compared with, latest first.
const MAX_NAMESAKES: usize = 8;

/// Pairs hooks. An end belongs to the open call with its id; without an id, to the oldest open call with its name and
/// input.
pub(super) fn pair<'a>(facts: &[&'a Fact]) -> Vec<Call<'a>> {
    let mut found = Found {
        calls: Vec::with_capacity(facts.len() / 2 + 1),
        by_id: BTreeMap::new(),
        earlier: BTreeMap::new(),
        again: BTreeMap::new(),
        by_input: BTreeMap::new(),
    };
    for &fact in facts.iter().filter(|fact| is_generic(&fact.kind)) {
        let Some(tool) = tool_facts(&fact.kind) else { continue };
        let starts = matches!(fact.kind, EventKind::ToolStart(_));
        match tool.id.as_deref() {
            Some(id) if starts => found.start(id, fact, tool),
            Some(id) => found.end(id, fact, tool),
            None => found.without_id(fact, tool, starts),
        }
    }
    found.calls
}

struct Found<'a> {
    calls: Vec<Call<'a>>,
    /// For each id, its latest call, and how many calls have that id.
    by_id: BTreeMap<&'a str, (usize, usize)>,
    /// For each call, the previous call with the same id.
    earlier: BTreeMap<usize, usize>,
    /// For a finished call, a later start that repeats the call's start. It is a duplicate unless a separate end
    /// follows.
    again: BTreeMap<usize, &'a Fact>,
    by_input: BTreeMap<ContentKey, Equals>,
}

impl<'a> Found<'a> {
    /// Calls of one id and tool, latest first.
    fn namesakes(&self, id: &str, tool: &ToolFacts) -> Vec<usize> {
        let latest = self.by_id.get(id).map(|(latest, _)| *latest);
        let all = std::iter::successors(latest, |call| self.earlier.get(call).copied());
        all.take(MAX_NAMESAKES).filter(|&at| self.is_one(at, tool)).collect()
    }

    fn is_one(&self, at: usize, tool: &ToolFacts) -> bool {
        self.calls[at].find(Some).is_none_or(|other| may_be_one_tool(other, tool))
    }

    fn push_named(&mut self, id: &'a str) -> &mut Call<'a> {
        let at = self.calls.len();
        let key = match self.by_id.insert(id, (at, 1)) {
            None => Cow::Borrowed(id),
            Some((before, count)) => {
                self.by_id.insert(id, (at, count + 1));
                self.earlier.insert(at, before);
                Cow::Owned(format!("{id}#{count}"))
            }
        };
        self.calls.push(Call::named(key));
        &mut self.calls[at]
    }

    fn start(&mut self, id: &'a str, fact: &'a Fact, tool: &ToolFacts) {
        if !self.by_id.contains_key(id) {
            self.push_named(id).pre = Some(fact);
            return;
        }
        for at in self.namesakes(id, tool) {
            let call = &mut self.calls[at];
            match (call.pre, call.post) {
                // The end arrived before its beginning, because hooks of one moment may arrive in any order.
                (None, Some(post)) if fact.at.since(post.at) <= DISORDER => {
                    call.pre = Some(fact);
                    return;
                }
                (Some(pre), None) => {
                    let same = tool_facts(&pre.kind).and_then(|t| same_content(t, tool));
                    if same != Some(false) {
                        return;
                    }
                }
                (Some(pre), Some(_)) if is_repeat(pre, fact) => {
                    self.again.insert(at, fact);
                    return;
                }
                _ => {}
            }
        }
        self.push_named(id).pre = Some(fact);
    }

    fn end(&mut self, id: &'a str, fact: &'a Fact, tool: &ToolFacts) {
        match self.by_id.get(id) {
            None => {
                self.push_named(id).post = Some(fact);
                return;
            }
            // The usual case.
            Some(&(at, 1)) if self.calls[at].post.is_none() && self.is_one(at, tool) => {
                self.calls[at].post = Some(fact);
                return;
            }
            Some(_) => {}
        }
        let namesakes = self.namesakes(id, tool);
        let open = || namesakes.iter().copied().filter(|&at| self.calls[at].post.is_none());
        let equal = |at: &usize| {
            let pre = self.calls[*at].pre.and_then(|pre| tool_facts(&pre.kind));
            pre.and_then(|pre| same_content(pre, tool)) == Some(true)
        };
        // The oldest open call; one with the same input goes first.
        if let Some(at) = open().rfind(equal).or_else(|| open().next_back()) {
            self.calls[at].post = Some(fact);
            return;
        }
        let closed = namesakes.iter().find_map(|&at| Some((at, self.calls[at].post?)));
        if let Some((at, post)) = closed {
            if is_repeat(post, fact) {
                return;
            }
            if let Some(pre) = self.again.remove(&at) {
                let call = self.push_named(id);
                (call.pre, call.post) = (Some(pre), Some(fact));
                return;
            }
            // The same end, sent twice with different details.
            if fact.at.since(post.at) <= REPEAT {
                return;
            }
        }
        self.push_named(id).post = Some(fact);
    }

    fn without_id(&mut self, fact: &'a Fact, tool: &ToolFacts, starts: bool) {
        let calls = &mut self.calls;
        let equals = self.by_input.entry(tool.fallback).or_default();
        let repeated = equals.calls.iter().rev().take(NEAR).any(|&at| {
            let other = if starts { calls[at].pre } else { calls[at].post };
            other.is_some_and(|other| is_repeat(other, fact))
        });
        if repeated {
            return;
        }
        let waiting = match starts {
            true => equals.first_that_ended_before(fact, calls),
            false => equals.first_without_end(calls),
        };
        let at = waiting.unwrap_or_else(|| {
            let key = Cow::Owned(format!("{}#{}", tool.fallback, equals.calls.len()));
            calls.push(Call::named(key));
            equals.calls.push(calls.len() - 1);
            calls.len() - 1
        });
        *(if starts { &mut calls[at].pre } else { &mut calls[at].post }) = Some(fact);
    }
}

/// Calls of one name and input, in order.
#[derive(Default)]
struct Equals {
    calls: Vec<usize>,
    /// Calls before this index have an end.
    ended: usize,
}

impl Equals {
    fn first_without_end(&mut self, calls: &[Call<'_>]) -> Option<usize> {
        while self.calls.get(self.ended).is_some_and(|&at| calls[at].post.is_some()) {
            self.ended += 1;
        }
        self.calls.get(self.ended).copied()
    }

    /// The oldest call without a beginning whose end arrived before `start`, if `start` may be that beginning. Hooks of
    /// one moment may arrive in any order, but only within [`DISORDER`]. So the call must also be shorter than that.
    fn first_that_ended_before(&self, start: &Fact, calls: &[Call<'_>]) -> Option<usize> {
        let is_one = |call: &Call<'_>| {
            let Some(post) = call.post.filter(|_| call.pre.is_none()) else { return false };
            let run = nanos(Call::measured(Some(post)).unwrap_or(0.0));
            start.at.since(post.at) <= DISORDER - run
        };
        let first = self.calls.len().saturating_sub(NEAR);
        self.calls[first..].iter().copied().find(|&at| is_one(&calls[at]))
    }
}
