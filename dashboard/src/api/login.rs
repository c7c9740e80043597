//! Signing in and out, and codes for the command line. See [`crate::guard::Door`].

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Body, Route};
use super::{Answer, json};
use crate::App;
use crate::guard::{Answered, Door, Handshake, Knock, Refused, VaultError, Who};
use crate::problem::Problem;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Hello {
    /// Id of the credential.
    id: String,
    /// 16 to 64 random characters.
    page_nonce: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Proof {
    /// Id of the credential, as in the challenge.
    id: String,
    /// The nonce of the page, as in the challenge.
    page_nonce: String,
    /// The nonce from the answer to the challenge.
    nonce: String,
    /// 64 hexadecimal digits.
    proof: String,
}

/// The collector's proof of its identity.
#[derive(Serialize, JsonSchema)]
pub(super) struct Challenged {
    token_required: bool,
    /// Null if the credential is unknown. That is not an error, because a page asks after each restart.
    challenge: Option<Challenge>,
}

#[derive(Serialize, JsonSchema)]
struct Challenge {
    nonce: String,
    /// 64 hexadecimal digits.
    proof: String,
}

/// Proves to the page that this is the collector which created its credential.
pub(super) async fn challenge(
    State(app): State<Arc<App>>,
    Body(Hello { id, page_nonce }): Body<Hello>,
) -> Answer<Challenged> {
    let Some(door) = &app.guard.door else {
        return json(Challenged { token_required: false, challenge: None });
    };
    let challenge = match door.challenge(&id, &page_nonce) {
        Ok((nonce, proof)) => Some(Challenge { nonce, proof }),
        Err(Refused::Unknown) => None,
        Err(refusal) => return Err(refused(refusal)),
    };
    json(Challenged { token_required: true, challenge })
}

/// The answer to a page that has signed in.
#[derive(Serialize, JsonSchema)]
pub(super) struct LoggedIn {
    token_required: bool,
    granted: Option<Granted>,
}

/// What a page gets in a handshake. The keys themselves are not sent: both sides derive them.
#[derive(Serialize, JsonSchema)]
struct Granted {
    session: String,
    /// Id of the key for requests.
    tab: String,
    /// Id of the key for other pages of this browser. Valid until the collector stops.
    page: String,
    /// Id of the key for this page after a restart of the collector.
    restart: String,
    /// Key with which tabs encrypt their messages to each other, 64 hexadecimal digits.
    channel: String,
    expires_us: i64,
}

/// Checks the page's proof, and sends the ids of its keys.
pub(super) async fn login(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Body(Proof { id, page_nonce, nonce, proof }): Body<Proof>,
) -> Answer<LoggedIn> {
    let Some(door) = app.guard.door.clone() else {
        return json(LoggedIn { token_required: false, granted: None });
    };
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let agent = agent.unwrap_or_default().to_owned();
    // The new access is stored on disk before the page gets it.
    let granted = tokio::task::spawn_blocking(move || {
        let handshake = Handshake { id: &id, page_nonce: &page_nonce, nonce: &nonce };
        door.finish(&Answered { handshake, proof: &proof, agent: &agent })
    });
    let granted = granted.await.map_err(|_| not_kept(VaultError::Thread))?;
    let granted = granted.map_err(refused)?;
    let granted = Granted {
        session: granted.session,
        tab: granted.tab,
        page: granted.page,
        restart: granted.restart,
        channel: granted.channel,
        expires_us: granted.expires_us,
    };
    json(LoggedIn { token_required: true, granted: Some(granted) })
}

/// The page to open next.
#[derive(Serialize, JsonSchema)]
pub(super) struct LoggedOut {
    url: &'static str,
}

/// Signs the browser out with all its pages.
pub(super) async fn logout(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Answer<LoggedOut> {
    if let (Who::Page { session }, Some(door)) = (who, app.guard.door.clone()) {
        end_session(door, session).await?;
    }
    json(LoggedOut { url: "/login" })
}

/// A code that signs one browser in, once, within a minute.
#[derive(Serialize, JsonSchema)]
pub(super) struct Code {
    code: String,
}

/// Makes a code that signs one browser in. Only commands of the owner may do this; a signed-in browser may not.
pub(super) async fn code(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Answer<Code> {
    let code = owners(&app, &who)?.code().map_err(not_kept)?;
    json(Code { code })
}

/// The state of a code.
#[derive(Serialize, JsonSchema)]
pub(super) struct CodeState {
    used: bool,
}

/// Whether a code was used.
pub(super) async fn code_state(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Route(id): Route<String>,
) -> Answer<CodeState> {
    let used = owners(&app, &who)?.code_used(&id).ok_or_else(|| Problem::not_found("code"))?;
    json(CodeState { used })
}

/// Ends a session and closes everything that uses it.
pub(super) async fn end_session(door: Arc<Door>, session: String) -> Result<bool, Problem> {
    let ended = tokio::task::spawn_blocking(move || {
        let mut was_there = false;
        door.vault().change(&mut |access| was_there = access.revoke_session(&session))?;
        door.forget(&session);
        if was_there {
            door.vault().note(Knock::SignedOut);
        }
        Ok(was_there)
    });
    ended.await.unwrap_or(Err(VaultError::Thread)).map_err(not_kept)
}

fn owners<'a>(app: &'a App, who: &Who) -> Result<&'a Arc<Door>, Problem> {
    match &app.guard.door {
        Some(door) if *who == Who::Owner => Ok(door),
        Some(_) => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "not-for-tokens",
            "not with this token",
            "only a command of hookspan itself may ask for this",
            "run `hookspan open` or `hookspan token`",
        )),
        None => Err(Problem::not_found("code: this dashboard asks for none")),
    }
}

fn refused(refused: Refused) -> Problem {
    match refused {
        Refused::Unknown => Problem::new(
            StatusCode::UNAUTHORIZED,
            "signed-out",
            "signed out",
            "the code was used or its minute is over, or this browser was signed out",
            "run `hookspan open`: it opens the dashboard signed in",
        ),
        Refused::Vault(error) => not_kept(error),
    }
}

pub(super) fn not_kept(error: VaultError) -> Problem {
    tracing::warn!(%error, "dashboard.access_not_kept");
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "access-unavailable",
        "the list of signed-in browsers cannot be read or written",
        error.to_string(),
        "look at access.json in the state directory; `hookspan doctor` says where that is",
    )
}
