//! How long a session that costs much to derive waits.

use crate::model::time::Timestamp;
use crate::model::tolerance::DERIVE_WAIT;

/// What deriving costs, and how much is new since the last time.
///
/// A derivation reads an open turn and all around turns anew. While there is much of that, a derivation waits for new facts
/// in proportion, so that a fact costs about the same however much there is. What is final does not depend on it.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    /// Facts, spans and turns that the last derivation looked at.
    work: usize,
    pub(crate) fresh: usize,
    derived_at: Timestamp,
}

impl Lag {
    /// Below this, nothing waits.
    const LIGHT: usize = 1_024;
    /// A derivation waits until this share of its last work is new, or [`DERIVE_WAIT`] has passed for each part of it.
    const SHARE: usize = 8;

    /// After a derivation that looked at so much.
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
