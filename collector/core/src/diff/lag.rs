//! Delays the derivation of sessions that cost much to derive.

use crate::model::time::Timestamp;
use crate::model::tolerance::DERIVE_WAIT;

/// Cost of a derivation, and number of new facts since the last one.
///
/// A derivation reads an open turn and everything outside turns again. The more there is, the more new facts it waits for, so
/// the cost per fact stays about the same. Final results do not depend on the delay.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    /// Number of facts, spans and turns that the last derivation read.
    work: usize,
    pub(crate) fresh: usize,
    derived_at: Timestamp,
}

impl Lag {
    /// Below this number, a derivation never waits.
    const LIGHT: usize = 1_024;
    /// A derivation waits until this share of its last work is new, or [`DERIVE_WAIT`] per item has passed.
    const SHARE: usize = 8;

    /// Call this after a derivation that read this many items.
    pub(crate) const fn after(work: usize, derived_at: Timestamp) -> Self {
        Self { work, fresh: 0, derived_at }
    }

    pub(crate) const fn is_light(&self) -> bool {
        self.work < Self::LIGHT
    }

    pub(crate) const fn work(&self) -> usize {
        self.work
    }

    pub(crate) fn waits_until(&self, clock: Timestamp) -> Option<Timestamp> {
        let is_light = self.work < Self::LIGHT || self.fresh * Self::SHARE >= self.work;
        let wait = DERIVE_WAIT.saturating_mul(i64::try_from(self.work).unwrap_or(i64::MAX));
        let until = self.derived_at.plus(wait);
        (!is_light && until > clock).then_some(until)
    }
}
