//! Adds calls to a draft, with the subagents and conversations below them.

use std::sync::Arc;

use crate::assemble::draft::{Node, Tree, What};
use crate::assemble::draft_turn::Frame;
use crate::assemble::nested_agent::Owned;
use crate::correlate::conversation::Conversation;
use crate::correlate::descendants::{MAX_DEPTH, base, children_by_key, lifetime, loose_children};
use crate::correlate::parent_link::Link;
use crate::correlate::snapshot::World;
use crate::correlate::tool_call::Call;
use crate::correlate::turn::{Agent, Reading, not_again};
use crate::model::event::Confidence;
use crate::model::fingerprint::{Fingerprint, Made};
use crate::model::span::{End, EndReason, SpanKind};
use crate::model::time::Timestamp;
use crate::model::time::nanos;
use crate::model::tolerance::DISORDER;
use crate::model::tool::ToolClass;

/// Fingerprint of a subagent's own hooks and of its link to a child.
fn fingerprint(agent: &Agent<'_>, linked: Option<(&Conversation, &Link)>) -> Fingerprint {
    let hooks = [agent.start, agent.stop].into_iter().flatten();
    let made_of = Fingerprint::of(Made::Agent).with_all(hooks.map(|(fact, _)| fact.seq));
    let Some((child, link)) = linked else { return made_of };
    let how = link.confidence as u64 * 8 + link.source as u64;
    made_of.with(child.count as u64).with(how)
}

/// First and last activity of the children in the turns that belong to the delegation `key`.
fn lifetimes(
    world: World<'_>,
    children: &[&Conversation],
    key: &str,
) -> (Option<Timestamp>, Option<Timestamp>) {
    let times = || children.iter().filter_map(|child| lifetime(world, child, key));
    (times().map(|(first, _)| first).min(), times().map(|(_, last)| last).max())
}

impl<'a> Tree<'a> {
    /// The subagent of a delegating call that has no subagent events (CLI). It exists if a child is known.
    pub(crate) fn silent_agent(
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

    /// Adds a call, and the subagent that it started. `next_thought` is the first thought after the call began. `again`
    /// is when the call's work was delegated a second time.
    #[expect(clippy::too_many_arguments, reason = "one call site; a struct would only rename them")]
    pub(crate) fn add_call(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        call: Call<'a>,
        agent: Option<Agent<'a>>,
        (next_thought, again): (Option<Timestamp>, Option<Timestamp>),
        mut frame: Frame,
    ) {
        let background = call.find(|tool| tool.delegate()?.background);
        let mut nested = if agent.is_none() { self.nested.take(&call) } else { None };
        let (owner, of, agent) = match &mut nested {
            Some(Owned { conversation, generation, agent }) => {
                (*conversation, &*generation, agent.take())
            }
            None => (conversation, generation, agent),
        };
        if call.class() == ToolClass::Task {
            frame = outlive_turn(world, owner, (&call, agent.as_ref()), background, frame);
        }
        let mut node = self.blank(conversation, generation, SpanKind::Tool, &call.key, frame);
        let duration = call.duration_ms().map(nanos);
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
        } else if let Some(at) = again.filter(|_| background != Some(true)) {
            // The same work was delegated again: this call was denied or lost. Later hooks belong to the second call.
            node.end = Some(End { at, reason: EndReason::Superseded });
            node.end_inferred = true;
            node.incomplete = true;
        } else if let Some(end) = frame.end {
            node.end = Some(around(end));
            node.end_inferred = true;
            node.incomplete = true;
        }
        let run = node.end.zip(duration).map(|(end, ns)| end.at.plus(-ns));
        node.start =
            began(opened, run, node.end, self.nodes[0].start).unwrap_or_else(|| call.first());
        node.start_inferred = opened.is_none() && duration.is_none();
        clamp(&mut node);
        node.made_of = Fingerprint::of(Made::Call).with_all(call.hooks().map(|fact| fact.seq));
        if let Some((fact, _)) = agent.as_ref().and_then(|agent| agent.stop) {
            node.made_of = node.made_of.with(fact.seq);
        }
        node.what = What::Call(call);
        let at = self.push(world, node, frame);
        if let Some(agent) = agent {
            self.add_agent(world, owner, of, agent, Frame { parent: at, ..frame });
        }
    }

    /// Adds subagents whose calls are not in the tree. Each subagent is placed in the conversation of its own hooks.
    pub(crate) fn add_nested(&mut self, world: World<'a>, keys: Vec<String>, frame: Frame) {
        for key in keys {
            if let Some(Owned { conversation, generation, agent: Some(agent) }) =
                self.nested.left(&key)
            {
                self.add_agent(world, conversation, &generation, agent, frame);
            }
        }
    }

    pub(crate) fn add_agent(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        agent: Agent<'a>,
        frame: Frame,
    ) {
        let alive = last_life(world, conversation, &agent.key, frame);
        let begun = agent.start.or(agent.stop).map_or(frame.alive, |(fact, _)| fact.at);
        let frame = outlive(frame, (agent.over(), alive), false, begun);
        let found = children_by_key(world, conversation, &agent.key);
        let children: Vec<&'a Conversation> = found.filter(|_| frame.depth < MAX_DEPTH).collect();
        if children.is_empty() && frame.parent == 0 && agent.says_nothing() {
            return;
        }
        let key = agent.key.clone();
        let (first, last) = lifetimes(world, &children, base(&key));
        let mut node = self.blank(conversation, generation, SpanKind::Subagent, &agent.key, frame);
        let stop = agent.stop.map(|(fact, _)| fact.at);
        let duration = agent.stop.and_then(|(_, facts)| facts.duration_ms).map(nanos);
        let started = agent.start.map(|(fact, _)| fact.at);
        let call_end = self.nodes[frame.parent].end.filter(|end| {
            // The end of a background call is used only if nothing of the subagent came later.
            frame.parent > 0 && (!frame.detached || alive.is_none_or(|alive| alive <= end.at))
        });
        node.end = match stop {
            Some(at) => Some(End { at, reason: EndReason::Matched }),
            None => call_end.or(frame.end).map(|end| {
                let at = last.unwrap_or(end.at).min(frame.cutoff);
                End { at, ..around(end) }
            }),
        };
        node.end_inferred = stop.is_none() && node.end.is_some();
        node.incomplete = node.end_inferred && last.is_none();
        let run = stop.zip(duration).map(|(at, ns)| at.plus(-ns));
        let fallback = stop.unwrap_or(self.nodes[frame.parent].start);
        node.start = run.or(started).or(first).unwrap_or(fallback);
        node.start_inferred = run.is_none() && started.is_none();
        clamp(&mut node);
        let child = children.first().copied();
        let link = child.and_then(|child| world.links.get(&child.id));
        node.made_of = fingerprint(&agent, child.zip(link));
        // Open nodes in a child end with the child. If its end is unknown, they end with the call that waits for it.
        let end = stop.map(|at| End { at, reason: EndReason::Stopped }).or(call_end.map(around));
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

    /// Adds the children that are linked to the turn and not to a delegation, because their delegation is not known.
    pub(crate) fn add_loose(
        &mut self,
        world: World<'a>,
        conversation: &'a Conversation,
        generation: &Arc<str>,
        frame: Frame,
    ) {
        if frame.depth >= MAX_DEPTH {
            return;
        }
        for child in loose_children(world, conversation, generation) {
            // Internal helpers of a host do nothing that could be shown.
            if !child.does_something() {
                continue;
            }
            let last = child.last_sign();
            let frame = outlive(frame, (None, Some(last)), false, child.first);
            let mut node = self.blank(child, generation, SpanKind::Subagent, "?", frame);
            node.start = child.first;
            node.end = frame.end.map(|end| End { at: last.min(frame.cutoff), ..around(end) });
            (node.start_inferred, node.end_inferred) = (true, node.end.is_some());
            clamp(&mut node);
            let link = world.links.get(&child.id);
            node.made_of = Fingerprint::of(Made::Agent).with(child.count as u64);
            if let Some(link) = link {
                node.made_of = node.made_of.and(link.candidates.fingerprint(world.conversations));
                node.made_of = node.made_of.with(link.confidence as u64);
            }
            node.what = What::Agent(Agent::default(), link, Some(child));
            let at = self.push(world, node, frame);
            let (agent, depth) = (Some(at), frame.depth + 1);
            let inner = Frame { parent: at, agent, depth, flush: false, ..frame };
            self.add_child(world, child, "", inner);
        }
    }

    /// Adds the turns of a child conversation that belong to the delegation `key`.
    pub(crate) fn add_child(
        &mut self,
        world: World<'a>,
        child: &'a Conversation,
        key: &str,
        frame: Frame,
    ) {
        let link = world.links.get(&child.id).filter(|link| !link.resumed.is_empty());
        for turn in &child.turns {
            if link.is_some_and(|link| link.key_at(turn.start) != Some(base(key))) {
                continue;
            }
            let facts = child.facts(turn);
            let on_time = facts.partition_point(|fact| fact.at <= frame.cutoff);
            let (on_time, late) = facts.split_at(on_time);
            let reading = Reading::of(on_time, &child.names);
            self.add(world, child, &turn.generation, reading, frame);
            let late = Reading::of(&not_again(on_time, late), &child.names);
            self.add_late(world, child, &turn.generation, late, frame);
        }
    }
}

/// Time of the last fact of a delegation's children, at any depth. A call that waits for a child runs as long as the
/// child. `None` while the turn is open, because the time is not needed then.
fn last_life(
    world: World<'_>,
    conversation: &Conversation,
    key: &str,
    frame: Frame,
) -> Option<Timestamp> {
    if frame.settle.is_none() && !frame.detached {
        return None;
    }
    last_life_at(world, conversation, key, 0)
}

fn last_life_at(
    world: World<'_>,
    conversation: &Conversation,
    key: &str,
    depth: u32,
) -> Option<Timestamp> {
    let life = |child: &Conversation| {
        let own = lifetime(world, child, base(key)).map(|(_, last)| last);
        if depth >= MAX_DEPTH || own.is_none() {
            return own;
        }
        let keys = child.delegations.keys();
        let delegated = keys.filter_map(|key| last_life_at(world, child, key, depth + 1));
        let loose = child.turns.iter().flat_map(|turn| {
            loose_children(world, child, &turn.generation).map(Conversation::last_sign)
        });
        own.max(delegated.max()).max(loose.max())
    };
    children_by_key(world, conversation, key).filter_map(life).max()
}

/// The frame of a delegating call.
fn outlive_turn(
    world: World<'_>,
    owner: &Conversation,
    (call, agent): (&Call<'_>, Option<&Agent<'_>>),
    background: Option<bool>,
    frame: Frame,
) -> Frame {
    let alive = last_life(world, owner, agent.map_or(&*call.key, |agent| &agent.key), frame);
    let over = call.ended().or(agent.and_then(Agent::over));
    outlive(frame, (over, alive), background == Some(true), call.first())
}

/// Changes the frame of a node that continues after its turn: a background call, a call whose end came later, or a call
/// whose child still works. The end of the turn does not end such a node.
///
/// `over` is the node's own end, `alive` the last activity of its children, and `begun` its own beginning. `waits`
/// tells that the node runs in the background.
fn outlive(
    frame: Frame,
    (over, alive): (Option<Timestamp>, Option<Timestamp>),
    waits: bool,
    begun: Timestamp,
) -> Frame {
    let Some(settle) = frame.settle.filter(|_| !frame.detached) else { return frame };
    let lives = over.map_or_else(|| waits || alive > Some(settle), |over| over > settle);
    if !lives {
        return frame;
    }
    Frame {
        end: None,
        settle: None,
        flush: false,
        detached: true,
        cutoff: Timestamp(i64::MAX),
        alive: alive.unwrap_or(begun),
        ..frame
    }
}

/// The end of the surrounding node, used for a node without an end of its own.
fn around(end: End) -> End {
    match end.reason {
        EndReason::Matched => End { reason: EndReason::Stopped, ..end },
        _ => end,
    }
}

/// Moves the start of a node to the node's end, if the start is later.
fn clamp(node: &mut Node<'_>) {
    if let Some(end) = node.end {
        node.start = node.start.min(end.at);
    }
}

/// When a call began. `opened` is when its first hook was received. `run` is the call's end minus its measured
/// duration.
///
/// `run` is used in two cases. First, the end was received before `opened`, so the opening hook was late. Second, `run`
/// is at most [`DISORDER`] earlier than `opened`, or later; it is then not put before the start of the turn. A duration
/// that reaches further back does not belong to this call, and `opened` is used.
fn began(
    opened: Option<Timestamp>,
    run: Option<Timestamp>,
    end: Option<End>,
    turn: Timestamp,
) -> Option<Timestamp> {
    let Some((opened, run)) = opened.zip(run) else { return opened.or(run) };
    if end.is_some_and(|end| end.at < opened) {
        return Some(run);
    }
    let is_late = opened.since(run) <= DISORDER;
    Some(if is_late { run.max(turn.min(opened)) } else { opened })
}
