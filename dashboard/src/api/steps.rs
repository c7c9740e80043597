//! The texts of a conversation, for a few rows at once. Each text is cut to the part that the page shows.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use hookspan_core::content::Content;
use hookspan_core::{Span, Status};
use hookspan_view::facet;
use hookspan_view::line::{Line, LineKind};
use hookspan_view::subject::subject_of;
use hookspan_view::{self as view, Source};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::edits::{Diff, Hunk, difference};
use super::extract::{Params, Route};
use super::files::file_url;
use super::payload::{self, Part, boundary};
use super::query::{OneOf, words};
use super::{Answer, json, read, session_url};
use crate::App;
use crate::problem::Problem;

/// Maximum number of rows in an answer: more than a page shows at once.
const ROWS_MAX: usize = 64;
/// Maximum size of a prompt, a thought, an answer or a task.
const PROSE_MAX_BYTES: usize = 16 * 1024;
/// The same for a copy. A copy is longer, because it has no "more" button.
const COPY_MAX_BYTES: usize = 128 * 1024;
/// Maximum size of the input or the output of a tool.
const DATA_MAX_BYTES: usize = 4 * 1024;
const DATA_MAX_LINES: usize = 40;
/// Maximum number of lines of one edit.
const EDIT_MAX_LINES: usize = 200;
/// Once an answer has this much text, the remaining rows are left for the next request.
const ANSWER_MAX_BYTES: usize = 512 * 1024;
/// Number of lines shown before the first error line of a failed call.
const BEFORE_ERROR: usize = 1;

/// Store rows separated by commas: `12,15,16`.
pub(super) struct Rows(Vec<i64>);

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        let rows: Result<Vec<i64>, _> =
            text.split(',').take(ROWS_MAX + 1).map(str::parse).collect();
        match rows {
            Ok(rows) if rows.len() <= ROWS_MAX => Ok(Self(rows)),
            _ => Err(D::Error::custom("at most 64 row numbers with commas between")),
        }
    }
}

impl JsonSchema for Rows {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Rows".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+(,[0-9]+){0,63}$" })
    }
}

words! {
    /// What the texts are for.
    Purpose { Page = "page", Copy = "copy" }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wanted {
    /// rows of the session, with commas between: at most 64
    rows: Option<Rows>,
    /// page unless given; copy redacts secrets and cuts less
    purpose: Option<OneOf<Purpose>>,
}

/// Texts of rows.
#[derive(Serialize, Default, JsonSchema)]
pub(super) struct Steps {
    items: Vec<StepItem>,
    /// Rows for which the answer had no room. Request them again.
    left: Vec<i64>,
}

/// What one row says.
#[derive(Serialize, JsonSchema)]
struct StepItem {
    row: i64,
    id: String,
    label: String,
    texts: Vec<StepText>,
    /// Null if the row is not an edit.
    edit: Option<StepEdit>,
    /// Why the call failed. Null if it did not fail.
    message: Option<String>,
    exit_code: Option<i64>,
    /// The page of the file that the call reads, changes or deletes.
    file_url: Option<String>,
    url: String,
}

/// A text of a row, or the part of it that matters.
#[derive(Serialize, JsonSchema)]
struct StepText {
    part: String,
    title: &'static str,
    kind: &'static str,
    /// Null when it is not stored.
    text: Option<String>,
    /// Size of the whole.
    bytes: usize,
    /// Lines of the whole.
    lines: usize,
    /// Number of lines of the whole text before the first line of `text`.
    before: usize,
    /// `text` is not the whole.
    cut: bool,
}

/// How a file was changed.
#[derive(Serialize, JsonSchema)]
struct StepEdit {
    added: i64,
    removed: i64,
    hunks: Vec<Hunk>,
    /// Number of lines that were left out of the hunks.
    left: usize,
    /// The edit is too large to be compared.
    summary: bool,
    /// The text is not stored.
    redacted: bool,
}

pub(super) async fn steps(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
    Params(wanted): Params<Wanted>,
) -> Answer<Steps> {
    let copy = wanted.purpose.is_some_and(|purpose| purpose.0 == Purpose::Copy);
    let rows = wanted.rows.map_or_else(Vec::new, |rows| rows.0);
    let found = read(&app, move |source| {
        if source.session(&root)?.is_none() {
            return Ok(None);
        }
        let mut steps = Steps::default();
        let mut room = ANSWER_MAX_BYTES;
        for row in rows {
            if room == 0 {
                steps.left.push(row);
                continue;
            }
            let found = source.span_row(row)?.filter(|(_, span)| *span.root == *root);
            let Some((row, span)) = found else { continue };
            let item = Reader { source, span: &span, copy }.item(row)?;
            room = room.saturating_sub(item.size());
            steps.items.push(item);
        }
        Ok(Some(steps))
    });
    json(found.await?.ok_or_else(|| Problem::not_found("session"))?)
}

impl StepItem {
    fn size(&self) -> usize {
        let texts = self.texts.iter().filter_map(|text| text.text.as_ref());
        let hunks = self.edit.iter().flat_map(|edit| &edit.hunks);
        texts.map(String::len).sum::<usize>() + hunks.map(Hunk::bytes).sum::<usize>()
    }
}

/// Reads the texts of one span.
struct Reader<'a> {
    source: &'a dyn Source,
    span: &'a Span,
    copy: bool,
}

impl Reader<'_> {
    fn item(&self, row: i64) -> view::Result<StepItem> {
        let span = self.span;
        let edit = LineKind::of(span) == LineKind::Edits;
        let message = match &span.status {
            Status::Unset => None,
            Status::Error { message, .. } => Some(self.clean(message.clone())),
        };
        let failed = message.is_some();
        // An edit is shown as a difference. The text of its result is needed only if the edit failed.
        let told = |part: &&Part| match part.name.as_str() {
            "input" => !edit,
            "output" => !edit || failed,
            name => ["prompt", "thought", "response", "task", "result", "error"].contains(&name),
        };
        let parts = payload::parts(span);
        let texts = parts.iter().filter(told).map(|part| self.text(part, failed));
        let subject = subject_of(self.source, span)?;
        Ok(StepItem {
            row,
            id: span.id.to_string(),
            label: self.clean(Line::new(row, None, span, subject.as_deref()).label),
            texts: texts.collect::<view::Result<_>>()?,
            edit: if edit { Some(self.edit(difference(self.source, span)?)) } else { None },
            message,
            exit_code: span.number("process.exit.code").map(|code| code as i64),
            file_url: facet::file(span).map(|file| file_url(file.project.as_deref(), &file.path)),
            url: format!("{}#{}", session_url(&span.root), span.id),
        })
    }

    fn text(&self, part: &Part, failed: bool) -> view::Result<StepText> {
        let (name, title) = (part.name.clone(), part.title);
        let Some(content) = payload::load(self.source, part)? else {
            let (bytes, lines, before, cut) = (0, 0, 0, false);
            let (part, kind) = (name, "text");
            return Ok(StepText { part, title, kind, text: None, bytes, lines, before, cut });
        };
        let content = if part.name == "output" { unwrapped(content) } else { content };
        let kind = payload::kind(&content);
        let whole = self.clean(content.text);
        let (bytes, lines) = (whole.len(), whole.lines().count());
        let data = matches!(part.name.as_str(), "input" | "output" | "error");
        let from = if data && failed && part.name != "input" { error_line(&whole) } else { 0 };
        let before = from.saturating_sub(BEFORE_ERROR);
        let text = match (data, self.copy) {
            (true, _) => excerpt(&whole, before, DATA_MAX_LINES, DATA_MAX_BYTES),
            (false, true) => excerpt(&whole, 0, usize::MAX, COPY_MAX_BYTES),
            (false, false) => excerpt(&whole, 0, usize::MAX, PROSE_MAX_BYTES),
        };
        let cut = text.len() < whole.len();
        let text = Some(text.to_owned());
        Ok(StepText { part: name, title, kind, text, bytes, lines, before, cut })
    }

    fn edit(&self, diff: Diff) -> StepEdit {
        let mut room = EDIT_MAX_LINES;
        let mut left = 0;
        let mut hunks = diff.hunks;
        for hunk in &mut hunks {
            left += hunk.cut(room);
            room -= hunk.lines().len();
            for line in hunk.lines() {
                line.text = self.clean(std::mem::take(&mut line.text));
                line.text.truncate(boundary(&line.text, DATA_MAX_BYTES));
            }
        }
        hunks.retain_mut(|hunk| !hunk.lines().is_empty());
        StepEdit {
            added: diff.added,
            removed: diff.removed,
            hunks,
            left,
            summary: diff.summary,
            redacted: diff.redacted,
        }
    }

    /// Prepares a text for its purpose. A copy is redacted, because it may leave this machine.
    fn clean(&self, text: String) -> String {
        if self.copy { self.source.redacted(&text) } else { text }
    }
}

/// The output of a command. Some hosts send it inside an object: `{"exitCode": 1, "output": "..."}`.
fn unwrapped(content: Content) -> Content {
    if !content.json {
        return content;
    }
    let Ok(Value::Object(fields)) = serde_json::from_str(&content.text) else { return content };
    let said = |name: &&str| fields.get(*name)?.as_str().filter(|text| !text.is_empty());
    let texts: Vec<&str> = ["output", "stdout", "stderr"].iter().filter_map(said).collect();
    match texts.is_empty() {
        true => content,
        false => Content { text: texts.join("\n"), json: false },
    }
}

/// Index of the first line of a tool's output that reports an error; 0 if there is none.
fn error_line(text: &str) -> usize {
    const SIGNS: [&str; 8] =
        ["error", "panicked", "failed", "fatal", "exception", "traceback", "not found", "denied"];
    let says = |line: &str| {
        let line = line.get(..boundary(line, 400)).unwrap_or_default().to_ascii_lowercase();
        SIGNS.iter().any(|sign| line.contains(sign))
    };
    text.lines().position(says).unwrap_or(0)
}

/// The part of a text that begins at line `from`, with at most this many lines and bytes.
fn excerpt(text: &str, from: usize, lines: usize, bytes: usize) -> &str {
    let starts = |n: usize| match n {
        0 => 0,
        _ => text.match_indices('\n').nth(n - 1).map_or(text.len(), |(at, _)| at + 1),
    };
    let rest = text.get(starts(from)..).unwrap_or_default();
    let end = match lines {
        usize::MAX => rest.len(),
        _ => rest.match_indices('\n').nth(lines - 1).map_or(rest.len(), |(at, _)| at),
    };
    &rest[..boundary(rest, end.min(bytes))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_begins_at_a_line_and_ends_at_a_character() {
        let text = "one\ntwo\nthrée\nfour";
        assert_eq!(excerpt(text, 0, 2, 100), "one\ntwo");
        assert_eq!(excerpt(text, 2, 9, 100), "thrée\nfour");
        assert_eq!(excerpt(text, 2, 9, 4), "thr", "é has two bytes");
        assert_eq!(excerpt(text, 9, 9, 100), "");
        assert_eq!(excerpt(text, 0, usize::MAX, 3), "one");
        assert_eq!(excerpt("", 0, 1, 10), "");
    }

    #[test]
    fn what_a_command_printed_is_taken_out_of_its_object() {
        let read = |text: &str| unwrapped(Content { text: text.to_owned(), json: true }).text;
        assert_eq!(read(r#"{"exitCode": 1, "output": "a\nb"}"#), "a\nb");
        assert_eq!(read(r#"{"stdout": "a", "stderr": "b"}"#), "a\nb");
        for other in [r#"{"output": ""}"#, r#"{"output": 5}"#, "[]", "5", "{"] {
            assert_eq!(read(other), other);
        }
    }

    #[test]
    fn a_failed_call_is_read_from_its_first_error() {
        assert_eq!(error_line("   Compiling a\nerror[E0308]: mismatched types\nerror: x"), 1);
        assert_eq!(error_line("a\nthread 'main' panicked at src/a.rs"), 1);
        assert_eq!(error_line("nothing of the kind"), 0);
        assert_eq!(error_line(""), 0);
    }

    #[test]
    fn rows_are_few_numbers() {
        let rows = |text: &str| serde_json::from_value::<Rows>(text.into()).map(|rows| rows.0);
        assert_eq!(rows("1,20,3").unwrap(), [1, 20, 3]);
        for wrong in ["", "1,", "a", "1;2", "1 ,2", "9999999999999999999999"] {
            assert!(rows(wrong).is_err(), "{wrong}");
        }
        let many = |n: usize| vec!["7"; n].join(",");
        assert_eq!(rows(&many(64)).unwrap().len(), 64);
        assert!(rows(&many(65)).is_err());
    }
}
