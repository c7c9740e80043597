//! Builds the rows that lists show: one per turn, one per session.

use std::sync::Arc;

use crate::assemble::draft::{Node, Tree, What};
use crate::assemble::session_segment::Segment;
use crate::assemble::span_builder as build;
use crate::assemble::span_builder::{Shared, is_call, verdict};
use crate::assemble::time_breakdown::parts;
use crate::assemble::turn_totals::{Sum, Tally, together, total};
use crate::assemble::work;
use crate::correlate::conversation::Conversation;
use crate::correlate::snapshot::World;
use crate::model::config::Config;
use crate::model::event::Confidence;
use crate::model::outcome::Work;
use crate::model::repository::Repository;
use crate::model::span::{EndReason, SpanKind, Status};
use crate::model::summary::{SessionState, SessionSummary, Tokens, TurnSummary};
use crate::model::time::Timestamp;

pub(crate) fn is_error(tree: &Tree<'_>, at: usize) -> bool {
    status(tree, at) != Status::Unset
}

/// The status of a node, without building its span.
pub(crate) fn status(tree: &Tree<'_>, at: usize) -> Status {
    let node = &tree.nodes[at];
    let failed = |kind, message: &str| Status::Error { kind, message: message.to_owned() };
    match &node.what {
        What::Call(call) => verdict(call, node, build::agent_status(tree, at)).1,
        What::Agent(agent, _, _) => {
            match agent.stop.and_then(|(_, facts)| facts.status.as_deref()) {
                Some("error") => {
                    failed(crate::model::span::ErrorType::SubagentError, "subagent failed")
                }
                _ => Status::Unset,
            }
        }
        What::Turn => match tree.reading.stop.and_then(|(_, stop)| stop.status.as_deref()) {
            Some("error") => failed(crate::model::span::ErrorType::AgentError, "agent error"),
            _ => Status::Unset,
        },
        _ => Status::Unset,
    }
}

/// What a turn adds to its session's totals.
pub(crate) fn sum(tree: &Tree<'_>, config: &Config) -> Sum {
    let mut sum = Sum {
        start: tree.nodes[0].start,
        open: tree.close.is_none(),
        idle: tree.close.is_some_and(|close| close.reason == EndReason::Idle),
        begins: tree.reading.prompt.is_some(),
        ..tree.window.map(|window| window.sum.clone()).unwrap_or_default()
    };
    let aside = tree.window.and_then(|window| window.last_error.clone());
    let mut last_error = aside.map(|(when, message)| (when, 0, message));
    let mut apart: Vec<Timestamp> = Vec::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        let last = node.end.map_or(node.start, |end| end.at);
        if node.detached {
            apart.push(last);
        } else {
            sum.last = sum.last.max(last);
        }
        sum.tool_calls += u64::from(is_call(node));
        work::count(&mut sum.work, node);
        // An ambiguous child without a known delegation is a subagent that is counted elsewhere, or no subagent.
        let is_agent = node.kind == SpanKind::Subagent;
        sum.subagents += u64::from(is_agent && !(node.is_loose() && is_ambiguous(node)));
        sum.tool_open |= node.kind == SpanKind::Tool && node.end.is_none();
        let status = status(tree, at);
        sum.errors += u64::from(status.counts(node.kind));
        if let Status::Error { message, .. } = status {
            sum.failed |= at == 0;
            let when = node.end.map_or(node.start, |end| end.at);
            last_error = last_error.max(Some((when, at, message)));
        }
    }
    sum.last_error = last_error.map(|(_, _, message)| message);
    // Work that outlives its turn keeps the session active, but only if that work comes within `session_idle` after the
    // session's last activity. Later work belongs to a session that has already ended.
    apart.sort_unstable();
    for at in apart {
        if at.since(sum.last) <= config.session_idle_ns {
            sum.last = sum.last.max(at);
        }
    }
    sum
}

pub(crate) fn row(tree: &Tree<'_>, shared: &Shared<'_>, sum: &Sum) -> TurnSummary {
    let node = &tree.nodes[0];
    let until = node.end.map_or(sum.last, |end| end.at);
    TurnSummary {
        root: tree.root.id.clone(),
        generation: tree.turn.generation.clone(),
        span: node.id,
        trace: shared.trace,
        index: shared.index,
        started_at: tree.turn_start,
        ended_at: node.end.map(|end| end.at),
        end_reason: node.end.map(|end| end.reason),
        prompt: tree.reading.prompt.and_then(|(_, prompt)| prompt.preview.clone()),
        model: model(tree),
        status: tree.reading.stop.and_then(|(_, stop)| stop.status.clone()),
        tool_calls: sum.tool_calls,
        errors: sum.errors,
        tokens: tokens(tree),
        parts: parts(tree, tree.turn_start, until),
        repository: shared.repository.clone(),
        work: sum.work.clone(),
    }
}

/// The tokens of the turn. If a stop arrived after the turn settled, it supplies counts that are missing.
fn tokens(tree: &Tree<'_>) -> Option<Tokens> {
    let late = tree.late_stop.map(|stop| stop.tokens).unwrap_or_default();
    tree.reading.tokens().unwrap_or_default().or(late).said()
}

/// The repository's state, and the commits that the output of the turn's commands names.
pub(crate) fn repository(tree: &Tree<'_>) -> Option<Box<Repository>> {
    let calls = tree.nodes.iter().filter_map(|node| match &node.what {
        What::Call(call) => call.find(|tool| tool.more()?.commit.as_ref()),
        _ => None,
    });
    let put_aside = tree.window.map(|window| window.commits.as_slice()).unwrap_or_default();
    let told = put_aside.iter().chain(calls);
    Repository::of(tree.reading.repository.iter().copied(), told).map(Box::new)
}

/// The model label for lists: the requested model, else `default`.
fn model(tree: &Tree<'_>) -> Option<Arc<str>> {
    let prompt = tree.reading.prompt.map(|(fact, _)| fact);
    let stop = tree.reading.stop.map(|(fact, _)| fact);
    let facts = || [prompt, stop].into_iter().flatten();
    let named = facts().find(|fact| crate::correlate::turn::label(fact).is_some());
    let named = named.and_then(|fact| fact.model.clone());
    named
        .or_else(|| tree.reading.other_model().map(Arc::from))
        .or_else(|| facts().find_map(|fact| fact.model.clone()))
}

fn is_ambiguous(node: &Node<'_>) -> bool {
    matches!(&node.what, What::Agent(_, Some(link), _) if link.confidence == Confidence::Ambiguous)
}

/// Time of the last event. A repeated delivery does not count.
fn last_sign(conversation: &Conversation, segments: &[Segment]) -> Timestamp {
    let tab = conversation.tabs.last().map(|tab| tab.at);
    let last = segments.last().map(|segment| segment.last).max(tab);
    last.unwrap_or(conversation.last)
}

/// The session's row.
pub(crate) fn summary(
    world: World<'_>,
    conversation: &Conversation,
    segments: &[Segment],
    turns: &[&Tally],
) -> SessionSummary {
    let last_turn = turns.last();
    let last = segments.last();
    let failed = last.is_some_and(|segment| segment.failed);
    let state = match (last_turn, last) {
        (Some(turn), _) if turn.open && turn.tool_open => SessionState::ToolOpen,
        (Some(turn), _) if turn.open => SessionState::Running,
        _ if failed => SessionState::Errored,
        (_, Some(segment)) if segment.ended.is_some() => SessionState::Done,
        (_, Some(segment)) if segment.close.is_some() => SessionState::Stale,
        (Some(turn), _) if turn.failed => SessionState::Errored,
        (None, None) if world.clock > conversation.last.plus(world.config.session_idle_ns) => {
            SessionState::Stale
        }
        _ => SessionState::YourTurn,
    };
    let sum = |get: fn(&Tally) -> u64| turns.iter().map(|turn| get(turn)).sum::<u64>();
    let version = conversation.version().map(|version| &**version);
    let session_errors = segments.iter().filter(|segment| segment.failed).count() as u64;
    let last_error = turns.iter().rev().find_map(|turn| turn.last_error.clone());
    SessionSummary {
        root: conversation.id.clone(),
        state,
        started_at: conversation.first,
        last_at: last_sign(conversation, segments),
        ended_at: last.and_then(|segment| segment.close).map(|end| end.at),
        workspace: conversation.workspace().cloned(),
        model: turns.iter().rev().find_map(|turn| turn.model.clone()),
        surface: if conversation.is_tab() { "tab" } else { build::surface(version) },
        cursor_version: conversation.version().cloned(),
        first_prompt: turns.iter().find_map(|turn| turn.prompt.clone()),
        last_error: if failed { Some("session error".to_owned()) } else { last_error },
        generations: sum(|turn| turn.generations),
        tool_calls: sum(|turn| turn.tool_calls),
        subagents: sum(|turn| turn.subagents),
        errors: sum(|turn| turn.errors)
            + if world.config.session_span { session_errors } else { 0 },
        errored_turns: sum(|turn| turn.errored_turns),
        active_ns: turns.iter().map(|turn| turn.active_ns).sum(),
        tokens: total(turns.iter().map(|turn| turn.tokens)),
        work: turns.iter().fold(Work::default(), |mut all, turn| {
            all.add(&turn.work);
            all
        }),
        repository: turns.iter().fold(None, |all, turn| together(all, turn.repository.clone())),
    }
}
