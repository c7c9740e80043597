//! Labels of spans on pages and in the terminal.

use hookspan_core::{Span, SpanKind};

/// Longest label, in characters.
pub const LABEL_MAX_CHARS: usize = 120;

/// Joins `head` and `subject` to one label.
#[must_use]
pub fn with_subject(head: &str, subject: &str) -> String {
    shorten(&join(head, subject), LABEL_MAX_CHARS)
}

/// The label of `span`. `detail` comes from its content: a command, a query or a prompt.
#[must_use]
pub fn label(span: &Span, detail: Option<&str>) -> String {
    let tool = || span.text("gen_ai.tool.name").unwrap_or(&span.name);
    let file = if detail.is_none() { span.file_shown() } else { None };
    let subject = detail.or(file.as_deref()).unwrap_or_default();
    let words = match span.kind {
        SpanKind::Session => join("session", subject),
        SpanKind::Generation => match span.number("hookspan.generation.index") {
            Some(index) => join(&format!("turn {index}"), subject),
            None => join("turn", subject),
        },
        SpanKind::Thought => join("thought", subject),
        SpanKind::Response => join("response", subject),
        SpanKind::Subagent if is_of_no_known_parent(span) => "subagent, parent unknown".to_owned(),
        SpanKind::Subagent => join(span.text("gen_ai.agent.name").unwrap_or("subagent"), subject),
        SpanKind::Compaction => "context compaction".to_owned(),
        SpanKind::Tab => "Tab completions".to_owned(),
        SpanKind::Tool if subject.is_empty() => {
            span.name.strip_prefix("execute_tool ").unwrap_or(&span.name).to_owned()
        }
        SpanKind::Tool => join(tool(), subject),
    };
    shorten(&words, LABEL_MAX_CHARS)
}

/// Whether several delegations may have started this subagent.
fn is_of_no_known_parent(span: &Span) -> bool {
    span.text("hookspan.subagent.link") == Some("ambiguous")
}

fn join(word: &str, subject: &str) -> String {
    if subject.is_empty() { word.to_owned() } else { format!("{word} {subject}") }
}

/// The first line of `text` with white space reduced to single blanks. If it is longer than `max` characters, it is cut
/// and ends with an ellipsis.
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let room = max - count;
        let space = usize::from(count > 0);
        let chars = word.chars().take(room + 1).count() + space;
        if chars > room {
            out.extend(core::iter::repeat_n(' ', space.min(room.saturating_sub(1))));
            out.extend(word.chars().take(room.saturating_sub(1 + space)));
            out.push('…');
            return out;
        }
        out.extend(core::iter::repeat_n(' ', space));
        out.push_str(word);
        count += chars;
        if count == max {
            return out;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_line_of_bounded_length() {
        assert_eq!(shorten("  cargo\n test\t--all ", 120), "cargo test --all");
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abcdefg", 6), "abcde…");
        assert_eq!(shorten("abc defg", 6), "abc d…");
        assert_eq!(shorten("abcdef g", 6), "abcdef");
        let wide = "é".repeat(500);
        assert_eq!(shorten(&wide, 120).chars().count(), 120);
    }
}
