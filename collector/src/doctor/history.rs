//! What the database's counters tell about the past.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::files::Entry;
use super::{Finding, finding};
use crate::status::Status;

/// Smallest number and smallest share (one in N) of duplicate hooks that give a warning.
const DOUBLED_LEAST: u64 = 20;
const DOUBLED_PART: u64 = 5;

/// All findings from the counters.
pub(super) fn examine(status: &Status, entries: &[Entry]) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(doubled(&status.counters, entries));
    findings.extend(full(&status.counters));
    findings.extend(memory(&status.counters));
    findings.extend(clock(&status.counters));
    let came = status.last_hook_ns.is_some() && !status.is_blind();
    findings.extend(came.then(|| contract(status)));
    findings.extend(silence(status, entries));
    findings
}

/// Whether some session exceeded its limit in memory.
fn full(counters: &BTreeMap<String, u64>) -> Option<Finding> {
    let left_out = counters.get(crate::engine::SESSION_FULL).copied().filter(|count| *count > 0)?;
    let (most, together) =
        (hookspan_core::sessions::MAX_SESSION, hookspan_core::sessions::MAX_HELD);
    let what = format!(
        "{left_out} hooks exceeded a limit in memory: {most} hooks per session, or {together} in all sessions"
    );
    let remedy = "start a new chat in Cursor; prompts, stops and tokens of the long session are still recorded";
    Some(
        Finding::warning("sessions.full", what, remedy)
            .meaning("these hooks are stored, but not shown in their session"),
    )
}

/// Sessions and turns that were evicted from memory and reloaded. Nothing is lost by that.
fn memory(counters: &BTreeMap<String, u64>) -> Option<Finding> {
    let count = |key: &str| counters.get(key).copied().unwrap_or_default();
    let (evicted, reloaded) =
        (count(crate::engine::SESSION_EVICTED), count(crate::engine::TURN_RELOADED));
    (evicted > 0 || reloaded > 0).then(|| {
        let what = format!(
            "{evicted} sessions left memory to make room, and {reloaded} settled turns were read again for a late hook; \
             nothing is lost by either"
        );
        Finding::ok("sessions.memory", what)
    })
}

/// Whether the clock of this machine was set.
fn clock(counters: &BTreeMap<String, u64>) -> Option<Finding> {
    let steps = counters.get(crate::engine::CLOCK_STEPS).copied().filter(|count| *count > 0)?;
    let times = if steps == 1 { "once".to_owned() } else { format!("{steps} times") };
    Some(Finding::ok(
        "clock.steps",
        format!(
            "the clock was set {times} while hooks arrived: the durations of these calls come from the time since boot, and \
             turns and calls have `hookspan.clock_step_ms`"
        ),
    ))
}

/// Whether hooks arrive twice. Cursor runs the entries of every hooks.json, and those of Claude's settings, too.
fn doubled(counters: &BTreeMap<String, u64>, entries: &[Entry]) -> Option<Finding> {
    let count = |key: &str| counters.get(key).copied().unwrap_or_default();
    let twice = count(crate::engine::DUPLICATE_CONTENT);
    let new = count("received").saturating_sub(count("duplicate"));
    if twice == 0 {
        return None;
    }
    let what = format!("{twice} of {new} hooks were duplicates; each event was counted once");
    // Cursor repeats a hook now and then. With two sources, half of the hooks are duplicates.
    if twice < DOUBLED_LEAST || twice.saturating_mul(DOUBLED_PART) < new {
        return Some(Finding::ok("hooks.duplicates", what));
    }
    let files: BTreeSet<&Path> = entries.iter().map(|entry| entry.file.as_path()).collect();
    let remedy = if files.len() > 1 {
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        format!(
            "{} all run hookspan: `hookspan uninstall --scope SCOPE` for all but one",
            names.join(" and ")
        )
    } else {
        "look for hookspan-shim in a team's or project's hooks.json, in .claude/settings.json and in plugins, and \
         keep one entry; if only one is left already, this is the past: it is counted since recording began"
            .to_owned()
    };
    Some(Finding::warning("hooks.duplicates", what, remedy).meaning(
        "two sources, such as two hooks.json, run hookspan, so each event starts two programs",
    ))
}

/// What Cursor sends that this version of hookspan has never seen.
fn contract(status: &Status) -> Finding {
    let named = |kind: &str| -> Vec<String> {
        let found = status.counters.keys().filter_map(|key| key.strip_prefix(kind));
        found.map(str::to_owned).collect()
    };
    let (events, fields) = (named("unknown_event."), named("unknown_field."));
    let values = named("unknown_value.");
    if events.is_empty() && fields.is_empty() && values.is_empty() {
        return Finding::ok("contract.known", "all events, fields and values are known");
    }
    let list = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => finding::list(names, 5),
    };
    Finding::warning(
        "contract.unknown",
        format!(
            "Cursor sent names that this hookspan does not know, with the version that sent them: events {}; fields {}; values {}",
            list(&events),
            list(&fields),
            list(&values)
        ),
        "a newer hookspan may know them; `hookspan doctor --drift` prints a report of names and types to send",
    )
    .meaning("nothing is lost: they are in the raw log")
}

fn silence(status: &Status, entries: &[Entry]) -> Option<Finding> {
    let silent = status.last_hook_ns.is_none() && status.backlog == 0 && !status.is_blind();
    (!entries.is_empty() && silent).then(|| {
        Finding::warning(
            "hooks.silent",
            "installed, but nothing has arrived yet",
            "restart Cursor and ask its agent something; if still nothing arrives, hookspan install --no-exec",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;
    use crate::hooks_json::Scope;

    #[test]
    fn hooks_that_come_twice_are_a_warning_when_they_are_many() {
        let entry =
            |scope: Scope, file: &str| Entry { scope: Some(scope), file: file.into(), form: None };
        let one = [entry(Scope::User, "/u/hooks.json"), entry(Scope::User, "/u/hooks.json")];
        let two = [entry(Scope::User, "/u/hooks.json"), entry(Scope::Project, "/p/hooks.json")];
        let found = |twice: u64, entries: &[Entry]| {
            let counters = [("received", 1_010), ("duplicate", 10), ("duplicate_content", twice)];
            doubled(&counters.map(|(key, n)| (key.to_owned(), n)).into(), entries)
        };
        assert_eq!(found(0, &two), None);
        assert_eq!(found(8, &two).unwrap().severity, Severity::Ok);
        let finding = found(500, &two).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.what.starts_with("500 of 1000 hooks"), "{}", finding.what);
        let remedy = finding.remedy.unwrap();
        assert!(remedy.starts_with("/p/hooks.json and /u/hooks.json all run hookspan"), "{remedy}");
        assert!(found(500, &one).unwrap().remedy.unwrap().contains("keep one entry"));
    }

    #[test]
    fn a_session_beyond_its_bound_is_told_of() {
        let of = |count: u64| full(&BTreeMap::from([("session_full".to_owned(), count)]));
        assert_eq!((full(&BTreeMap::new()), of(0)), (None, None));
        let finding = of(12).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.what.starts_with("12 hooks"), "{}", finding.what);
    }

    #[test]
    fn what_left_memory_is_told_of_and_no_warning() {
        let of = |key: &str, count: u64| memory(&BTreeMap::from([(key.to_owned(), count)]));
        assert_eq!((memory(&BTreeMap::new()), of("session_evicted", 0)), (None, None));
        for (key, what) in [
            ("session_evicted", "7 sessions left memory"),
            ("turn_reloaded", "0 sessions left memory to make room, and 7 settled turns"),
        ] {
            let finding = of(key, 7).unwrap();
            assert_eq!(finding.severity, Severity::Ok);
            assert!(finding.what.starts_with(what), "{}", finding.what);
        }
    }

    #[test]
    fn a_clock_that_was_set_is_told_of() {
        let of = |count: u64| clock(&BTreeMap::from([("clock_steps".to_owned(), count)]));
        assert_eq!((clock(&BTreeMap::new()), of(0)), (None, None));
        let finding = of(3).unwrap();
        assert_eq!(finding.severity, Severity::Ok);
        assert!(finding.what.starts_with("the clock was set 3 times"), "{}", finding.what);
        assert!(
            of(1).is_some_and(|finding| finding.what.starts_with("the clock was set once while"))
        );
    }
}
