//! What `doctor` reports, and how several findings with one cause become one.

use std::path::PathBuf;

use serde::Serialize;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Stable name for scripts: the area, a dot, and what was found.
    pub id: &'static str,
    /// Part of the chain: the id up to its dot.
    pub area: &'static str,
    /// The severity.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// What the finding means for the user.
    pub meaning: Option<String>,
    /// What to do about it.
    pub remedy: Option<String>,
    /// The places in files that it concerns.
    pub places: Vec<Place>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Everything is in order.
    Ok,
    /// Worth knowing; recording works.
    Warning,
    /// Something is not recorded, not kept or not sent.
    Problem,
}

/// A place in a file. Line and column count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    /// The file.
    pub file: PathBuf,
    /// Its line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
    /// The text at that place.
    pub what: String,
}

impl Finding {
    /// A finding that everything is in order.
    pub(crate) fn ok(id: &'static str, what: impl Into<String>) -> Self {
        Self::new(id, Severity::Ok, what.into(), None)
    }

    /// A warning: recording works, but the user should know about this.
    pub(crate) fn warning(
        id: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(id, Severity::Warning, what.into(), Some(remedy.into()))
    }

    /// A problem: hooks or spans are not recorded, kept or sent.
    pub(crate) fn problem(
        id: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(id, Severity::Problem, what.into(), Some(remedy.into()))
    }

    fn new(id: &'static str, severity: Severity, what: String, remedy: Option<String>) -> Self {
        let area = id.split_once('.').map_or(id, |(area, _)| area);
        Self { id, area, severity, what, meaning: None, remedy, places: Vec::new() }
    }

    /// Adds what the finding means.
    #[must_use]
    pub(crate) fn meaning(self, meaning: impl Into<String>) -> Self {
        Self { meaning: Some(meaning.into()), ..self }
    }

    /// Adds the places in files.
    #[must_use]
    pub(crate) fn at(self, places: Vec<Place>) -> Self {
        Self { places, ..self }
    }
}

/// Which findings are explained by another one. On the left is the id of the cause; on the right are ids, or whole
/// areas written as their name and a dot.
const EXPLAINS: &[(&str, &[&str])] = &[
    // A directory that is unsafe or missing explains all findings about its content.
    ("state.unsafe", &["command.", "collector.", "journal.", "database.", "losses.", "disk."]),
    ("state.unsafe", &["hooks.silent"]),
    ("state.not_writable", &["collector.", "journal.", "database.", "losses.permission"]),
    ("state.not_writable", &["hooks.silent"]),
    ("state.missing", &["collector.stopped", "disk."]),
    ("disk.full", &["state.not_writable", "collector.", "journal.", "database.trouble"]),
    ("disk.full", &["losses.disk_full", "disk.low"]),
    // Without installed hooks nothing is recorded, and no state directory exists.
    ("hooks.none", &["state.missing", "hooks.silent", "collector.stopped"]),
    ("hooks.broken", &["hooks.silent"]),
    ("hooks.unreadable", &["hooks.none", "hooks.silent"]),
    ("hooks.void", &["hooks.silent"]),
    ("hooks.version", &["hooks.silent"]),
    ("hooks.other_directory", &["hooks.silent", "collector.arrival"]),
    ("hooks.foreign_form", &["hooks.silent"]),
    ("hooks.other_system", &["hooks.silent"]),
    // A program that cannot run fails once for each event.
    ("program.missing", &["command.", "hooks.silent", "collector.arrival"]),
    ("program.altered", &["command.", "hooks.silent", "collector.arrival"]),
    ("program.untrusted", &["command.", "collector.arrival"]),
    ("command.failed", &["command.slow", "collector.arrival", "hooks.silent"]),
    // A collector that stores nothing explains why no hook arrives.
    ("collector.stopped", &["collector.arrival", "journal.backlog", "hooks.silent"]),
    ("collector.no_answer", &["collector.arrival", "database.trouble"]),
    ("database.damaged", &["database.trouble", "collector.arrival", "collector.no_answer"]),
    ("database.newer", &["database.trouble", "collector.arrival", "collector.stopped"]),
    ("database.trouble", &["collector.arrival"]),
    ("journal.bound", &["collector.arrival", "losses.journal_full", "journal.backlog"]),
    // An unreadable configuration names no destination.
    ("config.broken", &["collector.stopped", "export."]),
];

/// Keeps one finding per cause: drops findings that another problem or warning explains.
#[must_use]
pub(crate) fn one_per_cause(mut findings: Vec<Finding>) -> Vec<Finding> {
    let wrong = |finding: &Finding| finding.severity != Severity::Ok;
    let causes: Vec<&'static str> =
        findings.iter().filter(|finding| wrong(finding)).map(|finding| finding.id).collect();
    let explained = |id: &str| {
        let mut pairs = EXPLAINS.iter().filter(|(cause, _)| *cause != id && causes.contains(cause));
        pairs.any(|(_, all)| {
            all.iter().any(|one| *one == id || (one.ends_with('.') && id.starts_with(one)))
        })
    };
    findings.retain(|finding| finding.severity == Severity::Ok || !explained(finding.id));
    findings
}

/// A time as a person reads it: `2.9 ms`, `134 ms`.
pub(super) fn milliseconds(time: std::time::Duration) -> String {
    match time.as_millis() {
        0..10 => format!("{:.1} ms", time.as_secs_f64() * 1_000.0),
        whole => format!("{whole} ms"),
    }
}

/// The first of some names, and how many more there are.
pub(super) fn list<T: AsRef<str>>(names: &[T], shown: usize) -> String {
    let mut text = names.iter().take(shown).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if names.len() > shown {
        text.push_str(&format!(" and {} more", names.len() - shown));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(findings: Vec<Finding>) -> Vec<&'static str> {
        one_per_cause(findings).into_iter().map(|finding| finding.id).collect()
    }

    fn problem(id: &'static str) -> Finding {
        Finding::problem(id, "it is so", "do this")
    }

    #[test]
    fn a_cause_hides_what_it_explains_and_nothing_else() {
        let all = ["state.unsafe", "command.failed", "database.trouble", "hooks.void"];
        assert_eq!(left(all.map(problem).into()), ["state.unsafe", "hooks.void"]);
        assert_eq!(left(vec![problem("command.failed")]), ["command.failed"]);
    }

    #[test]
    fn what_is_well_explains_nothing_and_stays() {
        let fine = vec![Finding::ok("state.unsafe", "fine"), problem("command.failed")];
        assert_eq!(left(fine), ["state.unsafe", "command.failed"]);
        let found = vec![problem("state.unsafe"), Finding::ok("database.sound", "fine")];
        assert_eq!(left(found), ["state.unsafe", "database.sound"]);
    }

    #[test]
    fn no_two_causes_hide_each_other() {
        for (cause, explained) in EXPLAINS {
            for (other, back) in EXPLAINS {
                let hides = |list: &[&str], id: &str| {
                    list.iter().any(|one| *one == id || (one.ends_with('.') && id.starts_with(one)))
                };
                let both = cause != other && hides(explained, other) && hides(back, cause);
                assert!(!both, "{cause} and {other} hide each other");
            }
        }
    }

    #[test]
    fn the_area_is_the_front_of_the_id() {
        assert_eq!(problem("hooks.void").area, "hooks");
    }
}
