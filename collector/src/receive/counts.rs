//! Counts requests that store nothing. The counts wait in memory until the next request or the next round stores them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Counts by counter name. All names are constants of this program, so there are few.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl Counts {
    pub(super) fn add(&self, key: &'static str, by: u64) {
        if by > 0 {
            let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry(key).or_default() += by;
        }
    }

    /// Removes and returns the counts, to be stored.
    pub(super) fn take(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds counts again that could not be stored.
    pub(super) fn give_back(&self, counts: &BTreeMap<&'static str, u64>) {
        counts.iter().for_each(|(key, by)| self.add(key, *by));
    }
}
