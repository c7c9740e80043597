//! Waiting for a condition, never for a time.

use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a busy machine with two cores; a test that needs it is failing anyway.
pub const SOON: Duration = Duration::from_secs(30);

/// Asking costs: the steps grow, so that a long wait does not keep from working what it waits for.
const FIRST_STEP: Duration = Duration::from_millis(2);
const LAST_STEP: Duration = Duration::from_millis(250);

/// Asks `condition` until it gives a value. At `deadline` it panics with `what` and the last reason `condition` gave, so
/// that a failure shows the state instead of "timed out".
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

/// Gives the processor away for at most `time`. Not a sleep a test relies on: the caller asks again.
pub fn pause(time: Duration) {
    thread::park_timeout(time);
}
