//! Divides a conversation into segments, which end at a `sessionEnd` or before a long silence, and builds the spans
//! outside turns.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::assemble::attributes::Attributes;
use crate::assemble::repository_attributes::repository;
use crate::assemble::span_builder::{compaction, openinference, surface, timing};
use crate::assemble::turn_totals::{MAX_LINKS, Tally, together, total};
use crate::correlate::conversation::{Conversation, MAX_REPEATS, Turn};
use crate::correlate::fact::Fact;
use crate::correlate::snapshot::World;
use crate::correlate::turn::{compaction_end, repeats};
use crate::model::config::{TabMode, TraceMode};
use crate::model::event::EventKind;
use crate::model::event::SessionEnd;
use crate::model::id::{SpanId, TraceId};
use crate::model::span::{End, EndReason, ErrorType, Link, Span, SpanEvent, SpanKind, Status};
use crate::model::time::Timestamp;
use crate::model::tolerance::{END_GRACE, MINUTE};

/// A segment of a conversation: hooks with neither a session end nor a long silence between them.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) start: Timestamp,
    pub(crate) last: Timestamp,
    /// Time of the hook that ended the segment.
    pub(crate) ended: Option<Timestamp>,
    pub(crate) close: Option<End>,
    pub(crate) settle: Option<Timestamp>,
    pub(crate) failed: bool,
}

/// Starts of the segments that the turns form. This reads only the first and last fact of each turn, and no children.
pub(crate) fn starts(world: World<'_>, conversation: &Conversation) -> Vec<Timestamp> {
    let turns = conversation.turns.iter().map(|turn| item(conversation, turn));
    cut(world, conversation, turns).into_iter().map(|segment| segment.start).collect()
}

/// The result of [`starts`], kept between polls, so that the cost of a poll depends on the changed turns and the number
/// of segments.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// Number of turns and other items that `segments` already contains.
    turns: usize,
    around: usize,
    segments: Vec<Segment>,
}

impl Starts {
    /// Updates the segments. Turns that start before `changed` have not changed since the last call, and items outside
    /// turns have not changed either. If `changed` is the earliest time, everything may have changed.
    pub(crate) fn of(
        &mut self,
        world: World<'_>,
        conversation: &Conversation,
        changed: Timestamp,
    ) -> Vec<Timestamp> {
        let same = conversation.turns.partition_point(|turn| turn.start < changed);
        if same < self.turns || changed == Timestamp(i64::MIN) {
            *self = Self::default();
        }
        let Some((last, before)) = conversation.turns.split_last() else {
            *self = Self::default();
            return starts(world, conversation);
        };
        let (around, idle) = (around(conversation), world.config.session_idle_ns);
        for turn in before.get(self.turns..).unwrap_or_default() {
            self.join_before(item(conversation, turn), &around, idle);
            self.turns += 1;
        }
        // Everything from the last turn on is joined again every time.
        let mut rest = Self { segments: self.segments.clone(), ..*self };
        rest.join_before(item(conversation, last), &around, idle);
        for item in around.get(rest.around..).unwrap_or_default() {
            join(&mut rest.segments, *item, idle);
        }
        rest.segments.into_iter().map(|segment| segment.start).collect()
    }

    /// Joins a turn, after the items before it.
    fn join_before(&mut self, turn: Item<'_>, around: &[Item<'_>], idle: i64) {
        while let Some(item) = around.get(self.around).filter(|item| order(item) < order(&turn)) {
            join(&mut self.segments, *item, idle);
            self.around += 1;
        }
        join(&mut self.segments, turn, idle);
    }
}

/// A turn, or an item outside turns: times of its first and last fact, and what it tells about the beginning or end of
/// the session.
type Item<'a> = (Timestamp, Timestamp, Says<'a>);

/// What an item tells about its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says<'a> {
    Nothing,
    /// A prompt or a `sessionStart`: a person continues the session.
    Begins,
    Ends(&'a SessionEnd),
}

fn order(&(start, last, says): &Item<'_>) -> (Timestamp, bool, Timestamp) {
    (start, matches!(says, Says::Ends(_)), last)
}

/// First and last fact of the turn itself.
fn item<'a>(conversation: &Conversation, turn: &Turn) -> Item<'a> {
    let says = begins(conversation.has_prompt_at(turn.start));
    if let Some(sealed) = conversation.sealed.get(&turn.generation) {
        return (turn.start, sealed.last.max(turn.start), says);
    }
    let facts = conversation.explicit.get(&turn.generation);
    let last = facts.and_then(|facts| facts.last()).map(|fact| fact.at);
    let loose = turn.loose.last().map(|&index| conversation.loose[index].at);
    (turn.start, last.max(loose).unwrap_or(turn.start), says)
}

fn begins<'a>(with_prompt: bool) -> Says<'a> {
    if with_prompt { Says::Begins } else { Says::Nothing }
}

/// All segments, each with its facts.
pub(crate) fn segments(
    world: World<'_>,
    conversation: &Conversation,
    turns: &[&Tally],
) -> Vec<Segment> {
    let intervals = turns.iter().map(|turn| (turn.start, turn.last, begins(turn.begins)));
    let mut segments = cut(world, conversation, intervals);
    let count = segments.len();
    let by_start = by_start(turns);
    for index in 0..count {
        let next = segments.get(index + 1).map(|next| next.start);
        let segment = &mut segments[index];
        let idle = segment.last.plus(world.config.session_idle_ns + 1);
        let until = segment.ended.map_or(idle, |at| at.plus(END_GRACE));
        if next.is_some() || world.clock >= until {
            let reason = match segment.ended {
                Some(_) => EndReason::Matched,
                None if world.evicted && next.is_none() => EndReason::Evicted,
                None => EndReason::Idle,
            };
            // If the session has settled, a fact after the grace period does not extend it.
            let at = segment
                .ended
                .map_or(segment.last, |ended| segment.last.clamp(ended, ended.plus(END_GRACE)));
            segment.close = Some(End { at, reason });
        }
        let mut settle = Some(until);
        for turn in inside(&by_start, segment.start, next.unwrap_or(Timestamp(i64::MAX))) {
            settle = settle.zip(turn.settle).map(|(a, b)| a.max(b));
        }
        segment.settle = settle;
    }
    segments
}

/// Turns with their indexes, ordered by start.
fn by_start<'a>(turns: &[&'a Tally]) -> Vec<(usize, &'a Tally)> {
    let mut turns: Vec<(usize, &'a Tally)> = turns.iter().copied().enumerate().collect();
    turns.sort_by_key(|(_, turn)| turn.start);
    turns
}

/// Turns that start in a period, in order.
fn inside<'a>(turns: &[(usize, &'a Tally)], start: Timestamp, next: Timestamp) -> Vec<&'a Tally> {
    let from = turns.partition_point(|(_, turn)| turn.start < start);
    let to = turns.partition_point(|(_, turn)| turn.start < next);
    let mut inside = turns.get(from..to).unwrap_or_default().to_vec();
    inside.sort_by_key(|(place, _)| *place);
    inside.into_iter().map(|(_, turn)| turn).collect()
}

/// Facts within a period, in order.
fn facts_inside(facts: &[Fact], start: Timestamp, next: Timestamp) -> &[Fact] {
    let from = facts.partition_point(|fact| fact.at < start);
    let to = facts.partition_point(|fact| fact.at < next);
    facts.get(from..to).unwrap_or_default()
}

/// Loose facts outside turns within a period.
fn outside_inside(
    conversation: &Conversation,
    start: Timestamp,
    next: Timestamp,
) -> impl Iterator<Item = &Fact> {
    let outside = &conversation.outside;
    let before =
        |time: Timestamp| outside.partition_point(|&index| conversation.loose[index].at < time);
    let inside = outside.get(before(start)..before(next)).unwrap_or_default();
    inside.iter().map(|&index| &conversation.loose[index])
}

fn cut<'a>(
    world: World<'_>,
    conversation: &'a Conversation,
    turns: impl Iterator<Item = Item<'a>>,
) -> Vec<Segment> {
    let mut items: Vec<Item<'a>> = turns.collect();
    items.append(&mut around(conversation));
    items.sort_by_key(order);
    let mut segments: Vec<Segment> = Vec::new();
    for item in items {
        join(&mut segments, item, world.config.session_idle_ns);
    }
    segments
}

/// Items outside turns, in order.
fn around(conversation: &Conversation) -> Vec<Item<'_>> {
    let outside = conversation.outside.iter().map(|&index| &conversation.loose[index]);
    let mut items: Vec<Item<'_>> = outside.map(|fact| (fact.at, fact.at, Says::Nothing)).collect();
    let once = conversation.session.iter().enumerate().filter(|&(index, fact)| {
        let earlier = conversation.session[..index].iter().rev();
        !earlier.take(MAX_REPEATS).any(|other| repeats(other, fact))
    });
    items.extend(once.map(|(_, fact)| match &fact.kind {
        EventKind::SessionEnd(end) => (fact.at, fact.at, Says::Ends(end)),
        _ => (fact.at, fact.at, Says::Begins),
    }));
    items.sort_by_key(order);
    items
}

/// Adds the next item to the last segment, or begins a new segment. An end event never begins a segment. After an end
/// event, a prompt begins a new segment at once.
fn join(segments: &mut Vec<Segment>, (start, last, says): Item<'_>, idle: i64) {
    let joins = segments.last().is_some_and(|open| match (open.ended, says) {
        (Some(_), Says::Ends(_)) => true,
        (Some(at), Says::Begins) => start <= at,
        (Some(at), Says::Nothing) => last.since(at) <= END_GRACE,
        (None, Says::Ends(_)) => true,
        (None, _) => start.since(open.last) <= idle,
    });
    if !joins {
        let (ended, close, settle) = (None, None, None);
        segments.push(Segment { start, last, ended, close, settle, failed: false });
    }
    let Some(open) = segments.last_mut() else { return };
    let is_late = match open.ended {
        Some(ended) => start.since(ended) > END_GRACE,
        None => start.since(open.last) > idle,
    };
    if let Says::Ends(end) = says {
        let is_error = |text: &Option<String>| text.as_deref() == Some("error");
        open.failed |= is_error(&end.reason) || is_error(&end.final_status);
        // A late end event does not extend the segment, which had ended or was idle for too long.
        if is_late {
            return;
        }
        open.ended.get_or_insert(start);
    }
    open.last = open.last.max(last);
}

/// Session spans and the spans outside turns.
pub(crate) fn spans(
    world: World<'_>,
    conversation: &Conversation,
    segments: &[Segment],
    turns: &[&Tally],
) -> Vec<Span> {
    let mut spans = Vec::new();
    let by_start = by_start(turns);
    for (index, segment) in segments.iter().enumerate() {
        let next = segments.get(index + 1).map_or(Timestamp(i64::MAX), |next| next.start);
        let settled = segment.settle.is_some_and(|at| at <= world.clock);
        if world.config.session_span {
            let own = inside(&by_start, segment.start, next);
            spans.push(session(world, conversation, segments, index, &own, settled));
        }
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let outside: Vec<&Fact> = outside_inside(conversation, segment.start, next).collect();
        let times = |wanted: fn(&EventKind) -> bool| -> Vec<Timestamp> {
            outside.iter().filter(|fact| wanted(&fact.kind)).map(|fact| fact.at).collect()
        };
        let begun = times(|kind| matches!(kind, EventKind::Compaction(_)));
        let ends = times(|kind| matches!(kind, EventKind::CompactionEnd));
        for fact in outside {
            if let EventKind::Compaction(facts) = &fact.kind {
                let later = begun.get(begun.partition_point(|at| *at <= fact.at)).copied();
                let over = compaction_end(&ends, fact.at, later);
                let count = seen.entry(facts.key.as_str()).or_default();
                let key = format!("{}#{count}", facts.key);
                *count += 1;
                let mut attributes = Attributes::default();
                compaction(fact, facts, &mut attributes);
                let mut span = blank(conversation, SpanKind::Compaction, &key, attributes);
                span.trace = session_trace(conversation, index);
                span.parent = world.config.session_span.then(|| session_id(conversation, index));
                span.start = fact.at;
                span.end = Some(End { at: over.unwrap_or(fact.at), reason: EndReason::Matched });
                span.settled = settled;
                finish(&mut span, (false, over.is_none()));
                spans.push(span);
            }
        }
    }
    spans.extend(tabs(world, conversation));
    spans
}

fn session_trace(conversation: &Conversation, segment: usize) -> TraceId {
    TraceId::derive("session", &conversation.id, &segment.to_string())
}

fn session_id(conversation: &Conversation, segment: usize) -> SpanId {
    let key = segment.to_string();
    SpanId::derive(&conversation.id, "", SpanKind::Session.as_str(), &key)
}

fn session(
    world: World<'_>,
    conversation: &Conversation,
    segments: &[Segment],
    index: usize,
    turns: &[&Tally],
    settled: bool,
) -> Span {
    let segment = &segments[index];
    let next = segments.get(index + 1).map_or(Timestamp(i64::MAX), |next| next.start);
    let facts = || facts_inside(&conversation.session, segment.start, next).iter();
    let end = facts().find_map(|fact| match &fact.kind {
        EventKind::SessionEnd(end) => Some(end),
        _ => None,
    });
    let start = facts().find_map(|fact| match &fact.kind {
        EventKind::SessionStart { background, mode } => Some((*background, mode.as_deref())),
        _ => None,
    });
    let mut own = Attributes::default();
    own.some_text("cursor.session.reason", end.and_then(|end| end.reason.as_deref()));
    own.some_text("cursor.session.final_status", end.and_then(|end| end.final_status.as_deref()));
    let background = start.and_then(|(background, _)| background);
    own.flag("cursor.is_background_agent", background.or(end.and_then(|end| end.background)));
    own.some_text("cursor.composer_mode", start.and_then(|(_, mode)| mode));
    let duration = end.and_then(|end| end.duration_ms).filter(|ms| *ms > 0);
    own.double("cursor.duration_ms", duration.map(|ms| ms as f64));
    own.int("hookspan.session.segment", i64::try_from(index).ok());
    let sum = |get: fn(&Tally) -> u64| turns.iter().map(|turn| get(turn)).sum::<u64>();
    own.count("hookspan.session.generations", sum(|turn| turn.generations));
    own.count("hookspan.session.tool_calls", sum(|turn| turn.tool_calls));
    own.count("hookspan.session.errors", sum(|turn| turn.errors));
    own.count("hookspan.session.subagents", sum(|turn| turn.subagents));
    if let Some(tokens) = total(turns.iter().map(|turn| turn.tokens)) {
        own.some_count("hookspan.usage.input_tokens", tokens.input);
        own.some_count("hookspan.usage.output_tokens", tokens.output);
    }
    let seen = turns.iter().fold(None, |all, turn| together(all, turn.repository.clone()));
    repository(&mut own, seen.as_deref());
    if segment.failed {
        own.text("error.type", ErrorType::SessionError.as_str());
    }
    let mut span = blank(conversation, SpanKind::Session, &index.to_string(), own);
    span.trace = session_trace(conversation, index);
    span.start = segment.start;
    span.end = segment.close;
    span.settled = settled;
    if segment.failed {
        let message = "session error".to_owned();
        span.status = Status::Error { kind: ErrorType::SessionError, message };
    }
    span.links = links(world, conversation, segments, index, turns);
    span.events = unknown(conversation, segment.start, next);
    finish(&mut span, (false, segment.ended.is_none()));
    span
}

fn links(
    world: World<'_>,
    conversation: &Conversation,
    segments: &[Segment],
    index: usize,
    turns: &[&Tally],
) -> Vec<Link> {
    let mut links = Vec::new();
    if world.config.trace_mode == TraceMode::Generation {
        links.extend(turns.iter().flat_map(|turn| turn.links.iter().cloned()).take(MAX_LINKS));
    }
    if let Some(previous) = index.checked_sub(1) {
        links.push(Link {
            trace: session_trace(conversation, previous),
            span: session_id(conversation, previous),
            kind: "previous_segment",
            at: segments[previous].start,
        });
    }
    links
}

/// Unknown hooks outside turns, as events of the session.
fn unknown(conversation: &Conversation, start: Timestamp, next: Timestamp) -> Vec<SpanEvent> {
    outside_inside(conversation, start, next)
        .filter_map(|fact| match &fact.kind {
            EventKind::Unknown { name, .. } => {
                let mut own = Attributes::default();
                own.text("cursor.hook.name", name.as_str());
                let name = Cow::Borrowed("cursor.hook");
                Some(SpanEvent { at: fact.at, name, attributes: own.finish() })
            }
            _ => None,
        })
        .take(64)
        .collect()
}

/// When the last Tab span settles.
pub(crate) fn tab_deadline(world: World<'_>, conversation: &Conversation) -> Option<Timestamp> {
    let last = conversation.tabs.last()?;
    Some(last.at.plus(MINUTE + world.config.settle_delay_ns))
}

/// Spans of Tab events, in the form that the configuration asks for.
fn tabs(world: World<'_>, conversation: &Conversation) -> Vec<Span> {
    let minute = |fact: &Fact| fact.at.0.div_euclid(MINUTE);
    let chunks = conversation.tabs.chunk_by(|a, b| minute(a) == minute(b));
    match world.config.tab {
        TabMode::Off => Vec::new(),
        TabMode::Rollup => chunks.map(|facts| rollup(world, conversation, facts)).collect(),
        TabMode::Span => chunks.flat_map(|facts| singles(world, conversation, facts)).collect(),
    }
}

fn rollup(world: World<'_>, conversation: &Conversation, facts: &[Fact]) -> Span {
    let minute = facts[0].at.0.div_euclid(MINUTE).to_string();
    let mut files: Vec<&str> = Vec::new();
    let (mut edits, mut reads, mut added, mut removed) = (0, 0, 0, 0);
    for fact in facts {
        let path = match &fact.kind {
            EventKind::TabEdit { path, added: a, removed: r } => {
                edits += 1;
                added += a;
                removed += r;
                path
            }
            EventKind::TabRead { path } => {
                reads += 1;
                path
            }
            _ => continue,
        };
        files.extend(path.as_deref());
    }
    files.sort_unstable();
    files.dedup();
    let mut own = Attributes::default();
    own.count("hookspan.tab.edits", edits);
    own.count("hookspan.tab.reads", reads);
    own.count("hookspan.tab.files", files.len() as u64);
    own.int("hookspan.edit.lines_added", Some(added));
    own.int("hookspan.edit.lines_removed", Some(removed));
    let mut span = blank(conversation, SpanKind::Tab, &minute, own);
    span.trace = TraceId::derive("tab", &conversation.id, &minute);
    span.start = facts[0].at;
    let last = facts.last().map_or(span.start, |fact| fact.at);
    span.end = Some(End { at: last, reason: EndReason::Matched });
    let minute = Timestamp(facts[0].at.0.div_euclid(MINUTE).saturating_mul(MINUTE));
    span.settled = world.clock >= minute.plus(MINUTE + world.config.settle_delay_ns);
    finish(&mut span, (false, false));
    span
}

fn singles(world: World<'_>, conversation: &Conversation, facts: &[Fact]) -> Vec<Span> {
    let minute = facts[0].at.0.div_euclid(MINUTE).to_string();
    let edits = facts.iter().filter_map(|fact| match &fact.kind {
        EventKind::TabEdit { path, added, removed } => Some((fact, path, *added, *removed)),
        _ => None,
    });
    edits
        .enumerate()
        .map(|(index, (fact, path, added, removed))| {
            let mut own = Attributes::default();
            own.path("file.path", path.as_deref());
            own.int("hookspan.edit.lines_added", Some(added));
            own.int("hookspan.edit.lines_removed", Some(removed));
            let key = format!("{minute}#{index}");
            let mut span = blank(conversation, SpanKind::Tab, &key, own);
            span.name = "cursor.tab.edit".to_owned();
            span.plain_name = Cow::Borrowed("cursor.tab.edit");
            span.trace = TraceId::derive("tab", &conversation.id, &key);
            span.start = fact.at;
            span.end = Some(End { at: fact.at, reason: EndReason::Matched });
            span.settled = world.clock >= fact.at.plus(MINUTE + world.config.settle_delay_ns);
            finish(&mut span, (false, false));
            span
        })
        .collect()
}

/// A span outside turns, with the attributes `own`.
fn blank(conversation: &Conversation, kind: SpanKind, key: &str, mut own: Attributes) -> Span {
    let name = match kind {
        SpanKind::Compaction => "context_compaction",
        SpanKind::Tab => "cursor.tab",
        _ => "cursor.session",
    };
    let root = &conversation.id;
    own.text("gen_ai.conversation.id", &**root);
    own.text("session.id", &**root);
    own.text("cursor.conversation.id", &**root);
    own.text("gen_ai.agent.name", conversation.host.as_str());
    own.text("hookspan.kind", kind.as_str());
    own.text("openinference.span.kind", openinference(kind));
    own.text("hookspan.surface", surface(conversation.version().map(|version| &**version)));
    Span {
        id: SpanId::derive(root, "", kind.as_str(), key),
        trace: TraceId([0; 16]),
        parent: None,
        links: Vec::new(),
        kind,
        name: name.to_owned(),
        plain_name: Cow::Borrowed(name),
        root: root.clone(),
        conversation: root.clone(),
        generation: Arc::from(""),
        workspace: conversation.workspace().cloned(),
        cursor_version: conversation.version().cloned(),
        start: Timestamp::default(),
        end: None,
        status: Status::Unset,
        attributes: own.finish(),
        events: Vec::new(),
        contents: Vec::new(),
        settled: false,
    }
}

/// Adds the attributes that depend on start and end.
fn finish(span: &mut Span, (start_inferred, end_inferred): (bool, bool)) {
    let mut own = Attributes::default();
    own.text("hookspan.timing", timing(start_inferred, end_inferred && span.end.is_some()));
    if let Some(end) = span.end {
        own.text("hookspan.end_reason", end.reason.as_str());
    }
    span.attributes.append(&mut own.finish());
    span.attributes.sort_by(|a, b| a.key.as_bytes().cmp(b.key.as_bytes()));
}
