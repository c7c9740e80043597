//! The policy of a machine: what may leave it. An administrator writes the policy, and it precedes the user's
//! configuration.
//!
//! Only an administrator can write in the file's folder. No flag and no variable names another file. A policy never
//! widens a setting: the narrower of policy and configuration holds. If somebody else could have written the policy, it
//! is refused, and every command that needs the configuration fails. Hooks are still recorded.
//!
//! A policy limits this program. It does not limit a user who runs another program.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::destination::{ContentPolicy, Destination, DestinationForm, PathPolicy};
use super::place::{self, Place};
use super::{Config, Misuse};

/// Maximum size of the file. A policy has a few dozen lines.
const MAX_BYTES: u64 = 1 << 20;

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is larger than 1 MiB")]
    TooLarge,
    #[cfg(unix)]
    #[error("{0} is a symbolic link")]
    Link(String),
    #[cfg(unix)]
    #[error("{0} belongs to user {1}, not to root (`chown root {0}`)")]
    Owner(String, u32),
    #[cfg(unix)]
    #[error("others than root can write {0} (`chmod go-w {0}`)")]
    Writable(String),
}

/// A value of a policy that cannot be used.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error("receivers: {0:?} is not a URL such as https://otel.example:4317")]
    Receiver(String),
    #[error("retention: {0:?} is not a time such as 90d")]
    Retention(String),
}

/// A machine's policy.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    file: PathBuf,
    rules: Rules,
    /// Destinations that every user of the machine has, as written.
    tables: Vec<toml::Table>,
    places: Vec<Place>,
}

/// The file. An unknown key is an error, because a misspelt rule would forbid nothing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    /// The most content that may leave.
    content: Option<ContentPolicy>,
    /// The most detailed form of paths that may leave.
    paths: Option<PathPolicy>,
    /// `true`: no destination and no exception of a user switches redaction off.
    #[serde(default)]
    redact: bool,
    /// `false`: no metrics leave.
    metrics: Option<bool>,
    /// `false`: no log records leave.
    logs: Option<bool>,
    /// `true`: the collector's sandbox cannot be switched off.
    #[serde(default)]
    sandbox: bool,
    /// Maximum time for which recordings are kept.
    retention: Option<String>,
    /// Receivers that spans may be sent to, as `scheme://host:port`. Without it, any.
    receivers: Option<Vec<String>>,
    /// Destinations that every user has.
    #[serde(default)]
    destination: Vec<DestinationForm>,
}

impl Policy {
    /// Reads the policy at `path`. `None` if there is no such file.
    ///
    /// # Errors
    /// The file or its folder could have been written by somebody other than an administrator, cannot be read, or is
    /// not valid.
    pub(super) fn load(path: &Path) -> Result<Option<Self>, Misuse> {
        let refused = |why: Refused| {
            Misuse(format!("{}: the policy of this machine is refused: {why}", path.display()))
        };
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error.into())),
            Ok(found) if !found.is_file() => return Err(refused(Refused::NotAFile)),
            Ok(found) if found.len() > MAX_BYTES => return Err(refused(Refused::TooLarge)),
            Ok(_) => {}
        }
        for part in [Some(path), path.parent()].into_iter().flatten() {
            only_administrators_write(part).map_err(refused)?;
        }
        let text = std::fs::read_to_string(path).map_err(|error| refused(error.into()))?;
        Self::parse(path, &text).map(Some)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Misuse> {
        let invalid = |error: toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            let (line, column) = super::position(text, start);
            Misuse(format!("{}:{line}:{column}: {}", path.display(), error.message()))
        };
        let rules: Rules = toml::from_str(text).map_err(invalid)?;
        let table: toml::Table = toml::from_str(text).map_err(invalid)?;
        let tables = table.get("destination").and_then(toml::Value::as_array);
        let tables = tables.into_iter().flatten().filter_map(toml::Value::as_table);
        let policy = Self {
            file: path.to_owned(),
            tables: tables.cloned().collect(),
            places: place::destinations(path, text),
            rules,
        };
        policy.check().map_err(|why| Misuse(format!("{}: {why}", path.display())))?;
        Ok(policy)
    }

    fn check(&self) -> Result<(), Wrong> {
        for receiver in self.rules.receivers.iter().flatten() {
            origin(receiver).ok_or_else(|| Wrong::Receiver(receiver.clone()))?;
        }
        match &self.rules.retention {
            Some(text) if longest(text).is_none() => Err(Wrong::Retention(text.clone())),
            _ => Ok(()),
        }
    }

    /// The file.
    #[must_use]
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The rules in words, for `config check`, `doctor` and `status`.
    #[must_use]
    pub(crate) fn words(&self) -> Vec<String> {
        let rules = &self.rules;
        let mut words = Vec::new();
        words.extend(rules.content.map(|most| format!("content at most {}", most.as_str())));
        words.extend(rules.paths.map(|most| format!("paths at most {}", most.as_str())));
        let flags = [
            (rules.redact, "secrets are always redacted"),
            (rules.metrics == Some(false), "no metrics"),
            (rules.logs == Some(false), "no log records"),
            (rules.sandbox, "the sandbox stays on"),
        ];
        words.extend(flags.into_iter().filter(|(on, _)| *on).map(|(_, text)| text.to_owned()));
        words.extend(
            rules.retention.as_ref().map(|time| format!("recordings kept for at most {time}")),
        );
        words.extend(rules.receivers.as_ref().map(|list| match &**list {
            [] => "nothing is sent to any receiver".to_owned(),
            list => format!("receivers: {}", list.join(", ")),
        }));
        let names: Vec<&str> = rules.destination.iter().map(|one| one.name.as_str()).collect();
        if !names.is_empty() {
            words.push(format!("destinations of every user: {}", names.join(", ")));
        }
        words
    }

    /// Applies the rules that concern no destination, and adds the destinations of every user. They replace a user's
    /// destinations of the same name.
    pub(super) fn restrict(self, config: &mut Config) {
        config.sandbox |= self.rules.sandbox;
        if self.rules.redact {
            config.redact.allow.clear();
        }
        if let Some(most) = self.rules.retention.as_deref().and_then(longest) {
            let own = config.retention.max_age_ns;
            config.retention.max_age_ns = if own == 0 { most } else { own.min(most) };
        }
        let names: Vec<&str> = self.rules.destination.iter().map(|one| one.name.as_str()).collect();
        let (mut tables, mut places) = (self.tables.clone(), self.places.clone());
        let user = config.destinations.drain(..).zip(config.places.drain(..));
        for (table, place) in user {
            let name = table.get("name").and_then(toml::Value::as_str).unwrap_or_default();
            if !names.contains(&name) {
                tables.push(table);
                places.push(place);
            }
        }
        (config.destinations, config.places) = (tables, places);
        config.policy = Some(self);
    }

    /// Narrows what `destination` gets. Records each change in `destination`.
    pub(super) fn limit(&self, destination: &mut Destination) {
        let Rules { content, paths, redact, metrics, receivers, .. } = &self.rules;
        let mut notes = Vec::new();
        if let Some(most) = content.filter(|most| destination.content > *most) {
            let asked = destination.content.as_str();
            notes.push(format!("content is {} instead of {asked}", most.as_str()));
            destination.content = most;
        }
        if let Some(most) = paths.filter(|most| destination.paths.tells() > most.tells()) {
            let asked = destination.paths.as_str();
            notes.push(format!("paths is {} instead of {asked}", most.as_str()));
            destination.paths = most;
        }
        // Below `full`, secrets are always redacted.
        let must = *redact || destination.content != ContentPolicy::Full;
        if must && !destination.redact {
            notes.push("secrets are redacted".to_owned());
            destination.redact = true;
        }
        if *metrics == Some(false) && destination.metrics.take().is_some() {
            notes.push("no metrics are sent".to_owned());
        }
        if let Some(receivers) = receivers {
            let allowed: Vec<_> = receivers.iter().filter_map(|one| origin(one)).collect();
            let metrics = destination.metrics.iter().map(|metrics| &metrics.connection);
            let mut connections = std::iter::once(&destination.connection).chain(metrics);
            let is_other = |url: &str| origin(url).is_none_or(|origin| !allowed.contains(&origin));
            if let Some(other) = connections.find(|one| is_other(&one.endpoint)) {
                let host = super::destination::authority(&other.endpoint);
                destination.unready =
                    Some(format!("by policy ({}), nothing is sent to {host}", self.file.display()));
            }
        }
        destination.by_policy = notes;
    }

    /// Whether log records may leave.
    pub(super) fn allows_logs(&self) -> bool {
        self.rules.logs != Some(false)
    }
}

/// A duration in nanoseconds.
fn longest(text: &str) -> Option<i64> {
    let time = humantime::parse_duration(text).ok().filter(|time| !time.is_zero())?;
    i64::try_from(time.as_nanos()).ok()
}

/// Scheme, host and port.
fn origin(url: &str) -> Option<(String, String, u16)> {
    let url = reqwest::Url::parse(url).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https");
    let host = url.host_str().filter(|_| is_http)?.to_ascii_lowercase();
    Some((url.scheme().to_owned(), host, url.port_or_known_default()?))
}

/// Checks that nobody but an administrator can change the file or folder.
#[cfg(unix)]
fn only_administrators_write(path: &Path) -> Result<(), Refused> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::symlink_metadata(path)?;
    let shown = path.display().to_string();
    match found.mode() & 0o022 {
        _ if found.is_symlink() => Err(Refused::Link(shown)),
        _ if found.uid() != 0 => Err(Refused::Owner(shown, found.uid())),
        0 => Ok(()),
        _ => Err(Refused::Writable(shown)),
    }
}

/// On Windows the folder's access list protects the file. Installers that run as an administrator set it.
#[cfg(not(unix))]
fn only_administrators_write(_: &Path) -> Result<(), Refused> {
    Ok(())
}

#[cfg(test)]
mod tests;
