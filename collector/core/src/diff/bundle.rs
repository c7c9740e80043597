//! Sums of settled turns that share an entry (a bundle).

use crate::assemble::turn_totals::Tally;
use crate::model::id::{SpanId, TraceId};
use crate::model::time::Timestamp;

/// What the turns of a bundle add to their session's totals.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) tally: Tally,
    /// Trace, span and start of the bundle's last turn.
    pub(crate) last: (TraceId, SpanId, Timestamp),
}
