//! Moves the finished part of an open turn into the turn's window.

use std::collections::{BTreeMap, BTreeSet};

use crate::assemble::draft::{Node, Tree, What};
use crate::assemble::finished_prefix::{Window, loose_is_plain};
use crate::assemble::time_breakdown::{first_instant, sweep_nodes};
use crate::assemble::work;
use crate::correlate::fact::Fact;
use crate::correlate::tool_call::tool_facts;
use crate::correlate::turn::label;
use crate::model::config::Config;
use crate::model::event::EventKind;
use crate::model::fingerprint::{ContentKey, Fingerprint, digest};
use crate::model::id::SpanId;
use crate::model::span::Status;
use crate::model::time::Timestamp;
use crate::model::tolerance::{DISORDER, REPEAT};
use crate::model::tool::ToolClass;

/// Minimum number of finished facts. Moving fewer would cost more than it saves.
const WORTH: usize = 64;

/// Moves the finished part of an open turn into a window. Returns the new window and the spans that it contains.
pub(crate) fn put_aside(
    tree: &Tree<'_>,
    config: &Config,
    clock: Timestamp,
    shared: Fingerprint,
    status: impl Fn(usize) -> Status,
) -> Option<(Window, Vec<SpanId>)> {
    let facts = tree.root.explicit.get(&tree.turn.generation)?;
    if tree.close.is_some() || tree.nodes.len() < WORTH || !loose_is_plain(tree.root, tree.turn) {
        return None;
    }
    let last = facts.last()?.at;
    let edge = last.plus(-(config.settle_delay_ns + DISORDER));
    let rule = Rule::new(tree, config, clock, edge, last)?;
    let done: Vec<usize> = (1..tree.nodes.len()).filter(|&at| rule.is_done(tree, at)).collect();
    if done.len() < WORTH {
        return None;
    }
    let unclaimed = unclaimed(tree, edge);
    let repeated = |fact: &Fact| {
        let others = unclaimed.get(&content(fact)).map(Vec::as_slice).unwrap_or_default();
        others.iter().any(|other| other.kind == fact.kind)
    };
    let done: Vec<usize> =
        done.into_iter().filter(|&at| !hooks(&tree.nodes[at]).any(repeated)).collect();
    let mut window = tree.window.cloned().unwrap_or_default();
    let from = facts.partition_point(|fact| fact.at <= edge);
    let kept = kept(tree, &done);
    let before = window.kept.iter().copied().chain(window.from..from);
    window.kept = before
        .filter(|&at| {
            let fact = &facts[at];
            let part = matches!(fact.kind, EventKind::Thought(_));
            kept.contains(&fact.seq) || !(part || tool_facts(&fact.kind).is_some())
        })
        .collect();
    window.from = from;
    window.edge = from.checked_sub(1).map(|at| facts[at].key());
    window.alive = last;
    window.shared = shared;
    let swept = window.swept.unwrap_or(tree.turn_start);
    window.parts += sweep_nodes(tree, swept, rule.calm);
    window.swept = Some(swept.max(rule.calm));
    for &at in &done {
        window.count(&tree.nodes[at], status(at), clock);
    }
    window.ends.sort();
    Some((window, done.iter().map(|&at| tree.nodes[at].id).collect()))
}

impl Window {
    fn count(&mut self, node: &Node<'_>, status: Status, clock: Timestamp) {
        let end = node.end.map_or(node.start, |end| end.at);
        self.ends.push(end);
        self.start = Some(self.start.map_or(node.start, |start| start.min(node.start)));
        self.sum.last = self.sum.last.max(end);
        let is_call = matches!(node.what, What::Call(_));
        self.sum.tool_calls += u64::from(is_call);
        work::count(&mut self.sum.work, node);
        self.sum.errors += u64::from(status.counts(node.kind));
        if let Status::Error { message, .. } = status {
            self.tool_errors += u64::from(is_call);
            if self.last_error.as_ref().is_none_or(|(at, _)| *at <= end) {
                self.last_error = Some((end, message));
            }
        }
        if let What::Call(call) = &node.what {
            self.commits.extend(call.find(|tool| tool.more()?.commit.clone()));
        }
        if let What::Thought(_, thought) = &node.what
            && !thought.step
        {
            *self.thoughts.entry(thought.key.clone()).or_default() += 1;
        }
        let settle = node.settle.filter(|at| *at > clock);
        self.recheck = [self.recheck, settle].into_iter().flatten().min();
    }
}

/// Hooks of nodes that are not moved into the window.
fn kept(tree: &Tree<'_>, done: &[usize]) -> BTreeSet<u64> {
    let nodes = tree.nodes.iter().enumerate().filter(|(at, _)| done.binary_search(at).is_err());
    nodes.flat_map(|(_, node)| hooks(node)).map(|fact| fact.seq).collect()
}

/// The hooks from which a node was made.
fn hooks<'a>(node: &Node<'a>) -> impl Iterator<Item = &'a Fact> {
    let (call, thought) = match &node.what {
        What::Call(call) => (Some(call.hooks()), None),
        What::Thought(fact, _) => (None, Some(*fact)),
        _ => (None, None),
    };
    call.into_iter().flatten().chain(thought)
}

/// The key that equal hooks share.
type Content = (ContentKey, u64);

fn content(fact: &Fact) -> Content {
    match &fact.kind {
        EventKind::Thought(thought) => (ContentKey::default(), digest(&[thought.key.as_bytes()])),
        kind => tool_facts(kind).map_or_else(Content::default, |tool| {
            let id = tool.id.as_deref().unwrap_or_default();
            (tool.fallback, digest(&[id.as_bytes()]))
        }),
    }
}

/// Facts after `edge` that belong to no node because they repeat another fact. They must stay outside the window
/// together with that fact.
fn unclaimed<'a>(tree: &Tree<'a>, edge: Timestamp) -> BTreeMap<Content, Vec<&'a Fact>> {
    let taken = kept(tree, &[]);
    let all = tree
        .window
        .map_or_else(|| tree.root.facts(tree.turn), |window| window.facts(tree.root, tree.turn));
    let is_part = |fact: &Fact| {
        matches!(fact.kind, EventKind::Thought(_)) || tool_facts(&fact.kind).is_some()
    };
    let mut unclaimed: BTreeMap<Content, Vec<&'a Fact>> = BTreeMap::new();
    for fact in all {
        if fact.at > edge && is_part(fact) && !taken.contains(&fact.seq) {
            let others = unclaimed.entry(content(fact)).or_default();
            if others.last().is_none_or(|other| other.kind != fact.kind) {
                others.push(fact);
            }
        }
    }
    unclaimed
}

/// The condition under which a node is finished.
struct Rule {
    clock: Timestamp,
    /// The node must have ended before this time.
    edge: Timestamp,
    /// A node made from events without an id must end before this time, because a repeat of a later event may still
    /// arrive.
    repeats: Timestamp,
    /// At this time no node runs, and every node before it has ended.
    calm: Timestamp,
    /// The time from which nodes may settle before their turn; `None` if they never may.
    flush: Option<Timestamp>,
    /// Hooks that name the turn's model.
    labels: [Option<u64>; 2],
}

impl Rule {
    fn new(
        tree: &Tree<'_>,
        config: &Config,
        clock: Timestamp,
        edge: Timestamp,
        last: Timestamp,
    ) -> Option<Self> {
        // A delegating call without an end gets the time of the next event as its end, so no window is
        // made while there is one.
        let waits = |node: &Node<'_>| matches!(&node.what, What::Call(call) if call.class() == ToolClass::Task && call.ended().is_none());
        if tree.nodes.iter().any(waits) {
            return None;
        }
        let flush =
            (config.flush_after_ns > 0).then(|| tree.turn_start.plus(config.flush_after_ns));
        let mut rule = Self {
            clock,
            edge,
            repeats: last.plus(-REPEAT - DISORDER).min(edge),
            calm: edge,
            flush,
            labels: [first_label(tree, true), first_label(tree, false)],
        };
        // The window must end at a time when nothing runs. Otherwise the shares of parallel time would change.
        let end = |node: &Node<'_>| node.end.map_or(Timestamp(i64::MAX), |end| end.at);
        let leaves = tree.nodes.iter().filter_map(|node| Some((end(node), first_instant(node)?)));
        let mut leaves: Vec<(Timestamp, Timestamp)> = leaves.collect();
        leaves.sort_unstable_by_key(|&(end, _)| std::cmp::Reverse(end));
        for (end, start) in leaves {
            if end > rule.calm {
                rule.calm = rule.calm.min(start);
            }
        }
        Some(rule)
    }

    fn is_done(&self, tree: &Tree<'_>, at: usize) -> bool {
        let node = &tree.nodes[at];
        let told = match node.settle {
            None => self.flush.is_none(),
            Some(settle) => settle <= self.clock || Some(settle) == self.flush,
        };
        let alone = node.parent == Some(0)
            && node.agent.is_none()
            && tree.nodes.get(at + 1).is_none_or(|next| next.parent != Some(at));
        let plain = !(node.late || node.detached || node.incomplete);
        let ended = node.end.is_some_and(|end| end.at <= self.calm);
        let free = |fact: &Fact| fact.at <= self.edge && !self.labels.contains(&Some(fact.seq));
        told && alone
            && plain
            && ended
            && match &node.what {
                What::Call(call) => {
                    let halves = [call.pre, call.post];
                    let named =
                        |fact: &Fact| tool_facts(&fact.kind).is_some_and(|t| t.id.is_some());
                    call.class() != ToolClass::Task
                        && halves.iter().all(|half| half.is_some_and(named))
                        && call.hooks().all(free)
                        && [call.before, call.after]
                            .iter()
                            .flatten()
                            .all(|fact| fact.at <= self.repeats)
                }
                What::Thought(fact, _) => fact.at <= self.repeats && free(fact),
                _ => false,
            }
    }
}

/// The first hook of a call (or thought) that names a model.
fn first_label(tree: &Tree<'_>, calls: bool) -> Option<u64> {
    let hooks = tree.nodes.iter().flat_map(|node| match &node.what {
        What::Call(call) if calls => call.hooks().collect(),
        What::Thought(fact, _) if !calls => vec![*fact],
        _ => Vec::new(),
    });
    hooks.filter(|fact| label(fact).is_some()).min_by_key(|fact| fact.key()).map(|fact| fact.seq)
}
