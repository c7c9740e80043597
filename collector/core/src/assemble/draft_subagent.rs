//! Calls, and the subagents and conversations below them.

use std::sync::Arc;

use crate::assemble::draft::{Node, Tree, What};
use crate::assemble::draft_turn::Frame;
use crate::correlate::conversation::Conversation;
use crate::correlate::descendants::{MAX_DEPTH, base, children_by_key, lifetime};
use crate::correlate::snapshot::World;
use crate::correlate::tool_call::Call;
use crate::correlate::turn::{Agent, Reading};
use crate::model::event::Confidence;
use crate::model::fingerprint::{Fingerprint, Made};
use crate::model::span::{End, EndReason, SpanKind};
use crate::model::time::Timestamp;
use crate::model::time::nanos;

impl<'a> Tree<'a> {
    /// A delegating call whose subagent events never came (CLI) still has a subagent when a child is known.
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

    #[expect(clippy::too_many_arguments, reason = "one call site; a struct would only rename them")]
    pub(crate) fn add_call(
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
        node.made_of = Fingerprint::of(Made::Call).with_all(call.hooks().map(|fact| fact.seq));
        if let Some((fact, _)) = agent.as_ref().and_then(|agent| agent.stop) {
            node.made_of = node.made_of.with(fact.seq);
        }
        node.what = What::Call(call);
        let at = self.push(world, node, frame);
        if let Some(agent) = agent {
            self.add_agent(world, conversation, generation, agent, Frame { parent: at, ..frame });
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
        node.made_of = Fingerprint::of(Made::Agent).with_all(hooks.map(|(fact, _)| fact.seq));
        let child = children.first().copied();
        let link = child.and_then(|child| world.links.get(&child.id));
        if let (Some(child), Some(link)) = (child, link) {
            let how = link.confidence as u64 * 8 + link.source as u64;
            node.made_of = node.made_of.with(child.count as u64).with(how);
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
            self.add(world, child, &turn.generation, Reading::of(&facts[..on_time]), frame);
            let late = Reading::of(&facts[on_time..]);
            self.add_late(world, child, &turn.generation, late, frame);
        }
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
