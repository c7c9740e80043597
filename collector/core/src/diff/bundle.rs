//! The sums of settled turns that share an entry.

use crate::assemble::turn_totals::Tally;
use crate::model::id::{SpanId, TraceId};
use crate::model::time::Timestamp;

/// What a bundle of turns adds to its session.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) tally: Tally,
    /// Trace, span and start of its last turn.
    pub(crate) last: (TraceId, SpanId, Timestamp),
}
