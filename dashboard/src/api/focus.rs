//! A single subagent: its part of the waterfall, its task, its result, and how certain the link to its parent is.

use std::collections::BTreeSet;

use hookspan_core::content::{Field, extract};
use hookspan_core::{Span, SpanKind};
use hookspan_view::Source;
use hookspan_view::line::{Line, LineKind};
use hookspan_view::source::Lines;
use hookspan_view::subject::readable;

use super::columns::{self, Columns, Focus, Link};
use super::span_ref::{SpanRef, find};
use super::{payload, read};
use crate::App;
use crate::problem::Problem;

/// Maximum number of bytes of the task and of the result. The rest is in the span's payload.
const TEXT_MAX_BYTES: usize = 16 * 1024;

pub(super) async fn answer(app: &App, focus: &str, lines: &mut Lines) -> Result<Columns, Problem> {
    let wanted = SpanRef::parse(focus)?;
    let inside = |line: &&Line| match wanted {
        SpanRef::Id(id) => line.id == id,
        SpanRef::Row(row) => line.row == row,
    };
    let not_found = || Problem::not_found("span in this session");
    let line = lines.lines.iter().find(inside).cloned().ok_or_else(not_found)?;
    keep_below(lines, line.row);
    let (task, result, link) = read(app, move |source| {
        let Some((_, span)) = find(source, &wanted)? else { return Ok((None, None, None)) };
        let task = content(source, &span, &[Field::Task, Field::Prompt])?;
        let result = content(source, &span, &[Field::Summary, Field::Response])?;
        Ok((task, result, link(&span)))
    })
    .await?;
    let own = |line: &&Line| !matches!(line.kind, LineKind::Session | LineKind::Turn);
    let is_call = |line: &&Line| {
        use LineKind::{Edits, Mcp, Shell, Tools};
        matches!(line.kind, Tools | Shell | Mcp | Edits)
    };
    let below = || lines.lines.iter().filter(|below| below.row != line.row);
    let focus = Focus {
        row: line.row,
        id: line.id.to_string(),
        calls: below().filter(is_call).count(),
        errors: below().filter(own).filter(|line| line.is_failure()).count(),
        start_us: line.start.as_us(),
        dur_us: line.length_ns().map(|ns| ns / 1_000),
        label: line.label.clone(),
        task,
        result,
        link,
    };
    let mut columns = columns::whole(std::mem::take(lines));
    columns.focus = Some(focus);
    Ok(columns)
}

/// Keeps the line `row` and all lines below it. Lines are sorted by start, and a child may begin before its parent. So
/// the lines are searched repeatedly until no more are found.
fn keep_below(lines: &mut Lines, row: i64) {
    let mut kept = BTreeSet::from([row]);
    loop {
        let before = kept.len();
        for line in &lines.lines {
            if line.parent.is_some_and(|parent| kept.contains(&parent)) {
                kept.insert(line.row);
            }
        }
        if kept.len() == before {
            break;
        }
    }
    lines.lines.retain(|line| kept.contains(&line.row));
    lines.total = lines.lines.len() as u64;
}

fn content(
    source: &dyn Source,
    span: &Span,
    fields: &[Field],
) -> hookspan_view::Result<Option<String>> {
    let Some(found) = span.contents.iter().find(|content| fields.contains(&content.field)) else {
        return Ok(None);
    };
    let body = source.body(found.hook)?;
    let text = body.and_then(|body| extract(found.field, &body)).map(readable);
    Ok(text.map(|content| {
        let mut text = content.text;
        text.truncate(payload::boundary(&text, TEXT_MAX_BYTES));
        text
    }))
}

fn link(span: &Span) -> Option<Link> {
    if span.kind != SpanKind::Subagent {
        return None;
    }
    let confidence = span.text("hookspan.subagent.link").unwrap_or("unknown").to_owned();
    let source = span.text("hookspan.subagent.link.source").map(str::to_owned);
    Some(Link { source, confidence })
}
