//! A session as a file to keep.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse as _;
use hookspan_view::source::{FILE_CONTENTS, FILE_FORMATS};

use super::extract::{Params, Route};
use super::{Answer, read};
use crate::App;
use crate::guard::POLICY;
use crate::problem::Problem;

pub(super) async fn file(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
    params: Params,
) -> Answer {
    let wanted = params.text("format").unwrap_or("html");
    let format =
        FILE_FORMATS.into_iter().find(|(word, _, _)| *word == wanted).ok_or_else(|| {
            let words = FILE_FORMATS.map(|(word, _, _)| word).join(", ");
            Problem::bad_parameter("format", format!("one of {words}"))
        })?;
    let wanted = params.text("content").unwrap_or("metadata");
    let content = FILE_CONTENTS.into_iter().find(|word| *word == wanted).ok_or_else(|| {
        Problem::bad_parameter("content", format!("one of {}", FILE_CONTENTS.join(", ")))
    })?;
    let (word, extension, media_type) = format;
    let name = file_name(&root, extension);
    let bytes = read(&app, move |source| source.file(&root, word, content)).await?;
    let bytes = bytes.ok_or_else(|| Problem::not_found("session"))?;
    let headers = [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        // Opened by mistake, it may do nothing at all.
        (header::CONTENT_SECURITY_POLICY, format!("{POLICY}; sandbox")),
    ];
    Ok((headers, bytes).into_response())
}

/// Plain letters of the id, whatever it holds: line ends, quotes and paths do not get into a header.
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
