//! The security layer around all routes: pages, assets, API, stream and fallback. The first rule that fails determines
//! the answer.
//!
//! Any page in the user's browser and any account on the machine can reach a local port. The rules keep out DNS
//! rebinding (Host), foreign pages (Origin, Sec-Fetch-Site, content type) and other accounts (the door). The headers
//! make hostile text on a page harmless.

mod access;
mod door;
mod headers;
mod hosts;
mod proof;

pub use access::{Access, BadToken, BrowserSession, Knock, ScriptToken, Vault, VaultError};
pub use door::Door;
pub(crate) use door::{Answered, Refused, Who};
pub(crate) use headers::POLICY;
pub use hosts::BadHost;
pub(crate) use hosts::Hosts;
pub(crate) use proof::Handshake;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use self::door::{Receipt, Shown};
use crate::problem::Problem;

/// Largest request body, bytes.
pub(crate) const BODY_MAX_BYTES: usize = 64 * 1024;

/// Settings of the layer.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Host names under which the port may be used.
    pub(crate) hosts: Hosts,
    /// The door, or `None` if the owner admits everybody.
    pub(crate) door: Option<Arc<Door>>,
    /// Name of the cookie that earlier versions used. It contained a token and is removed.
    pub(crate) old_cookie: String,
    /// Routes without data, which other sites may link to.
    pub(crate) pages: &'static [&'static str],
    /// Routes of the API that are used to sign in.
    pub(crate) open: &'static [&'static str],
}

/// Marks a request over a Unix socket. Browsers cannot reach such a socket, so the request may use `localhost` without
/// a port.
#[derive(Clone, Copy, Debug)]
pub struct BySocket;

/// Maximum time for receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The layer.
pub(crate) async fn layer(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    if request.headers().contains_key(&SERVICE_WORKER) {
        return no_service_worker();
    }
    let had_cookie = guard.has_old_cookie(request.headers());
    let (mut response, receipt) = match guard.admit(request).await {
        Ok((request, receipt)) => (next.run(request).await, receipt),
        Err(problem) => (problem.into_response(), None),
    };
    if let Some(receipt) = receipt
        && let Ok(value) = HeaderValue::from_str(&receipt.answer(response.status().as_u16()))
    {
        response.headers_mut().insert(HeaderName::from_static("hookspan-proof"), value);
    }
    if had_cookie {
        let gone = format!("{}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict", guard.old_cookie);
        if let Ok(value) = HeaderValue::from_str(&gone) {
            response.headers_mut().append(header::SET_COOKIE, value);
        }
    }
    headers::put(response.headers_mut());
    response
}

/// The dashboard has no service worker. If a browser asks for one, another program installed that worker while it used
/// the port and no collector ran. The answer is a worker that removes itself and reloads the pages.
fn no_service_worker() -> Response {
    const LEAVE: &str = "self.addEventListener(\"install\", () => self.skipWaiting());\n\
        self.addEventListener(\"activate\", async () => {\n\
        \x20 await self.registration.unregister();\n\
        \x20 for (const tab of await self.clients.matchAll({ type: \"window\", includeUncontrolled: true })) tab.navigate(tab.url);\n\
        });\n";
    let mut response = ([(header::CONTENT_TYPE, "text/javascript")], LEAVE).into_response();
    headers::put(response.headers_mut());
    response
}

impl Guard {
    async fn admit(&self, request: Request) -> Result<(Request, Option<Receipt>), Problem> {
        method(&request)?;
        self.host(&request)?;
        self.origin(request.headers())?;
        self.fetch_site(&request)?;
        let (mut request, body) = body(request).await?;
        let signed = take_signature(&mut request);
        let receipt = self.person(&mut request, &body, signed.as_deref())?;
        Ok((request, receipt))
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
        let by_socket = request.extensions().get::<BySocket>().is_some() && host == "localhost";
        if (by_socket || self.hosts.lists(host))
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

    /// Finds out who sends a request, for the handlers. Refuses senders that are not admitted.
    fn person(
        &self,
        request: &mut Request,
        body: &[u8],
        signed: Option<&str>,
    ) -> Result<Option<Receipt>, Problem> {
        let Some(door) = &self.door else {
            request.extensions_mut().insert(Who::Anyone);
            return Ok(None);
        };
        let path = request.uri().path();
        let private = path == "/metrics" || path == "/api" || path.starts_with("/api/");
        let open = matched(request).is_some_and(|route| self.open.contains(&route));
        if !private || open {
            return Ok(None);
        }
        let header = only(request.headers(), &header::AUTHORIZATION).ok().flatten();
        let target = request.uri().path_and_query().map_or(path, |target| target.as_str());
        let admitted = header.or(signed).and_then(|authorization| {
            let method = request.method().as_str();
            door.admit(&Shown { authorization, method, target, body })
        });
        let had_cookie = self.has_old_cookie(request.headers());
        let (who, receipt) = admitted.ok_or_else(|| not_signed_in(had_cookie))?;
        request.extensions_mut().insert(who);
        Ok(receipt)
    }

    fn has_old_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        cookies.flat_map(|value| value.split(';')).any(|pair| {
            pair.trim().split_once('=').is_some_and(|(name, _)| name == self.old_cookie)
        })
    }
}

fn not_signed_in(had_cookie: bool) -> Problem {
    let detail = match had_cookie {
        true => {
            "hookspan no longer uses a cookie to sign in; the cookie of an earlier version was removed"
        }
        false => "only the account that runs the collector may read this data",
    };
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "not-signed-in",
        "not signed in",
        detail,
        "run `hookspan open`: it opens the dashboard signed in. A script sends `Authorization: Bearer` with a token that \
         `hookspan token create NAME` makes",
    )
}

/// Removes `proof=`, which must be the last parameter of a GET, from the target. A link to a file cannot carry a
/// header, so the parameter replaces it. Returns the authorization that the parameter stands for. The signature covers
/// the target without the parameter.
fn take_signature(request: &mut Request) -> Option<String> {
    if *request.method() != Method::GET {
        return None;
    }
    let target = request.uri().path_and_query()?.as_str();
    let at = target.find("?proof=").or_else(|| target.find("&proof="))?;
    let proof = target.get(at + "?proof=".len()..)?;
    let signed = format!("Hookspan {proof}");
    let uri: Uri = target.get(..at)?.parse().ok()?;
    *request.uri_mut() = uri;
    Some(signed)
}

static SERVICE_WORKER: HeaderName = HeaderName::from_static("service-worker");
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

/// Whether the user followed a link from another site. Such a request gets the shell, which contains no data.
fn is_link(request: &Request) -> bool {
    let is = |name: &HeaderName, word| only(request.headers(), name) == Ok(Some(word));
    *request.method() == Method::GET
        && is(&SEC_FETCH_MODE, "navigate")
        && is(&SEC_FETCH_DEST, "document")
}

/// Reads the body of a POST. The required content type is one that a page of another site cannot send without
/// permission, unlike forms and `text/plain`.
async fn body(request: Request) -> Result<(Request, Bytes), Problem> {
    if *request.method() != Method::POST {
        return Ok((request, Bytes::new()));
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
    let read = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, BODY_MAX_BYTES)).await;
    let read = read.map_err(|_| {
        Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "body-timeout",
            "body too slow",
            format!("a body must arrive within {} s", BODY_TIMEOUT.as_secs()),
            "send the body together with the request",
        )
    })?;
    let bytes = read.map_err(|_| {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            "body too large",
            format!("a body may have {BODY_MAX_BYTES} bytes"),
            "no endpoint needs more",
        )
    })?;
    Ok((Request::from_parts(parts, Body::from(bytes.clone())), bytes))
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

/// The header occurs more than once, or is not text.
#[derive(Debug, PartialEq, Eq)]
struct NotOne;

/// The value of a header that occurs once, or `None` if it does not occur.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, NotOne> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(NotOne);
    }
    first.to_str().map(Some).map_err(|_| NotOne)
}
