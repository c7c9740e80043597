//! Detects that the wall clock was set.

use hookspan_core::time::{BOOT_DISORDER_NS, CLOCK_STEP_NS};
use hookspan_core::{Hook, HookSource};

/// The counter.
pub(crate) const COUNTER: &str = "clock_steps";

/// The clocks of the last hook.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// Time since boot, and how far the wall clock is ahead of it, in nanoseconds.
    last: Option<(i64, i64)>,
}

impl Steps {
    /// Takes a hook in the order of the journal. Returns true if the wall clock was set since the previous hook. Also
    /// returns true if the machine was restarted and has run longer than before the restart, because the two cases look
    /// the same.
    pub(super) fn note(&mut self, hook: &Hook) -> bool {
        let shim = hook.source == HookSource::Shim;
        let boot = hook.boottime_ns.filter(|_| shim).and_then(|ns| i64::try_from(ns).ok());
        let Some(boot) = boot else { return false };
        let lead = hook.observed_at.0.saturating_sub(boot);
        match self.last.replace((boot, lead)) {
            Some((earlier, before)) if boot >= earlier.saturating_sub(BOOT_DISORDER_NS) => {
                lead.saturating_sub(before).saturating_abs() > CLOCK_STEP_NS
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use hookspan_core::Timestamp;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn hook(wall: i64, boot: u64) -> Hook {
        let boottime_ns = Some(boot * 1_000_000_000);
        Hook { observed_at: Timestamp(wall * SECOND), boottime_ns, ..Hook::default() }
    }

    #[test]
    fn a_clock_that_is_set_is_noticed_once() {
        let mut steps = Steps::default();
        // In this order: normal, out of order, after an hour's sleep, set back, normal, set forward by a day.
        let hooks = [(100, 5), (102, 7), (101, 6), (3_702, 3_607), (110, 3_615), (111, 3_616)];
        let found = hooks.map(|(wall, boot)| steps.note(&hook(wall, boot)));
        assert_eq!(found, [false, false, false, false, true, false]);
        assert!(steps.note(&hook(86_520, 3_625)));
    }

    #[test]
    fn another_boot_and_an_import_say_nothing() {
        let mut steps = Steps::default();
        assert!(!steps.note(&hook(1_000, 900)) && !steps.note(&hook(2_000, 20)));
        let import = Hook { source: HookSource::Import, ..hook(9, 21) };
        assert!(!steps.note(&import) && !steps.note(&Hook::default()));
        assert!(!steps.note(&hook(2_002, 22)));
    }
}
