//! Scripts, styles and pictures, embedded (read from `web/` in debug builds).

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

use crate::problem::Problem;

#[derive(RustEmbed)]
#[folder = "web/"]
#[include = "app/*"]
#[include = "vendor/*.js"]
struct Web;

/// Names the contents of all assets, so that a URL with it may be cached for ever.
pub(crate) static BUILD: LazyLock<String> = LazyLock::new(|| {
    let mut names: Vec<_> = Web::iter().collect();
    names.sort();
    let mut hash = Sha256::new();
    for name in names {
        if let Some(file) = Web::get(&name) {
            hash.update(name.as_bytes());
            hash.update(file.metadata.sha256_hash());
        }
    }
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
});

pub(crate) async fn asset(Path((build, path)): Path<(String, String)>) -> Response {
    // A page of an older build asks for files that may have changed under it: it must reload, not mix.
    if build != *BUILD {
        return Problem::not_found("asset in this build").into_response();
    }
    serve(&path)
}

pub(crate) async fn icon() -> Response {
    serve("app/icon.svg")
}

fn serve(path: &str) -> Response {
    let Some(file) = Web::get(path) else { return Problem::not_found("asset").into_response() };
    // A debug build reads the folder at every request, so nothing may be kept.
    let cache = if cfg!(debug_assertions) { "no-store" } else { "max-age=31536000, immutable" };
    let headers = [(header::CONTENT_TYPE, media_type(path)), (header::CACHE_CONTROL, cache)];
    let ours = path.starts_with("app/") && (path.ends_with(".js") || path.ends_with(".css"));
    match str::from_utf8(&file.data) {
        Ok(text) if ours && path.ends_with(".css") => (headers, tight(&bare(text))).into_response(),
        Ok(text) if ours => (headers, bare(text)).into_response(),
        _ => (headers, file.data).into_response(),
    }
}

/// Scripts and styles without indentation, and without the lines that are only a comment: those are for who reads the source.
/// The lines stay, empty, so that an error's line number is the source's.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for line in text.lines() {
        let start = line.trim_start();
        let block = inside || start.starts_with("/*");
        if !block && !start.starts_with("//") {
            out.push_str(start);
        }
        out.push('\n');
        inside = block && !start.ends_with("*/");
    }
    out
}

/// A style sheet without the spaces that only help to read it. Ours has no text in which such a space would count.
fn tight(css: &str) -> String {
    let spaces = [
        ("; ", ";"),
        (": ", ":"),
        (", ", ","),
        (" { ", "{"),
        (" }", "}"),
        ("} ", "}"),
        (";}", "}"),
    ];
    spaces.iter().fold(css.to_owned(), |css, (loose, tight)| css.replace(loose, tight))
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}
