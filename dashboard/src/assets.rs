//! Scripts, styles and pictures: embedded and compressed by `build.rs`, and served as they are in the repository.

use std::borrow::Cow;

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

/// One file of `web/app` or `web/vendor`.
pub(crate) struct Asset {
    /// Below `web/`, with slashes.
    path: &'static str,
    /// Hash of the content, used as its version.
    hash: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
    brotli: &'static [u8],
}

// Defines `ASSETS` and `BUILD`. `BUILD` is a hash of all assets, so an address that contains it may be cached for ever.
include!(concat!(env!("OUT_DIR"), "/assets.rs"));

pub(crate) async fn asset(
    Path((build, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    // A page of an older build requests files that may have changed since. It must reload instead of mixing versions.
    if build != BUILD {
        return Problem::not_found("asset in this build").into_response();
    }
    serve(&path, &headers)
}

pub(crate) async fn icon(headers: HeaderMap) -> Response {
    serve("app/icons/icon.svg", &headers)
}

fn serve(path: &str, asked: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == path) else {
        return Problem::not_found("asset").into_response();
    };
    // A debug build serves edited files, so a browser must ask each time.
    let cache = if cfg!(debug_assertions) { "no-store" } else { "max-age=31536000, immutable" };
    let (body, encoding): (Cow<'static, [u8]>, _) = match asset.edited() {
        Some(bytes) => (bytes.into(), None),
        None => asset.smallest(asked),
    };
    let tag = format!("\"{}-{}\"", asset.hash, encoding.unwrap_or("plain"));
    let shared = [
        (header::CONTENT_TYPE, media_type(path)),
        (header::CACHE_CONTROL, cache),
        (header::VARY, "accept-encoding"),
        (header::ETAG, tag.as_str()),
    ];
    if has(asked, &tag) {
        return (StatusCode::NOT_MODIFIED, shared).into_response();
    }
    let encoding = encoding.map(|encoding| [(header::CONTENT_ENCODING, encoding)]);
    (shared, encoding, body).into_response()
}

impl Asset {
    /// The smallest form that the client accepts, with its content coding.
    fn smallest(&self, asked: &HeaderMap) -> (Cow<'static, [u8]>, Option<&'static str>) {
        let forms = [(self.brotli, "br", &["br"][..]), (self.gzip, "gzip", &["gzip", "x-gzip"])];
        for (bytes, coding, names) in forms {
            if bytes.len() < self.plain.len() && accepts(asked, names) {
                return (bytes.into(), Some(coding));
            }
        }
        (self.plain.into(), None)
    }

    /// The file's current content, if a developer has edited the file since the build, so that a reload shows it.
    /// Always `None` in release builds.
    fn edited(&self) -> Option<Vec<u8>> {
        if !cfg!(debug_assertions) {
            return None;
        }
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("web").join(self.path);
        std::fs::read(file).ok().filter(|bytes| bytes != self.plain)
    }
}

/// Whether the client accepts a content coding: the header has one of its names or `*`, and not with `q=0`.
fn accepts(asked: &HeaderMap, names: &[&str]) -> bool {
    let mut any = false;
    for value in asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|one| one.to_str().ok()) {
        for coding in value.split(',') {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            let weight = weight.trim().trim_start_matches(['q', 'Q', '=', ' ']);
            let wanted = weight.is_empty() || weight.parse().is_ok_and(|weight: f32| weight > 0.0);
            let name = name.trim();
            if names.iter().any(|one| one.eq_ignore_ascii_case(name)) {
                return wanted;
            }
            any |= name == "*" && wanted;
        }
    }
    any
}

/// Whether the client has this version already.
fn has(asked: &HeaderMap, tag: &str) -> bool {
    let tags = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|one| one.to_str().ok());
    let mut tags = tags.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coding_is_used_only_if_the_client_accepts_it() {
        for (value, gzip, brotli) in [
            ("gzip", true, false),
            ("gzip, deflate, br, zstd", true, true),
            ("br;q=1.0, gzip;q=0.8, *;q=0.1", true, true),
            ("GZip", true, false),
            ("BR", false, true),
            ("GZIP;q=0", false, false),
            ("gzip;q=0", false, false),
            ("gzip; q=0.000", false, false),
            ("gzip ; q=0.5", true, false),
            ("identity", false, false),
            ("br", false, true),
            ("br;q=0, *", true, false),
            ("brotli", false, false),
            ("*", true, true),
            ("*;q=0", false, false),
            ("gzip;q=0, *", false, true),
            ("GZip;q=1, identity;q=0", true, false),
            ("*;q=1, identity;q=0", true, true),
            ("identity;q=1, *;q=0", false, false),
            ("gzip;q=oops", false, false),
            ("", false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, value.parse().unwrap());
            assert_eq!(accepts(&headers, &["gzip", "x-gzip"]), gzip, "gzip of {value:?}");
            assert_eq!(accepts(&headers, &["br"]), brotli, "Brotli of {value:?}");
        }
        assert!(!accepts(&HeaderMap::new(), &["gzip"]));
    }
}
