//! What is told of a turn, once it has grown: what differs from what was told before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::assemble::draft::{Tree, What};
use crate::assemble::finished_prefix::Window;
use crate::assemble::span_builder as build;
use crate::assemble::span_builder::{Shared, calls_below, is_call, request_model, span};
use crate::assemble::summaries::{is_error, row, sum};
use crate::assemble::turn_totals::Sum;
use crate::correlate::conversation::Conversation;
use crate::correlate::snapshot::World;
use crate::diff::trace_position::Place;
use crate::model::change::{Change, SpanKey};
use crate::model::config::TraceMode;
use crate::model::fingerprint::{digest, mix};
use crate::model::id::SpanId;
use crate::model::span::{Link, SpanKind};
use crate::model::summary::TurnSummary;
use crate::model::time::Timestamp;

/// Spans as last told.
pub(crate) type Shown = BTreeMap<SpanId, Told>;

/// What a span was when it was last told.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) conversation: Arc<str>,
    pub(crate) kind: SpanKind,
    pub(crate) signature: u64,
    pub(crate) settled: bool,
}

#[derive(Debug)]
pub(crate) struct TurnState {
    pub(crate) stamp: u64,
    /// Conversations below it.
    pub(crate) below: BTreeSet<Arc<str>>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) settle: Option<Timestamp>,
    pub(crate) shown: Shown,
    /// Spans that are put aside.
    pub(crate) aside: Shown,
    pub(crate) window: Option<Window>,
    pub(crate) row: TurnSummary,
    pub(crate) sum: Sum,
}

/// Tells a turn's spans and row as far as they changed.
pub(crate) fn tell(
    tree: &Tree<'_>,
    world: World<'_>,
    (place, stamp): (Place, u64),
    mut old: Option<TurnState>,
    gone: &mut Shown,
    changes: &mut VecDeque<Change>,
) -> TurnState {
    let trace = place.trace;
    let (ambiguous, stray) = (place.candidates.is_some(), place.stray);
    let session_mode = world.config.trace_mode == TraceMode::Session;
    let parent = (session_mode && world.config.session_span && !stray).then(|| {
        let segment = place.segment.to_string();
        SpanId::derive(&place.root, "", SpanKind::Session.as_str(), &segment)
    });
    let sum = sum(tree, world.config);
    let previous = place.previous.filter(|(other, _, _)| *other != trace || !session_mode);
    let previous =
        previous.map(|(trace, span, at)| Link { trace, span, kind: "previous_generation", at });
    let possible = place.candidates.as_ref();
    let candidates = possible.map_or(0, |possible| possible.count);
    let left_out = candidates - possible.map_or(0, |possible| possible.links.len()).min(candidates);
    let mut links = place.candidates.map(|possible| possible.links).unwrap_or_default();
    links.extend(previous);
    links.sort_by_key(|link| (link.kind, link.at, link.span));
    let tool_errors = tree
        .nodes
        .iter()
        .enumerate()
        .filter(|(at, node)| is_call(node) && is_error(tree, *at))
        .count() as u64
        + tree.window.map_or(0, |window| window.tool_errors);
    let shared = Shared {
        root: place.root,
        trace,
        parent,
        links,
        index: place.index,
        tool_calls: sum.tool_calls,
        tool_errors,
        calls_below: calls_below(&tree.nodes),
        model: request_model(&tree.reading),
        ambiguous,
        candidates: (left_out > 0).then_some(candidates as u64),
        lost: lost(tree),
        mark: digest(&[&trace.0]),
    };
    let mut context = mix(stamp, digest(&[shared.model.unwrap_or_default().as_bytes()]));
    for link in &shared.links {
        context = mix(context, u64::from_be_bytes(link.span.0));
    }
    context = mix(context, u64::from(ambiguous));
    if let Some(candidates) = shared.candidates {
        context = mix(context, candidates);
    }
    if shared.lost > 0 {
        context = mix(context, shared.lost);
    }
    let mut aside = old.as_mut().map(|old| std::mem::take(&mut old.aside)).unwrap_or_default();
    if let (Some(old), None) = (&mut old, tree.window) {
        old.shown.append(&mut aside);
    }
    let mut shown = Shown::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        let settled = node.settle.is_some_and(|settle| settle <= world.clock);
        let signature = signature(tree, at, context, &shared);
        let told = old.as_ref().and_then(|old| old.shown.get(&node.id));
        match told.filter(|told| told.signature == signature) {
            Some(told) if told.settled == settled => {}
            Some(_) if settled => {
                let conversation = Arc::clone(&node.conversation.id);
                changes.push_back(Change::Settle(SpanKey { id: node.id, conversation }));
            }
            _ => changes.push_back(Change::Span(Box::new(span(tree, &shared, at, settled)))),
        }
        let conversation = node.conversation.id.clone();
        shown.insert(node.id, Told { conversation, kind: node.kind, signature, settled });
    }
    let row = row(tree, &shared, &sum);
    if let Some(old) = &old {
        gone.extend(
            old.shown
                .iter()
                .filter(|(span, _)| !shown.contains_key(span))
                .map(|(s, v)| (*s, v.clone())),
        );
    }
    if !stray && old.as_ref().is_none_or(|old| old.row != row) {
        changes.push_back(Change::Turn(Box::new(row.clone())));
    }
    TurnState {
        stamp,
        below: below(tree),
        deadline: tree.deadline,
        settle: tree.settle,
        shown,
        aside,
        window: None,
        row,
        sum,
    }
}

/// Events of a turn, and of the turns below, that found no room in memory.
fn lost(tree: &Tree<'_>) -> u64 {
    let mut turns: BTreeMap<(&Arc<str>, &Arc<str>), u64> = BTreeMap::new();
    for node in tree.nodes.iter().filter(|node| node.conversation.has_lost()) {
        let lost = node.conversation.lost(&node.generation);
        turns.insert((&node.conversation.id, &node.generation), lost);
    }
    turns.values().sum()
}

/// The conversations below a turn, at any depth.
fn below(tree: &Tree<'_>) -> BTreeSet<Arc<str>> {
    let mut below: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut last: &Conversation = tree.root;
    for node in &tree.nodes {
        let child = match node.what {
            What::Agent(_, _, Some(child)) => Some(child),
            _ => None,
        };
        for one in child.into_iter().chain([node.conversation]) {
            // Nodes of one conversation lie side by side.
            if !std::ptr::eq(one, last) && !std::ptr::eq(one, tree.root) {
                below.insert(one.id.clone());
                last = one;
            }
        }
    }
    below
}

/// Changes whenever the span of a node would, but for whether it has settled.
fn signature(tree: &Tree<'_>, at: usize, context: u64, shared: &Shared<'_>) -> u64 {
    let node = &tree.nodes[at];
    let parent = node.parent.map(|parent| tree.nodes[parent].id).or(shared.parent);
    let mut hash = mix(node.signature, parent.map_or(0, |parent| u64::from_be_bytes(parent.0)));
    hash = mix(hash, shared.mark);
    hash = mix(hash, node.start.0 as u64);
    hash = mix(hash, node.end.map_or(1, |end| (end.at.0 as u64) ^ ((end.reason as u64) << 60)));
    let flags =
        [node.start_inferred, node.end_inferred, node.incomplete, node.late, node.end.is_some()];
    for flag in flags {
        hash = mix(hash, u64::from(flag));
    }
    hash = mix(mix(hash, node.conversation.mark), tree.root.mark);
    if let Some(agent) = node.agent.map(|agent| &tree.nodes[agent].what)
        && let What::Agent(agent, _, _) = agent
    {
        let name = build::agent_type(agent).unwrap_or_default();
        hash = mix(hash, digest(&[name.as_bytes()]));
    }
    match node.kind {
        SpanKind::Generation => mix(mix(hash, context), mix(shared.tool_calls, shared.tool_errors)),
        SpanKind::Response => mix(hash, context),
        _ => hash,
    }
}
