//! Sums of settled turns that share an entry (a bundle).

use crate::assemble::turn_totals::Tally;
use crate::model::id::{SpanId, TraceId};
use crate::model::time::Timestamp;

/// The part of its session's totals that comes from a bundle of turns.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) tally: Tally,
    /// Trace, span and start of its last turn.
    pub(crate) last: (TraceId, SpanId, Timestamp),
}
