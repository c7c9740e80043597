//! Checks every part of the way from a hook to a destination, and says what to do.
//!
//! ```text
//! configuration > state directory > hooks.json > hook command > journal > collector > database > destinations
//! ```
//!
//! Nothing is changed, and only our own hook program is run (`programs`). Its commands write to a temporary directory
//! (`commands`). If a collector runs, one probe takes the same path as a hook; the collector reads the probe and does
//! not store it ([`crate::journal::probe`]).
//!
//! Each check returns [`Finding`]s with a stable id. [`finding`] then keeps one finding per cause.

mod accounts;
mod collector;
mod commands;
mod config;
mod cursor;
mod database;
mod desktop;
mod destinations;
mod files;
pub(crate) mod finding;
mod history;
mod journal;
mod notices;
mod programs;
mod state;

pub(crate) use finding::{Finding, Severity};

use crate::config::{Global, Misuse};
use crate::status::Status;
use crate::store::open::OpenError;

/// Runs all checks.
#[must_use]
pub(crate) fn examine(global: &Global) -> Vec<Finding> {
    let mut findings = vec![config::examine(global)];
    findings.extend(config::examine_policy(global));
    findings.extend(state::examine(global));
    let files = files::examine(global);
    findings.extend(files.findings);
    findings.extend(accounts::examine(&files.entries));
    findings.extend(commands::examine(global, &files.entries, &files.programs));
    match Status::read(global) {
        Ok(status) => {
            findings.push(collector::running(&status));
            findings.extend(collector::configuration(global));
            findings.extend(collector::sandbox(global));
            findings.extend(collector::arrival(global, &status, &files.entries, &files.programs));
            findings.extend(database::examine(global, &status));
            findings.extend(journal::examine(&status));
            findings.extend(history::examine(&status, &files.entries));
            findings.extend(destinations::examine(global, &status));
            findings.extend(notices::examine(global, &status));
            findings.extend(
                global
                    .config()
                    .ok()
                    .map(|config| cursor::store(&config.evidence, &status.counters)),
            );
        }
        // The error in the configuration was reported before, with what to do.
        Err(error) if error.chain().any(|cause| cause.is::<Misuse>()) => {}
        Err(error) => findings.push(unknown(&error)),
    }
    findings.extend(cursor::log(global));
    finding::one_per_cause(findings)
}

/// Reports that the state of collector and database is not known.
fn unknown(error: &anyhow::Error) -> Finding {
    let what = format!("{error:#}");
    match error.downcast_ref() {
        Some(OpenError::Older { .. }) => Finding::warning("database.older", what, "hookspan up"),
        _ => Finding::problem(
            "collector.unknown",
            what,
            "correct this, then run hookspan doctor again",
        ),
    }
}
