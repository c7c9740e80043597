//! Chrome trace events, for Perfetto and `chrome://tracing`.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Map, Value, json};

use super::{FileError, Selection};

pub(super) fn write(
    selection: &Selection<'_>,
    out: &mut dyn Write,
    done: &mut dyn FnMut(),
) -> Result<(), FileError> {
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let mut events = Events { out, first: true };
    // Start of the whole trace. The first session starts first.
    let mut begin = None;
    for (index, session) in selection.sessions.iter().enumerate() {
        let process = index + 1;
        let name = json!({"name": selection.encoding.redacted(&session.root)});
        events.push(&json!({"ph": "M", "name": "process_name", "pid": process, "args": name}))?;
        let mut spans = Vec::new();
        super::spans(selection, session, |_, encoded| {
            spans.push(Span::decode(&*encoded)?);
            Ok(())
        })?;
        // An enclosing span comes before the spans inside it.
        spans.sort_by_key(|span| {
            (span.start_time_unix_nano, std::cmp::Reverse(span.end_time_unix_nano))
        });
        let mut lanes = Lanes::default();
        for span in &spans {
            let lane = lanes.place(span);
            let start = *begin.get_or_insert(span.start_time_unix_nano);
            events.push(&event(span, start, process, lane))?;
        }
        done();
    }
    let begin = Duration::from_nanos(begin.unwrap_or(0));
    let began_at = humantime::format_rfc3339_nanos(UNIX_EPOCH + begin);
    let other = json!({"times_count_from": began_at.to_string()});
    writeln!(events.out, "],\"otherData\":{other}}}")?;
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

fn event(span: &Span, begin: u64, process: usize, lane: usize) -> Value {
    let (start, end) = (us(span.start_time_unix_nano, begin), us(span.end_time_unix_nano, begin));
    let args: Map<String, Value> =
        span.attributes.iter().map(|pair| (pair.key.clone(), value(pair.value.as_ref()))).collect();
    json!({
        "ph": "X",
        "name": span.name,
        "cat": text(&span.attributes, "hookspan.kind"),
        "pid": process,
        "tid": lane + 1,
        "ts": start,
        "dur": (end - start).max(0.0),
        "args": args,
    })
}

/// Microseconds since the beginning of the trace, rounded to an eighth. A double can represent these values and their
/// sums exactly, so nested spans stay nested. The viewer drops slices that overlap even slightly.
#[expect(clippy::cast_precision_loss, reason = "an eighth of a microsecond is exact for 35 years")]
fn us(ns: u64, begin: u64) -> f64 {
    let since = i128::from(ns) - i128::from(begin);
    since.div_euclid(125) as f64 / 8.0
}

/// Rows of the viewer. Spans in one row must be nested, so overlapping calls get separate rows.
#[derive(Default)]
struct Lanes {
    /// Ends of the open spans in each row, outermost first.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nests_in_nanoseconds_nests_in_the_doubles_of_a_viewer() {
        let begin = 1_790_000_000_000_000_000;
        let mut random = 7_u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Times up to a month after the start of the trace. The inner span ends together with the outer span, or
            // just before.
            let (start, length) = (begin + random % 2_600_000_000_000_000, random % 9_000_000);
            let (outer, inner) =
                ([start, start + length], [start + length / 3, start + length - random % 3]);
            let slice = |[start, end]: [u64; 2]| {
                let ts = us(start, begin);
                (ts, us(end, begin) - ts)
            };
            let ((ts, dur), (inside, long)) = (slice(outer), slice(inner));
            if inner[1] >= inner[0] && inner[1] <= outer[1] {
                assert!(inside + long <= ts + dur, "{outer:?} {inner:?}");
            }
            let next = slice([outer[1], outer[1] + 5]);
            assert!(ts + dur <= next.0, "what follows begins behind it");
        }
        assert!((us(begin + 1_250, begin) - 1.25).abs() < f64::EPSILON);
    }
}
