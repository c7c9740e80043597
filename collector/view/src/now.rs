//! Whether a running session needs a person, and why. Hooks report no question for approval, so that reason is only likely.

use hookspan_core::{SessionState, SessionSummary, Timestamp};

use crate::line::LineKind;
use crate::source::LatencyRow;

const SECOND_NS: i64 = 1_000_000_000;
/// So many earlier calls tell how long a tool usually takes.
const CALLS_MIN: u64 = 20;
/// A shorter call is never a reason.
const CALL_MIN_NS: i64 = 5 * SECOND_NS;
/// A call of a tool whose usual time is not known is a reason from here on.
const UNKNOWN_NS: i64 = 60 * SECOND_NS;
/// Without a hook for so long, a turn is quiet.
const QUIET_NS: i64 = 600 * SECOND_NS;

/// A call that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// What it is drawn as.
    pub kind: LineKind,
    /// Whether the tool asks a person.
    pub asks: bool,
    /// Its start.
    pub start: Timestamp,
}

/// Why a session needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A tool asks a question.
    Question,
    /// A call that needs approval runs longer than 95 % of the tool's calls: it may wait for an answer, or hang.
    ApprovalLikely,
    /// The turn ended.
    TurnEnded,
    /// The session or its last turn failed.
    Failed,
    /// A turn runs, and no hook arrives.
    Quiet,
}

impl Reason {
    /// The reason in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Question => "asks you",
            Self::ApprovalLikely => "approval likely",
            Self::TurnEnded => "your turn",
            Self::Failed => "failed",
            Self::Quiet => "quiet",
        }
    }
}

/// Why `session` needs a person now. `usual` are the earlier calls of the open call's tool.
#[must_use]
pub fn reason(
    session: &SessionSummary,
    call: Option<&OpenCall>,
    usual: Option<&LatencyRow>,
    now: Timestamp,
) -> Option<Reason> {
    match (session.state, call) {
        (SessionState::YourTurn, _) => Some(Reason::TurnEnded),
        (SessionState::Errored, _) => Some(Reason::Failed),
        (SessionState::Done | SessionState::Stale, _) => None,
        (_, Some(call)) if call.asks => Some(Reason::Question),
        (_, Some(call)) if is_late(call, usual, now) => Some(Reason::ApprovalLikely),
        (_, Some(_)) => None,
        (_, None) => (now.since(session.last_at) > QUIET_NS).then_some(Reason::Quiet),
    }
}

/// Whether a call that may need approval runs longer than it usually does.
fn is_late(call: &OpenCall, usual: Option<&LatencyRow>, now: Timestamp) -> bool {
    let needs_approval = matches!(call.kind, LineKind::Shell | LineKind::Mcp | LineKind::Edits);
    let known = usual.filter(|usual| usual.count.saturating_sub(usual.unknown) >= CALLS_MIN);
    let limit = known.and_then(|usual| usual.p95_us).map_or(UNKNOWN_NS, |us| {
        i64::try_from(us.saturating_mul(1_000)).unwrap_or(i64::MAX).max(CALL_MIN_NS)
    });
    needs_approval && now.since(call.start) > limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(kind: LineKind, age_s: i64, usual: Option<(u64, u64)>) -> bool {
        let call = OpenCall { kind, asks: false, start: Timestamp(0) };
        let usual = usual.map(|(count, p95_us)| LatencyRow {
            count,
            p95_us: Some(p95_us),
            ..LatencyRow::default()
        });
        is_late(&call, usual.as_ref(), Timestamp(age_s * SECOND_NS))
    }

    #[test]
    fn an_alarm_needs_a_reason() {
        // Ten seconds are usual for this tool.
        let usual = Some((100, 10_000_000));
        assert!(!late(LineKind::Shell, 9, usual));
        assert!(late(LineKind::Shell, 11, usual));
        // Nobody is asked about reading.
        assert!(!late(LineKind::Tools, 600, usual));
        // A tool that is always quick gives no alarm within five seconds.
        assert!(!late(LineKind::Edits, 4, Some((100, 50_000))));
        // Too few calls tell nothing.
        assert!(!late(LineKind::Shell, 11, Some((3, 10_000_000))));
        assert!(late(LineKind::Mcp, 61, None));
    }
}
