//! Signing in: the token from the URL's fragment becomes a cookie that scripts cannot read.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, json};
use crate::App;
use crate::problem::Problem;

#[derive(Deserialize)]
struct Login {
    token: String,
}

pub(super) async fn login(State(app): State<Arc<App>>, body: Bytes) -> Answer {
    let Ok(Login { token }) = serde_json::from_slice(&body) else {
        return Err(Problem::bad_parameter("token", "the body is not {\"token\": \"...\"}"));
    };
    let Some(expected) = &app.guard.token else {
        return json(&json!({ "url": "/", "token_required": false }));
    };
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

pub(super) async fn logout(State(app): State<Arc<App>>) -> Answer {
    match &app.guard.token {
        Some(token) => with_cookie(&token.no_cookie()),
        None => json(&json!({ "url": "/", "token_required": false })),
    }
}

fn with_cookie(cookie: &str) -> Answer {
    let cookie = HeaderValue::from_str(cookie).map_err(|_| {
        Problem::bad_parameter("token", "the token holds characters a cookie cannot carry")
    })?;
    let body = axum::Json(json!({ "url": "/", "token_required": true }));
    Ok(([(header::SET_COOKIE, cookie)], body).into_response())
}
