//! One root turn with everything below it: who is whose parent, when each part starts, ends and settles.

use std::sync::Arc;

use crate::call::Call;
use crate::conversation::{Conversation, MAX_REPEATS, Turn, call_id, nanos};
use crate::digest::mix;
use crate::event::{Compaction, Confidence, Response, Stop, Thought};
use crate::fact::Fact;
use crate::link::{Children, Conversations, Link, Links, Unclear};
use crate::tool::ToolClass;
use crate::turn::{Agent, Reading, repeats};
use crate::window::Window;
use crate::{Config, End, EndReason, EventKind, SpanId, SpanKind, Timestamp, Tokens};

/// Children nest no deeper than this; what would be deeper hangs below the last level.
const MAX_DEPTH: u32 = 16;

/// What a tree is made from.
#[derive(Clone, Copy)]
pub(crate) struct World<'a> {
    pub(crate) config: &'a Config,
    pub(crate) conversations: &'a Conversations,
    pub(crate) links: &'a Links,
    pub(crate) unclear: &'a Unclear,
    /// Children by parent and subagent key.
    pub(crate) children: &'a Children,
    /// How far time has passed for this group.
    pub(crate) clock: Timestamp,
    /// Whether it passed early because room was needed.
    pub(crate) evicted: bool,
}

/// Why and when a turn closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Close {
    /// The moment that closed it: a hook's, or the deadline's own.
    pub(crate) at: Timestamp,
    pub(crate) reason: EndReason,
}

/// A span to be.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) id: SpanId,
    pub(crate) kind: SpanKind,
    pub(crate) conversation: &'a Conversation,
    pub(crate) generation: Arc<str>,
    pub(crate) parent: Option<usize>,
    pub(crate) start: Timestamp,
    pub(crate) end: Option<End>,
    pub(crate) start_inferred: bool,
    pub(crate) end_inferred: bool,
    /// Never ended by itself.
    pub(crate) incomplete: bool,
    /// Settles apart from its turn because it came after it.
    pub(crate) late: bool,
    /// Does not hold its turn: late, or in the background.
    pub(crate) detached: bool,
    /// When it is final, once that is known.
    pub(crate) settle: Option<Timestamp>,
    /// The subagent it runs in, as a node.
    pub(crate) agent: Option<usize>,
    pub(crate) depth: u32,
    pub(crate) what: What<'a>,
    /// Changes whenever the span would.
    pub(crate) signature: u64,
}

/// What a node is about.
#[derive(Debug)]
pub(crate) enum What<'a> {
    Turn,
    Call(Call<'a>),
    Thought(&'a Fact, &'a Thought),
    /// A response, and the turn's usage if it is the one that carries it.
    Response(&'a Fact, &'a Response, Option<Tokens>),
    Agent(Agent<'a>, Option<&'a Link>, Option<&'a Conversation>),
    Compaction(&'a Fact, &'a Compaction),
}

/// A root turn, grown.
pub(crate) struct Tree<'a> {
    pub(crate) root: &'a Conversation,
    pub(crate) turn: &'a Turn,
    /// Parents before children; the first is the turn itself.
    pub(crate) nodes: Vec<Node<'a>>,
    /// The turn's own reading, without calls and other parts, which became nodes.
    pub(crate) reading: Reading<'a>,
    /// A stop that came after the turn had left. Its tokens count in rows; the span is not touched any more.
    pub(crate) late_stop: Option<&'a Stop>,
    pub(crate) close: Option<Close>,
    /// What is put aside and not among the nodes.
    pub(crate) window: Option<&'a Window>,
    /// Start of the turn by its own events, before it was widened.
    pub(crate) turn_start: Timestamp,
    pub(crate) settle: Option<Timestamp>,
    /// When time alone would change something next.
    pub(crate) deadline: Option<Timestamp>,
}

/// What surrounds a conversation's facts.
#[derive(Clone, Copy)]
struct Frame {
    parent: usize,
    agent: Option<usize>,
    depth: u32,
    /// When and why whatever is open in it ends.
    end: Option<End>,
    /// Facts after this are late.
    cutoff: Timestamp,
    settle: Option<Timestamp>,
    /// Whether settled parts may leave before the turn.
    flush: bool,
    detached: bool,
    /// The last sign of life of what runs in the background.
    alive: Timestamp,
}

/// Grows the tree of `turn`, a turn of the root conversation `root`.
///
/// With a `window`, only of what is left besides it; the turn must still be open then.
pub(crate) fn grow<'a>(
    world: World<'a>,
    root: &'a Conversation,
    turn: &'a Turn,
    window: Option<&'a Window>,
) -> Tree<'a> {
    let facts = window.map_or_else(|| root.facts(turn), |window| window.facts(root, turn));
    let mut below = Vec::new();
    gather(world, root, &facts, &mut below, 0);
    let since = window.map_or(turn.start, |window| window.alive.max(turn.start));
    let close = close(world, root, turn, (&facts, since), &below);
    let settle = close.map(|close| close.at.plus(world.config.settle_delay_ns));
    let cutoff = settle.unwrap_or(Timestamp(i64::MAX));
    let (on_time, late) = split(facts, cutoff);
    let reading = Reading::after(&on_time, window.map(|window| &window.thoughts));
    let is_new = |at: &usize| {
        let earlier = on_time[..*at].iter().rev();
        !earlier.take(MAX_REPEATS).any(|other| repeats(other, on_time[*at]))
    };
    let newest = (0..on_time.len()).rev().find(is_new).map(|at| on_time[at].at);
    let last = newest
        .into_iter()
        .chain(below.iter().copied().filter(|&at| at <= cutoff))
        .max()
        .unwrap_or(turn.start);
    // Stragglers belong to the turn but do not make it longer than what closed it.
    let last = close.map_or(last, |close| last.min(close.at));
    let end = close.map(|close| {
        let stop = reading.stop.filter(|_| close.reason == EndReason::Matched);
        End { at: stop.map_or(last, |(fact, _)| fact.at).max(turn.start), reason: close.reason }
    });
    let started = reading.prompt.map_or(turn.start, |(fact, _)| fact.at.min(turn.start));
    let signature = on_time.iter().fold(1, |hash, fact| mix(hash, fact.seq));
    let node = Node {
        id: SpanId::derive(&root.id, &turn.generation, SpanKind::Generation.as_str(), ""),
        kind: SpanKind::Generation,
        conversation: root,
        generation: turn.generation.clone(),
        parent: None,
        start: started,
        end,
        start_inferred: reading.prompt.is_none(),
        end_inferred: close.is_some_and(|close| close.reason != EndReason::Matched),
        incomplete: false,
        late: false,
        detached: false,
        settle,
        agent: None,
        depth: 0,
        what: What::Turn,
        signature,
    };
    // Two or three hooks make a node, which is too large to be moved often.
    let mut nodes = Vec::with_capacity(on_time.len() / 2 + 4);
    nodes.push(node);
    let mut tree = Tree {
        root,
        turn,
        nodes,
        reading,
        late_stop: None,
        close,
        window,
        turn_start: started,
        settle,
        deadline: None,
    };
    let frame = Frame {
        parent: 0,
        agent: None,
        depth: 0,
        end,
        cutoff,
        settle,
        flush: world.config.flush_after_ns > 0,
        detached: false,
        alive: Timestamp(i64::MIN),
    };
    let own = std::mem::take(&mut tree.reading);
    tree.reading = tree.add(world, root, &turn.generation, own, frame);
    let late = Reading::of(&late);
    tree.late_stop = late.stop.map(|(_, stop)| stop);
    tree.add_late(world, root, &turn.generation, late, frame);
    tree.widen();
    tree.note_deadlines(world, last);
    tree
}

/// Parts facts from those that came too late. What runs in the background outlives its turn and is never late.
fn split(facts: Vec<&Fact>, cutoff: Timestamp) -> (Vec<&Fact>, Vec<&Fact>) {
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

/// Times of all facts below a conversation's facts, at any depth.
fn gather<'a>(
    world: World<'a>,
    conversation: &'a Conversation,
    facts: &[&'a Fact],
    times: &mut Vec<Timestamp>,
    depth: u32,
) {
    if depth >= MAX_DEPTH || world.children.is_empty() {
        return;
    }
    for (child, key) in children_of(world, conversation, facts) {
        for turn in turns_for(world, child, key) {
            let facts = child.facts(turn);
            times.extend(facts.iter().map(|fact| fact.at));
            gather(world, child, &facts, times, depth + 1);
        }
    }
}

/// The child conversations that these facts delegate to.
fn children_of<'a>(
    world: World<'a>,
    conversation: &'a Conversation,
    facts: &[&'a Fact],
) -> Vec<(&'a Conversation, &'a str)> {
    let mut keys: Vec<&'a str> = Vec::new();
    for fact in facts {
        let key = match &fact.kind {
            EventKind::SubagentStart(a) | EventKind::SubagentStop(a) => Some(a.key()),
            EventKind::ToolStart(t) | EventKind::ToolEnd(t) | EventKind::ToolFailure(t) => {
                t.delegation()
            }
            _ => None,
        };
        keys.extend(key.filter(|key| !keys.contains(key)));
    }
    let children = |key: &'a str| {
        children_by_key(world, conversation, key).map(move |child| (child, base(key)))
    };
    keys.into_iter().flat_map(children).collect()
}

fn children_by_key<'a>(
    world: World<'a>,
    conversation: &Conversation,
    key: &str,
) -> impl Iterator<Item = &'a Conversation> {
    let found = world.children.get(&(conversation.id.clone(), Box::from(base(key))));
    found.into_iter().flatten().filter_map(move |child| world.conversations.get(child))
}

/// A subagent's key without the number among equals that have no id.
fn base(key: &str) -> &str {
    key.rsplit_once('#').filter(|_| key.starts_with('~')).map_or(key, |(base, _)| base)
}

/// The turns of a child that the delegation `key` asked for: all of them, unless others resumed the child.
fn turns_for<'a>(
    world: World<'a>,
    child: &'a Conversation,
    key: &'a str,
) -> impl Iterator<Item = &'a Turn> {
    let link = world.links.get(&child.id).filter(|link| !link.resumed.is_empty());
    child.turns.iter().filter(move |turn| link.is_none_or(|l| l.key_at(turn.start) == Some(key)))
}

/// First and last sign of life of a child in the turns a delegation asked for.
fn lifetime(world: World<'_>, child: &Conversation, key: &str) -> Option<(Timestamp, Timestamp)> {
    if world.links.get(&child.id).is_none_or(|link| link.resumed.is_empty()) {
        return Some((child.first, child.last_sign()));
    }
    let turns = turns_for(world, child, key);
    let facts = turns.flat_map(|turn| child.facts(turn)).map(|fact| fact.at);
    facts.fold(None, |seen, at| {
        let (first, last) = seen.unwrap_or((at, at));
        Some((first.min(at), last.max(at)))
    })
}

/// Decides whether the turn is closed, as of the world's clock.
fn close(
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

impl<'a> Tree<'a> {
    /// Adds the parts of one reading below `frame.parent`. Gives the reading back, emptied of them.
    fn add(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        mut reading: Reading<'a>,
        frame: Frame,
    ) -> Reading<'a> {
        let first = self.nodes.len();
        let mut agents = std::mem::take(&mut reading.agents);
        for (index, call) in std::mem::take(&mut reading.calls).into_iter().enumerate() {
            let is_task = call.class() == ToolClass::Task;
            let known = agents.iter_mut().position(|agent| agent.call == Some(index));
            let agent = match known {
                Some(at) => Some(agents.swap_remove(at)),
                None if is_task => self.silent_agent(world, conversation, &call, frame.depth),
                None => None,
            };
            let thought = reading.thoughts.iter().map(|(_, fact, _)| fact.at);
            let next = is_task.then(|| thought.filter(|at| *at > call.first()).min()).flatten();
            self.add_call(world, conversation, generation, call, agent, next, frame);
        }
        agents.sort_by_key(|agent| agent.start.or(agent.stop).map(|(fact, _)| fact.key()));
        for agent in agents {
            self.add_agent(world, conversation, generation, agent, frame);
        }
        for (key, fact, thought) in std::mem::take(&mut reading.thoughts) {
            let duration = thought.duration_ms.map(nanos);
            let mut node = self.blank(conversation, generation, SpanKind::Thought, &key, frame);
            node.start = fact.at.plus(-duration.unwrap_or_default());
            node.end = Some(End { at: fact.at, reason: EndReason::Matched });
            node.start_inferred = duration.is_none();
            node.signature = mix(2, fact.seq);
            node.what = What::Thought(fact, thought);
            self.push(world, node, frame);
        }
        for (key, fact, compaction) in std::mem::take(&mut reading.compactions) {
            let mut node = self.blank(conversation, generation, SpanKind::Compaction, &key, frame);
            node.start = fact.at;
            node.end = Some(End { at: fact.at, reason: EndReason::Matched });
            node.end_inferred = true;
            node.signature = mix(3, fact.seq);
            node.what = What::Compaction(fact, compaction);
            self.push(world, node, frame);
        }
        if world.config.llm_spans {
            self.add_responses(world, conversation, generation, &mut reading, frame, first);
        }
        reading
    }

    fn add_responses(
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
        for (index, (key, fact, response)) in responses.iter().enumerate() {
            let sibling = self.nodes[first..]
                .iter()
                .filter(|node| node.parent == Some(frame.parent))
                .filter_map(|node| node.end.map(|end| end.at))
                .filter(|&at| at <= fact.at)
                .max();
            let aside = self.window.filter(|_| frame.parent == 0);
            let sibling = sibling.max(aside.and_then(|window| window.end_before(fact.at)));
            let mut node = self.blank(conversation, generation, SpanKind::Response, key, frame);
            let duration = response.duration_ms.filter(|ms| *ms >= 0.0).map(nanos);
            let prompt = self.nodes[frame.parent].start.min(fact.at);
            // Of a late one nothing tells when it began.
            let began =
                if frame.detached { fact.at } else { sibling.unwrap_or(prompt).max(prompt) };
            node.start = duration.map_or(began, |ns| fact.at.plus(-ns));
            node.end = Some(End { at: fact.at, reason: EndReason::Matched });
            node.start_inferred = duration.is_none();
            let last = index + 1 == count;
            let stop = reading.stop.map_or(0, |(fact, _)| fact.seq);
            node.signature = mix(mix(4, fact.seq), if last { stop.wrapping_add(1) } else { 0 });
            let usage = if last { tokens } else { None };
            node.what = What::Response(fact, response, usage);
            node.settle =
                frame.settle.or(frame.detached.then(|| fact.at.plus(world.config.settle_delay_ns)));
            self.nodes.push(node);
        }
        reading.responses = responses;
    }

    /// A delegating call whose subagent events never came (CLI) still has a subagent when a child is known.
    fn silent_agent(
        &self,
        world: World<'a>,
        conversation: &Conversation,
        call: &Call<'a>,
        depth: u32,
    ) -> Option<Agent<'a>> {
        let mut children = children_by_key(world, conversation, &call.key);
        (depth < MAX_DEPTH && children.next().is_some())
            .then(|| Agent { key: call.key.clone().into_owned(), ..Agent::default() })
    }

    #[expect(clippy::too_many_arguments, reason = "one call site; a struct would only rename them")]
    fn add_call(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        call: Call<'a>,
        agent: Option<Agent<'a>>,
        next_thought: Option<Timestamp>,
        mut frame: Frame,
    ) {
        let background = call.find(|tool| tool.delegate()?.background);
        if background == Some(true) && call.ended().is_none() {
            let children = children_by_key(world, conversation, &call.key);
            let alive = children.filter_map(|child| lifetime(world, child, base(&call.key)));
            let alive = alive.map(|(_, last)| last).max().unwrap_or(call.first());
            frame = background_frame(frame, agent.as_ref(), alive);
        }
        let mut node = self.blank(conversation, generation, SpanKind::Tool, &call.key, frame);
        let duration = call.find(|tool| tool.duration_ms).map(nanos);
        let opened = call.opened();
        let is_read = call.pre.is_none() && call.post.is_none() && call.after.is_none();
        let lone_read = call.before.filter(|_| is_read && opened.is_none()).map(|fact| fact.at);
        let stopped = agent.as_ref().and_then(|agent| agent.stop).map(|(fact, _)| fact.at);
        let borrowed = stopped.or(next_thought.filter(|_| {
            background != Some(true) && agent.as_ref().is_none_or(|agent| agent.start.is_none())
        }));
        if let Some(at) = call.ended() {
            node.end = Some(End { at, reason: EndReason::Matched });
        } else if let Some(at) = lone_read.or(borrowed) {
            node.end = Some(End { at, reason: EndReason::Matched });
            node.end_inferred = true;
        } else if let Some(end) = frame.end {
            node.end = Some(end);
            node.end_inferred = true;
            node.incomplete = true;
        }
        let run = node.end.zip(duration).map(|(end, ns)| end.at.plus(-ns));
        node.start = match (opened, run) {
            (Some(opened), Some(run)) => opened.max(run),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => call.first(),
        };
        node.start_inferred = opened.is_none() && duration.is_none();
        clamp(&mut node);
        node.signature = call.hooks().fold(5, |hash, fact| mix(hash, fact.seq));
        if let Some((fact, _)) = agent.as_ref().and_then(|agent| agent.stop) {
            node.signature = mix(node.signature, fact.seq);
        }
        node.what = What::Call(call);
        let at = self.push(world, node, frame);
        if let Some(agent) = agent {
            self.add_agent(world, conversation, generation, agent, Frame { parent: at, ..frame });
        }
    }

    fn add_agent(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        agent: Agent<'a>,
        frame: Frame,
    ) {
        let children: Vec<&'a Conversation> = if frame.depth < MAX_DEPTH {
            children_by_key(world, conversation, &agent.key).collect()
        } else {
            Vec::new()
        };
        let key = agent.key.clone();
        let times = || children.iter().filter_map(|child| lifetime(world, child, base(&key)));
        let first = times().map(|(first, _)| first).min();
        let last = times().map(|(_, last)| last).max();
        let mut node = self.blank(conversation, generation, SpanKind::Subagent, &agent.key, frame);
        let stop = agent.stop.map(|(fact, _)| fact.at);
        let duration = agent.stop.and_then(|(_, facts)| facts.duration_ms).map(nanos);
        let started = agent.start.map(|(fact, _)| fact.at);
        let call_end = self.nodes[frame.parent].end.filter(|_| frame.parent > 0);
        node.end = match (stop, call_end, frame.end) {
            (Some(at), _, _) => Some(End { at, reason: EndReason::Matched }),
            (None, Some(end), _) | (None, None, Some(end)) => {
                let at = last.unwrap_or(end.at).min(frame.cutoff);
                Some(End {
                    at,
                    reason: if end.reason == EndReason::Matched {
                        EndReason::Stopped
                    } else {
                        end.reason
                    },
                })
            }
            (None, None, None) => None,
        };
        node.end_inferred = stop.is_none() && node.end.is_some();
        node.incomplete = node.end_inferred && last.is_none();
        let run = stop.zip(duration).map(|(at, ns)| at.plus(-ns));
        let fallback = stop.unwrap_or(self.nodes[frame.parent].start);
        node.start = run.or(started).or(first).unwrap_or(fallback);
        node.start_inferred = run.is_none() && started.is_none();
        clamp(&mut node);
        let hooks = [agent.start, agent.stop].into_iter().flatten();
        node.signature = hooks.fold(6, |hash, (fact, _)| mix(hash, fact.seq));
        let child = children.first().copied();
        let link = child.and_then(|child| world.links.get(&child.id));
        if let (Some(child), Some(link)) = (child, link) {
            node.signature = mix(node.signature, child.count as u64);
            node.signature = mix(node.signature, link.confidence as u64 * 8 + link.source as u64);
        }
        // Whatever is still open in a child ends with it, or with the call that waits for it.
        let end =
            stop.map(|at| End { at, reason: EndReason::Stopped }).or(call_end.map(|end| End {
                reason: if end.reason == EndReason::Matched {
                    EndReason::Stopped
                } else {
                    end.reason
                },
                ..end
            }));
        node.what = What::Agent(agent, link, child);
        let at = self.push(world, node, frame);
        let sure = link.is_some_and(|link| link.confidence >= Confidence::Transcript);
        for child in children {
            let inner = Frame {
                parent: at,
                agent: Some(at),
                depth: frame.depth + 1,
                end: end.or(frame.end),
                flush: frame.flush && sure,
                ..frame
            };
            self.add_child(world, child, &key, inner);
        }
    }

    /// Adds the turns of a child conversation that the delegation `key` asked for.
    fn add_child(&mut self, world: World<'a>, child: &'a Conversation, key: &str, frame: Frame) {
        let link = world.links.get(&child.id).filter(|link| !link.resumed.is_empty());
        for turn in &child.turns {
            if link.is_some_and(|link| link.key_at(turn.start) != Some(base(key))) {
                continue;
            }
            let facts = child.facts(turn);
            let on_time = facts.partition_point(|fact| fact.at <= frame.cutoff);
            self.add(world, child, &turn.generation, Reading::of(&facts[..on_time]), frame);
            let late = Reading::of(&facts[on_time..]);
            self.add_late(world, child, &turn.generation, late, frame);
        }
    }

    /// Adds what came after its turn had left: new calls only, each on its own.
    fn add_late(
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
        let known = |tree: &Self, kind: SpanKind, key: &str| {
            let id = SpanId::derive(&conversation.id, generation, kind.as_str(), key);
            tree.nodes.iter().any(|node| node.id == id)
        };
        let kept: Vec<bool> =
            reading.calls.iter().map(|call| !known(self, SpanKind::Tool, &call.key)).collect();
        let mut keep = kept.iter();
        reading.calls.retain(|_| keep.next() == Some(&true));
        reading.thoughts.retain(|(key, _, _)| !known(self, SpanKind::Thought, key));
        reading.compactions.retain(|(key, _, _)| !known(self, SpanKind::Compaction, key));
        reading.agents.retain(|agent| !known(self, SpanKind::Subagent, &agent.key));
        for agent in &mut reading.agents {
            agent.call = agent
                .call
                .filter(|&at| kept[at])
                .map(|at| kept[..at].iter().filter(|kept| **kept).count());
        }
        // The turn has left without its usage: a response that brings it is the one span to carry it.
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

    fn blank(
        &self,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        kind: SpanKind,
        key: &str,
        frame: Frame,
    ) -> Node<'a> {
        Node {
            id: SpanId::derive(&conversation.id, generation, kind.as_str(), key),
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
            signature: 0,
        }
    }

    /// Decides when a part is final, and adds it.
    fn push(&mut self, world: World<'a>, mut node: Node<'a>, frame: Frame) -> usize {
        let delay = world.config.settle_delay_ns;
        let ended = node.end.map(|end| end.at.plus(delay));
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

    /// Parents cover their children; no child is cut to fit.
    fn widen(&mut self) {
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

    fn note_deadlines(&mut self, world: World<'_>, last: Timestamp) {
        let open = match self.close {
            None => Some(last.plus(world.config.generation_idle_ns)),
            Some(_) => None,
        };
        // Idleness is "longer than": it shows one nanosecond after.
        let open = open.map(|at| at.plus(1));
        let parts = self.nodes.iter().filter_map(|node| node.settle);
        let aside = self.window.and_then(|window| window.recheck);
        self.deadline = parts.chain(open).chain(aside).filter(|&at| at > world.clock).min();
    }
}

/// A background call does not end with its turn.
fn background_frame(frame: Frame, agent: Option<&Agent<'_>>, alive: Timestamp) -> Frame {
    let Some(settle) = frame.settle else { return frame };
    let stop = agent.and_then(|agent| agent.stop).map(|(fact, _)| fact.at);
    if stop.is_some_and(|stop| stop <= settle) {
        return frame;
    }
    Frame {
        end: None,
        settle: None,
        flush: false,
        detached: true,
        cutoff: Timestamp(i64::MAX),
        alive,
        ..frame
    }
}

fn clamp(node: &mut Node<'_>) {
    if let Some(end) = node.end {
        node.start = node.start.min(end.at);
    }
}
