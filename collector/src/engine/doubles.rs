//! Finds hooks that were delivered twice, by their content.
//!
//! Cursor runs the hooks of every hooks.json. If two such files have our entry, each event arrives twice within a few
//! milliseconds, as two records with different ids. The fold treats them as one. This counter informs the user.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use hookspan_core::Timestamp;
use hookspan_shim::hash::xxh64;

use crate::store::write::Arrival;

/// The counter.
pub(crate) const COUNTER: &str = "duplicate_content";
/// The fold treats equal hooks within this time as one.
const WINDOW_NS: i64 = 5_000_000_000;
/// Maximum number of remembered hooks. Far fewer arrive within the window. The oldest are forgotten first.
const MOST: usize = 4_096;

/// Hash of the body, and hash of event name and conversation.
type Key = (i64, u64);

/// Hooks of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Doubles {
    seen: HashMap<Key, Timestamp, RandomState>,
    order: VecDeque<(Timestamp, Key)>,
}

impl Doubles {
    /// Takes a hook that is new to the raw log. Returns true if an equal hook came less than five seconds earlier or
    /// later.
    pub(super) fn note(&mut self, arrival: &Arrival) -> bool {
        let reading = &arrival.reading;
        let name = xxh64(reading.name.as_bytes(), 0);
        let key = (arrival.body.xxh64, xxh64(reading.conversation.as_bytes(), name));
        self.meet(arrival.hook.observed_at, key)
    }

    fn meet(&mut self, at: Timestamp, key: Key) -> bool {
        let near = |one: &Timestamp| at.since(*one).saturating_abs() <= WINDOW_NS;
        if self.seen.get(&key).is_some_and(near) {
            return true;
        }
        self.seen.insert(key, at);
        self.order.push_back((at, key));
        if self.order.len() > MOST
            && let Some((at, key)) = self.order.pop_front()
            && self.seen.get(&key) == Some(&at)
        {
            self.seen.remove(&key);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn equal_hooks_are_one_within_five_seconds_of_the_first() {
        let mut doubles = Doubles::default();
        let found = [0, 1, 5, 6, 10, 2].map(|s| doubles.meet(Timestamp(s * SECOND), (7, 7)));
        assert_eq!(found, [false, true, true, false, true, true]);
        assert!(!doubles.meet(Timestamp(0), (7, 8)) && !doubles.meet(Timestamp(0), (8, 7)));
    }

    #[test]
    fn the_table_is_bounded_and_forgets_the_oldest() {
        let mut doubles = Doubles::default();
        let most = MOST as i64;
        assert!((0..=most).all(|key| !doubles.meet(Timestamp(0), (key, 0))));
        assert_eq!((doubles.seen.len(), doubles.order.len()), (MOST, MOST));
        assert!(doubles.meet(Timestamp(0), (most, 0)) && !doubles.meet(Timestamp(0), (0, 0)));
    }
}
