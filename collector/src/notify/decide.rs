//! Decides which notices are new. Pure: the same sessions, memory and time give the same notices.

use std::collections::VecDeque;

use hookspan_core::Timestamp;
use hookspan_view::now::Standing;
use sha2::{Digest as _, Sha256};

use super::notice::kind;
use crate::config::notify::Kind;

const SECOND_NS: i64 = 1_000_000_000;
/// At the first look after a start, no notice is sent for a session whose last hook is older than this: a person has
/// seen it, or the notice would be of no use now.
const FRESH_NS: i64 = 600 * SECOND_NS;
/// Maximum number of notices in [`WINDOW_NS`]. Further notices are counted and not sent: nobody would read them.
const MOST: usize = 20;
const WINDOW_NS: i64 = 600 * SECOND_NS;
/// Maximum number of remembered notices. One look covers at most 200 sessions: 50 of each of four states.
const SEEN_MAX: usize = 4_096;

/// Notices that were already decided, as hashes: the id of a deleted session does not remain here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub seen: VecDeque<u64>,
    /// When the notices of the last [`WINDOW_NS`] were sent, nanoseconds since the epoch.
    told: VecDeque<i64>,
}

impl Memory {
    /// The memory as it was before a restart.
    pub(super) fn of(seen: VecDeque<u64>) -> Self {
        Self { seen, told: VecDeque::new() }
    }
}

/// The result of [`decide`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct New {
    /// Notices to send: the session's index in the list, and the kind of notice.
    pub notices: Vec<(usize, Kind)>,
    /// Number of new notices beyond the limit.
    pub dropped: u64,
    /// Whether the memory has changed.
    pub changed: bool,
}

/// Compares the sessions with the memory. `first` is true at the first look after a start.
pub(super) fn decide(
    memory: &mut Memory,
    sessions: &[Standing],
    wanted: impl Fn(Kind) -> bool,
    now: Timestamp,
    first: bool,
) -> New {
    let mut new = New::default();
    memory.told.retain(|at| now.0.saturating_sub(*at) < WINDOW_NS);
    for (place, one) in sessions.iter().enumerate() {
        let Some(kind) = kind(one.verdict.status).filter(|kind| wanted(*kind)) else { continue };
        let key = key(one, kind);
        if memory.seen.contains(&key) {
            continue;
        }
        memory.seen.push_back(key);
        new.changed = true;
        if first && now.since(one.session.last_at) > FRESH_NS {
            continue;
        }
        if memory.told.len() >= MOST {
            new.dropped += 1;
            continue;
        }
        memory.told.push_back(now.0);
        new.notices.push((place, kind));
    }
    let extra = memory.seen.len().saturating_sub(SEEN_MAX);
    drop(memory.seen.drain(..extra));
    new
}

/// Two notices with the same key are the same notice. The key names the session, the kind, and the time since which the
/// agent waits, the turn that ended or failed, or the last hook of a turn that hangs.
fn key(one: &Standing, kind: Kind) -> u64 {
    let which = match kind {
        Kind::Waiting => one.verdict.since.0,
        Kind::Finished | Kind::Failed => i64::try_from(one.session.generations).unwrap_or(i64::MAX),
        Kind::Hanging => one.session.last_at.0,
    };
    let text = format!("{}\n{kind}\n{which}", one.session.root);
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use hookspan_view::now::{Status, Verdict};

    use super::*;
    use crate::store::sample;

    const MINUTE_NS: i64 = 60 * SECOND_NS;

    fn standing(root: &str, status: Status, turn: u64, at: i64) -> Standing {
        let mut session = sample::session(root);
        (session.generations, session.last_at) = (turn, Timestamp(at));
        let verdict = Verdict { status, reason: String::new(), since: Timestamp(at) };
        Standing { session, call: None, verdict }
    }

    fn look(
        memory: &mut Memory,
        sessions: &[Standing],
        now: i64,
        first: bool,
    ) -> Vec<(usize, Kind)> {
        decide(memory, sessions, |_| true, Timestamp(now), first).notices
    }

    #[test]
    fn each_turn_and_call_is_told_once_also_after_a_restart() {
        let mut memory = Memory::default();
        let ended = |turn, at| [standing("a", Status::TurnEnded, turn, at)];
        assert_eq!(look(&mut memory, &ended(1, 0), 1, true), [(0, Kind::Finished)]);
        assert_eq!(look(&mut memory, &ended(1, 9), 10, false), [], "a late hook of the same turn");
        assert_eq!(look(&mut memory, &ended(2, 20), 21, false), [(0, Kind::Finished)]);
        let mut again = Memory { seen: memory.seen.clone(), ..Memory::default() };
        assert_eq!(look(&mut again, &ended(2, 20), 22, true), []);
        let waits = |since| [standing("a", Status::ApprovalLikely, 3, since)];
        assert_eq!(look(&mut again, &waits(30), 40, false), [(0, Kind::Waiting)]);
        assert_eq!(look(&mut again, &waits(30), 50, false), []);
        assert_eq!(look(&mut again, &waits(60), 70, false), [(0, Kind::Waiting)], "another call");
        let works = [standing("a", Status::Slow, 3, 70), standing("b", Status::Running, 1, 70)];
        assert_eq!(look(&mut again, &works, 80, false), [], "slow is no reason");
    }

    #[test]
    fn what_is_old_at_the_start_is_never_told() {
        let mut memory = Memory::default();
        let old =
            [standing("a", Status::Failed, 1, 0), standing("b", Status::Failed, 1, 20 * MINUTE_NS)];
        assert_eq!(look(&mut memory, &old, 21 * MINUTE_NS, true), [(1, Kind::Failed)]);
        assert_eq!(look(&mut memory, &old, 22 * MINUTE_NS, false), []);
        let hangs = [standing("c", Status::Stalled, 1, 0)];
        assert_eq!(
            look(&mut memory, &hangs, 22 * MINUTE_NS, false),
            [(0, Kind::Hanging)],
            "it became so while we looked"
        );
    }

    #[test]
    fn a_flood_is_counted_and_not_told() {
        let mut memory = Memory::default();
        let many: Vec<_> =
            (0..50).map(|n| standing(&format!("s{n}"), Status::TurnEnded, 1, 0)).collect();
        let new = decide(&mut memory, &many, |_| true, Timestamp(1), false);
        assert_eq!((new.notices.len(), new.dropped), (MOST, 30));
        let one = [standing("later", Status::TurnEnded, 1, WINDOW_NS)];
        assert_eq!(look(&mut memory, &one, WINDOW_NS + 2, false).len(), 1);
        let unwanted =
            decide(&mut Memory::default(), &many, |kind| kind == Kind::Failed, Timestamp(1), false);
        assert_eq!(unwanted, New::default());
        assert!(memory.seen.len() <= SEEN_MAX);
    }
}
