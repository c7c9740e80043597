//! Waits for a condition, never for a fixed time.

use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a busy machine with two cores. A test that needs this long fails anyway.
pub const SOON: Duration = Duration::from_secs(30);

/// First time between two checks. The time grows, because each check takes processor time from what is waited for.
const FIRST_STEP: Duration = Duration::from_millis(2);
const LAST_STEP: Duration = Duration::from_millis(250);

/// Calls `condition` until it returns a value. At `deadline` it panics with `what` and the last reason from
/// `condition`, so that a failure shows the state instead of "timed out".
#[track_caller]
pub fn eventually<T>(
    what: &str,
    deadline: Duration,
    mut condition: impl FnMut() -> Result<T, String>,
) -> T {
    let started = Instant::now();
    let mut step = FIRST_STEP;
    loop {
        match condition() {
            Ok(value) => return value,
            Err(state) if started.elapsed() > deadline => {
                panic!("not within {deadline:?}: {what}\nlast state: {state}")
            }
            Err(_) => pause(step),
        }
        step = (step * 3 / 2).min(LAST_STEP);
    }
}

/// Gives up the processor for at most `time`. This is not a sleep that a test relies on: the caller checks again.
pub fn pause(time: Duration) {
    thread::park_timeout(time);
}
