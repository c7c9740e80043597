//! What figures are grouped by and what filters select: the kind, tool, model and project of a span. `docs/figures.md`
//! defines them.

use std::borrow::Cow;

use hookspan_core::{Span, SpanKind, TurnSummary, path};

/// Maximum length of a tool's, model's or project's name in characters. A longer name is forged, or does not fit into a
/// table.
const NAME_CHARS: usize = 120;

/// The tool of a call, without its server.
#[must_use]
pub fn tool(span: &Span) -> Option<Cow<'_, str>> {
    (span.kind == SpanKind::Tool).then(|| said(span, "gen_ai.tool.name"))?
}

/// The model of a turn.
#[must_use]
pub fn model(span: &Span) -> Option<Cow<'_, str>> {
    (span.kind == SpanKind::Generation).then(|| said(span, "gen_ai.request.model"))?
}

/// The project of a workspace, see [`path::name`]. `None` without a workspace.
#[must_use]
pub fn project(workspace: &str) -> Option<Cow<'_, str>> {
    Some(cut(path::name(workspace))).filter(|name| !name.is_empty())
}

/// The file of a call that reads, changes or deletes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The project that the file belongs to; `None` if the file lies outside of the call's root.
    pub project: Option<String>,
    /// Path of the file: relative to the root, or absolute if the file lies outside.
    pub path: String,
}

/// The file that a call reads, changes or deletes. `None` for other calls: a search has only a folder.
#[must_use]
pub fn file(span: &Span) -> Option<File> {
    let class = span.text("hookspan.tool.class").unwrap_or_default();
    if span.kind != SpanKind::Tool || !matches!(class, "read" | "edit" | "delete") {
        return None;
    }
    let path = span.file_shown()?;
    let root = span.file_root().filter(|_| !path::is_absolute(&path));
    let project = root.and_then(project).map(Cow::into_owned);
    Some(File { project, path: path.into_owned() })
}

/// The turn of a span: the turn with the span's trace. If a trace has several turns, the last one that began before the
/// span.
#[must_use]
pub fn turn_of<'a>(span: &Span, turns: &'a [TurnSummary]) -> Option<&'a TurnSummary> {
    let of_trace = || turns.iter().filter(|turn| turn.trace == span.trace);
    let before = of_trace().filter(|turn| turn.started_at <= span.start);
    before
        .max_by_key(|turn| turn.started_at)
        .or_else(|| of_trace().max_by_key(|turn| turn.started_at))
}

fn said<'a>(span: &'a Span, key: &str) -> Option<Cow<'a, str>> {
    span.text(key).filter(|text| !text.is_empty()).map(cut)
}

/// A name, cut to the length that figures show.
#[must_use]
pub fn cut(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(NAME_CHARS) {
        Some((end, _)) => Cow::Owned(name[..end].to_owned()),
        None => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_the_last_name_of_a_path() {
        for (path, expected) in [
            ("/home/dev/api", Some("api")),
            ("/home/dev/api/", Some("api")),
            ("C:\\src\\api", Some("api")),
            ("api", Some("api")),
            ("/", Some("/")),
            ("", None),
        ] {
            assert_eq!(project(path).as_deref(), expected, "{path}");
        }
        assert_eq!(project(&"ü".repeat(200)).map(|name| name.chars().count()), Some(120));
    }
}
