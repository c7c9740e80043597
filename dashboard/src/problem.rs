//! Errors as `application/problem+json`: what is wrong, and what to do.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hookspan_view::SourceError;
use hookspan_view::filter::Unfit;
use schemars::JsonSchema;
use serde::Serialize;

/// An answer that reports an error. The texts are ours; the only text from elsewhere is the name of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    kind: &'static str,
    title: &'static str,
    detail: String,
    hint: &'static str,
    param: Option<Cow<'static, str>>,
}

/// A problem as it is written (RFC 9457).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Body<'a> {
    /// `/problems/` and the kind of problem
    r#type: String,
    title: &'a str,
    status: u16,
    /// What was wrong.
    detail: &'a str,
    /// What to do.
    hint: &'a str,
    /// The parameter that was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'a str>,
}

impl Problem {
    /// A problem of `kind` (its `type` is `/problems/{kind}`).
    #[must_use]
    pub fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<String>,
        hint: &'static str,
    ) -> Self {
        Self { status, kind, title, detail: detail.into(), hint, param: None }
    }

    /// 400 for the parameter `param`.
    #[must_use]
    pub fn bad_parameter(param: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        let hint = "GET /api/v1 lists every parameter";
        let problem =
            Self::new(StatusCode::BAD_REQUEST, "bad-parameter", "bad parameter", detail, hint);
        Self { param: Some(param.into()), ..problem }
    }

    /// 400 for a cursor that this API did not make.
    #[must_use]
    pub fn bad_cursor() -> Self {
        let problem = Self::new(
            StatusCode::BAD_REQUEST,
            "bad-cursor",
            "bad cursor",
            "the cursor was not made by this endpoint",
            "leave it out to start at the first page",
        );
        Self { param: Some(Cow::Borrowed("cursor")), ..problem }
    }

    /// 404: `what` was not found.
    #[must_use]
    pub fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not-found",
            "not found",
            format!("there is no such {what}"),
            "it may have been deleted, or the store was rebuilt; GET /api/v1 lists every endpoint",
        )
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<Unfit> for Problem {
    fn from(Unfit { word, wanted }: Unfit) -> Self {
        Self::bad_parameter(word, wanted)
    }
}

impl From<SourceError> for Problem {
    fn from(error: SourceError) -> Self {
        tracing::warn!(error = %error.0, "dashboard read failed");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "store-unavailable",
            "the store did not answer",
            error.0,
            "try again; `hookspan doctor` says what is wrong with the store",
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Body {
            r#type: format!("/problems/{}", self.kind),
            title: self.title,
            status: self.status.as_u16(),
            detail: &self.detail,
            hint: self.hint,
            param: self.param.as_deref(),
        };
        let mut response = (self.status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
            }
            StatusCode::UNAUTHORIZED => {
                let scheme = HeaderValue::from_static("Bearer realm=\"hookspan\"");
                headers.insert(header::WWW_AUTHENTICATE, scheme);
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
            }
            _ => {}
        }
        response
    }
}
