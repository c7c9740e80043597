//! Points in time, as the shim stamped them.

/// Wall clock and time since boot are read one after the other; only beyond this do they differ because a clock was set.
/// Nanoseconds.
pub const CLOCK_STEP_NS: i64 = 1_000_000_000;
/// Hooks of one moment come in any order; one whose time since boot lies further back is of another boot. Nanoseconds.
pub const BOOT_DISORDER_NS: i64 = 60 * 1_000_000_000;

/// Nanoseconds since the Unix epoch, wall clock. Arithmetic saturates: a forged time can be wrong, never fatal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This time plus `ns` nanoseconds (which may be negative).
    #[must_use]
    pub const fn plus(self, ns: i64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// Nanoseconds from `earlier` to this time; negative when the clock stepped back.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Microseconds since the epoch, the unit of the dashboard (nanoseconds pass 2^53).
    #[must_use]
    pub const fn as_us(self) -> i64 {
        self.0.div_euclid(1_000)
    }
}

/// Milliseconds to nanoseconds; saturates.
pub(crate) fn nanos(ms: f64) -> i64 {
    // `as` saturates at the ends of i64.
    (ms * 1e6).round() as i64
}
