//! The one place that reads a clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hookspan_core::Timestamp;

/// The wall clock now.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// A clock that never goes back, for measuring how long something has been waiting.
#[must_use]
pub(crate) fn instant() -> Instant {
    Instant::now()
}
