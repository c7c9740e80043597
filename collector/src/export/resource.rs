//! The OTLP resource of agent spans.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hookspan_core::Span;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use sha2::{Digest as _, Sha256};

use super::hashed::hashed_path;
use super::private_names;
use super::value::{base_name, key_value};
use crate::config::Environment;
use crate::config::destination::{ContentPolicy, PathPolicy};
use crate::config::mistake::{Mistake, Why};

/// Attributes of all resources of this process: the machine, `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceBase {
    attributes: BTreeMap<String, String>,
    /// What the strict profile adds.
    more: BTreeMap<&'static str, String>,
}

/// The values by which resources in one request differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ResourceKey {
    version: Option<String>,
    project: Option<String>,
}

/// Prefixes of keys that name a machine, a project or a repository. At `off` these attributes are not sent.
const DETAIL_PREFIXES: [&str; 4] = ["host.", "vcs.", "openinference.project.", "service.instance."];

impl ResourceBase {
    /// Reads the standard variables. `host` is this machine's name, where known.
    ///
    /// # Errors `OTEL_RESOURCE_ATTRIBUTES` is not a list of `key=value`.
    pub fn from_env(env: &Environment, host: Option<String>) -> Result<Self, Mistake> {
        const KEY: &str = "OTEL_RESOURCE_ATTRIBUTES";
        let mut attributes = BTreeMap::new();
        let mut set = |key: &str, value: String| attributes.insert(key.to_owned(), value);
        set("service.name", "cursor-agent".to_owned());
        if let Some(host) = host {
            set("host.name", host);
        }
        for pair in env.var(KEY).unwrap_or_default().split(',') {
            if pair.trim().is_empty() {
                continue;
            }
            let (key, value) = pair.split_once('=').ok_or_else(|| Why::AttributeForm.at(KEY))?;
            let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8_lossy();
            set(key.trim(), value.into_owned());
        }
        if let Some(name) = env.var("OTEL_SERVICE_NAME").filter(|name| !name.trim().is_empty()) {
            set("service.name", name.trim().to_owned());
        }
        set("os.type", os_type().to_owned());
        set("telemetry.sdk.language", "rust".to_owned());
        set("telemetry.sdk.name", "hookspan".to_owned());
        set("telemetry.sdk.version", env!("CARGO_PKG_VERSION").to_owned());
        let more = more(attributes.get("host.name").map(String::as_str), env);
        Ok(Self { attributes, more })
    }

    /// Adds a destination's own attributes. They replace equal ones from the environment.
    pub(super) fn with(mut self, own: &BTreeMap<String, String>) -> Self {
        self.attributes.extend(own.iter().map(|(key, value)| (key.clone(), value.clone())));
        self
    }

    /// Removes the release and the system, so that the bytes are the same everywhere.
    #[cfg(test)]
    pub(super) fn pin_for_test(&mut self) {
        for key in ["os.type", "telemetry.sdk.version"] {
            self.attributes.insert(key.to_owned(), "0".to_owned());
        }
    }

    pub(super) fn resource(
        &self,
        key: &ResourceKey,
        content: ContentPolicy,
        paths: PathPolicy,
        strict: bool,
    ) -> Resource {
        let mut all: BTreeMap<&str, &str> =
            self.attributes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        if strict {
            for (key, value) in &self.more {
                all.entry(key).or_insert(value);
            }
        }
        let version = key.version.as_deref().map(|version| match content {
            ContentPolicy::Off => private_names::version(version),
            _ => Cow::Borrowed(version),
        });
        if let Some(version) = &version {
            all.entry("service.version").or_insert(version);
        }
        // The project's name is the name of its folder. So it is part of a path, and the policy for paths applies.
        let project = key.project.as_deref().and_then(|project| match paths {
            PathPolicy::Off => None,
            PathPolicy::Hash => Some(Cow::Owned(hashed_path(project))),
            PathPolicy::Relative | PathPolicy::Full => Some(Cow::Borrowed(project)),
        });
        if let Some(project) = &project {
            all.entry("openinference.project.name").or_insert(project);
        }
        if content == ContentPolicy::Off {
            all.retain(|key, _| !DETAIL_PREFIXES.iter().any(|prefix| key.starts_with(prefix)));
        }
        let attributes: Vec<KeyValue> = all
            .into_iter()
            .map(|(key, value)| key_value(key, Value::StringValue(value.to_owned())))
            .collect();
        Resource { attributes, dropped_attributes_count: 0, entity_refs: Vec::new() }
    }
}

impl ResourceKey {
    /// Whether this is the key of `span`.
    pub(super) fn is_of(&self, span: &Span) -> bool {
        let folder = span.workspace.as_deref().map(base_name).filter(|name| !name.is_empty());
        self.version.as_deref() == span.cursor_version.as_deref()
            && self.project.as_deref() == folder
    }

    pub(super) fn of(span: &Span) -> Self {
        let folder = span.workspace.as_deref().map(|path| base_name(path).to_owned());
        Self {
            version: span.cursor_version.as_deref().map(str::to_owned),
            project: folder.filter(|name| !name.is_empty()),
        }
    }
}

/// This machine's name, if the system tells it.
#[must_use]
pub(crate) fn host_name() -> Option<String> {
    #[cfg(unix)]
    {
        let name = rustix::system::uname();
        name.nodename().to_str().ok().filter(|name| !name.is_empty()).map(str::to_owned)
    }
    #[cfg(not(unix))]
    None
}

/// The machine's type, and an id of this installation. The id is the same at every start and different for every
/// account and machine. It is a hash of names in the form of a UUID.
fn more(host: Option<&str>, env: &Environment) -> BTreeMap<&'static str, String> {
    let home = env.path("HOME").or_else(|| env.path("USERPROFILE")).unwrap_or_default();
    let mut digest = Sha256::new();
    for part in ["hookspan.instance.v1", host.unwrap_or_default(), &home.to_string_lossy()] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut id = u128::from_be_bytes(digest.finalize()[..16].try_into().unwrap_or_default());
    // Version 8, "custom", and the variant of RFC 9562.
    id = (id & !(0xf << 76) & !(0x3 << 62)) | (0x8 << 76) | (0x2 << 62);
    let hex = format!("{id:032x}");
    let uuid =
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    BTreeMap::from([("host.arch", arch.to_owned()), ("service.instance.id", uuid)])
}

/// `os.type` as the conventions spell it.
fn os_type() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}
