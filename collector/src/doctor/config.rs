//! The configuration.

use super::Finding;
use crate::config::{Global, destination};

/// The policy of this machine, if it has one that is in force.
pub(super) fn examine_policy(global: &Global) -> Option<Finding> {
    let config = global.config().ok()?;
    let policy = config.policy.as_ref()?;
    let all = destination::all(&config, &global.env).unwrap_or_default();
    let changed: Vec<String> = all
        .iter()
        .filter(|one| !one.by_policy.is_empty())
        .map(|one| format!("{}: {}", one.name, one.by_policy.join(", ")))
        .collect();
    let words = policy.words().into_iter().chain(changed).collect::<Vec<_>>().join("; ");
    Some(Finding::ok("config.policy", format!("{}: {words}", policy.file().display())))
}

/// Whether the configuration can be used.
pub(super) fn examine(global: &Global) -> Finding {
    let loaded = global.config().map_err(|error| error.to_string());
    let resolved = loaded.and_then(|config| {
        destination::all(&config, &global.env).map_err(|error| error.to_string())
    });
    match (resolved, global.config_file.as_deref()) {
        (Err(error), _) => Finding::problem(
            "config.broken",
            error,
            "correct it; `hookspan config check` checks it",
        )
        .meaning("no collector can start with this configuration"),
        (Ok(_), Some(file)) if file.exists() => {
            Finding::ok("config.read", file.display().to_string())
        }
        (Ok(_), Some(file)) => {
            Finding::ok("config.default", format!("{}: not found; using defaults", file.display()))
        }
        (Ok(_), None) => Finding::ok("config.default", "using defaults"),
    }
}
