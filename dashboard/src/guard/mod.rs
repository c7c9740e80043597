//! The one layer around everything: pages, assets, API, stream, fallback. The first rule that fails answers.
//!
//! A local port is reachable from any page in the user's browser and from any account on the machine. The rules keep out
//! rebinding (Host), foreign pages (Origin, Sec-Fetch-Site, content type) and other accounts (token); the headers make a
//! page that would render hostile text harmless.

mod headers;
mod hosts;
mod token;

pub(crate) use headers::POLICY;
pub use hosts::{BadHost, Hosts};
pub use token::Token;

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{self, HeaderMap, HeaderName};
use axum::http::{Method, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

/// Largest request body, bytes.
pub const BODY_MAX_BYTES: usize = 64 * 1024;

/// What the layer needs to know.
#[derive(Debug)]
pub struct Guard {
    /// Names under which the port may be asked.
    pub hosts: Hosts,
    /// The access token, or `None` when the owner chose to have none.
    pub token: Option<Token>,
    /// Routes that hold no data and may be linked to from elsewhere.
    pub pages: &'static [&'static str],
    /// Routes of the API that are reached before the token is known.
    pub open: &'static [&'static str],
}

/// The layer.
pub async fn layer(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.admit(request).await {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    headers::put(response.headers_mut());
    response
}

impl Guard {
    async fn admit(&self, request: Request) -> Result<Request, Problem> {
        method(&request)?;
        self.host(&request)?;
        self.origin(request.headers())?;
        self.fetch_site(&request)?;
        let request = body(request).await?;
        self.token(&request)?;
        Ok(request)
    }

    fn host(&self, request: &Request) -> Result<(), Problem> {
        let refused = || {
            Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "unknown-host",
                "unknown host",
                "this port does not answer to the name it was asked by",
                "ask 127.0.0.1 or localhost with the port, or start with --allow-host NAME:PORT",
            )
        };
        let host = only(request.headers(), &header::HOST).map_err(|_| refused())?;
        let host = host.ok_or_else(refused)?;
        let target = request.uri().authority();
        if self.hosts.lists(host)
            && target.is_none_or(|authority| self.hosts.lists(authority.as_str()))
        {
            return Ok(());
        }
        Err(refused())
    }

    fn origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        match only(headers, &header::ORIGIN) {
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.hosts.lists_origin(origin) => Ok(()),
            _ => Err(foreign("the Origin is not this dashboard")),
        }
    }

    fn fetch_site(&self, request: &Request) -> Result<(), Problem> {
        let headers = request.headers();
        let refused = || foreign("the request was made by another site");
        match only(headers, &SEC_FETCH_SITE).map_err(|_| refused())? {
            None | Some("same-origin" | "none") => Ok(()),
            Some(_) if self.is_page(request) && is_link(request) => Ok(()),
            Some(_) => Err(refused()),
        }
    }

    fn is_page(&self, request: &Request) -> bool {
        matched(request).is_some_and(|route| self.pages.contains(&route))
    }

    fn token(&self, request: &Request) -> Result<(), Problem> {
        let Some(token) = &self.token else { return Ok(()) };
        let path = request.uri().path();
        let private = path == "/api" || path.starts_with("/api/");
        let open = matched(request).is_some_and(|route| self.open.contains(&route));
        if !private || open || token.admits(request.headers()) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "token-required",
            "the token is missing or wrong",
            "this data is for the owner of the machine's account only",
            "run `hookspan open`, or send `Authorization: Bearer` with the token that `hookspan status --json` prints",
        ))
    }
}

static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
static SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
static SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

fn method(request: &Request) -> Result<(), Problem> {
    let hint = "the dashboard is read with GET and asked with POST, over HTTP/1.1";
    if !matches!(*request.method(), Method::GET | Method::HEAD | Method::POST) {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let title = "method not allowed";
        return Err(Problem::new(status, "method", title, "only GET, HEAD and POST", hint));
    }
    if request.version() != Version::HTTP_11 || request.headers().contains_key(header::UPGRADE) {
        let status = StatusCode::BAD_REQUEST;
        let detail = "only HTTP/1.1, without upgrade";
        return Err(Problem::new(status, "protocol", "protocol not spoken", detail, hint));
    }
    Ok(())
}

/// A link followed from another site: it shows the shell, which holds no data.
fn is_link(request: &Request) -> bool {
    let is = |name: &HeaderName, word| only(request.headers(), name) == Ok(Some(word));
    *request.method() == Method::GET
        && is(&SEC_FETCH_MODE, "navigate")
        && is(&SEC_FETCH_DEST, "document")
}

/// The content type keeps out what a foreign page can send without asking first (forms, `text/plain`).
async fn body(request: Request) -> Result<Request, Problem> {
    if *request.method() != Method::POST {
        return Ok(request);
    }
    let essence = only(request.headers(), &header::CONTENT_TYPE).ok().flatten();
    let essence = essence.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content-type",
            "not JSON",
            "a POST needs exactly one Content-Type, application/json",
            "send -H 'Content-Type: application/json'",
        ));
    }
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, BODY_MAX_BYTES).await.map_err(|_| {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            "body too large",
            format!("a body may have {BODY_MAX_BYTES} bytes"),
            "no endpoint needs more",
        )
    })?;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

fn foreign(detail: &'static str) -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "foreign-request",
        "foreign request",
        detail,
        "open the dashboard's own address; no other page may ask it",
    )
}

fn matched(request: &Request) -> Option<&str> {
    request.extensions().get::<MatchedPath>().map(MatchedPath::as_str)
}

/// The header came more than once, or is not text.
#[derive(Debug, PartialEq, Eq)]
struct NotOne;

/// The single value of a header, if it is there.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, NotOne> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(NotOne);
    }
    first.to_str().map(Some).map_err(|_| NotOne)
}
