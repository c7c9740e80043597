//! Chrome trace events, for Perfetto and `chrome://tracing`.

use std::io::Write;

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Map, Value, json};

use super::{FileError, Selection};

pub(super) fn write(
    selection: &Selection<'_>,
    out: &mut dyn Write,
    done: &mut dyn FnMut(),
) -> Result<(), FileError> {
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let mut events = Events { out, first: true };
    for (index, session) in selection.sessions.iter().enumerate() {
        let process = index + 1;
        let name = json!({"name": session.root});
        events.push(&json!({"ph": "M", "name": "process_name", "pid": process, "args": name}))?;
        let mut spans = Vec::new();
        super::spans(selection, session, |_, encoded| {
            spans.push(encoded);
            Ok(())
        })?;
        // An enclosing span comes before what it encloses.
        spans.sort_by_key(|span| {
            (span.start_time_unix_nano, std::cmp::Reverse(span.end_time_unix_nano))
        });
        let mut lanes = Lanes::default();
        for span in &spans {
            let lane = lanes.place(span);
            events.push(&event(span, process, lane))?;
        }
        done();
    }
    events.out.write_all(b"]}\n")?;
    Ok(())
}

struct Events<'a> {
    out: &'a mut dyn Write,
    first: bool,
}

impl Events<'_> {
    fn push(&mut self, event: &Value) -> Result<(), FileError> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.out, event)?;
        Ok(())
    }
}

fn event(span: &Span, process: usize, lane: usize) -> Value {
    let args: Map<String, Value> =
        span.attributes.iter().map(|pair| (pair.key.clone(), value(pair.value.as_ref()))).collect();
    json!({
        "ph": "X",
        "name": span.name,
        "cat": text(&span.attributes, "hookspan.kind"),
        "pid": process,
        "tid": lane + 1,
        "ts": us(span.start_time_unix_nano),
        "dur": us(span.end_time_unix_nano.saturating_sub(span.start_time_unix_nano)),
        "args": args,
    })
}

/// Microseconds; the format has no finer unit than fractions of them.
#[expect(clippy::cast_precision_loss, reason = "viewers read doubles")]
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Rows of the viewer. Spans of one row must nest, so calls that overlap go to rows of their own.
#[derive(Default)]
struct Lanes {
    /// Ends of the spans that are open in each row, outermost first.
    open: Vec<Vec<u64>>,
}

impl Lanes {
    fn place(&mut self, span: &Span) -> usize {
        let (start, end) = (span.start_time_unix_nano, span.end_time_unix_nano);
        for lane in &mut self.open {
            while lane.last().is_some_and(|open| *open <= start) {
                lane.pop();
            }
        }
        let free = |lane: &Vec<u64>| lane.last().is_none_or(|open| *open >= end);
        let index = self.open.iter().position(free).unwrap_or(self.open.len());
        if index == self.open.len() {
            self.open.push(Vec::new());
        }
        self.open[index].push(end);
        index
    }
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> &'a str {
    let found = attributes.iter().find(|pair| pair.key == key);
    match found.and_then(|pair| pair.value.as_ref()?.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text,
        _ => "",
    }
}

pub(super) fn value(value: Option<&AnyValue>) -> Value {
    match value.and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => json!(text),
        Some(any_value::Value::IntValue(number)) => json!(number),
        Some(any_value::Value::DoubleValue(number)) => json!(number),
        Some(any_value::Value::BoolValue(flag)) => json!(flag),
        Some(any_value::Value::ArrayValue(list)) => {
            list.values.iter().map(|item| self::value(Some(item))).collect()
        }
        _ => Value::Null,
    }
}
