//! Asks a running collector, over its API, for facts that only it knows.

use std::path::Path;
use std::time::Duration;

use reqwest::blocking::ClientBuilder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::dirs::ServeInfo;
use crate::tls;

/// Maximum wait for an answer. A collector that hangs must not make a command hang.
const PATIENCE: Duration = Duration::from_secs(2);

/// The part of `/api/v1/health` that commands show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Health {
    /// If the database accepts no hooks: the reason.
    pub trouble: Option<String>,
    /// The journal and what reads it.
    pub journal: Journal,
}

/// See [`Health`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Journal {
    /// Batches on their way to the database.
    pub queue: Queue,
    /// The journal is at its bound.
    pub stopped: bool,
    /// Problems of its reader at the moment.
    pub problems: Vec<Problem>,
}

/// A task of the journal's reader that fails at the moment and is tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    /// When the first attempt failed, microseconds since the epoch.
    pub since_us: i64,
    /// What fails, why, and what it means for hooks.
    pub what: String,
}

/// A bounded queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Queue {
    /// How many wait.
    pub len: u64,
    /// How many may.
    pub cap: u64,
}

/// Why a running collector gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// Its address is not in the state directory.
    #[error("its address is not known")]
    NoAddress,
    /// The request failed or timed out, or the collector refused it.
    #[error("{0}")]
    Request(reqwest::Error),
    /// The answer is not what this version expects.
    #[error("{0}")]
    Answer(serde_json::Error),
}

impl From<reqwest::Error> for AskError {
    /// The address is left out of the message: whoever runs a command does not need it, and it may contain a private
    /// path.
    fn from(error: reqwest::Error) -> Self {
        Self::Request(error.without_url())
    }
}

/// Asks the collector at `info` for its health.
///
/// # Errors
/// See [`AskError`].
pub(super) fn ask(info: &ServeInfo) -> Result<Health, AskError> {
    read(&request(info, reqwest::Method::GET, "health")?)
}

/// Tells the collector at `info` to retry a destination at once.
///
/// # Errors
/// See [`AskError`]; a destination that the collector does not know is an [`AskError::Request`].
pub(crate) fn wake(info: &ServeInfo, destination: &str) -> Result<(), AskError> {
    let path = format!("exporters/{destination}/retry");
    request(info, reqwest::Method::POST, &path).map(drop)
}

/// A code that signs one browser in.
///
/// # Errors
/// See [`AskError`].
pub(crate) fn login_code(info: &ServeInfo) -> Result<String, AskError> {
    #[derive(Deserialize)]
    struct Made {
        code: String,
    }
    let made: Made = read(&request(info, reqwest::Method::POST, "login/codes")?)?;
    Ok(made.code)
}

/// Whether a code was used.
///
/// # Errors
/// See [`AskError`]; a code that has expired is an [`AskError::Request`].
pub(crate) fn is_code_used(info: &ServeInfo, code: &str) -> Result<bool, AskError> {
    #[derive(Deserialize)]
    struct State {
        used: bool,
    }
    let id = code.split('.').next().unwrap_or_default();
    let path = format!("login/codes/{id}");
    let state: State = read(&request(info, reqwest::Method::GET, &path)?)?;
    Ok(state.used)
}

fn read<T: DeserializeOwned>(answer: &str) -> Result<T, AskError> {
    serde_json::from_str(answer).map_err(AskError::Answer)
}

fn request(info: &ServeInfo, method: reqwest::Method, path: &str) -> Result<String, AskError> {
    // Building a client needs a crypto provider, also for an address without TLS.
    tls::install_crypto();
    let client = reqwest::blocking::Client::builder().no_proxy().timeout(PATIENCE);
    let (client, address) = match (info.url(), &info.socket) {
        (Some(url), _) => (client, url),
        (None, Some(socket)) => (by_socket(client, socket), "http://localhost/".to_owned()),
        (None, None) => return Err(AskError::NoAddress),
    };
    let is_post = method == reqwest::Method::POST;
    let mut request = client.build()?.request(method, format!("{address}api/v1/{path}"));
    if is_post {
        request = request.header("content-type", "application/json").body("{}");
    }
    if info.token_required {
        request = request.bearer_auth(info.key.as_str());
    }
    Ok(request.send()?.error_for_status()?.text()?)
}

#[cfg(unix)]
fn by_socket(client: ClientBuilder, socket: &Path) -> ClientBuilder {
    client.unix_socket(socket)
}

#[cfg(not(unix))]
fn by_socket(client: ClientBuilder, _: &Path) -> ClientBuilder {
    client
}
