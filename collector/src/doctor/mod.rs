//! Checks every link of the chain and says what to do.
//!
//! ```text
//! configuration > state directory > hooks.json > hook command > journal > collector > database > destinations
//! ```
//!
//! Nothing is changed. The hook commands are run exactly as Cursor runs them but into a temporary state directory, so no
//! session appears that never was; when a collector runs, one `workspaceOpen`, which belongs to no session, goes the real
//! way to prove that it arrives.

mod chain;
mod destinations;
mod files;
mod probe;

use serde::Serialize;

use crate::config::Global;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Part of the chain.
    pub area: &'static str,
    /// How it stands.
    pub level: Level,
    /// What was found, in one line.
    pub what: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing; recording works.
    Warning,
    /// Something is not recorded, not kept or not sent.
    Problem,
}

impl Finding {
    fn ok(area: &'static str, what: impl Into<String>) -> Self {
        Self { area, level: Level::Ok, what: what.into(), remedy: None }
    }

    fn warning(area: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { area, level: Level::Warning, what: what.into(), remedy: Some(remedy.into()) }
    }

    fn problem(area: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { area, level: Level::Problem, what: what.into(), remedy: Some(remedy.into()) }
    }
}

/// Looks at everything.
#[must_use]
pub fn examine(global: &Global) -> Vec<Finding> {
    let mut findings = chain::configuration(global);
    let (hooks, ours) = files::examine(global);
    findings.extend(hooks);
    findings.extend(probe::commands(global, &ours));
    findings.extend(chain::collector(global, &ours));
    findings
}
