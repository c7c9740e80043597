//! The span that a URL names.

use hookspan_core::{Span, SpanId};
use hookspan_view::Source;

use crate::problem::Problem;

/// How a path names a span: sixteen hex digits are its id; fewer decimal digits are its store row.
pub(super) enum SpanRef {
    /// Stable.
    Id(SpanId),
    /// Not stable over a rebuild.
    Row(i64),
}

impl SpanRef {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let row = || text.parse().ok().filter(|&row| row > 0).map(Self::Row);
        SpanId::from_hex(text).map(Self::Id).or_else(row).ok_or_else(|| Problem::not_found("span"))
    }
}

/// The span that a path names, with its row.
pub(super) fn find(
    source: &dyn Source,
    span: &SpanRef,
) -> hookspan_view::Result<Option<(i64, Span)>> {
    match span {
        SpanRef::Id(id) => source.span(*id),
        SpanRef::Row(row) => source.span_row(*row),
    }
}
