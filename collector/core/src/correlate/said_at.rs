//! Decides which of several values is valid, independent of the order in which hooks arrive.

use std::sync::Arc;

use crate::model::time::Timestamp;

/// A value with its time and hook.
pub(super) type SaidAt = (Timestamp, u64, Arc<str>);

/// Maximum number of values kept by [`note_first`]: the first ones.
const MAX_VALUES: usize = 8;

/// Records when a value was first seen. Values are ordered by that time, no matter in which order they are recorded.
pub(super) fn note_first(
    known: &mut Vec<SaidAt>,
    (at, seq): (Timestamp, u64),
    value: &str,
    shared: impl FnOnce() -> Arc<str>,
) {
    let place = known.iter().position(|(_, _, other)| **other == *value);
    let said = match place {
        Some(place) if (known[place].0, known[place].1) <= (at, seq) => return,
        Some(place) => known.remove(place).2,
        None => shared(),
    };
    let before = known.partition_point(|&(t, s, _)| (t, s) < (at, seq));
    known.insert(before, (at, seq, said));
    known.truncate(MAX_VALUES);
}

/// Replaces the value, unless the present one is later.
pub(super) fn latest(known: &mut Option<SaidAt>, (at, seq): (Timestamp, u64), value: &Arc<str>) {
    match known {
        Some((known_at, known_seq, known)) if (at, seq) > (*known_at, *known_seq) => {
            (*known_at, *known_seq) = (at, seq);
            if known != value {
                *known = value.clone();
            }
        }
        Some(_) => {}
        None => *known = Some((at, seq, value.clone())),
    }
}
