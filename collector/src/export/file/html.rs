//! Writes one self-contained page: no script, no other file, nothing loaded.
//!
//! maud escapes all text. Bars are SVG, so no inline style is needed, and the page's content security policy can forbid
//! everything except its one style sheet.

use std::collections::HashMap;
use std::io::Write;

use base64::Engine as _;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use super::{FileError, Selection, chrome, policy};
use crate::text;

const STYLE: &str = include_str!("page.css");

/// Maximum nesting depth. Only forged data is nested more deeply.
const MAX_DEPTH: usize = 24;

pub(super) fn write(
    selection: &Selection<'_>,
    out: &mut dyn Write,
    done: &mut dyn FnMut(),
) -> Result<(), FileError> {
    out.write_all(head(selection).into_string().as_bytes())?;
    for session in selection.sessions {
        let mut spans = Vec::new();
        super::spans(selection, session, |_, encoded| {
            spans.push(Span::decode(&*encoded)?);
            Ok(())
        })?;
        out.write_all(
            section(&selection.encoding.redacted(&session.root), &spans).into_string().as_bytes(),
        )?;
        done();
    }
    out.write_all(b"</main></body></html>\n")?;
    Ok(())
}

/// Everything before the first session. The caller closes it with `</main></body></html>`.
fn head(selection: &Selection<'_>) -> Markup {
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(STYLE));
    let rules = format!(
        "default-src 'none'; style-src 'sha256-{digest}'; form-action 'none'; base-uri 'none'"
    );
    let title = match selection.sessions {
        [one] => format!("Session {}", visible(&selection.encoding.redacted(&one.root))),
        many => format!("{} sessions", many.len()),
    };
    let rest = html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(rules);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="referrer" content="no-referrer";
            title { (title) " · hookspan" }
            style { (PreEscaped(STYLE)) }
        }
    };
    html! {
        (DOCTYPE)
        (PreEscaped("<html lang=\"en\">"))
        (rest)
        (PreEscaped("<body><main>"))
        header {
            h1 { (title) }
            p { "Written by hookspan " (env!("CARGO_PKG_VERSION")) ", content: " (policy(selection.encoding.content)) "." }
        }
    }
}

fn section(root: &str, spans: &[Span]) -> Markup {
    let mut traces: Vec<&[u8]> = Vec::new();
    for span in spans {
        if !traces.contains(&span.trace_id.as_slice()) {
            traces.push(&span.trace_id);
        }
    }
    html! {
        section {
            h2 { (visible(root)) }
            @for trace in traces {
                (waterfall(&spans.iter().filter(|span| span.trace_id == trace).collect::<Vec<_>>()))
            }
        }
    }
}

fn waterfall(spans: &[&Span]) -> Markup {
    let start = spans.iter().map(|span| span.start_time_unix_nano).min().unwrap_or(0);
    let end = spans.iter().map(|span| span.end_time_unix_nano).max().unwrap_or(start);
    let scale = Scale { start, length: (end - start).max(1) };
    let first = spans.first().map(|span| hex(&span.trace_id)).unwrap_or_default();
    html! {
        article {
            h3 { (text::duration((end - start).cast_signed())) " " small { "trace " (first) } }
            @for (depth, span) in in_order(spans) {
                (row(span, depth, scale))
            }
        }
    }
}

/// The spans depth first, children by start. A span whose parent is not in the list is a root.
fn in_order<'a>(spans: &[&'a Span]) -> Vec<(usize, &'a Span)> {
    let mut children: HashMap<&[u8], Vec<&'a Span>> = HashMap::new();
    let known: HashMap<&[u8], ()> =
        spans.iter().map(|span| (span.span_id.as_slice(), ())).collect();
    let mut stack: Vec<(usize, &'a Span)> = Vec::new();
    for span in spans {
        if known.contains_key(span.parent_span_id.as_slice()) {
            children.entry(span.parent_span_id.as_slice()).or_default().push(span);
        } else {
            stack.push((0, span));
        }
    }
    stack.reverse();
    let mut ordered = Vec::with_capacity(spans.len());
    while let Some((depth, span)) = stack.pop() {
        ordered.push((depth, span));
        let below = children.remove(span.span_id.as_slice()).unwrap_or_default();
        stack.extend(below.into_iter().rev().map(|child| (depth + 1, child)));
    }
    ordered
}

#[derive(Clone, Copy)]
struct Scale {
    start: u64,
    length: u64,
}

impl Scale {
    /// Horizontal position of `ns`, in thousandths of the width.
    fn at(self, ns: u64) -> u64 {
        let offset = u128::from(ns.saturating_sub(self.start)) * 1_000;
        u64::try_from(offset / u128::from(self.length)).unwrap_or(1_000).min(1_000)
    }
}

/// The span's duration; `?` if no hook reports it.
fn length(span: &Span) -> String {
    if span.attributes.iter().any(|pair| pair.key == "hookspan.duration_unknown") {
        return "?".to_owned();
    }
    let ns = span.end_time_unix_nano.saturating_sub(span.start_time_unix_nano);
    text::duration(ns.cast_signed())
}

fn row(span: &Span, depth: usize, scale: Scale) -> Markup {
    let (from, to) = (scale.at(span.start_time_unix_nano), scale.at(span.end_time_unix_nano));
    let failed = span.status.as_ref().is_some_and(|status| status.code == 2);
    let kind = attribute(span, "hookspan.kind");
    let class = format!("bar {}{}", safe_word(kind), if failed { " error" } else { "" });
    let indent = depth.min(MAX_DEPTH) * 12;
    html! {
        details {
            summary {
                svg.name viewBox="0 0 320 18" preserveAspectRatio="xMinYMid" aria-hidden="true" {
                    text x=(indent) y="13" { (visible(&span.name)) }
                }
                span.hidden { (visible(&span.name)) }
                svg viewBox="0 0 1000 18" preserveAspectRatio="none" aria-hidden="true" {
                    rect class=(class) x=(from) y="4" width=((to - from).max(2)) height="10" {}
                }
                span.time {
                    @if failed { b { "failed " } }
                    (length(span))
                }
            }
            dl {
                @for pair in &span.attributes {
                    dt { (visible(&pair.key)) }
                    dd { (shown(pair.value.as_ref())) }
                }
                @for event in &span.events {
                    dt { "event " (visible(&event.name)) }
                    dd {
                        @for pair in &event.attributes {
                            (visible(&pair.key)) " = " (shown(pair.value.as_ref())) " "
                        }
                    }
                }
                @if let Some(status) = span.status.as_ref().filter(|status| !status.message.is_empty()) {
                    dt { "status" }
                    dd { (visible(&status.message)) }
                }
            }
        }
    }
}

fn attribute<'a>(span: &'a Span, key: &str) -> &'a str {
    let found = span.attributes.iter().find(|pair| pair.key == key);
    match found.and_then(|pair| pair.value.as_ref()?.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text,
        _ => "",
    }
}

/// Returns `kind` as the name of a CSS class if it is one of our own words, otherwise an empty text.
fn safe_word(kind: &str) -> &'static str {
    hookspan_core::SpanKind::parse(kind).map_or("", hookspan_core::SpanKind::as_str)
}

fn shown(value: Option<&AnyValue>) -> String {
    match chrome::value(value) {
        serde_json::Value::String(text) => visible(&text),
        other => visible(&other.to_string()),
    }
}

/// Maud escapes markup. This function handles characters that change the writing direction, are invisible, or control a
/// terminal into which somebody pastes the text. Line breaks stay.
fn visible(text: &str) -> String {
    let lines = text.split('\n').map(|line| text::visible(line, usize::MAX));
    lines.collect::<Vec<_>>().join("\n")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
