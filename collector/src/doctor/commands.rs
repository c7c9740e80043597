//! Runs the hook commands with a temporary state directory instead of the real one.
//!
//! Only our own program is run ([`super::programs`]), with arguments that a strict reader took from the entry
//! ([`crate::hooks_json::line`]): first directly, then through a shell as Cursor does. The shell's command line is
//! built and quoted here from the same parts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::desktop::{self, Ran};
use super::files::Entry;
use super::programs::Program;
use super::{Finding, finding};
use crate::config::{Global, paths};
use crate::dirs::StateDir;
use crate::hooks_json::events;
use crate::hooks_json::line::Line;
use crate::journal::{Position, survey};
use crate::text;

/// A user notices hooks that take longer than this.
const SLOW: Duration = Duration::from_millis(250);

/// Runs every distinct command of ours once.
pub(super) fn examine(global: &Global, entries: &[Entry], programs: &[Program]) -> Vec<Finding> {
    let runnable = |form: &&Line| {
        programs.iter().any(|program| program.path == form.program && program.is_runnable())
    };
    let mut seen = BTreeSet::new();
    let forms = entries.iter().filter_map(|entry| entry.form.as_ref()).filter(runnable);
    let forms: Vec<&Line> = forms.filter(|form| seen.insert(form.write())).collect();
    if forms.is_empty() {
        return Vec::new();
    }
    match tempfile::tempdir() {
        Ok(aside) => Trial { global, aside: aside.path() }.run(&forms),
        Err(error) => vec![Finding::warning(
            "command.not_tried",
            format!("the hook commands could not be tested: {}", text::reason(&error)),
            "make the folder for temporary files writable",
        )],
    }
}

struct Trial<'a> {
    global: &'a Global,
    /// Home and state directory for the hooks that are tried.
    aside: &'a Path,
}

impl Trial<'_> {
    fn run(&self, forms: &[&Line]) -> Vec<Finding> {
        let state = match self.state() {
            Ok(state) => state,
            Err(error) => {
                let what =
                    format!("the hook commands could not be tested: {}", text::reason(&error));
                return vec![Finding::warning("command.not_tried", what, "look at the disk")];
            }
        };
        let mut faults: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut times = Vec::new();
        let mut ran = 0;
        for form in forms {
            let form = form.dir.as_ref().map_or((*form).clone(), |_| form.with_dir(state.root()));
            let event = events::KNOWN.iter().find(|known| **known == form.event);
            let event = event.copied().unwrap_or("an unknown event");
            // Only the last run is timed, because Cursor runs hooks in that way.
            let mut took = None;
            for (command, line) in
                [Some(self.command(&form)), self.shell(&form)].into_iter().flatten()
            {
                let one = desktop::run(command, line, &payload(&form.event));
                let one =
                    one.map_err(|error| format!("cannot be started: {}", text::reason(&error)));
                ran += u64::from(one.is_ok());
                match one.and_then(|one| fault(&form.event, &one).map_or(Ok(one.took), Err)) {
                    Ok(time) => took = Some(time),
                    Err(fault) => {
                        faults.entry(fault).or_default().push(event);
                        took = None;
                        break;
                    }
                }
            }
            times.extend(took);
        }
        let kept = survey::survey(&state, &Position::default()).map_or(0, |found| found.records);
        verdict(forms.len(), &faults, times, ran, kept)
    }

    /// A state directory in the place where hooks look if the environment names only a home folder.
    fn state(&self) -> std::io::Result<StateDir> {
        let home = self.aside.to_string_lossy().into_owned();
        let pairs = [("HOME", home.as_str()), ("LOCALAPPDATA", home.as_str())];
        let env = crate::config::Environment::of(&pairs, self.aside);
        let state = StateDir::resolve(None, &paths::places(&env));
        let state = state.map_err(std::io::Error::other)?;
        std::fs::create_dir_all(state.root())?;
        Ok(state)
    }

    fn command(&self, form: &Line) -> (Command, Vec<std::ffi::OsString>) {
        let command = desktop::command(self.global, &form.program, Some(self.aside));
        (command, form.arguments().into_iter().map(ToOwned::to_owned).collect())
    }

    /// The same command, run through the shell that Cursor uses.
    fn shell(&self, form: &Line) -> Option<(Command, Vec<std::ffi::OsString>)> {
        if cfg!(windows) {
            return None;
        }
        let line = form.write()?;
        let command = desktop::command(self.global, Path::new("/bin/sh"), Some(self.aside));
        Some((command, vec!["-c".into(), line.into()]))
    }
}

/// What is wrong with a run.
fn fault(event: &str, ran: &Ran) -> Option<String> {
    let expected = events::neutral_reply(event);
    match ran.code {
        None => Some("did not end within 5 s".to_owned()),
        Some(code) if code != 0 => Some(format!("exit code {code} instead of 0")),
        _ if ran.stdout.trim_end() != expected => {
            let said = text::visible(ran.stdout.trim_end(), 60);
            Some(format!("answered `{said}` instead of `{expected}`"))
        }
        _ => None,
    }
}

fn verdict(
    commands: usize,
    faults: &BTreeMap<String, Vec<&str>>,
    mut times: Vec<Duration>,
    ran: u64,
    kept: u64,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = faults
        .iter()
        .map(|(fault, events)| {
            let what = match events.as_slice() {
                [one] => format!("the hook command of {one}: {fault}"),
                all => format!("{} of {commands} hook commands: {fault}", all.len()),
            };
            let remedy = "hookspan install; if that does not help, hookspan install --no-exec";
            Finding::problem("command.failed", what, remedy)
                .meaning(format!("hooks are not recorded: {}", finding::list(events, 4)))
        })
        .collect();
    if kept < ran {
        findings.push(
            Finding::problem(
                "command.lost",
                format!("{ran} hooks ran, and {kept} of them were recorded"),
                "hookspan install; if that does not help, please report it",
            )
            .meaning("the hook program answers, but stores no hooks"),
        );
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    if findings.is_empty() && median > SLOW {
        findings.push(
            Finding::warning(
                "command.slow",
                format!("the hook commands take {} ms", median.as_millis()),
                "find what slows down the start of programs: a virus scanner, or a home folder on a network",
            )
            .meaning("Cursor waits for each of them"),
        );
    } else if findings.is_empty() {
        let median = finding::milliseconds(median);
        let with = if cfg!(windows) { "" } else { ", including the shell" };
        let what = match commands {
            1 => format!("The hook command works (median {median}{with})"),
            all => format!("All {all} hook commands work (median {median}{with})"),
        };
        findings.push(Finding::ok("command.works", what));
    }
    findings
}

/// An event as Cursor sends it.
fn payload(event: &str) -> String {
    let identity = "00000000-0000-4000-8000-000000000000";
    serde_json::json!({
        "conversation_id": identity,
        "generation_id": identity,
        "hook_event_name": event,
        "cursor_version": "0.0.0",
        "workspace_roots": [],
        "text": "hookspan doctor: \"quotes\", $(nothing), 日本語",
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: Option<i32>, stdout: &str) -> Ran {
        Ran { code, stdout: stdout.to_owned(), took: Duration::from_millis(1) }
    }

    #[test]
    fn a_hook_is_judged_by_end_code_and_answer() {
        assert_eq!(fault("stop", &ran(Some(0), "{}\n")), None);
        assert_eq!(fault("stop", &ran(Some(127), "")).unwrap(), "exit code 127 instead of 0");
        assert_eq!(fault("stop", &ran(None, "")).unwrap(), "did not end within 5 s");
        assert_eq!(
            fault("preToolUse", &ran(Some(0), "{}\n")).unwrap(),
            "answered `{}` instead of `{\"permission\":\"allow\"}`"
        );
    }

    #[test]
    fn one_fault_of_many_commands_is_one_finding() {
        let faults =
            BTreeMap::from([("exit code 126 instead of 0".to_owned(), vec!["stop", "preToolUse"])]);
        let found = verdict(2, &faults, Vec::new(), 2, 2);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0].what, "2 of 2 hook commands: exit code 126 instead of 0");
    }

    #[test]
    fn hooks_that_were_not_written_down_are_a_problem() {
        let times = vec![Duration::from_millis(1); 4];
        let found = verdict(2, &BTreeMap::new(), times.clone(), 4, 0);
        assert_eq!(found[0].id, "command.lost");
        let found = verdict(2, &BTreeMap::new(), times, 4, 4);
        assert!(found[0].what.starts_with("All 2 hook commands work (median 1.0 ms"), "{found:#?}");
    }
}
