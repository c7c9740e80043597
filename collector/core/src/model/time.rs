//! Points in time, from the shim's stamps.

pub use crate::model::tolerance::{BOOT_DISORDER as BOOT_DISORDER_NS, CLOCK_STEP as CLOCK_STEP_NS};

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
