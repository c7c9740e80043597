//! Facts that only a running collector knows. They are requested over its API.

use std::path::Path;
use std::time::Duration;

use reqwest::blocking::ClientBuilder;
use serde::{Deserialize, Serialize};

use crate::dirs::ServeInfo;
use crate::tls;

/// A collector that hangs must not make a command hang.
const PATIENCE: Duration = Duration::from_secs(2);

/// The part of `/api/v1/health` that commands show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Health {
    /// Why the database takes no hooks, while it does not.
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
    /// What its reader cannot do at present.
    pub problems: Vec<Problem>,
}

/// Something that the journal's reader cannot do at present and tries again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// When the first attempt failed, microseconds since the epoch.
    pub since_us: i64,
    /// What, why, and what it means for hooks.
    pub what: String,
}

/// A bounded queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// How many wait.
    pub len: u64,
    /// How many may.
    pub cap: u64,
}

/// Asks the collector that `info` tells about.
///
/// # Errors
/// It does not answer in time, in words.
pub(super) fn ask(info: &ServeInfo) -> Result<Health, String> {
    let text = request(info, reqwest::Method::GET, "health")?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Tells the collector in `info` to try a destination at once.
///
/// # Errors
/// It does not answer in time, or knows no such destination, in words.
pub fn wake(info: &ServeInfo, destination: &str) -> Result<(), String> {
    let path = format!("exporters/{destination}/retry");
    request(info, reqwest::Method::POST, &path).map(drop)
}

/// A code that signs one browser in.
///
/// # Errors
/// The collector does not answer in time, in words.
pub fn login_code(info: &ServeInfo) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Made {
        code: String,
    }
    let text = request(info, reqwest::Method::POST, "login/codes")?;
    serde_json::from_str(&text).map(|made: Made| made.code).map_err(|error| error.to_string())
}

/// Whether a code was used.
///
/// # Errors
/// The collector does not answer in time, or the code's minute is over, in words.
pub fn is_code_used(info: &ServeInfo, code: &str) -> Result<bool, String> {
    #[derive(Deserialize)]
    struct State {
        used: bool,
    }
    let id = code.split('.').next().unwrap_or_default();
    let text = request(info, reqwest::Method::GET, &format!("login/codes/{id}"))?;
    serde_json::from_str(&text).map(|state: State| state.used).map_err(|error| error.to_string())
}

fn request(info: &ServeInfo, method: reqwest::Method, path: &str) -> Result<String, String> {
    // Building a client needs it, also for an address without TLS.
    tls::install_crypto();
    let client = reqwest::blocking::Client::builder().no_proxy().timeout(PATIENCE);
    let (client, address) = match (info.url(), &info.socket) {
        (Some(url), _) => (client, url),
        (None, Some(socket)) => (by_socket(client, socket), "http://localhost/".to_owned()),
        (None, None) => return Err("it has not said where it listens".to_owned()),
    };
    let client = client.build().map_err(|error| error.to_string())?;
    let is_post = method == reqwest::Method::POST;
    let mut request = client.request(method, format!("{address}api/v1/{path}"));
    if is_post {
        request = request.header("content-type", "application/json").body("{}");
    }
    if info.token_required {
        request = request.bearer_auth(info.key.as_str());
    }
    let answer = request.send().and_then(reqwest::blocking::Response::error_for_status);
    let text = answer.and_then(reqwest::blocking::Response::text);
    text.map_err(|error| error.without_url().to_string())
}

#[cfg(unix)]
fn by_socket(client: ClientBuilder, socket: &Path) -> ClientBuilder {
    client.unix_socket(socket)
}

#[cfg(not(unix))]
fn by_socket(client: ClientBuilder, _: &Path) -> ClientBuilder {
    client
}
