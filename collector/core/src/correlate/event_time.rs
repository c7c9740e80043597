//! Keeps a conversation's hooks in order even if the wall clock is set back between them.

use std::num::NonZeroU64;

use crate::model::time::Timestamp;
use crate::model::tolerance::{BOOT_DISORDER, CLOCK_BACK, CLOCK_STEP};

/// The last hook: its time, and the time since boot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steady {
    last: Option<(Timestamp, NonZeroU64)>,
}

impl Steady {
    /// The time of a hook. Hooks come in the order of the raw log. The result is the wall time. If the clock was set
    /// back, the result is the previous hook's time plus the time that has passed since then, measured by the time
    /// since boot.
    pub(crate) fn time(&mut self, wall: Timestamp, boottime: Option<NonZeroU64>) -> Timestamp {
        let Some(boot) = boottime else { return wall };
        let mut at = wall;
        if let Some((last, before)) = self.last {
            let steady = match boot.get().checked_sub(before.get()) {
                Some(ran) => last.plus(i64::try_from(ran).unwrap_or(i64::MAX)),
                None => match i64::try_from(before.get() - boot.get()) {
                    Ok(back) if back <= BOOT_DISORDER => {
                        let steady = last.plus(-back);
                        return if is_set_back(wall, steady) { steady } else { wall };
                    }
                    _ => wall,
                },
            };
            if wall < last && is_set_back(wall, steady) {
                at = steady;
            }
        }
        self.last = Some((at, boot));
        at
    }
}

fn is_set_back(wall: Timestamp, steady: Timestamp) -> bool {
    (CLOCK_STEP..=CLOCK_BACK).contains(&steady.since(wall))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tolerance::SECOND;

    /// Takes and returns seconds: pairs of wall clock and time since boot, and the resulting times.
    fn times<const N: usize>(hooks: [(i64, u64); N]) -> [i64; N] {
        let mut steady = Steady::default();
        hooks.map(|(wall, boot)| {
            let boot = NonZeroU64::new(boot * 1_000_000_000);
            steady.time(Timestamp(wall * SECOND), boot).0 / SECOND
        })
    }

    #[test]
    fn time_goes_on_where_the_clock_is_set_back_until_it_has_caught_up() {
        assert_eq!(times([(100, 10), (41, 11), (43, 13), (143, 113)]), [100, 101, 103, 143]);
        assert_eq!(times([(100, 10), (500, 11), (501, 12)]), [100, 500, 501], "set on");
        assert_eq!(times([(9_000, 10), (1, 11), (2, 12)]), [9_000, 1, 2], "by more than is kept");
    }

    #[test]
    fn disorder_another_boot_and_hooks_without_a_time_since_boot_stay_as_they_are() {
        assert_eq!(times([(100, 10), (99, 9), (101, 11)]), [100, 99, 101]);
        let out_of_order = [(3_700, 10), (111, 21), (110, 20), (112, 22)];
        assert_eq!(times(out_of_order), [3_700, 3_711, 3_710, 3_712]);
        assert_eq!(
            times([(3_700, 10), (111, 21), (3_699, 9)]),
            [3_700, 3_711, 3_699],
            "from before"
        );
        assert_eq!(times([(100, 9_000), (90, 5), (92, 7), (33, 8)]), [100, 90, 92, 93]);
        assert_eq!(times([(100, 0), (40, 0), (101, 0)]), [100, 40, 101]);
    }
}
