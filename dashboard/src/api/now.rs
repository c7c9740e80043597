//! What every agent is doing at this moment, compared with what is usual.
//!
//! [`hookspan_view::now`] decides a session's status and the reason for it. The terminal uses the same code.

use std::sync::Arc;

use axum::extract::State;
use hookspan_core::Timestamp;
use hookspan_core::content::{Field, extract};
use hookspan_view::Source;
use hookspan_view::label::shorten;
use hookspan_view::line::{Line, LineKind};
use hookspan_view::now::{Counts, OpenCall, Standing, standing};
use hookspan_view::source::LineFilter;
use hookspan_view::subject::readable;
use schemars::JsonSchema;
use serde::Serialize;

use super::period::DAY_NS;
use super::sessions::{CostItem, SessionItem, cost_of};
use super::{Answer, json, read, session_url};
use crate::App;

/// Maximum number of agents in one answer. Agents that need a person come first, then running agents, then agents whose
/// turn ended.
const AGENTS_MAX: usize = 24;
/// The strip of the last ten minutes: columns of ten seconds.
const COLUMNS: usize = 60;
const COLUMN_US: i64 = 10_000_000;
/// Spans that began up to this long before the strip may reach into it.
const BEFORE_US: i64 = 600_000_000;
/// Maximum number of spans that are read for one strip, newest first.
const SPANS_MAX: usize = 2_000;
/// Maximum length of the last sentence in characters.
const SAID_MAX: usize = 240;

/// All agents that run, ended a turn, or failed within a day.
#[derive(Serialize, JsonSchema)]
pub(super) struct Now {
    now_us: i64,
    agents: Vec<Agent>,
    counts: CountItem,
    /// Whether there are more agents than listed.
    more: bool,
}

/// Number of agents that need a person, including agents that are not listed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NowCounts")]
struct CountItem {
    /// Agents that wait until a person acts. The badge shows this number.
    need_you: usize,
    /// Agents whose turn ended.
    turn_ended: usize,
}

/// One session, and what it does.
#[derive(Serialize, JsonSchema)]
struct Agent {
    session: SessionItem,
    cost: Option<CostItem>,
    /// Number of the last turn.
    turn: u64,
    /// When it began.
    turn_us: Option<i64>,
    /// The turn's prompt, otherwise the session's first prompt.
    prompt: Option<String>,
    /// running, slow, approval_likely, question, stalled, failed, turn_ended
    status: &'static str,
    /// Whether a person is probably being waited for. Only then is an alarm needed.
    alarm: bool,
    /// The reason for the status, in words.
    reason: String,
    /// Since when.
    since_us: i64,
    /// The newest call without an end.
    call: Option<CallItem>,
    said: Option<Said>,
    strip: Strip,
}

/// A call that runs or waits.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OpenCall")]
struct CallItem {
    kind: &'static str,
    tool: String,
    /// The tool does nothing but ask a person.
    asks: bool,
    /// The call waits for a subagent, whose own calls may wait for a person.
    delegates: bool,
    label: String,
    since_us: i64,
    /// Median duration of this tool's calls over thirty days; null if there are fewer than eight.
    p50_us: Option<u64>,
    p95_us: Option<u64>,
    /// Number of calls whose duration is known.
    runs: u64,
    url: String,
}

/// The last thing that the agent wrote.
#[derive(Serialize, JsonSchema)]
struct Said {
    /// thinking or response
    kind: &'static str,
    /// Payload text, shortened.
    text: String,
    at_us: i64,
}

/// The last ten minutes in columns of ten seconds.
#[derive(Serialize, JsonSchema)]
struct Strip {
    from_us: i64,
    step_us: i64,
    lanes: Vec<Lane>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StripLane")]
struct Lane {
    kind: &'static str,
    /// Busy share of each column in percent. Parallel calls count once.
    busy: Vec<u8>,
}

pub(super) async fn now(State(app): State<Arc<App>>) -> Answer<Now> {
    let now_ns = app.clock.now_ns();
    json(read(&app, move |source| view(source, now_ns)).await?)
}

fn view(source: &dyn Source, now_ns: i64) -> hookspan_view::Result<Now> {
    let (mut found, mut more) = standing(source, Timestamp(now_ns))?;
    let counts = Counts::of(found.iter().map(|one| one.verdict.status));
    more |= found.len() > AGENTS_MAX;
    found.truncate(AGENTS_MAX);
    // Cards are sorted by the start of the session, so that a card does not move while its agent runs.
    let place = |one: &Standing| (one.session.started_at, one.session.root.clone());
    found.sort_by_cached_key(place);
    let now_us = now_ns / 1_000;
    let agents = found.into_iter().map(|one| agent(source, one, now_us));
    Ok(Now {
        now_us,
        agents: agents.collect::<hookspan_view::Result<_>>()?,
        counts: CountItem { need_you: counts.need_you, turn_ended: counts.turn_ended },
        more,
    })
}

fn agent(source: &dyn Source, one: Standing, now_us: i64) -> hookspan_view::Result<Agent> {
    let Standing { session, call, verdict } = one;
    let root = session.root.to_string();
    let turn = source.turns(&root)?.pop();
    let open = call.as_ref().map(|(line, _)| line.clone());
    Ok(Agent {
        cost: cost_of(source, &root)?,
        turn: turn.as_ref().map_or(session.generations, |turn| turn.index),
        turn_us: turn.as_ref().map(|turn| turn.started_at.as_us()),
        prompt: turn.and_then(|turn| turn.prompt).or_else(|| session.first_prompt.clone()),
        status: verdict.status.as_str(),
        alarm: verdict.status.alarms(),
        reason: verdict.reason,
        since_us: verdict.since.as_us(),
        said: said(source, &root, now_us)?,
        call: call.map(|(line, call)| call_item(&root, &line, call)),
        strip: strip(source, &root, open, now_us)?,
        session: SessionItem::from(session),
    })
}

fn call_item(root: &str, line: &Line, call: OpenCall) -> CallItem {
    CallItem {
        kind: line.kind.as_str(),
        tool: call.tool,
        asks: call.asks,
        delegates: call.delegates,
        label: line.label.clone(),
        since_us: call.start.as_us(),
        p50_us: call.usual.p50_us,
        p95_us: call.usual.p95_us,
        runs: call.usual.runs,
        url: format!("{}#{}", session_url(root), line.id),
    }
}

/// The newest thought or response, if it began within the last day.
fn said(source: &dyn Source, root: &str, now_us: i64) -> hookspan_view::Result<Option<Said>> {
    let mut newest: Option<Line> = None;
    for kind in [LineKind::Thinking, LineKind::Response] {
        let filter = LineFilter {
            session: Some(root.to_owned()),
            kind: Some(kind),
            from_ns: Some(now_us.saturating_mul(1_000) - DAY_NS),
            ..LineFilter::default()
        };
        for (_, line) in source.matching(&filter, None, 1)? {
            newest = newest.filter(|other| other.start > line.start).or(Some(line));
        }
    }
    let Some(line) = newest else { return Ok(None) };
    let Some((_, span)) = source.span_row(line.row)? else { return Ok(None) };
    let wanted = |field| matches!(field, Field::Thought | Field::Response);
    let Some(content) = span.contents.iter().find(|content| wanted(content.field)) else {
        return Ok(None);
    };
    let text = source.body(content.hook)?.and_then(|body| extract(content.field, &body));
    let text = text.map(readable);
    Ok(text.map(|content| Said {
        kind: line.kind.as_str(),
        text: shorten(&content.text, SAID_MAX),
        at_us: line.start.as_us(),
    }))
}

/// Kinds in the strip, in the order in which they are drawn.
const LANES: [LineKind; 7] = [
    LineKind::Thinking,
    LineKind::Response,
    LineKind::Tools,
    LineKind::Shell,
    LineKind::Mcp,
    LineKind::Edits,
    LineKind::Subagent,
];

fn strip(
    source: &dyn Source,
    root: &str,
    open: Option<Line>,
    now_us: i64,
) -> hookspan_view::Result<Strip> {
    let columns = i64::try_from(COLUMNS).unwrap_or(0);
    // Columns begin at multiples of ten seconds, so that they do not flicker.
    let from_us = (now_us.div_euclid(COLUMN_US) + 1 - columns) * COLUMN_US;
    let filter = LineFilter {
        session: Some(root.to_owned()),
        from_ns: Some((from_us - BEFORE_US).saturating_mul(1_000)),
        ..LineFilter::default()
    };
    let lines = source.matching(&filter, None, SPANS_MAX)?;
    let mut lines: Vec<Line> = lines.into_iter().map(|(_, line)| line).collect();
    if let Some(open) = open.filter(|open| lines.iter().all(|line| line.row != open.row)) {
        lines.push(open);
    }
    Ok(Strip { from_us, step_us: COLUMN_US, lanes: lanes(&lines, from_us, now_us) })
}

/// How busy each kind was. Pure.
fn lanes(lines: &[Line], from_us: i64, now_us: i64) -> Vec<Lane> {
    let lane = |kind: &LineKind| {
        let mut times: Vec<(i64, i64)> = lines
            .iter()
            .filter(|line| line.kind == *kind)
            .map(|line| (line.start.as_us(), line.end.map_or(now_us, |end| end.as_us())))
            .collect();
        times.sort_unstable();
        let mut busy = vec![0_i64; COLUMNS];
        let mut done = from_us;
        for (start, end) in times {
            // Time that an earlier span covers already counts only once.
            spread(&mut busy, start.max(done) - from_us, end - from_us);
            done = done.max(end);
        }
        let share = |us: i64| {
            u8::try_from(((us * 100 + COLUMN_US - 1) / COLUMN_US).min(100)).unwrap_or(100)
        };
        Lane { kind: kind.as_str(), busy: busy.into_iter().map(share).collect() }
    };
    let lanes = LANES.iter().map(lane);
    lanes.filter(|lane| lane.busy.iter().any(|&share| share > 0)).collect()
}

/// Adds the time from `start` to `end` to the columns that it overlaps.
fn spread(busy: &mut [i64], start: i64, end: i64) {
    let first = usize::try_from(start / COLUMN_US).unwrap_or(0);
    for (number, column) in busy.iter_mut().enumerate().skip(first) {
        let begin = i64::try_from(number).unwrap_or(0) * COLUMN_US;
        if begin >= end {
            break;
        }
        *column += (end.min(begin + COLUMN_US) - start.max(begin)).max(0);
    }
}

#[cfg(test)]
mod tests {
    use hookspan_core::SpanId;
    use hookspan_view::line::Outcome;

    use super::*;

    fn line(kind: LineKind, start_us: i64, end_us: Option<i64>) -> Line {
        Line {
            row: start_us,
            id: SpanId([0; 8]),
            parent: None,
            kind,
            label: String::new(),
            start: Timestamp(start_us * 1_000),
            end: end_us.map(|us| Timestamp(us * 1_000)),
            outcome: Outcome::Ok,
            flags: 0,
            wait_us: 0,
        }
    }

    #[test]
    fn the_strip_counts_time_once_cuts_it_at_its_edges_and_grows_with_an_open_call() {
        let from = 1_000_000_000;
        let at = |s: i64| from + s * 1_000_000;
        let lanes = lanes(
            &[
                // Begins before the strip.
                line(LineKind::Shell, at(-100), Some(at(5))),
                line(LineKind::Shell, at(15), Some(at(20))),
                // Runs at the same time as the previous line.
                line(LineKind::Shell, at(15), Some(at(20))),
                line(LineKind::Thinking, at(590), None),
                line(LineKind::Turn, at(-100), None),
                line(LineKind::Edits, at(30), Some(at(30))),
            ],
            from,
            at(595),
        );
        let busy = |kind: &str| lanes.iter().find(|lane| lane.kind == kind).map(|lane| &*lane.busy);
        let shell = busy("shell").unwrap();
        assert_eq!((shell.len(), &shell[..3]), (COLUMNS, &[50, 50, 0][..]));
        assert_eq!(busy("thinking").unwrap()[58..], [0, 50]);
        assert_eq!((busy("turn"), busy("edits")), (None, None));
    }
}
