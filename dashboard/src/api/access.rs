//! Who may read the dashboard: signed-in browsers and tokens of scripts.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Body;
use super::login::{end_session, not_kept};
use super::{Answer, json, read};
use crate::App;
use crate::guard::{Knock, VaultError, Who};
use crate::problem::Problem;

#[derive(Serialize, JsonSchema)]
struct SessionItem {
    id: String,
    browser: String,
    created_us: i64,
    used_us: i64,
    expires_us: i64,
    /// Whether this browser sends the request.
    current: bool,
}

#[derive(Serialize, JsonSchema)]
struct TokenItem {
    name: String,
    created_us: i64,
    used_us: Option<i64>,
}

/// Who may read.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    sessions: Vec<SessionItem>,
    tokens: Vec<TokenItem>,
    url: &'static str,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Revoke {
    /// A browser's session, by its id.
    session: Option<String>,
    /// A script's token, by its name.
    token: Option<String>,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Answer<Listed> {
    let Some(door) = &app.guard.door else {
        return json(Listed { sessions: Vec::new(), tokens: Vec::new(), url: "/privacy" });
    };
    not_for_scripts(&who)?;
    let access = door.vault().read().map_err(not_kept)?;
    let us = |seconds: i64| seconds.saturating_mul(1_000_000);
    let sessions: Vec<_> = access
        .living(app.clock.now_ns() / 1_000_000_000)
        .map(|one| SessionItem {
            id: one.id.clone(),
            browser: one.browser.clone(),
            created_us: us(one.created_s),
            used_us: us(one.used_s),
            expires_us: us(one.expires_s()),
            current: matches!(&who, Who::Page { session } if *session == one.id),
        })
        .collect();
    let tokens: Vec<_> = access
        .tokens
        .iter()
        .map(|one| TokenItem {
            name: one.name.clone(),
            created_us: us(one.created_s),
            used_us: one.used_s.map(us),
        })
        .collect();
    json(Listed { sessions, tokens, url: "/privacy" })
}

/// The answer after access was ended.
#[derive(Serialize, JsonSchema)]
pub(super) struct Revoked {
    revoked: bool,
    url: &'static str,
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Body(asked): Body<Revoke>,
) -> Answer<Revoked> {
    let Some(door) = app.guard.door.clone() else {
        return Err(Problem::not_found("session"));
    };
    not_for_scripts(&who)?;
    let ended = match (asked.session, asked.token) {
        (Some(session), None) => end_session(door, session).await?,
        (None, Some(name)) => {
            let ended = tokio::task::spawn_blocking(move || {
                let mut was_there = false;
                door.vault().change(&mut |access| was_there = access.revoke_token(&name))?;
                if was_there {
                    door.vault().note(Knock::TokenEnded(&name));
                }
                Ok(was_there)
            });
            ended.await.unwrap_or(Err(VaultError::Thread)).map_err(not_kept)?
        }
        _ => return Err(Problem::bad_parameter("session", "name a session or a token")),
    };
    if !ended {
        return Err(Problem::not_found("session or token"));
    }
    json(Revoked { revoked: true, url: "/privacy" })
}

#[derive(Serialize, JsonSchema)]
struct AuditItem {
    at_us: i64,
    what: String,
    detail: String,
}

#[derive(Serialize, JsonSchema)]
struct RefusedItem {
    /// sign-in, token, another account.
    what: String,
    count: u64,
    last_us: i64,
}

/// The audit log: sign-ins, deletions and exports, newest first.
#[derive(Serialize, JsonSchema)]
pub(super) struct Audited {
    items: Vec<AuditItem>,
    /// Number of older entries that were dropped to make room.
    dropped: u64,
    refused: Vec<RefusedItem>,
    url: &'static str,
}

pub(super) async fn audit(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Answer<Audited> {
    not_for_scripts(&who)?;
    let log = read(&app, |source| source.audit()).await?;
    let us = |seconds: i64| seconds.saturating_mul(1_000_000);
    let item = |(at_s, what, detail)| AuditItem { at_us: us(at_s), what, detail };
    let refused = |(what, count, last_s)| RefusedItem { what, count, last_us: us(last_s) };
    json(Audited {
        items: log.entries.into_iter().rev().map(item).collect(),
        dropped: log.dropped,
        refused: log.refused.into_iter().map(refused).collect(),
        url: "/privacy",
    })
}

fn not_for_scripts(who: &Who) -> Result<(), Problem> {
    if !matches!(who, Who::Script(_)) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "not-for-tokens",
        "not with this token",
        "the token of a script reads data; it does not manage who may read",
        "use the Privacy page or `hookspan token`",
    ))
}
