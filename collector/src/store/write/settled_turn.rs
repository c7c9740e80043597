//! A turn that has just become final: what the sums of its day need to find it.

use std::sync::Arc;

use hookspan_core::SpanId;

/// A turn whose span has just settled.
#[derive(Debug)]
pub(super) struct SettledTurn {
    pub(super) root: Arc<str>,
    pub(super) span: SpanId,
    /// Last name of its workspace; empty when Cursor named none.
    pub(super) project: String,
}
