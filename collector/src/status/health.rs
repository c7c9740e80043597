//! Facts that only a running collector knows. They are requested over its API.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dirs::{ServeInfo, StateDir, Token};
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
pub(super) fn ask(state: &StateDir, info: &ServeInfo) -> Result<Health, String> {
    let text = request(state, info, reqwest::Method::GET, "health")?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Tells the collector in `info` to try a destination at once.
///
/// # Errors
/// It does not answer in time, or knows no such destination, in words.
pub fn wake(state: &StateDir, info: &ServeInfo, destination: &str) -> Result<(), String> {
    let path = format!("exporters/{destination}/retry");
    request(state, info, reqwest::Method::POST, &path).map(drop)
}

fn request(
    state: &StateDir,
    info: &ServeInfo,
    method: reqwest::Method,
    path: &str,
) -> Result<String, String> {
    let url = info.url(None).ok_or("it has not said where it listens")?;
    let address = url.split_once("/login").map_or(url.as_str(), |(address, _)| address);
    // Building a client needs it, also for an address without TLS.
    tls::install_crypto();
    let client = reqwest::blocking::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .map_err(|error| error.to_string())?;
    let url = format!("{}/api/v1/{path}", address.trim_end_matches('/'));
    let mut request = client.request(method, url);
    if info.token_required {
        let token = Token::load(state).ok_or("its token cannot be read")?;
        request = request.bearer_auth(token.as_str());
    }
    let answer = request.send().and_then(reqwest::blocking::Response::error_for_status);
    let text = answer.and_then(reqwest::blocking::Response::text);
    text.map_err(|error| error.without_url().to_string())
}
