//! Reports the changes of a turn: the difference between its tree and the last report.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::assemble::draft::{Node, Tree, What};
use crate::assemble::finished_prefix::Window;
use crate::assemble::span_builder as build;
use crate::assemble::span_builder::{Shared, calls_below, is_call, request_model, span};
use crate::assemble::summaries::{is_error, repository, row, sum};
use crate::assemble::turn_totals::Sum;
use crate::correlate::conversation::Conversation;
use crate::correlate::snapshot::World;
use crate::diff::trace_position::{Place, Possible};
use crate::model::change::{Change, SpanKey};
use crate::model::config::TraceMode;
use crate::model::fingerprint::{Fingerprint, Made};
use crate::model::id::SpanId;
use crate::model::span::{Link, SpanKind};
use crate::model::summary::TurnSummary;
use crate::model::time::Timestamp;

/// Spans as last reported.
pub(crate) type Shown = BTreeMap<SpanId, Told>;

/// What is known about a span that was reported: where it belongs, and its fingerprint at that time.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) conversation: Arc<str>,
    pub(crate) kind: SpanKind,
    pub(crate) made_of: Fingerprint,
    pub(crate) settled: bool,
}

/// A turn as last reported.
#[derive(Debug)]
pub(crate) struct TurnState {
    /// Fingerprint of the turn's facts and its place, see [`crate::diff::trace_position::fingerprint`].
    pub(crate) made_of: Fingerprint,
    /// Descendant conversations.
    pub(crate) below: BTreeSet<Arc<str>>,
    /// The next time at which the turn changes without a new hook.
    pub(crate) deadline: Option<Timestamp>,
    /// When the turn settles, if it is known.
    pub(crate) settle: Option<Timestamp>,
    /// Spans outside the window.
    pub(crate) shown: Shown,
    /// Spans in the window.
    pub(crate) aside: Shown,
    pub(crate) window: Option<Window>,
    pub(crate) row: TurnSummary,
    pub(crate) sum: Sum,
}

/// Reports the changed spans and the row of a turn.
pub(crate) fn tell(
    tree: &Tree<'_>,
    world: World<'_>,
    (place, made_of): (Place, Fingerprint),
    mut old: Option<TurnState>,
    gone: &mut Shown,
    changes: &mut VecDeque<Change>,
) -> TurnState {
    let stray = place.stray;
    let sum = sum(tree, world.config);
    let shared = shared(tree, world, place, &sum);
    let mut aside = old.as_mut().map(|old| std::mem::take(&mut old.aside)).unwrap_or_default();
    if let (Some(old), None) = (&mut old, tree.window) {
        old.shown.append(&mut aside);
    }
    let context = context(made_of, &shared);
    let shown = tell_spans(tree, world, (&shared, context), old.as_ref(), changes);
    let row = row(tree, &shared, &sum);
    if let Some(old) = &old {
        let rest = old.shown.iter().filter(|(span, _)| !shown.contains_key(span));
        gone.extend(rest.map(|(span, told)| (*span, told.clone())));
    }
    if !stray && old.as_ref().is_none_or(|old| old.row != row) {
        changes.push_back(Change::Turn(Box::new(row.clone())));
    }
    TurnState {
        made_of,
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

/// Values that all spans of a turn share.
fn shared<'a>(tree: &Tree<'a>, world: World<'_>, place: Place, sum: &Sum) -> Shared<'a> {
    let Place { root, trace, index, previous, segment, candidates: possible, stray } = place;
    let session_mode = world.config.trace_mode == TraceMode::Session;
    let parent = (session_mode && world.config.session_span && !stray)
        .then(|| SpanId::derive(&root, "", SpanKind::Session.as_str(), &segment.to_string()));
    let previous = previous.filter(|(other, _, _)| *other != trace || !session_mode);
    let previous =
        previous.map(|(trace, span, at)| Link { trace, span, kind: "previous_generation", at });
    let ambiguous = possible.is_some();
    let candidates = possible.as_ref().map_or(0, |possible| possible.count);
    let mut links = possible.map(|possible| possible.links).unwrap_or_default();
    let left_out = candidates.saturating_sub(links.len());
    links.extend(previous);
    links.sort_by_key(|link| (link.kind, link.at, link.span));
    let is_failed = |&(at, node): &(usize, &Node<'_>)| is_call(node) && is_error(tree, at);
    let failed = tree.nodes.iter().enumerate().filter(is_failed).count() as u64;
    Shared {
        root,
        trace,
        parent,
        links,
        index,
        tool_calls: sum.tool_calls,
        tool_errors: failed + tree.window.map_or(0, |window| window.tool_errors),
        calls_below: calls_below(&tree.nodes),
        model: request_model(&tree.reading),
        ambiguous,
        candidates: (left_out > 0).then_some(candidates as u64),
        lost: lost(tree),
        repository: repository(tree),
        possible: possible_parents(tree, world),
        traced: Fingerprint::of(Made::Place).trace(trace),
    }
}

/// Reports spans that differ from the last report. Returns their new state.
fn tell_spans(
    tree: &Tree<'_>,
    world: World<'_>,
    (shared, context): (&Shared<'_>, Fingerprint),
    old: Option<&TurnState>,
    changes: &mut VecDeque<Change>,
) -> Shown {
    let mut shown = Shown::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        let settled = node.settle.is_some_and(|settle| settle <= world.clock);
        let made_of = fingerprint(tree, at, context, shared);
        let told = old.and_then(|old| old.shown.get(&node.id));
        match told.filter(|told| made_of.is(told.made_of)) {
            Some(told) if told.settled == settled => {}
            Some(_) if settled => {
                let conversation = Arc::clone(&node.conversation.id);
                changes.push_back(Change::Settle(SpanKey { id: node.id, conversation }));
            }
            _ => changes.push_back(Change::Span(Box::new(span(tree, shared, at, settled)))),
        }
        let conversation = node.conversation.id.clone();
        shown.insert(node.id, Told { conversation, kind: node.kind, made_of, settled });
    }
    shown
}

/// The children that several delegations fit.
fn possible_parents(tree: &Tree<'_>, world: World<'_>) -> BTreeMap<usize, (usize, Vec<Link>)> {
    let loose = tree.nodes.iter().enumerate().filter(|(_, node)| node.is_loose());
    let possible = loose.filter_map(|(at, node)| match &node.what {
        What::Agent(_, Some(link), _) if link.candidates.count > 0 => {
            let Possible { count, links } = Possible::of(&link.candidates, world);
            Some((at, (count, links)))
        }
        _ => None,
    });
    possible.collect()
}

/// Number of dropped events of a turn and its descendants.
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

/// Fingerprint of values of the whole turn that appear on the turn's own span and on its responses.
fn context(made_of: Fingerprint, shared: &Shared<'_>) -> Fingerprint {
    let links = shared.links.iter().map(|link| u64::from_be_bytes(link.span.0));
    made_of
        .text(shared.model.unwrap_or_default())
        .with(shared.links.len() as u64)
        .with_all(links)
        .flag(shared.ambiguous)
        .with(shared.candidates.unwrap_or_default())
        .with(shared.lost)
}

/// Fingerprint of everything that a node's span is made from, except whether the span has settled. That is reported
/// separately.
fn fingerprint(
    tree: &Tree<'_>,
    at: usize,
    context: Fingerprint,
    shared: &Shared<'_>,
) -> Fingerprint {
    let node = &tree.nodes[at];
    let parent = node.parent.map(|parent| tree.nodes[parent].id).or(shared.parent);
    let flags =
        [node.start_inferred, node.end_inferred, node.incomplete, node.late, node.end.is_some()];
    let mut made_of = node
        .made_of
        .with(parent.map_or(0, |parent| u64::from_be_bytes(parent.0)))
        .and(shared.traced)
        .time(node.start)
        .time(node.end.map_or(Timestamp(1), |end| end.at))
        .with(node.end.map_or(0, |end| end.reason as u64 + 1))
        .with(flags.iter().fold(0, |all, flag| all * 2 + u64::from(*flag)))
        .and(node.conversation.described)
        .and(tree.root.described);
    if let Some(agent) = node.agent.map(|agent| &tree.nodes[agent].what)
        && let What::Agent(agent, _, _) = agent
    {
        made_of = made_of.text(build::agent_type(agent).unwrap_or_default());
    }
    match node.kind {
        SpanKind::Generation => {
            let commits = shared.repository.iter().flat_map(|seen| &seen.commits);
            let made_of =
                commits.fold(made_of.and(context), |made_of, commit| made_of.text(commit));
            made_of.with(shared.tool_calls).with(shared.tool_errors)
        }
        SpanKind::Response => made_of.and(context),
        // The hooks of a subagent do not mention deeper descendants, so depth and number of calls are added.
        SpanKind::Subagent => {
            let calls = shared.calls_below.get(at).copied().unwrap_or_default();
            made_of.with(u64::from(node.depth)).with(calls)
        }
        _ => made_of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::draft_turn::grow;
    use crate::correlate::fact::Fact;
    use crate::correlate::parent_link::{Children, Conversations, Links, Unclear};
    use crate::diff::trace_position::Possible;
    use crate::model::config::Config;
    use crate::model::event::Host;
    use crate::model::hook::Hook;
    use crate::model::span::{End, EndReason};
    use crate::read::reader::normalise;

    /// A turn with a delegation that has two hooks, with a call, and with a response.
    fn conversation() -> Conversation {
        let mut conversation = Conversation::new(Arc::from("c"), Host::Cursor);
        let hooks = [
            r#""beforeSubmitPrompt","prompt":"go""#,
            r#""subagentStart","subagent_id":"s","subagent_type":"explore","task":"look""#,
            r#""subagentStop","subagent_id":"s","subagent_type":"explore","task":"look""#,
            r#""preToolUse","tool_name":"Read","tool_use_id":"t","tool_input":{"file_path":"/w/a"}"#,
            r#""afterAgentResponse","text":"done""#,
            r#""stop","status":"completed""#,
        ];
        for (hook, at) in hooks.iter().zip(1..) {
            let body = format!(
                r#"{{"conversation_id":"c","generation_id":"g","hook_event_name":{hook}}}"#
            );
            let body = body.into_bytes();
            let hook = Hook { seq: at, observed_at: Timestamp(at as i64), body, ..Hook::default() };
            let event = normalise(&hook);
            let (generation, at) = (event.generation.clone(), event.at);
            conversation.add(&generation, Fact::new(event, at));
        }
        conversation.lay_out(&Config::default());
        conversation
    }

    fn link(at: i64) -> Link {
        let (trace, span) = (crate::model::id::TraceId([1; 16]), SpanId([1; 8]));
        Link { trace, span, kind: "previous_generation", at: Timestamp(at) }
    }

    /// A value that the fingerprint covers: its name, the kind of span that shows it (`None`: any kind), and a function
    /// that changes it.
    type Covered = (&'static str, Option<SpanKind>, fn(&mut Tree<'_>, &mut Shared<'_>, usize));

    const COVERED: &[Covered] = &[
        ("hooks", None, |tree, _, at| tree.nodes[at].made_of = tree.nodes[at].made_of.with(9)),
        ("start", None, |tree, _, at| tree.nodes[at].start = Timestamp(77)),
        ("end", None, |tree, _, at| {
            let reason = EndReason::Stopped;
            tree.nodes[at].end = Some(End { at: Timestamp(78), reason });
        }),
        ("no end", None, |tree, _, at| tree.nodes[at].end = None),
        ("inferred start", None, |tree, _, at| tree.nodes[at].start_inferred ^= true),
        ("inferred end", None, |tree, _, at| tree.nodes[at].end_inferred ^= true),
        ("incomplete", None, |tree, _, at| tree.nodes[at].incomplete ^= true),
        ("late", None, |tree, _, at| tree.nodes[at].late ^= true),
        ("trace", None, |_, shared, _| shared.traced = shared.traced.with(1)),
        ("parent", Some(SpanKind::Generation), |_, shared, _| shared.parent = Some(SpanId([2; 8]))),
        ("parent", Some(SpanKind::Tool), |tree, _, at| tree.nodes[at].parent = Some(1)),
        ("agent", Some(SpanKind::Tool), |tree, _, at| {
            let is_agent = |node: &Node<'_>| node.kind == SpanKind::Subagent;
            tree.nodes[at].agent = tree.nodes.iter().position(is_agent);
        }),
        ("depth", Some(SpanKind::Subagent), |tree, _, at| tree.nodes[at].depth += 1),
        ("calls", Some(SpanKind::Subagent), |_, shared, at| shared.calls_below[at] += 1),
        ("calls", Some(SpanKind::Generation), |_, shared, _| shared.tool_calls += 1),
        ("errors", Some(SpanKind::Generation), |_, shared, _| shared.tool_errors += 1),
        ("model", Some(SpanKind::Generation), |_, shared, _| shared.model = Some("m")),
        ("model", Some(SpanKind::Response), |_, shared, _| shared.model = Some("m")),
        ("links", Some(SpanKind::Generation), |_, shared, _| shared.links.push(link(1))),
        ("ambiguous", Some(SpanKind::Generation), |_, shared, _| shared.ambiguous ^= true),
        ("candidates", Some(SpanKind::Generation), |_, shared, _| shared.candidates = Some(9)),
        ("lost", Some(SpanKind::Generation), |_, shared, _| shared.lost += 1),
    ];

    #[test]
    fn the_fingerprint_of_a_span_covers_all_that_the_span_is_made_from() {
        let mut conversations = Conversations::new();
        conversations.insert(Arc::from("c"), conversation());
        let (links, unclear, children) = (Links::new(), Unclear::new(), Children::new());
        let (config, perhaps_children) = (Config::default(), BTreeSet::new());
        let world = World {
            config: &config,
            conversations: &conversations,
            links: &links,
            unclear: &unclear,
            children: &children,
            perhaps_children: &perhaps_children,
            clock: Timestamp(10),
            evicted: false,
        };
        let root = &conversations["c"];
        let made = || {
            let tree = grow(world, root, &root.turns[0], None);
            let place = Place {
                root: root.id.clone(),
                trace: crate::model::id::TraceId([0; 16]),
                index: 1,
                previous: None,
                segment: 0,
                candidates: None::<Possible>,
                stray: false,
            };
            let sum = sum(&tree, &config);
            let shared = shared(&tree, world, place, &sum);
            (tree, shared)
        };
        let of = |tree: &Tree<'_>, shared: &Shared<'_>, at| {
            fingerprint(tree, at, context(Fingerprint::of(Made::Turn), shared), shared)
        };
        let (tree, all) = made();
        assert_eq!(tree.nodes.len(), 4);
        for at in 0..tree.nodes.len() {
            let (before, kind) = (of(&tree, &all, at), tree.nodes[at].kind);
            assert!(before.is(of(&tree, &all, at)));
            for (name, shown, change) in COVERED {
                if shown.is_none_or(|shown| shown == kind) {
                    let (mut tree, mut shared) = made();
                    change(&mut tree, &mut shared, at);
                    assert!(!of(&tree, &shared, at).is(before), "{name} of {kind:?}");
                }
            }
        }
    }
}
