//! Prints received telemetry: spans as lines below the call that they belong to, and the tokens of each program.

use std::collections::BTreeMap;

use hookspan_core::SpanId;
use hookspan_view::received::{AllReceived, Placed, ToldUsage};
use serde::Serialize;

use crate::cli::blank::Blank;
use crate::text;

/// Maximum number of lines below one call. The dashboard shows the others.
const LINES_MAX: usize = 12;
const DEPTH_MAX: usize = 6;

/// Lines of received spans, by the span of hookspan that they are printed below.
pub(super) struct Lines<'a> {
    by_call: BTreeMap<Option<SpanId>, Vec<&'a Placed>>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(all: &'a AllReceived) -> Self {
        let mut by_call: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for placed in &all.spans {
            by_call.entry(placed.below).or_default().push(placed);
        }
        Self { by_call }
    }

    /// The lines below a span, each a text and its duration.
    pub(super) fn below(&self, span: SpanId) -> Vec<(String, String)> {
        self.by_call.get(&Some(span)).map(|list| lines(list)).unwrap_or_default()
    }

    /// The lines of received spans that belong to no span in the waterfall.
    pub(super) fn elsewhere(&self, drawn: impl Fn(SpanId) -> bool) -> Vec<(String, String)> {
        let rest = self.by_call.iter().filter(|(below, _)| !below.is_some_and(&drawn));
        let rest: Vec<&Placed> = rest.flat_map(|(_, list)| list.iter().copied()).collect();
        lines(&rest)
    }
}

fn lines(list: &[&Placed]) -> Vec<(String, String)> {
    let line = |placed: &&Placed| {
        let span = &placed.span;
        let indent = "  ".repeat(placed.depth.min(DEPTH_MAX));
        let mark = if span.failed { "✗ " } else { "" };
        let how = match span.joined {
            Some(joined) if placed.depth == 0 => format!("  received, {}", joined.words()),
            _ => String::new(),
        };
        let service = if placed.depth == 0 { format!("{}: ", span.service) } else { String::new() };
        let length = text::duration(span.end_ns.saturating_sub(span.start_ns));
        (format!("{indent}{mark}{service}{}{how}", span.name), length)
    };
    let mut shown: Vec<_> = list.iter().take(LINES_MAX).map(line).collect();
    if list.len() > LINES_MAX {
        shown.push((format!("… {} more received", list.len() - LINES_MAX), String::new()));
    }
    shown
}

/// A line of tokens and cost for each program and model.
pub(super) fn usage(all: &AllReceived) -> Vec<String> {
    let told = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    let line = |one: &ToldUsage| {
        let model = one.model.as_deref().map_or(String::new(), |model| format!(", {model}"));
        let mut line = format!(
            "told by {}{model}: {} in ({} cache read, {} cache write), {} out",
            one.service,
            told(one.input),
            told(one.cache_read),
            told(one.cache_write),
            told(one.output)
        );
        if let Some(requests) = one.requests {
            line += &format!(", {}", text::counted(requests, "request"));
        }
        if let Some(cost) = one.cost {
            line += &format!(", {cost:.2} USD by its own estimate");
        }
        let source = match one.source {
            "counter" => "counters",
            "record" => "log records",
            _ => "spans",
        };
        format!("{line} (received over OTLP, {source})")
    };
    all.usage.iter().map(line).collect()
}

/// Redacts names, for `--redact`. Stored names were redacted when they arrived, but the rules may be newer.
pub(super) fn redact(all: &mut AllReceived, blank: &Blank) {
    for placed in &mut all.spans {
        for text in [&mut placed.span.name, &mut placed.span.service] {
            *text = blank.text(text).into_owned();
        }
    }
}

/// What `show --json` prints of it.
#[derive(Debug, Serialize)]
pub(super) struct ReceivedSpan {
    trace_id: String,
    span_id: String,
    parent_id: Option<String>,
    /// Our span below which it stands.
    below: Option<String>,
    name: String,
    service: String,
    /// How its session is known.
    joined: Option<&'static str>,
    start_ns: i64,
    duration_ns: i64,
    failed: bool,
    attributes: serde_json::Value,
}

impl From<Placed> for ReceivedSpan {
    fn from(Placed { below, span, .. }: Placed) -> Self {
        Self {
            trace_id: span.trace.to_string(),
            span_id: span.id.to_string(),
            parent_id: span.parent.map(|id| id.to_string()),
            below: below.map(|id| id.to_string()),
            name: span.name,
            service: span.service,
            joined: span.joined.map(|joined| joined.as_str()),
            start_ns: span.start_ns,
            duration_ns: span.end_ns.saturating_sub(span.start_ns),
            failed: span.failed,
            attributes: serde_json::from_str(&span.attributes).unwrap_or_default(),
        }
    }
}

/// Tokens and cost in `show --json`.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    service: String,
    model: Option<String>,
    source: &'static str,
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    cost_usd: Option<f64>,
    requests: Option<u64>,
}

impl From<ToldUsage> for Told {
    fn from(told: ToldUsage) -> Self {
        Self {
            service: told.service,
            model: told.model,
            source: told.source,
            input: told.input,
            output: told.output,
            cache_read: told.cache_read,
            cache_write: told.cache_write,
            cost_usd: told.cost,
            requests: told.requests,
        }
    }
}
