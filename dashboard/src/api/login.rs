//! Signing in: the token from the URL's fragment becomes a cookie that scripts cannot read.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::description::{Operation, Output};
use super::extract::Body;
use crate::App;
use crate::problem::Problem;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Login {
    /// The text of the token.
    token: String,
}

/// Who is signed in, and where to go.
#[derive(Serialize, JsonSchema)]
pub(super) struct Door {
    token_required: bool,
    url: &'static str,
    #[serde(skip)]
    cookie: Option<HeaderValue>,
}

impl IntoResponse for Door {
    fn into_response(mut self) -> Response {
        let cookie = self.cookie.take();
        let mut response = axum::Json(self).into_response();
        if let Some(cookie) = cookie {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }
}

impl Output for Door {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer::<Self>();
    }
}

/// The door of a dashboard that wants no token.
const OPEN: Door = Door { token_required: false, url: "/", cookie: None };

pub(super) async fn login(
    State(app): State<Arc<App>>,
    Body(Login { token }): Body<Login>,
) -> Result<Door, Problem> {
    let Some(expected) = &app.guard.token else { return Ok(OPEN) };
    if !expected.is(&token) {
        return Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "wrong-token",
            "wrong token",
            "the token is not the one of this dashboard",
            "run `hookspan open`: it opens the signed-in address",
        ));
    }
    with_cookie(&expected.cookie(&token))
}

pub(super) async fn logout(State(app): State<Arc<App>>) -> Result<Door, Problem> {
    match &app.guard.token {
        Some(token) => with_cookie(&token.no_cookie()),
        None => Ok(OPEN),
    }
}

fn with_cookie(cookie: &str) -> Result<Door, Problem> {
    let cookie = HeaderValue::from_str(cookie).map_err(|_| {
        Problem::bad_parameter("token", "the token holds characters a cookie cannot carry")
    })?;
    Ok(Door { token_required: true, url: "/", cookie: Some(cookie) })
}
