//! When to try again.

use std::time::Duration;

/// Waits and intervals of a destination. Only tests make them shorter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Time from the settling of the first span in a batch until the batch is sent, even if it is not full.
    pub flush: Duration,
    /// First wait after a failure. Each further wait is twice as long.
    pub backoff: Duration,
    /// Maximum wait for the first failures, up to [`Self::patience`].
    pub backoff_max: Duration,
    /// Maximum wait after [`Self::patience`] failures.
    pub backoff_long: Duration,
    /// Number of failures in a row after which a destination counts as unreachable.
    pub patience: u32,
    /// First wait before a paused destination gets a batch again. The wait doubles from there.
    pub probe_first: Duration,
    /// Longest wait before a paused destination gets a batch again.
    pub probe: Duration,
    /// Maximum time between two looks at the store.
    pub poll: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            flush: Duration::from_secs(1),
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            backoff_long: Duration::from_secs(300),
            patience: 10,
            probe_first: Duration::from_secs(30),
            probe: Duration::from_secs(900),
            poll: Duration::from_secs(30),
        }
    }
}

impl Timing {
    /// Wait after the `attempts`-th failure in a row (from 1). It doubles, varies by ±20 % with `jitter` (0 to 1), and
    /// is never less than the server asked for.
    #[must_use]
    pub(crate) fn wait(&self, attempts: u32, asked: Option<Duration>, jitter: f64) -> Duration {
        let limit = if attempts > self.patience { self.backoff_long } else { self.backoff_max };
        let doublings = attempts.saturating_sub(1).min(20);
        let base = self.backoff.saturating_mul(1 << doublings).min(limit);
        let wait = base.mul_f64(0.8 + 0.4 * jitter.clamp(0.0, 1.0));
        asked.map_or(wait, |asked| wait.max(asked))
    }

    /// Wait of a paused destination after the `attempts`-th failure in a row.
    #[must_use]
    pub(crate) fn probe_after(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(20);
        self.probe_first.saturating_mul(1 << doublings).min(self.probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn wait(attempts: u32, asked: Option<u64>, jitter: f64, expected_ms: u128) {
        let wait = Timing::default().wait(attempts, asked.map(Duration::from_secs), jitter);
        assert_eq!(wait.as_millis(), expected_ms);
    }

    #[test]
    fn waits_double_from_a_second_to_a_minute_and_then_to_five() {
        wait(1, None, 0.5, 1_000);
        wait(2, None, 0.5, 2_000);
        wait(6, None, 0.5, 32_000);
        wait(7, None, 0.5, 60_000);
        wait(10, None, 0.5, 60_000);
        wait(11, None, 0.5, 300_000);
        wait(u32::MAX, None, 0.5, 300_000);
    }

    #[test]
    fn a_paused_destination_is_tried_ever_more_rarely() {
        let waits = [1, 2, 5, 6, u32::MAX].map(|n| Timing::default().probe_after(n).as_secs());
        assert_eq!(waits, [30, 60, 480, 900, 900]);
    }

    #[test]
    fn jitter_spreads_by_a_fifth_either_way() {
        wait(1, None, 0.0, 800);
        wait(1, None, 1.0, 1_200);
    }

    #[test]
    fn the_servers_delay_is_a_minimum() {
        wait(1, Some(30), 0.5, 30_000);
        wait(7, Some(30), 0.5, 60_000);
    }
}
