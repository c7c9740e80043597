//! What only a running collector knows, asked over its own API.

use std::io::Read as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dirs::{ServeInfo, StateDir, open_private};

/// A collector that hangs must not make a command hang.
const PATIENCE: Duration = Duration::from_secs(2);

/// The part of `/api/v1/health` that commands show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Why the database takes no hooks, while it does not.
    pub trouble: Option<String>,
    /// The journal and what reads it.
    pub journal: Journal,
}

/// See [`Health`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Journal {
    /// Batches on their way to the database.
    pub queue: Queue,
    /// The journal is at its bound.
    pub stopped: bool,
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
pub fn ask(state: &StateDir, info: &ServeInfo) -> Result<Health, String> {
    let url = info.url(None).ok_or("it has not said where it listens")?;
    let address = url.split_once("/login").map_or(url.as_str(), |(address, _)| address);
    // A client wants to know how it would encrypt even if it never does. An error means that it knows already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::blocking::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .map_err(|error| error.to_string())?;
    let mut request = client.get(format!("{}/api/v1/health", address.trim_end_matches('/')));
    if info.token_required {
        let mut token = String::new();
        let file = open_private(&state.token()).map_err(|error| format!("no token: {error}"))?;
        file.take(4_096)
            .read_to_string(&mut token)
            .map_err(|error| format!("no token: {error}"))?;
        request = request.bearer_auth(token.trim());
    }
    let answer = request.send().and_then(reqwest::blocking::Response::error_for_status);
    let text = answer.and_then(reqwest::blocking::Response::text);
    let text = text.map_err(|error| error.without_url().to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}
