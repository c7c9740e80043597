//! A session as a file to keep.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hookspan_view::source::{FILE_CONTENTS, FILE_FORMATS};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::description::{Operation, Output};
use super::extract::{Params, Route};
use super::query::{OneOf, Words};
use super::read;
use crate::App;
use crate::guard::POLICY;
use crate::problem::Problem;

/// A format of a file.
#[derive(Clone, Copy)]
pub(super) struct Format {
    word: &'static str,
    extension: &'static str,
    media_type: &'static str,
}

/// The format if the request names none.
const HTML: Format =
    Format { word: "html", extension: "html", media_type: "text/html; charset=utf-8" };

impl Words for Format {
    fn all() -> impl Iterator<Item = Self> {
        let format = |(word, extension, media_type)| Self { word, extension, media_type };
        FILE_FORMATS.into_iter().map(format)
    }

    fn word(self) -> &'static str {
        self.word
    }
}

/// How much content a file contains.
#[derive(Clone, Copy)]
pub(super) struct Content(&'static str);

impl Words for Content {
    fn all() -> impl Iterator<Item = Self> {
        FILE_CONTENTS.into_iter().map(Self)
    }

    fn word(self) -> &'static str {
        self.0
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wanted {
    /// html unless given
    format: Option<OneOf<Format>>,
    /// metadata unless given
    content: Option<OneOf<Content>>,
}

/// A file to keep.
pub(super) struct SessionFile {
    media_type: &'static str,
    name: String,
    bytes: Vec<u8>,
}

impl IntoResponse for SessionFile {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, self.media_type.to_owned()),
            (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", self.name)),
            // If a browser opens the file by mistake, the file may run and load nothing.
            (header::CONTENT_SECURITY_POLICY, format!("{POLICY}; sandbox")),
        ];
        (headers, self.bytes).into_response()
    }
}

impl Output for SessionFile {
    fn describe(operation: &mut Operation<'_>) {
        for Format { media_type, .. } in Format::all() {
            operation.media(media_type, &json!({ "type": "string" }));
        }
    }
}

pub(super) async fn file(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
    Params(wanted): Params<Wanted>,
) -> Result<SessionFile, Problem> {
    let format = wanted.format.map_or(HTML, |format| format.0);
    let content = wanted.content.map_or("metadata", |content| content.0.0);
    let Format { word, extension, media_type } = format;
    let name = file_name(&root, extension);
    let bytes = read(&app, move |source| source.file(&root, word, content)).await?;
    let bytes = bytes.ok_or_else(|| Problem::not_found("session"))?;
    Ok(SessionFile { media_type, name, bytes })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Previewed {
    /// Name of a destination.
    destination: String,
    /// Root of a session; by default the last session.
    session: Option<String>,
}

/// What a destination would get, as a file. Nothing is sent.
pub(super) async fn preview(
    State(app): State<Arc<App>>,
    Params(Previewed { destination, session }): Params<Previewed>,
) -> Result<SessionFile, Problem> {
    let name = file_name(&destination, "preview.json");
    let bytes = read(&app, move |source| source.preview(&destination, session.as_deref())).await?;
    let bytes = bytes.ok_or_else(|| Problem::not_found("destination or session"))?;
    Ok(SessionFile { media_type: "application/json", name, bytes })
}

/// The plain letters and digits of the id. Line breaks, quotes and paths in the id must not get into a header.
fn file_name(root: &str, extension: &str) -> String {
    let id: String =
        root.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(36).collect();
    let id = if id.is_empty() { "session".to_owned() } else { id };
    format!("hookspan-{id}.{extension}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_holds_nothing_that_a_header_obeys() {
        assert_eq!(file_name("0176-a", "html"), "hookspan-0176-a.html");
        assert_eq!(file_name("a\r\nSet-Cookie: x\"/../", "html"), "hookspan-aSet-Cookiex.html");
        assert_eq!(file_name("\u{202e}", "html"), "hookspan-session.html");
    }
}
