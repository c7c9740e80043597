//! Where spans are sent: `[[destination]]` in the file, presets, and the `OTEL_EXPORTER_OTLP_*` variables.
//!
//! Settings are checked once, when the collector starts. A wrong value is an error with file, line and the
//! destination's name. If a variable is not set or a file cannot be read, only that destination is unready: it is
//! paused, and the others run. The environment is passed in as a value, so these functions do not depend on the
//! process.

mod address;
mod form;
mod metrics;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

pub(super) use address::{Unfilled, authority, fill, other_endpoint};
pub(crate) use form::DestinationForm;
pub(crate) use metrics::MetricsExport;

pub(crate) use super::connection::{Connection, Protocol, Secret, Temporality, is_loopback};
use super::mistake::{Mistake, Why};
use super::otlp_env;
pub(crate) use super::otlp_env::Signal;
use super::person;
use super::preset::Preset;
use super::reference::{Missing, PLAIN_HEADERS};
use super::{Config, Environment, OpenInference, Profile};

/// A destination, ready to use.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// Name in the configuration. It is also the key of the destination's position in the store.
    pub name: String,
    /// The preset that supplied values which were not set.
    pub preset: Preset,
    /// Where and how to connect.
    pub connection: Connection,
    /// What is sent: spans, or their prompts and answers as log records. Metrics are part of the former.
    pub signal: Signal,
    /// Which content may be sent.
    pub content: ContentPolicy,
    /// Whether secrets are redacted. Always true unless `content` is `full`.
    pub redact: bool,
    /// How paths are sent.
    pub paths: PathPolicy,
    /// Attribute names of the GenAI conventions.
    pub semconv: Profile,
    /// How many attributes with OpenInference's names are added.
    pub openinference: OpenInference,
    /// Maximum number of bytes of content in an attribute at policy `full`.
    pub content_max_bytes: usize,
    /// Which stored spans a new destination gets.
    pub backfill: Backfill,
    /// Maximum age of a span. Older spans are not sent and count as lost, even if the destination never accepted a
    /// span. `None`: spans of any age are sent.
    pub max_span_age: Option<Duration>,
    /// Maximum number of spans that wait while the destination fails. Beyond it, the oldest are counted as lost.
    pub backlog_max_spans: u64,
    /// Share of conversations that are sent, 0 to 1. Whole sessions are selected by a hash of their id.
    pub sample: f64,
    /// How metrics are sent. `None`: metrics are not sent.
    pub metrics: Option<MetricsExport>,
    /// Resource attributes for this destination only, such as a team or the hash of a person.
    pub attributes: BTreeMap<String, String>,
    /// Link to a span in the destination's own pages. Placeholders such as `{trace_id}` are not replaced yet.
    pub link: Option<String>,
    /// Why the destination cannot be used now: a variable is not set, or a file cannot be read. It is then paused, and
    /// the other destinations run.
    pub unready: Option<String>,
    /// What the policy of this machine changed in the settings.
    pub by_policy: Vec<String>,
}

/// Which content may be sent to a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ContentPolicy {
    /// No content, no paths, no names of programs, hosts or tools of MCP servers.
    Off,
    /// Names and sizes, no content.
    #[default]
    Metadata,
    /// Prompts, answers, arguments and results too.
    Full,
}

impl ContentPolicy {
    /// The word in configuration.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Metadata => "metadata",
            Self::Full => "full",
        }
    }
}

/// How paths are sent at `metadata` and `full`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PathPolicy {
    /// Relative to the workspace. Of a path outside the workspace, only the last part is sent.
    #[default]
    Relative,
    /// As they are.
    Full,
    /// As a hash, so that equal paths stay recognisable.
    Hash,
    /// Not at all.
    Off,
}

impl PathPolicy {
    /// The word in configuration.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Relative => "relative",
            Self::Full => "full",
            Self::Hash => "hash",
            Self::Off => "off",
        }
    }

    /// How much it tells: a policy that tells more is wider.
    pub(super) const fn tells(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::Hash => 1,
            Self::Relative => 2,
            Self::Full => 3,
        }
    }
}

/// Which stored spans a new destination gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Backfill {
    /// None. Only spans that settle from now on are sent.
    #[default]
    #[serde(rename = "none")]
    None,
    /// Those that ended in the last 24 hours.
    #[serde(rename = "24h")]
    Day,
    /// All.
    #[serde(rename = "all")]
    All,
}

impl Backfill {
    /// The word in configuration.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Day => "24h",
            Self::All => "all",
        }
    }

    /// The default of [`Destination::backlog_max_spans`]. For a destination that gets the whole history there is no
    /// maximum. Its first outage must not drop that history, and the store keeps the spans anyway.
    const fn backlog_max_spans(self) -> u64 {
        match self {
            Self::All => u64::MAX,
            Self::None | Self::Day => DEFAULT_BACKLOG_SPANS,
        }
    }
}

/// Why a destination cannot be used. The text names the place in the file, the destination and the key, and says what
/// would be right.
#[derive(Debug, thiserror::Error)]
#[error("{place}destination {name:?}: {problem}")]
pub(crate) struct DestinationError {
    /// `FILE:LINE:COLUMN: `; empty if the destination comes from the environment.
    pub place: String,
    /// The destination.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

const DEFAULT_BACKLOG_SPANS: u64 = 100_000;

impl Destination {
    /// Host and port, without path, user or query: all that pages and logs may show of an endpoint.
    #[must_use]
    pub(crate) fn endpoint_host(&self) -> String {
        authority(&self.connection.endpoint).to_owned()
    }

    /// Text for the audit log: the destination's address and what is sent to it.
    #[must_use]
    pub(crate) fn gets(&self) -> String {
        let paths = self.paths.as_str();
        let secrets = if self.redact { "" } else { ", secrets left in" };
        let (host, content) = (self.endpoint_host(), self.content.as_str());
        let metrics = match (self.signal, &self.metrics) {
            (Signal::Logs, _) => ", prompts and answers as log records",
            (_, Some(_)) => ", and metrics",
            (_, None) => "",
        };
        let user =
            if self.attributes.contains_key(person::USER) { ", and whose it is" } else { "" };
        format!("{host}, content {content}, paths {paths}{secrets}{metrics}{user}")
    }

    /// Identifies the receiver. The text changes if spans would go somewhere else. It does not depend on secrets, so a
    /// new key for the same account changes nothing.
    #[must_use]
    pub(crate) fn identity(&self) -> String {
        let Connection { endpoint, protocol, headers, .. } = &self.connection;
        let mut parts = vec![endpoint.as_str(), protocol.as_str()];
        for (name, value) in headers {
            parts.push(name);
            if PLAIN_HEADERS.contains(&name.as_str()) {
                parts.push(&value.0);
            }
        }
        let digest = Sha256::digest(parts.join("\n"));
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// All destinations: those in the file, and one named `env` if the environment names an endpoint. A destination called
/// `env` in the file replaces the one from the environment. Destinations that are unusable for now are included, see
/// [`Destination::unready`].
///
/// # Errors
/// The first destination whose settings are wrong.
pub(crate) fn all(
    config: &Config,
    env: &Environment,
) -> Result<Vec<Destination>, DestinationError> {
    let mut all: Vec<Destination> = Vec::new();
    for (index, table) in config.destinations.iter().enumerate() {
        let name = table.get("name").and_then(toml::Value::as_str).unwrap_or_default().to_owned();
        let failed = |problem: String| {
            let place = config.places.get(index).map_or_else(String::new, |at| at.of(&problem));
            DestinationError { place, name: name.clone(), problem }
        };
        let form: DestinationForm = table
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| failed(error.message().to_owned()))?;
        if all.iter().any(|other| other.name == name) {
            return Err(failed(Why::Taken.at("name").to_string()));
        }
        let mut destination =
            form.build(env, config.semconv).map_err(|mistake| failed(mistake.to_string()))?;
        if let (Some(problem), Some(at)) = (&mut destination.unready, config.places.get(index)) {
            problem.insert_str(0, &at.of(problem));
        }
        let logs = form.logs(&destination, env).map_err(|mistake| failed(mistake.to_string()))?;
        let may_log = config.policy.as_ref().is_none_or(|policy| policy.allows_logs());
        for mut one in std::iter::once(destination).chain(logs.filter(|_| may_log)) {
            config.policy.iter().for_each(|policy| policy.limit(&mut one));
            all.push(one);
        }
    }
    if let Some(mut destination) = from_env(env, config.semconv)?
        && all.iter().all(|other| other.name != destination.name)
    {
        config.policy.iter().for_each(|policy| policy.limit(&mut destination));
        all.push(destination);
    }
    Ok(all)
}

/// The destination named `env`, which the variables `OTEL_EXPORTER_OTLP_*` describe. `None` if no endpoint is set.
///
/// # Errors Names the first variable whose value cannot be used.
pub(crate) fn from_env(
    env: &Environment,
    defaults: super::Semconv,
) -> Result<Option<Destination>, DestinationError> {
    let failed = |mistake: Mistake| DestinationError {
        place: String::new(),
        name: "env".to_owned(),
        problem: mistake.to_string(),
    };
    let mut missing = Missing::default();
    let connection = otlp_env::connection(env, Signal::Traces, &mut missing).map_err(failed)?;
    let Some(connection) = connection else { return Ok(None) };
    let form = DestinationForm {
        name: "env".to_owned(),
        endpoint: Some(connection.endpoint.clone()),
        ..DestinationForm::default()
    };
    let destination = form.build(env, defaults).map_err(failed)?;
    Ok(Some(Destination { connection, unready: missing.words(), ..destination }))
}

#[cfg(test)]
mod tests;
