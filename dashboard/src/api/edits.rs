//! Lists which files were changed, and shows a single change. Texts in hooks have no position, so line numbers are
//! relative.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use hookspan_core::Span;
use hookspan_core::content::{EDIT_CHANGES, Field, extract};
use hookspan_view::Source;
use hookspan_view::facet::{self, turn_of};
use hookspan_view::line::LineKind;
use schemars::JsonSchema;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::extract::Route;
use super::files::file_url;
use super::span_ref::{SpanRef, find};
use super::{Answer, Page, json, read, session_url};
use crate::App;
use crate::problem::Problem;

/// Maximum number of edits of one session that are read.
const EDITS_MAX: usize = 20_000;
/// Maximum size of a change that is compared line by line. For a larger one only the sums are given.
const COMPARED_MAX_BYTES: usize = 256 * 1024;
/// Maximum time for a comparison. Lines that are not compared by then are shown as replaced.
const COMPARED_MAX_TIME: Duration = Duration::from_millis(40);
/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// A file that was changed.
#[derive(Serialize, JsonSchema)]
pub(super) struct EditItem {
    path: String,
    turns: Vec<u64>,
    added: i64,
    removed: i64,
    errors: usize,
    spans: Vec<EditSpan>,
    /// The file's page, which covers all sessions.
    page_url: Option<String>,
    url: String,
}

/// One change of a file.
#[derive(Serialize, JsonSchema)]
struct EditSpan {
    row: i64,
    id: String,
    at_us: i64,
    turn: Option<u64>,
    added: i64,
    removed: i64,
    failed: bool,
    url: String,
}

pub(super) async fn edits(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
) -> Answer<Page<EditItem>> {
    let session = root.clone();
    let found = read(&app, move |source| {
        if source.session(&root)?.is_none() {
            return Ok(None);
        }
        let turns = source.turns(&root)?;
        Ok(Some((turns, source.spans_of(&root, &[LineKind::Edits], EDITS_MAX)?)))
    });
    let (turns, spans) = found.await?.ok_or_else(|| Problem::not_found("session"))?;
    let mut files: BTreeMap<String, Vec<EditSpan>> = BTreeMap::new();
    let mut pages: BTreeMap<String, String> = BTreeMap::new();
    for (row, span) in &spans {
        if let Some(file) = facet::file(span) {
            pages.insert(path(span), file_url(file.project.as_deref(), &file.path));
        }
        let (added, removed) = lines(span);
        let item = EditSpan {
            row: *row,
            id: span.id.to_string(),
            at_us: span.start.as_us(),
            turn: turn_of(span, &turns).map(|turn| turn.index),
            added,
            removed,
            failed: matches!(span.status, hookspan_core::Status::Error { .. }),
            url: format!("{}#{}", session_url(&session), span.id),
        };
        files.entry(path(span)).or_default().push(item);
    }
    let mut items: Vec<_> =
        files.into_iter().map(|(path, spans)| file(&session, path, spans)).collect();
    for item in &mut items {
        item.page_url = pages.remove(&item.path);
    }
    items.sort_by_key(|item| item.spans.first().map(|span| span.at_us));
    json(Page { items, next: None })
}

fn file(session: &str, path: String, spans: Vec<EditSpan>) -> EditItem {
    // A failed edit has changed nothing.
    let done = || spans.iter().filter(|span| !span.failed);
    let turns: BTreeSet<u64> = spans.iter().filter_map(|span| span.turn).collect();
    EditItem {
        path,
        turns: turns.into_iter().collect(),
        added: done().map(|span| span.added).sum(),
        removed: done().map(|span| span.removed).sum(),
        errors: spans.iter().filter(|span| span.failed).count(),
        spans,
        page_url: None,
        url: format!("{}?view=edits", session_url(session)),
    }
}

fn whole(span: &Span, key: &str) -> i64 {
    span.number(key).unwrap_or(0.0) as i64
}

/// The lines that an edit adds and removes. All figures about lines come from here.
fn lines(span: &Span) -> (i64, i64) {
    (whole(span, "hookspan.edit.lines_added"), whole(span, "hookspan.edit.lines_removed"))
}

/// The file's path, relative to its root if it is inside.
fn path(span: &Span) -> String {
    span.file_shown().map_or_else(|| "unknown".to_owned(), Cow::into_owned)
}

/// One edit.
#[derive(Serialize, Default, JsonSchema)]
pub(super) struct Diff {
    id: String,
    path: String,
    /// Lines added, counted as in the list of edits.
    pub(super) added: i64,
    pub(super) removed: i64,
    bytes: usize,
    pub(super) hunks: Vec<Hunk>,
    /// Too large to be compared line by line: only the sums are given.
    pub(super) summary: bool,
    /// The text is not stored.
    pub(super) redacted: bool,
    url: String,
}

#[derive(Serialize, Default, JsonSchema)]
pub(super) struct Hunk {
    old_line: usize,
    new_line: usize,
    lines: Vec<DiffLine>,
}

impl Hunk {
    pub(super) fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.text.len()).sum()
    }

    pub(super) fn lines(&mut self) -> &mut [DiffLine] {
        &mut self.lines
    }

    /// Leaves out the lines after the first `keep`. Returns how many were left out.
    pub(super) fn cut(&mut self, keep: usize) -> usize {
        let left = self.lines.len().saturating_sub(keep);
        self.lines.truncate(keep);
        left
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DiffLine {
    /// A space, `-` or `+`.
    op: &'static str,
    pub(super) text: String,
}

pub(super) async fn diff(State(app): State<Arc<App>>, Route(span): Route<String>) -> Answer<Diff> {
    let span = SpanRef::parse(&span)?;
    let found = read(&app, move |source| {
        let found = find(source, &span)?.map(|(_, span)| span);
        let edit = found.filter(|span| LineKind::of(span) == LineKind::Edits);
        edit.map(|span| difference(source, &span)).transpose()
    });
    json(found.await?.ok_or_else(|| Problem::not_found("edit"))?)
}

/// What an edit changed.
pub(super) fn difference(source: &dyn Source, span: &Span) -> hookspan_view::Result<Diff> {
    // The hook after the edit has the texts that were really written. They are stored only if they differ from the
    // input.
    let parts = || span.contents.iter().filter(|part| part.field == Field::ToolInput);
    let input = parts().find(|part| part.key == EDIT_CHANGES).or_else(|| parts().next());
    let body = match input {
        Some(content) => source.body(content.hook)?,
        None => None,
    };
    let pairs = body
        .and_then(|body| extract(Field::ToolInput, &body))
        .and_then(|content| serde_json::from_str(&content.text).ok())
        .map(|input| changes(&input));
    let (added, removed) = lines(span);
    let mut diff = Diff {
        id: span.id.to_string(),
        added,
        removed,
        path: path(span),
        redacted: pairs.is_none(),
        url: format!("{}#{}", session_url(&span.root), span.id),
        ..Diff::default()
    };
    fill(&mut diff, &pairs.unwrap_or_default());
    Ok(diff)
}

/// Adds the changes as hunks, unless they are large.
fn fill(diff: &mut Diff, pairs: &[(String, String)]) {
    diff.bytes = pairs.iter().map(|(old, new)| old.len() + new.len()).sum();
    diff.summary = diff.bytes > COMPARED_MAX_BYTES;
    if !diff.summary {
        pairs.iter().for_each(|(old, new)| compare(diff, old, new));
    }
}

/// Old and new text of each change in a tool's input. Handles the input of all of Cursor's tools.
fn changes(input: &serde_json::Value) -> Vec<(String, String)> {
    let field = |value: &serde_json::Value, names: &[&str]| {
        names.iter().find_map(|name| value.get(*name)?.as_str().map(str::to_owned))
    };
    let pair = |value: &serde_json::Value| {
        let old = field(value, &["old_string", "oldText", "old_text"]);
        let new = field(
            value,
            &["new_string", "newText", "new_text", "contents", "content", "code_edit"],
        );
        (old.is_some() || new.is_some()).then(|| (old.unwrap_or_default(), new.unwrap_or_default()))
    };
    let listed = input.get("edits").and_then(serde_json::Value::as_array);
    let listed: Vec<_> = listed.into_iter().flatten().filter_map(pair).collect();
    if listed.is_empty() { pair(input).into_iter().collect() } else { listed }
}

/// Compares two texts line by line. A last line without a newline equals the same line with one, as in the counts of lines.
fn compare(diff: &mut Diff, old: &str, new: &str) {
    let old: Vec<&str> = old.split_terminator('\n').collect();
    let new: Vec<&str> = new.split_terminator('\n').collect();
    let compared = TextDiff::configure().timeout(COMPARED_MAX_TIME).diff_slices(&old, &new);
    for group in compared.grouped_ops(CONTEXT) {
        let mut hunk = Hunk::default();
        if let Some(first) = group.first() {
            hunk.old_line = first.old_range().start + 1;
            hunk.new_line = first.new_range().start + 1;
        }
        for change in group.iter().flat_map(|op| compared.iter_changes(op)) {
            let op = match change.tag() {
                ChangeTag::Equal => " ",
                ChangeTag::Delete => "-",
                ChangeTag::Insert => "+",
            };
            let text = change.value().trim_end_matches('\r').to_owned();
            hunk.lines.push(DiffLine { op, text });
        }
        diff.hunks.push(hunk);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_an_edit_is_read() {
        let pair = |old: &str, new: &str| vec![(old.to_owned(), new.to_owned())];
        for (input, expected) in [
            (json!({"old_string": "a", "new_string": "b"}), pair("a", "b")),
            (json!({"edits": [{"old_string": "a", "new_string": "b"}]}), pair("a", "b")),
            (json!({"path": "x", "contents": "all"}), pair("", "all")),
            (json!({"edits": [], "content": "all"}), pair("", "all")),
            (json!({"path": "x"}), vec![]),
            (json!("text"), vec![]),
            (json!({"edits": "no list", "old_string": 5}), vec![]),
        ] {
            assert_eq!(changes(&input), expected, "{input}");
        }
    }

    #[test]
    fn an_edit_of_a_megabyte_is_summed_up_and_the_largest_compared_one_ends_in_time() {
        let lines = |n: usize, word: &str| -> String {
            (0..n).map(|line| format!("{word} {}\n", line * 7_919 % 10_007)).collect()
        };
        let mut large = Diff::default();
        fill(&mut large, &[(lines(60_000, "old"), lines(70_000, "new"))]);
        assert!(large.bytes > 1_000_000 && large.summary && large.hunks.is_empty());
        // The largest texts that are compared, without a common line. The search for the smallest difference ends
        // within the time limit.
        let mut most = Diff::default();
        fill(&mut most, &[(lines(14_000, "old"), lines(14_000, "new"))]);
        assert!(!most.summary && most.bytes > COMPARED_MAX_BYTES * 9 / 10, "{}", most.bytes);
        let shown = |op: &str| {
            let lines = most.hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.op == op).count()
        };
        assert_eq!((shown("-"), shown("+")), (14_000, 14_000));
    }

    #[test]
    fn a_change_reads_as_hunks_with_relative_lines() {
        let old: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let mut diff = Diff::default();
        compare(&mut diff, &old, &old.replace("line 10\n", "line ten\n"));
        assert_eq!(diff.hunks.len(), 1);
        assert_eq!((diff.hunks[0].old_line, diff.hunks[0].new_line), (7, 7));
        let ops: String = diff.hunks[0].lines.iter().map(|line| line.op).collect();
        assert_eq!(ops, "   -+   ");
    }
}
