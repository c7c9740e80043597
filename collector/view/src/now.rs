//! Judges what a session is doing at this moment, and whether it probably waits for a person.
//!
//! No hook reports that a person is asked for approval. If a call takes much longer than earlier calls of its tool, an
//! approval is *likely*, and the verdict gives this reason. With too few earlier calls, the verdict claims nothing.

use std::borrow::Cow;

use hookspan_core::{SessionState, SessionSummary, Timestamp};

use crate::Result;
use crate::facet;
use crate::line::Line;
use crate::source::{LatencyRow, LineFilter, SessionFilter, Sessions, Spans, Statistics};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;
/// Maximum number of sessions that are looked at per state.
pub const SESSIONS_MAX: usize = 50;
/// Sessions without a hook for a week are not searched. Such a session is stale after `session_idle`, an hour by
/// default. The limit lets the index on the last activity skip all older sessions.
const OPEN_NS: i64 = 7 * DAY_NS;
/// A failed session never becomes stale. It is listed for a day after its last hook.
const FAILED_NS: i64 = DAY_NS;
/// Days of earlier runs that say what is usual.
pub const USUAL_DAYS: i64 = 30;
/// Minimum number of runs from which usual times are computed.
const RUNS_MIN: u64 = 8;
/// A call that takes at most 10 s is never slow, because a person would not notice it.
const SHORT_NS: i64 = 10 * SECOND_NS;
/// A call whose tool may ask for approval probably waits for one after ten times the tool's 95th percentile.
const WAITS_FACTOR: i64 = 10;
/// A turn without a hook for 10 min has stalled.
const STALLED_NS: i64 = 600 * SECOND_NS;

/// A call that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// Name of its tool.
    pub tool: String,
    /// Whether the tool does nothing but ask a person.
    pub asks: bool,
    /// Whether the call waits for a subagent, whose own calls may wait for a person.
    pub delegates: bool,
    /// Its start.
    pub start: Timestamp,
    /// Earlier runs of its tool.
    pub usual: Usual,
}

/// How long the runs of a tool took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usual {
    /// Runs whose length is known.
    pub runs: u64,
    /// Their median; `None` if there are too few runs.
    pub p50_us: Option<u64>,
    /// Their 95th percentile; `None` if there are too few runs.
    pub p95_us: Option<u64>,
}

impl Usual {
    fn of(row: Option<&LatencyRow>) -> Self {
        let runs = row.map_or(0, |row| row.count.saturating_sub(row.unknown));
        let row = row.filter(|_| runs >= RUNS_MIN);
        Self {
            runs,
            p50_us: row.and_then(|row| row.p50_us),
            p95_us: row.and_then(|row| row.p95_us),
        }
    }
}

/// The open call that `line` shows. `usual` are the times of all tools.
///
/// # Errors
/// The span cannot be read.
pub fn open_call(
    source: &(impl Spans + ?Sized),
    line: &Line,
    usual: &[LatencyRow],
) -> Result<OpenCall> {
    let span = source.span_row(line.row)?.map(|(_, span)| span);
    let name = span.as_ref().and_then(facet::tool).map(Cow::into_owned);
    let tool = name.unwrap_or_else(|| line.label.split(' ').next().unwrap_or_default().to_owned());
    let class = span.as_ref().and_then(|span| span.text("hookspan.tool.class")).unwrap_or_default();
    Ok(OpenCall {
        asks: class == "question",
        delegates: class == "task",
        start: line.start,
        usual: Usual::of(usual.iter().find(|row| row.name == tool)),
        tool,
    })
}

/// The state of a session at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The agent works. No call takes longer than usual, as far as is known.
    Running,
    /// A call takes longer than usual. That alone is not a reason for an alarm.
    Slow,
    /// A call takes so long that it likely waits for a person.
    ApprovalLikely,
    /// A tool asks a person.
    Question,
    /// A turn runs, and no hook arrives.
    Stalled,
    /// The session or its last turn failed.
    Failed,
    /// The turn ended.
    TurnEnded,
}

impl Status {
    /// The status in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Slow => "slow",
            Self::ApprovalLikely => "approval_likely",
            Self::Question => "question",
            Self::Stalled => "stalled",
            Self::Failed => "failed",
            Self::TurnEnded => "turn_ended",
        }
    }

    /// The status in a terminal.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Slow => "slower than usual",
            Self::ApprovalLikely => "approval likely",
            Self::Question => "asks you",
            Self::Stalled => "no hook for ten minutes",
            Self::Failed => "failed",
            Self::TurnEnded => "turn ended",
        }
    }

    /// Whether it needs a person. Every list, number, badge and notification asks this function.
    #[must_use]
    pub const fn attention(self) -> Attention {
        match self {
            Self::ApprovalLikely | Self::Question | Self::Stalled | Self::Failed => {
                Attention::NeedsYou
            }
            Self::TurnEnded => Attention::TurnEnded,
            Self::Running | Self::Slow => Attention::None,
        }
    }

    /// Whether the session probably waits for a person.
    #[must_use]
    pub const fn alarms(self) -> bool {
        matches!(self.attention(), Attention::NeedsYou)
    }
}

/// How much a session needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Nothing happens until a person acts. This is an alarm, and the badge counts it.
    NeedsYou,
    /// Its turn ended, and a person may continue the session. This is the weakest alarm. It is counted separately, and
    /// the badge does not count it.
    TurnEnded,
    /// It works.
    None,
}

/// How many sessions need a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions in which nothing happens until a person acts.
    pub need_you: usize,
    /// Sessions whose turn ended.
    pub turn_ended: usize,
}

impl Counts {
    /// Counts sessions by their status.
    #[must_use]
    pub fn of(statuses: impl IntoIterator<Item = Status>) -> Self {
        let mut counts = Self::default();
        for status in statuses {
            match status.attention() {
                Attention::NeedsYou => counts.need_you += 1,
                Attention::TurnEnded => counts.turn_ended += 1,
                Attention::None => {}
            }
        }
        counts
    }

    /// Both numbers in the words that all places use. The second text is there only if its number is not 0.
    #[must_use]
    pub fn words(self) -> (String, Option<String>) {
        let need = match self.need_you {
            0 => "nothing needs you".to_owned(),
            1 => "1 needs you".to_owned(),
            n => format!("{n} need you"),
        };
        let ended = match self.turn_ended {
            0 => None,
            1 => Some("1 turn ended".to_owned()),
            n => Some(format!("{n} turns ended")),
        };
        (need, ended)
    }
}

/// A judgement about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The state of the session.
    pub status: Status,
    /// The reason, in words.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// A session with its judgement.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The session.
    pub session: SessionSummary,
    /// Its open call, if a turn runs.
    pub call: Option<(Line, OpenCall)>,
    /// The judgement.
    pub verdict: Verdict,
}

/// The sessions that matter now: a turn runs or has ended, or the session failed within a day. Sessions that need a
/// person come first, then those whose turn runs, then those whose turn ended; within each group, the newest first. At
/// most [`SESSIONS_MAX`] of each state are returned. The flag says whether there are more.
///
/// # Errors
/// The store cannot be read.
pub fn standing(
    source: &(impl Sessions + Spans + Statistics + ?Sized),
    now: Timestamp,
) -> Result<(Vec<Standing>, bool)> {
    let today = now.0.div_euclid(DAY_NS);
    let usual = source.latency("tool", (today - USUAL_DAYS, today))?;
    let (mut found, mut more) = (Vec::new(), false);
    for session in sessions(source, now, &mut more)? {
        let line = match is_open(&session) {
            true => source.open_call(&session.root)?,
            false => None,
        };
        let call = match line {
            Some(line) => {
                let call = open_call(source, &line, &usual)?;
                Some((line, call))
            }
            None => None,
        };
        let verdict = judge(&session, call.as_ref().map(|(_, call)| call), now);
        found.push(Standing { session, call, verdict });
    }
    found.sort_by_key(|one| match one.verdict.status.attention() {
        Attention::NeedsYou => 0,
        Attention::None => 1,
        Attention::TurnEnded => 2,
    });
    Ok((found, more))
}

/// The sessions that [`standing`] judges. A terminal that caches its judgements asks only for these.
///
/// # Errors
/// The store cannot be read.
pub fn sessions(
    source: &(impl Sessions + ?Sized),
    now: Timestamp,
    more: &mut bool,
) -> Result<Vec<SessionSummary>> {
    let mut found = Vec::new();
    for (state, ns) in [
        (SessionState::ToolOpen, OPEN_NS),
        (SessionState::Running, OPEN_NS),
        (SessionState::YourTurn, OPEN_NS),
        (SessionState::Errored, FAILED_NS),
    ] {
        let spans = LineFilter { from_ns: Some(now.0.saturating_sub(ns)), ..LineFilter::default() };
        let filter = SessionFilter { state: Some(state), spans, ..SessionFilter::default() };
        let mut some = source.sessions(&filter, None, SESSIONS_MAX + 1)?;
        *more |= some.len() > SESSIONS_MAX;
        some.truncate(SESSIONS_MAX);
        found.append(&mut some);
    }
    Ok(found)
}

/// Whether a turn runs.
#[must_use]
pub const fn is_open(session: &SessionSummary) -> bool {
    matches!(session.state, SessionState::ToolOpen | SessionState::Running)
}

/// Judges a session. `call` is its open call.
#[must_use]
pub fn judge(session: &SessionSummary, call: Option<&OpenCall>, now: Timestamp) -> Verdict {
    let verdict = |status, reason: &str| {
        let reason = reason.to_owned();
        Verdict { status, reason, since: session.last_at }
    };
    match (session.state, call) {
        (SessionState::Errored, _) => verdict(Status::Failed, "the turn failed"),
        (SessionState::ToolOpen | SessionState::Running, Some(call)) => judge_call(call, now),
        (SessionState::ToolOpen | SessionState::Running, None) => {
            match now.since(session.last_at) > STALLED_NS {
                true => verdict(Status::Stalled, "no hook for ten minutes, and no call is open"),
                false => verdict(Status::Running, "between two calls"),
            }
        }
        _ => verdict(Status::TurnEnded, "the turn ended"),
    }
}

fn judge_call(call: &OpenCall, now: Timestamp) -> Verdict {
    let verdict = |status, reason| Verdict { status, reason, since: call.start };
    if call.asks {
        return verdict(Status::Question, format!("{} asks a person", call.tool));
    }
    let (took, runs) = (now.since(call.start), call.usual.runs);
    let Some(p95_us) = call.usual.p95_us else {
        let reason = format!("{runs} earlier runs: too few to say what is usual");
        return verdict(Status::Running, reason);
    };
    let p95 = i64::try_from(p95_us.saturating_mul(1_000)).unwrap_or(i64::MAX);
    if took <= p95.max(SHORT_NS) {
        return verdict(Status::Running, format!("within the usual time of {runs} runs"));
    }
    // A percentile of 0 means less than a microsecond.
    let over = took / p95.max(1_000);
    // Nobody approves a subagent as such; its own calls are approved.
    if over >= WAITS_FACTOR && !call.delegates {
        let reason = format!("open {over} times as long as 95 % of {runs} runs took");
        return verdict(Status::ApprovalLikely, reason);
    }
    verdict(Status::Slow, format!("longer than 95 % of {runs} runs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(p95_us: Option<u64>, took_s: i64) -> OpenCall {
        OpenCall {
            tool: "Shell".to_owned(),
            asks: false,
            delegates: false,
            start: Timestamp(-took_s * SECOND_NS),
            usual: Usual { runs: 40, p50_us: p95_us.map(|us| us / 2), p95_us },
        }
    }

    fn status(call: &OpenCall) -> Status {
        judge_call(call, Timestamp(0)).status
    }

    #[test]
    fn an_alarm_has_a_reason_and_a_slow_call_is_none() {
        for (p95_s, took_s, expected) in [
            (3, 2, Status::Running),
            // The call takes longer than the percentile, but is too short to be noticed.
            (3, 9, Status::Running),
            (3, 12, Status::Slow),
            (3, 29, Status::Slow),
            (3, 30, Status::ApprovalLikely),
            (600, 700, Status::Slow),
            (0, 11, Status::ApprovalLikely),
        ] {
            let found = judge_call(&call(Some(p95_s * 1_000_000), took_s), Timestamp(0));
            assert_eq!(found.status, expected, "{p95_s} {took_s}");
            assert!(!found.reason.is_empty());
        }
        assert!(Status::ApprovalLikely.alarms() && !Status::Slow.alarms());
        assert_eq!(status(&call(None, 3_600)), Status::Running, "nothing to compare with");
        let task = OpenCall { delegates: true, ..call(Some(1_000_000), 3_600) };
        assert_eq!(status(&task), Status::Slow, "its subagent's calls are judged");
        assert_eq!(status(&OpenCall { asks: true, ..call(None, 1) }), Status::Question);
    }

    #[test]
    fn every_status_is_counted_once_and_an_ended_turn_apart() {
        use Status::{ApprovalLikely, Failed, Question, Running, Slow, Stalled, TurnEnded};
        let all = [Running, Slow, ApprovalLikely, Question, Stalled, Failed, TurnEnded];
        let counts = Counts::of(all);
        assert_eq!(counts, Counts { need_you: 4, turn_ended: 1 });
        let (need, ended) = counts.words();
        assert_eq!((&*need, ended.as_deref()), ("4 need you", Some("1 turn ended")));
        let (need, ended) = Counts::of([Running]).words();
        assert_eq!((&*need, ended), ("nothing needs you", None));
    }

    #[test]
    fn too_few_runs_and_runs_of_unknown_length_tell_nothing() {
        let row = |count, unknown| LatencyRow {
            count,
            unknown,
            p50_us: Some(1),
            p95_us: Some(2),
            ..LatencyRow::default()
        };
        assert_eq!(Usual::of(None), Usual::default());
        assert_eq!(Usual::of(Some(&row(9, 2))), Usual { runs: 7, p50_us: None, p95_us: None });
        let enough = Usual { runs: 8, p50_us: Some(1), p95_us: Some(2) };
        assert_eq!(Usual::of(Some(&row(10, 2))), enough);
    }
}
