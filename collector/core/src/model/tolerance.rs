//! Every duration that decides something, in nanoseconds, with the reason for its length. A test rejects durations in
//! other files of the core. Settings that a person may change are in `Config`; their defaults are here.

/// A millisecond.
pub(crate) const MS: i64 = 1_000_000;
/// A second.
pub(crate) const SECOND: i64 = 1_000 * MS;
/// A minute. Tab events of the same minute share a span.
pub(crate) const MINUTE: i64 = 60 * SECOND;
/// An hour.
pub(crate) const HOUR: i64 = 60 * MINUTE;

/// Two equal hooks within 5 s are one hook that was delivered twice. In every capture we have, Cursor delivers the
/// second one within 2 s.
pub(crate) const REPEAT: i64 = 5 * SECOND;
/// Delegations that begin within 1 s come from one answer of the model. A second try comes from a later answer.
pub(crate) const AT_ONCE: i64 = SECOND;
/// Hooks of one moment may arrive in any order within 200 ms, because each hook is a separate process.
pub(crate) const DISORDER: i64 = 200 * MS;
/// Events within 5 s of a `sessionEnd` belong to the ended session. Its last stop often arrives after it.
pub(crate) const END_GRACE: i64 = 5 * SECOND;

/// Hooks of one event run for at most 60 s, which is Cursor's own limit.
pub(crate) const HOOKS: i64 = MINUTE;

/// The wall clock and the time since boot are read one after the other. If they differ by more than 1 s, the clock was
/// set.
pub const CLOCK_STEP: i64 = SECOND;
/// If a hook's time since boot is more than 60 s earlier than the last one's, the machine was booted again. Hooks of
/// one boot are never that far out of order.
pub const BOOT_DISORDER: i64 = MINUTE;
/// If the clock was set back by more than 2 h, the fold uses the new time. Keeping the old order would delay everything
/// by the same 2 h.
pub(crate) const CLOCK_BACK: i64 = 2 * HOUR;

/// Default of `session_idle`, 1 h: a person who returns later begins something new.
pub(crate) const SESSION_IDLE: i64 = HOUR;
/// Default of `generation_idle`, 30 min: a build or a test run may be silent for that long, and an approval may wait.
pub(crate) const GENERATION_IDLE: i64 = 30 * MINUTE;
/// Default of `settle_delay`, 2 s: in every capture we have, late hooks of a turn arrive within it.
pub(crate) const SETTLE_DELAY: i64 = 2 * SECOND;
/// Default of `flush_after`, 60 s: a person who watches a long turn in another tool sees its calls after a minute.
pub(crate) const FLUSH_AFTER: i64 = MINUTE;

/// A session with a hook in the last 5 min is busy: evicting it would cost a replay of its history at the next hook.
pub(crate) const AT_WORK: i64 = 5 * MINUTE;
/// If the fold is full, 10 s without a hook count as a pause: a working agent sends one every few seconds.
pub(crate) const PAUSE: i64 = 10 * SECOND;
/// Minimum time between two searches for sessions to evict, 250 ms: a search reads every session.
pub(crate) const LOOK: i64 = 250 * MS;
/// A derivation waits 0.2 ms for each fact that it reads. Reading one costs 2 µs, so one percent of the time is spent
/// on it.
pub(crate) const DERIVE_WAIT: i64 = MS / 5;
/// A search for links waits 0.1 ms for each conversation and delegation. Reading one costs 1 µs, so one percent of the
/// time is spent on it.
pub(crate) const LINK_WAIT: i64 = MS / 10;
