//! Delays the derivation of sessions that are expensive to derive.

use crate::model::time::Timestamp;
use crate::model::tolerance::DERIVE_WAIT;

/// The cost of the last derivation, and the number of new facts since.
///
/// A derivation reads an open turn, and everything outside turns, from the beginning. The more it has to read, the more
/// new facts it waits for. So the cost per fact stays about the same. The delay does not affect final results.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    /// Number of facts, spans and turns that the last derivation read.
    work: usize,
    /// Number of facts since then.
    pub(crate) fresh: usize,
    derived_at: Timestamp,
}

impl Lag {
    /// Below this number, a derivation never waits.
    const LIGHT: usize = 1_024;
    /// A derivation waits until new facts make up this share of its last work (one eighth), or [`DERIVE_WAIT`] per item
    /// has passed.
    const SHARE: usize = 8;

    /// The state after a derivation that read `work` items.
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
