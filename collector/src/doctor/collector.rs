//! Checks of the collector: it runs, it has this version, and a hook reaches the database.

use std::path::Path;
use std::time::Duration;

use super::files::Entry;
use super::programs::Program;
use super::{Finding, desktop, finding};
use crate::clock;
use crate::config::Global;
use crate::dirs::ServeInfo;
use crate::hooks_json::line::Line;
use crate::journal::Position;
use crate::journal::probe::{JournalEnd, Probe, ReadUpTo};
use crate::status::{self, Status};
use crate::store::{cli as queries, open};
use crate::text;

/// Maximum time from the hook's exit to the commit. The usual time is 0.1 s, most of it for the journal's sync.
const ARRIVAL: Duration = Duration::from_secs(5);
/// How often the database is read while waiting.
const LOOK: Duration = Duration::from_millis(5);

/// Whether the collector runs.
pub(super) fn running(status: &Status) -> Finding {
    match (status.running, status.pid) {
        (true, Some(pid)) => {
            let version = status.version.as_deref().unwrap_or_default();
            let what = format!("running, process {pid}, version {version}");
            if is_this_version(status) {
                return Finding::ok("collector.running", what);
            }
            let this = env!("CARGO_PKG_VERSION");
            Finding::warning(
                "collector.other_version",
                format!("{what}; this is version {this}"),
                "restart the collector",
            )
        }
        (true, None) => {
            Finding::ok("collector.busy", "another hookspan command uses the state directory")
        }
        (false, _) => {
            let waiting = match status.backlog {
                0 => "not running".to_owned(),
                hooks => format!("not running; {hooks} hooks wait in the journal"),
            };
            Finding::warning("collector.stopped", waiting, "hookspan up")
                .meaning("hooks wait in the journal; nothing is stored, shown or sent until a collector runs")
        }
    }
}

/// The running collector read its configuration when it started, and reads it no more.
pub(super) fn configuration(global: &Global) -> Option<Finding> {
    let what = "the configuration file was written after the collector had started, so it runs with older settings";
    let remedy = "restart it (`systemctl --user restart hookspan`, or end it and start it again); no hook is lost while it restarts";
    status::config_is_newer(global)
        .then(|| Finding::warning("collector.config_newer", what.to_owned(), remedy.to_owned()))
}

/// The rights that the running collector has given up. Never a warning, because a user can hardly change a kernel
/// without Landlock.
pub(super) fn sandbox(global: &Global) -> Option<Finding> {
    let held = ServeInfo::running(&global.state)?.sandbox;
    let is_on = global.config().is_ok_and(|config| config.sandbox);
    // A collector of an earlier version does not report this.
    (!held.is_empty()).then(|| Finding::ok("collector.sandbox", sandbox_words(&held, is_on)))
}

fn sandbox_words(held: &str, is_on: bool) -> String {
    let missing = ["writes", "network"].iter().filter(|part| !held.contains(**part));
    let missing: Vec<&str> = missing.copied().collect();
    match (missing.is_empty(), is_on) {
        (true, _) => held.to_owned(),
        (false, false) => format!("{held}; [sandbox] is switched off"),
        (false, true) => {
            format!("{held}; this system does not restrict {} (Landlock)", missing.join(" and "))
        }
    }
}

fn is_this_version(status: &Status) -> bool {
    status.version.as_deref() == Some(env!("CARGO_PKG_VERSION"))
}

/// Sends a probe in the same way as a hook, and waits until the collector has committed the journal up to it.
///
/// The probe is sent only to a collector of this version, because an older one would store it as a hook. And it is sent
/// only if the hook program can write its journal, because the program would count a failed probe as a lost hook.
pub(super) fn arrival(
    global: &Global,
    status: &Status,
    entries: &[Entry],
    programs: &[Program],
) -> Option<Finding> {
    let can_write = global.state.verify().is_ok() && global.state.not_writable().is_none();
    let reads = status.running && status.dashboard_url.is_some() && is_this_version(status);
    if !reads || !can_write || status.journal.stopped {
        return None;
    }
    let program = programs.iter().find(|program| program.is_runnable())?;
    let form = entries.iter().filter_map(|entry| entry.form.as_ref());
    let form =
        form.filter(|form| form.program == program.path).find(|form| leads_to(global, form))?;
    let started = clock::instant();
    Some(match send(global, form) {
        Ok(Some(end)) => wait(global, end, started),
        Ok(None) => Finding::problem(
            "collector.arrival",
            "a hook wrote nothing to the journal",
            "hookspan install; if that does not help, please report it",
        ),
        Err(error) => Finding::problem(
            "collector.arrival",
            format!("a hook could not be sent: {}", text::reason(&error)),
            "hookspan install",
        ),
    })
}

/// Whether a hook of this form, started from the desktop, would write to the directory that is being checked.
fn leads_to(global: &Global, form: &Line) -> bool {
    let desktop = Global::new(desktop::environment(global), form.dir.clone(), None);
    desktop.is_ok_and(|desktop| desktop.state.root() == global.state.root())
}

fn send(global: &Global, form: &Line) -> std::io::Result<Option<ReadUpTo>> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(std::io::Error::other)?;
    let probe = Probe::new(random);
    let form = Line { event: probe.argument(), ..form.clone() };
    let end = JournalEnd::now(&global.state)?;
    desktop::run(desktop::command(global, &form.program, None), form.arguments(), &probe.body())?;
    end.after_growth()
}

fn wait(global: &Global, end: ReadUpTo, started: std::time::Instant) -> Finding {
    while clock::instant().duration_since(started) < ARRIVAL {
        if position(&global.state.database()).is_some_and(|position| end.is_covered_by(&position)) {
            let took = finding::milliseconds(clock::instant().duration_since(started));
            let what = format!("a hook sent as a test was read and committed after {took}");
            return Finding::ok("collector.arrival", what);
        }
        std::thread::sleep(LOOK);
    }
    let seconds = ARRIVAL.as_secs();
    Finding::problem(
        "collector.arrival",
        format!("a hook sent as a test was not committed within {seconds} s"),
        "read what the collector writes to standard error, then restart it",
    )
    .meaning("hooks wait in the journal")
}

fn position(database: &Path) -> Option<Position> {
    let database = open::reader(database).ok()?;
    queries::journal_position(&database).ok()??.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctor_says_what_holds_and_why_the_rest_does_not() {
        let all = "no new privileges, writes and programs restricted, network restricted";
        assert_eq!(sandbox_words(all, true), all);
        let old = sandbox_words("no new privileges, writes and programs restricted", true);
        assert!(old.ends_with("; this system does not restrict network (Landlock)"), "{old}");
        let off = sandbox_words("no new privileges", false);
        assert_eq!(off, "no new privileges; [sandbox] is switched off");
    }
}
