//! Builds the tree of a turn: parents, and when each node starts, ends and settles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::assemble::draft::{Node, Tree, What};
use crate::assemble::finished_prefix::Window;
use crate::assemble::nested_agent::Nested;
use crate::assemble::span_builder::surface;
use crate::correlate::conversation::{Conversation, MAX_REPEATS, Turn};
use crate::correlate::delegation::plain_type;
use crate::correlate::descendants::{Below, gather};
use crate::correlate::fact::Fact;
use crate::correlate::snapshot::World;
use crate::correlate::tool_call::Call;
use crate::correlate::turn::{Agent, Reading, compaction_end, not_again, repeats};
use crate::correlate::turn_end::{Close, close, split};
use crate::model::fingerprint::{Fingerprint, Made};
use crate::model::id::{SpanId, SpanIds};
use crate::model::span::{End, EndReason, SpanKind};
use crate::model::time::Timestamp;
use crate::model::time::nanos;
use crate::model::tolerance::AT_ONCE;
use crate::model::tool::ToolClass;

/// Where the facts of a conversation are placed in the tree.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    /// The node below which they are placed.
    pub(crate) parent: usize,
    /// The node of the subagent that does the work.
    pub(crate) agent: Option<usize>,
    /// Number of conversations above this one.
    pub(crate) depth: u32,
    /// When and why open nodes end.
    pub(crate) end: Option<End>,
    /// Facts after this are late.
    pub(crate) cutoff: Timestamp,
    /// When the nodes settle, if it is known.
    pub(crate) settle: Option<Timestamp>,
    /// Whether settled nodes may be reported before the turn settles.
    pub(crate) flush: bool,
    /// Whether the nodes do not keep the turn open.
    pub(crate) detached: bool,
    /// The time of the last fact of work that runs in the background.
    pub(crate) alive: Timestamp,
}

impl Frame {
    /// The frame for facts of the turn itself.
    const fn of_turn(
        end: Option<End>,
        cutoff: Timestamp,
        settle: Option<Timestamp>,
        flush: bool,
    ) -> Self {
        Self {
            parent: 0,
            agent: None,
            depth: 0,
            end,
            cutoff,
            settle,
            flush,
            detached: false,
            alive: Timestamp(i64::MIN),
        }
    }
}

/// Builds the tree of `turn`, a turn of the root conversation `root`.
///
/// With a `window`, the tree contains only the rest of the turn, and the turn must still be open.
pub(crate) fn grow<'a>(
    world: World<'a>,
    root: &'a Conversation,
    turn: &'a Turn,
    window: Option<&'a Window>,
) -> Tree<'a> {
    let facts = window.map_or_else(|| root.facts(turn), |window| window.facts(root, turn));
    let mut below = Below::default();
    gather(world, (root, &turn.generation), &facts, &mut below, 0);
    let Below { times: below, named } = below;
    let since = window.map_or(turn.start, |window| window.alive.max(turn.start));
    let close = close(world, root, turn, (&facts, since), &below);
    let read = facts.len() + below.len();
    let settle = close.map(|close| close.at.plus(world.config.settle_delay_ns));
    let cutoff = settle.unwrap_or(Timestamp(i64::MAX));
    let (on_time, late) = split(root, facts, cutoff);
    let late = not_again(&on_time, &late);
    let reading = Reading::after(&on_time, window.map(|window| &window.thoughts), &root.names);
    let last = last_sign(&on_time, below.iter().copied().filter(|&at| at <= cutoff));
    let last = last.unwrap_or(turn.start);
    // Late hooks belong to the turn, but the turn ends when it was closed.
    let last = close.map_or(last, |close| last.min(close.at));
    let (started, end, last) = extent(root, turn, &reading, close, last);
    let made_of = Fingerprint::of(Made::Turn).with_all(on_time.iter().map(|fact| fact.seq));
    let node = Node {
        start_inferred: reading.prompt.is_none(),
        settle,
        made_of,
        ..turn_node(root, turn, started, end)
    };
    // Two or three hooks make one node. Space for all nodes is reserved at once, because nodes are large and moving
    // them is slow.
    let mut nodes = Vec::with_capacity(on_time.len() / 2 + 4);
    nodes.push(node);
    let mut tree = Tree {
        root,
        turn,
        nodes,
        reading,
        late_stop: None,
        close,
        facts: read,
        window,
        nested: Nested::new(named, cutoff),
        ids: SpanIds::default(),
        turn_start: started,
        settle,
        deadline: None,
    };
    let frame = Frame::of_turn(end, cutoff, settle, world.config.flush_after_ns > 0);
    let own = std::mem::take(&mut tree.reading);
    tree.reading = tree.add(world, root, &turn.generation, own, frame);
    let late = Reading::of(&late, &root.names);
    tree.late_stop = late.stop.map(|(_, stop)| stop);
    tree.add_late(world, root, &turn.generation, late, frame);
    tree.widen();
    tree.note_deadlines(world, last);
    tree
}

/// Start and end of a turn, and the time of its last activity. `last` is the last activity by the turn's own facts.
fn extent(
    root: &Conversation,
    turn: &Turn,
    reading: &Reading<'_>,
    close: Option<Close>,
    last: Timestamp,
) -> (Timestamp, Option<End>, Timestamp) {
    // Print mode sends no prompt and no stop. The start and end of the session then also start and end the turn.
    let is_printed = root.is_printed(turn) && surface(root.version().map(|v| &**v)) == "cli";
    let printed = is_printed.then(|| root.session_start_before(turn)).flatten();
    let last = match close {
        Some(close) if is_printed && close.reason == EndReason::Stopped => close.at,
        _ => last,
    };
    let end = close.map(|close| {
        let stop = reading.stop.filter(|_| close.reason == EndReason::Matched);
        End { at: stop.map_or(last, |(fact, _)| fact.at).max(turn.start), reason: close.reason }
    });
    let started = reading.prompt.map(|(fact, _)| fact.at).or(printed);
    let started = started.map_or(turn.start, |at| at.min(turn.start));
    (started, end, last)
}

/// Time of a turn's last event: the latest of its own facts, without repeated deliveries, and of `below`.
fn last_sign(on_time: &[&Fact], below: impl Iterator<Item = Timestamp>) -> Option<Timestamp> {
    let is_new = |at: &usize| {
        let earlier = on_time[..*at].iter().rev();
        !earlier.take(MAX_REPEATS).any(|other| repeats(other, on_time[*at]))
    };
    let newest = (0..on_time.len()).rev().find(is_new).map(|at| on_time[at].at);
    newest.into_iter().chain(below).max()
}

/// The node of a turn, without the facts that only the turn's `Reading` has.
fn turn_node<'a>(
    root: &'a Conversation,
    turn: &'a Turn,
    start: Timestamp,
    end: Option<End>,
) -> Node<'a> {
    Node {
        id: SpanId::derive(&root.id, &turn.generation, SpanKind::Generation.as_str(), ""),
        kind: SpanKind::Generation,
        conversation: root,
        generation: turn.generation.clone(),
        parent: None,
        start,
        end,
        start_inferred: false,
        end_inferred: end.is_some_and(|end| end.reason != EndReason::Matched),
        incomplete: false,
        late: false,
        detached: false,
        settle: None,
        agent: None,
        depth: 0,
        what: What::Turn,
        made_of: Fingerprint::of(Made::Turn),
    }
}

/// Times at which equal work was delegated, in order.
struct Tries(BTreeMap<(u64, Option<Box<str>>), Vec<Timestamp>>);

impl Tries {
    fn of(calls: &[Call<'_>]) -> Self {
        let mut tries = BTreeMap::new();
        let tasks = calls.iter().filter(|call| call.class() == ToolClass::Task);
        for (work, at) in tasks.filter_map(|call| Some((work(call)?, call.first()))) {
            tries.entry(work).or_insert_with(Vec::new).push(at);
        }
        Self(tries)
    }

    /// The first later time at which the work of `call` was delegated again. Delegations that come from the same answer
    /// of the model do not count.
    fn after(&self, call: &Call<'_>) -> Option<Timestamp> {
        if self.0.is_empty() {
            return None;
        }
        let times = self.0.get(&work(call)?)?;
        let from = call.first().plus(AT_ONCE);
        times.get(times.partition_point(|at| *at < from)).copied()
    }
}

/// The task and the agent type of a delegating call.
fn work(call: &Call<'_>) -> Option<(u64, Option<Box<str>>)> {
    let delegate = call.find(|tool| tool.delegate()).filter(|delegate| delegate.task != 0)?;
    Some((delegate.task, plain_type(delegate.agent.as_deref())))
}

impl<'a> Tree<'a> {
    /// Adds the parts of a reading below `frame.parent`. Returns the reading without these parts.
    pub(crate) fn add(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        mut reading: Reading<'a>,
        frame: Frame,
    ) -> Reading<'a> {
        let first = self.nodes.len();
        self.add_calls(world, conversation, generation, &mut reading, frame);
        if !frame.detached {
            self.add_loose(world, conversation, generation, frame);
        }
        self.add_thoughts(world, conversation, generation, &mut reading, frame);
        self.add_compactions(world, conversation, generation, &mut reading, frame);
        if world.config.llm_spans {
            self.add_responses(world, conversation, generation, &mut reading, frame, first);
        }
        reading
    }

    /// Adds calls and subagents, with the nodes below them.
    fn add_calls(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        reading: &mut Reading<'a>,
        frame: Frame,
    ) {
        let (own, delay) = ((conversation, generation), world.config.settle_delay_ns);
        let nested = self.nested.keep(own, &mut reading.agents, delay);
        let (mut agents, mut by_call) = (Vec::new(), BTreeMap::new());
        for agent in std::mem::take(&mut reading.agents) {
            match agent.call {
                // If a call already has a subagent, a second one counts as a subagent without a call.
                Some(call) if !by_call.contains_key(&call) => drop(by_call.insert(call, agent)),
                _ => agents.push(agent),
            }
        }
        let thoughts: Vec<Timestamp> =
            reading.thoughts.iter().map(|(_, fact, _)| fact.at).collect();
        let tries = Tries::of(&reading.calls);
        for (index, call) in std::mem::take(&mut reading.calls).into_iter().enumerate() {
            let is_task = call.class() == ToolClass::Task;
            let agent = match by_call.remove(&index) {
                None if is_task => self.silent_agent(world, conversation, &call, frame.depth),
                agent => agent,
            };
            // Thoughts are in order.
            let next = || thoughts.get(thoughts.partition_point(|at| *at <= call.first())).copied();
            let next = is_task.then(next).flatten();
            let again = tries.after(&call);
            self.add_call(world, conversation, generation, call, agent, (next, again), frame);
        }
        agents.extend(by_call.into_values());
        agents.sort_by_key(|agent: &Agent<'_>| {
            agent.start.or(agent.stop).map(|(fact, _)| fact.key())
        });
        for agent in agents {
            self.add_agent(world, conversation, generation, agent, frame);
        }
        self.add_nested(world, nested, frame);
    }

    fn add_thoughts(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        reading: &mut Reading<'a>,
        frame: Frame,
    ) {
        for (key, fact, thought) in std::mem::take(&mut reading.thoughts) {
            let duration = thought.duration_ms.map(nanos);
            let mut node = self.blank(conversation, generation, SpanKind::Thought, &key, frame);
            node.start = fact.at.plus(-duration.unwrap_or_default());
            node.end = Some(End { at: fact.at, reason: EndReason::Matched });
            node.start_inferred = duration.is_none();
            node.made_of = Fingerprint::of(Made::Thought).with(fact.seq);
            node.what = What::Thought(fact, thought);
            self.push(world, node, frame);
        }
    }

    fn add_compactions(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        reading: &mut Reading<'a>,
        frame: Frame,
    ) {
        let compactions = std::mem::take(&mut reading.compactions);
        let begun: Vec<Timestamp> = compactions.iter().map(|(_, fact, _)| fact.at).collect();
        for (index, (key, fact, compaction)) in compactions.into_iter().enumerate() {
            let next = begun.get(index + 1).copied();
            let over = compaction_end(&reading.compaction_ends, fact.at, next);
            let mut node = self.blank(conversation, generation, SpanKind::Compaction, &key, frame);
            node.start = fact.at;
            node.end = Some(End { at: over.unwrap_or(fact.at), reason: EndReason::Matched });
            node.end_inferred = over.is_none();
            node.made_of = Fingerprint::of(Made::Compaction).with(fact.seq).maybe(over);
            node.what = What::Compaction(fact, compaction);
            self.push(world, node, frame);
        }
    }

    pub(crate) fn add_responses(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        reading: &mut Reading<'a>,
        frame: Frame,
        first: usize,
    ) {
        let tokens = reading.tokens();
        let responses = std::mem::take(&mut reading.responses);
        let count = responses.len();
        let siblings = self.nodes[first..].iter().filter(|node| node.parent == Some(frame.parent));
        let mut ends: Vec<Timestamp> =
            siblings.filter_map(|node| node.end.map(|end| end.at)).collect();
        ends.sort_unstable();
        for (index, (key, fact, response)) in responses.iter().enumerate() {
            // `ends` does not contain responses. Of the earlier responses only the previous one matters, because they
            // are in order.
            let before = index.checked_sub(1).map(|before| responses[before].1.at);
            let ended = ends.partition_point(|at| *at <= fact.at).checked_sub(1);
            let sibling = ended.map(|last| ends[last]).max(before.filter(|&at| at <= fact.at));
            let aside = self.window.filter(|_| frame.parent == 0);
            let sibling = sibling.max(aside.and_then(|window| window.end_before(fact.at)));
            let mut node = self.blank(conversation, generation, SpanKind::Response, key, frame);
            let duration = response.duration_ms.filter(|ms| *ms >= 0.0).map(nanos);
            let prompt = self.nodes[frame.parent].start.min(fact.at);
            // The start of a late response is unknown.
            let began =
                if frame.detached { fact.at } else { sibling.unwrap_or(prompt).max(prompt) };
            node.start = duration.map_or(began, |ns| fact.at.plus(-ns));
            node.end = Some(End { at: fact.at, reason: EndReason::Matched });
            node.start_inferred = duration.is_none();
            let last = index + 1 == count;
            let stop = reading.stop.map_or(0, |(fact, _)| fact.seq);
            let stop = if last { stop.wrapping_add(1) } else { 0 };
            node.made_of = Fingerprint::of(Made::Response).with(fact.seq).with(stop);
            // The response may be delivered again with token counts.
            node.made_of = node.made_of.flag(response.tokens.said().is_some());
            let usage = if last { tokens } else { None };
            node.what = What::Response(fact, response, usage);
            node.settle =
                frame.settle.or(frame.detached.then(|| fact.at.plus(world.config.settle_delay_ns)));
            self.nodes.push(node);
        }
        reading.responses = responses;
    }

    /// Adds facts that arrived after their turn settled: only calls, thoughts, compactions and subagents that are not
    /// in the tree yet. Each of them settles on its own.
    pub(crate) fn add_late(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        mut reading: Reading<'a>,
        frame: Frame,
    ) {
        if reading.first.is_none() {
            return;
        }
        let nodes: BTreeSet<SpanId> = self.nodes.iter().map(|node| node.id).collect();
        let known = |kind: SpanKind, key: &str| {
            nodes.contains(&SpanId::derive(&conversation.id, generation, kind.as_str(), key))
        };
        // For each call, its index among the calls that remain.
        let mut count = 0;
        let places: Vec<Option<usize>> = reading
            .calls
            .iter()
            .map(|call| {
                let is_new = !known(SpanKind::Tool, &call.key);
                count += usize::from(is_new);
                is_new.then(|| count - 1)
            })
            .collect();
        let mut place = places.iter();
        reading.calls.retain(|_| place.next().is_some_and(Option::is_some));
        reading.thoughts.retain(|(key, _, _)| !known(SpanKind::Thought, key));
        reading.compactions.retain(|(key, _, _)| !known(SpanKind::Compaction, key));
        reading.agents.retain(|agent| !known(SpanKind::Subagent, &agent.key));
        for agent in &mut reading.agents {
            agent.call = agent.call.and_then(|at| places[at]);
        }
        // If the turn settled without token counts, a late response is the one span that carries them.
        let counted = frame.parent != 0 || self.reading.tokens().is_some();
        let carrier = reading.responses.pop().filter(|_| !counted && reading.tokens().is_some());
        reading.responses = carrier.into_iter().collect();
        let first = self.nodes.len();
        let frame = Frame {
            settle: None,
            end: None,
            flush: false,
            detached: true,
            cutoff: Timestamp(i64::MAX),
            ..frame
        };
        self.add(world, conversation, generation, reading, frame);
        for node in &mut self.nodes[first..] {
            node.late = true;
        }
    }

    pub(crate) fn blank(
        &mut self,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        kind: SpanKind,
        key: &str,
        frame: Frame,
    ) -> Node<'a> {
        Node {
            id: self.ids.derive(&conversation.id, generation, kind.as_str(), key),
            kind,
            conversation,
            generation: generation.clone(),
            parent: Some(frame.parent),
            start: Timestamp::default(),
            end: None,
            start_inferred: false,
            end_inferred: false,
            incomplete: false,
            late: false,
            detached: frame.detached,
            settle: frame.settle,
            agent: frame.agent,
            depth: frame.depth,
            what: What::Turn,
            made_of: Fingerprint::INVALID,
        }
    }

    /// Decides when a node is final, and adds it.
    pub(crate) fn push(&mut self, world: World<'a>, mut node: Node<'a>, frame: Frame) -> usize {
        let delay = world.config.settle_delay_ns;
        let ended = node.end.map(|end| match &node.what {
            // The clock was set during this call. Its end may lie before the hooks that reported it, so the call
            // settles after its latest hook.
            What::Call(call) if call.clock_step().is_some() => {
                call.hooks().map(|fact| fact.at).fold(end.at, Timestamp::max).plus(delay)
            }
            _ => end.at.plus(delay),
        });
        if frame.detached {
            let last = node.start.max(frame.alive);
            let idle = last.plus(world.config.generation_idle_ns + delay);
            node.settle = Some(ended.unwrap_or(idle));
            if node.end.is_none() && world.clock >= idle {
                let reason = if world.evicted { EndReason::Evicted } else { EndReason::Idle };
                node.end = Some(End { at: last, reason });
                node.end_inferred = true;
                node.incomplete = true;
            }
        } else if frame.flush
            && !node.incomplete
            && matches!(node.what, What::Call(_) | What::Thought(..))
            && !matches!(&node.what, What::Call(call) if call.class() == ToolClass::Task)
            && let Some(ended) = ended
        {
            let flush = self.nodes[0].start.plus(world.config.flush_after_ns).max(ended);
            node.settle = Some(node.settle.map_or(flush, |settle| settle.min(flush)));
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Extends parents so that they cover their children. No child is shortened.
    pub(crate) fn widen(&mut self) {
        let aside = self.window.and_then(|window| window.start);
        self.nodes[0].start = self.nodes[0].start.min(aside.unwrap_or(self.nodes[0].start));
        for at in (1..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            let (start, end, detached) = (node.start, node.end, node.detached);
            let Some(parent) = node.parent else { continue };
            let parent = &mut self.nodes[parent];
            if detached && !parent.detached {
                continue;
            }
            parent.start = parent.start.min(start);
            if let (Some(own), Some(end)) = (&mut parent.end, end) {
                own.at = own.at.max(end.at);
            }
        }
    }

    pub(crate) fn note_deadlines(&mut self, world: World<'_>, last: Timestamp) {
        // While a call is open, the turn waits for the longer session limit.
        let waits = self.nodes.iter().any(|n| n.kind == SpanKind::Tool && n.end.is_none());
        let (idle, session) = (world.config.generation_idle_ns, world.config.session_idle_ns);
        let open = match self.close {
            None => Some(last.plus(if waits { session.max(idle) } else { idle })),
            Some(_) => None,
        };
        // Idle means longer than the limit, so the deadline is one nanosecond later.
        let open = open.map(|at| at.plus(1));
        let parts = self.nodes.iter().filter_map(|node| node.settle);
        let aside = self.window.and_then(|window| window.recheck);
        self.deadline = parts.chain(open).chain(aside).filter(|&at| at > world.clock).min();
    }
}
