//! Every duration that decides something, in nanoseconds, with the reason for its length. No other file of the core writes one;
//! a test looks. What a person may set is in `Config`, its defaults are here.

/// A millisecond.
pub(crate) const MS: i64 = 1_000_000;
/// A second.
pub(crate) const SECOND: i64 = 1_000 * MS;
/// A minute: Tab events of one share a span.
pub(crate) const MINUTE: i64 = 60 * SECOND;
/// An hour.
pub(crate) const HOUR: i64 = 60 * MINUTE;

/// Two equal hooks within 5 s are one that was delivered twice: Cursor delivers the second within 2 s in every capture we have.
pub(crate) const REPEAT: i64 = 5 * SECOND;
/// Delegations that begin within 1 s were asked for at once: one answer of the model holds all of them, and a second try needs another.
pub(crate) const AT_ONCE: i64 = SECOND;
/// Hooks of one instant are written in any order, 200 ms apart at most: each is a process of its own, and starts in its own time.
pub(crate) const DISORDER: i64 = 200 * MS;
/// Events within 5 s of a `sessionEnd` belong to the session that ended: its last stop often comes behind it.
pub(crate) const END_GRACE: i64 = 5 * SECOND;

/// Hooks of one event run for at most 60 s, which is Cursor's own limit.
pub(crate) const HOOKS: i64 = MINUTE;

/// Wall clock and time since boot are read one after the other: beyond 1 s they differ because somebody set the clock.
pub const CLOCK_STEP: i64 = SECOND;
/// A hook whose time since boot lies more than 60 s back is of another boot: hooks of one boot are never so far out of order.
pub const BOOT_DISORDER: i64 = MINUTE;
/// A clock that was set back by more than 2 h is believed: keeping the order would delay what happens now by as much.
pub(crate) const CLOCK_BACK: i64 = 2 * HOUR;

/// Default of `session_idle`, 1 h: somebody who comes back later begins something new.
pub(crate) const SESSION_IDLE: i64 = HOUR;
/// Default of `generation_idle`, 30 min: a build or a test run may be silent for that long, and an approval may wait.
pub(crate) const GENERATION_IDLE: i64 = 30 * MINUTE;
/// Default of `settle_delay`, 2 s: late hooks of a turn come within it in every capture we have.
pub(crate) const SETTLE_DELAY: i64 = 2 * SECOND;
/// Default of `flush_after`, 60 s: somebody who watches a long turn elsewhere sees its calls after a minute.
pub(crate) const FLUSH_AFTER: i64 = MINUTE;

/// A session with a hook within 5 min is at work: its next hook would only bring its whole history back.
pub(crate) const AT_WORK: i64 = 5 * MINUTE;
/// When the fold is full, 10 s without a hook are a pause: a working agent sends one every few seconds.
pub(crate) const PAUSE: i64 = 10 * SECOND;
/// Sessions that may be evicted are looked for every 250 ms at most: a look costs as much as there are sessions.
pub(crate) const LOOK: i64 = 250 * MS;
/// A derivation waits 0.2 ms for each fact that it reads, which costs 2 µs: one percent of the time is spent on it.
pub(crate) const DERIVE_WAIT: i64 = MS / 5;
/// Links are looked for 0.1 ms later for each conversation and delegation, which costs 1 µs: one percent of the time, too.
pub(crate) const LINK_WAIT: i64 = MS / 10;
