//! Everything around the hooks: configuration, state directory, collector, database, destinations, Cursor's own log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Finding;
use super::files::Ours;
use super::{destinations, probe};
use crate::clock;
use crate::config::Global;
use crate::config::{Evidence, destination, paths};
use crate::hooks_json::entry;
use crate::status::Status;
use crate::store::cursor::Database;
use crate::store::{cli as queries, open};
use crate::text;

/// A check of a larger database takes longer than a person waits.
const CHECKED_MAX_BYTES: u64 = 256 << 20;
/// From the hook's exit to the database; usually 50 ms.
const ARRIVAL: Duration = Duration::from_secs(5);
const LOG_MAX_BYTES: u64 = 4 << 20;
const LOGS_MAX: usize = 8;
/// Hooks that came twice are worth a warning from so many on, and from one in so many.
const DOUBLED_LEAST: u64 = 20;
const DOUBLED_PART: u64 = 5;

/// Configuration and state directory.
pub(super) fn configuration(global: &Global) -> Vec<Finding> {
    let loaded = global.config().map_err(|error| error.to_string());
    let resolved = loaded.and_then(|config| {
        destination::all(&config, &global.env).map_err(|error| error.to_string())
    });
    let file = global.config_file.as_deref();
    let mut findings = vec![match resolved {
        Ok(_) => Finding::ok(
            "config",
            match file {
                Some(file) if file.exists() => file.display().to_string(),
                Some(file) => format!("{}: not there, the defaults hold", file.display()),
                None => "the defaults hold".to_owned(),
            },
        ),
        Err(error) => {
            Finding::problem("config", error, "correct it; `hookspan config check` tries it")
        }
    }];
    let root = global.state.root();
    findings.push(match global.state.verify() {
        Ok(()) => match global.state.not_writable() {
            None => Finding::ok("state", root.display().to_string()),
            Some(error) => Finding::problem(
                "state",
                format!("{} cannot be written: {error}", root.display()),
                "make it writable, or use another one with --dir DIR; until then hooks are kept in memory or lost",
            ),
        },
        Err(_) if !root.exists() => Finding::warning(
            "state",
            format!("{}: does not exist yet", root.display()),
            "hookspan up",
        ),
        Err(error) => Finding::problem("state", error.to_string(), "correct that, then look again"),
    });
    findings
}

/// From the journal on.
pub(super) fn collector(global: &Global, ours: &[Ours]) -> Vec<Finding> {
    let status = match Status::read(global) {
        Ok(status) => status,
        // A broken configuration has been named already, in words that say what to do.
        Err(error) if error.chain().any(|cause| cause.is::<crate::config::Misuse>()) => {
            return Vec::new();
        }
        Err(error) => {
            let what = format!("{error:#}");
            return vec![Finding::problem("collector", what, "correct that, then look again")];
        }
    };
    let mut findings = vec![running(&status)];
    if status.running && status.dashboard_url.is_some() {
        findings.extend(arrival(global, ours));
    }
    let told = |finding: &Finding| status.trouble.as_ref() == Some(&finding.what);
    findings.extend(database(global, &status).filter(|finding| !told(finding)));
    findings.extend(state_of_the_store(&status));
    findings.extend(losses(&status));
    findings.extend(doubled(&status.counters, ours));
    findings.extend(full(&status.counters));
    findings.extend(clock(&status.counters));
    findings.extend((!status.is_blind()).then(|| contract(&status)));
    findings.extend(destinations::examine(global, &status));
    findings.extend(silence(&status, ours));
    findings.extend(cursor_log(global));
    // What a broken configuration means has been said.
    findings.extend(
        global.config().ok().map(|config| cursor_store(&config.evidence, &status.counters)),
    );
    findings
}

fn running(status: &Status) -> Finding {
    match (status.running, status.pid) {
        (true, Some(pid)) => {
            let version = status.version.as_deref().unwrap_or_default();
            let what = format!("running, process {pid}, version {version}");
            if version == env!("CARGO_PKG_VERSION") {
                return Finding::ok("collector", what);
            }
            let ours = env!("CARGO_PKG_VERSION");
            Finding::warning("collector", format!("{what}; this is {ours}"), "restart it")
        }
        (true, None) => Finding::ok("collector", "another command holds the state directory"),
        (false, _) => Finding::warning(
            "collector",
            format!("not running; {} hooks wait in the journal", status.backlog),
            "hookspan up",
        ),
    }
}

/// Sends one `workspaceOpen`, which belongs to no session, the real way and waits for it.
fn arrival(global: &Global, ours: &[Ours]) -> Option<Finding> {
    let program = ours.iter().find_map(|ours| {
        let program = entry::program(&ours.command)?;
        Path::new(&program).exists().then_some(program)
    })?;
    let before = stored(global)?;
    let started = clock::instant();
    let command = format!("exec '{}' workspaceOpen", program.replace('\'', r"'\''"));
    let command = if cfg!(windows) { format!("{program} workspaceOpen") } else { command };
    let root = global.state.root();
    probe::run(global, &command, root, root, &probe::payload("workspaceOpen")).ok()?;
    while clock::instant().duration_since(started) < ARRIVAL {
        if stored(global).is_some_and(|now| now > before) {
            let took = clock::instant().duration_since(started);
            let took = text::duration(i64::try_from(took.as_nanos()).unwrap_or(i64::MAX));
            return Some(Finding::ok(
                "collector",
                format!("a hook is in the database after {took}"),
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(Finding::problem(
        "collector",
        format!("a hook did not reach the database within {} s", ARRIVAL.as_secs()),
        "restart the collector, and look at what it says",
    ))
}

fn stored(global: &Global) -> Option<u64> {
    let database = open::reader(&global.state.database()).ok()?;
    queries::hooks(&database).ok()
}

fn database(global: &Global, status: &Status) -> Option<Finding> {
    let path = global.state.database();
    if !path.exists() {
        return None;
    }
    let size = text::bytes(status.database_bytes);
    if status.database_bytes > CHECKED_MAX_BYTES {
        return Some(Finding::ok(
            "database",
            format!("{}: {size}, too large to check here", path.display()),
        ));
    }
    let checked = open::reader(&path)
        .map_err(|error| error.to_string())
        .and_then(|database| queries::quick_check(&database).map_err(|error| error.to_string()));
    Some(match checked {
        Ok(None) => Finding::ok("database", format!("{}: {size}, sound", path.display())),
        Ok(Some(damage)) => Finding::problem(
            "database",
            format!("{}: damaged: {}", path.display(), text::visible(&damage, 120)),
            "stop the collector and keep a copy of the file, then `hookspan export --all --format jsonl` \
             what can be read and import it into a new --dir",
        ),
        Err(error) => Finding::problem("database", error, "correct that, then look again"),
    })
}

/// What the collector has to put up with.
fn state_of_the_store(status: &Status) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(trouble) = &status.trouble {
        let what = text::visible(trouble, 200);
        findings.push(Finding::problem(
            "database",
            what,
            "hooks wait in the journal until that is over",
        ));
    }
    if status.journal.spilled > 0 {
        findings.push(Finding::warning(
            "journal",
            format!(
                "{} hooks ({}) wait in the run-time directory, because the state directory did not take them; a \
                 restart of this machine loses them",
                status.journal.spilled,
                text::bytes(status.journal.spilled_bytes)
            ),
            "start the collector; it stores them as soon as the state directory can be written",
        ));
    }
    if status.journal.stopped {
        findings.push(Finding::problem(
            "journal",
            "at its bound: hooks are counted instead of kept",
            "start the collector; while one runs, raise journal.max_bytes",
        ));
    }
    findings.extend(status.journal.problems.iter().map(|problem| {
        let what = text::visible(&problem.what, 300);
        Finding::problem("journal", what, "correct that; the collector goes on by itself")
    }));
    findings.extend(status.damaged.iter().map(|aside| {
        let remedy = "keep the folder for a repair by hand, or delete it";
        Finding::warning("database", aside.clone(), remedy)
    }));
    findings
}

/// Whether a session grew beyond what is held of one.
fn full(counters: &BTreeMap<String, u64>) -> Option<Finding> {
    let left_out = counters.get(crate::engine::SESSION_FULL).copied().filter(|count| *count > 0)?;
    let (most, together) =
        (hookspan_core::sessions::MAX_SESSION, hookspan_core::sessions::MAX_HELD);
    Some(Finding::warning(
        "sessions",
        format!(
            "{left_out} hooks came when their session held {most}, or all together {together}: they are stored, but in no tree"
        ),
        "begin a new chat in Cursor; prompts, stops and tokens of the long one still arrive",
    ))
}

/// Whether somebody sets the clock of this machine.
fn clock(counters: &BTreeMap<String, u64>) -> Option<Finding> {
    let steps = counters.get(crate::engine::CLOCK_STEPS).copied().filter(|count| *count > 0)?;
    let times = if steps == 1 { "once".to_owned() } else { format!("{steps} times") };
    Some(Finding::ok(
        "clock",
        format!(
            "the clock was set {times} while hooks came: calls that ran meanwhile are told by the time since boot, and \
             turns and calls carry `hookspan.clock_step_ms`"
        ),
    ))
}

/// Whether hooks come twice: Cursor runs the entries of every hooks.json, and those of Claude's settings too.
fn doubled(counters: &BTreeMap<String, u64>, ours: &[Ours]) -> Option<Finding> {
    let count = |key: &str| counters.get(key).copied().unwrap_or_default();
    let twice = count(crate::engine::DUPLICATE_CONTENT);
    let new = count("received").saturating_sub(count("duplicate"));
    if twice == 0 {
        return None;
    }
    let what =
        format!("{twice} of {new} hooks said what another one had just said; each was taken once");
    // Cursor itself repeats a hook now and then. Of two sources, half is a repetition.
    if twice < DOUBLED_LEAST || twice.saturating_mul(DOUBLED_PART) < new {
        return Some(Finding::ok("hooks", what));
    }
    let files: BTreeSet<&Path> = ours.iter().map(|ours| ours.file.as_path()).collect();
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
    Some(Finding::warning(
        "hooks",
        format!(
            "{what}. Two sources, such as two hooks.json, run hookspan, so each event starts two programs"
        ),
        remedy,
    ))
}

/// What Cursor sends that this version of hookspan has never seen.
fn contract(status: &Status) -> Finding {
    let named = |kind: &str| -> Vec<String> {
        let found = status.counters.keys().filter_map(|key| key.strip_prefix(kind));
        found.map(str::to_owned).collect()
    };
    let (events, fields) = (named("unknown_event."), named("unknown_field."));
    if events.is_empty() && fields.is_empty() {
        return Finding::ok("contract", "every event and every field that came is known");
    }
    let list = |names: &[String]| {
        let mut text = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        if names.len() > 5 {
            text.push_str(&format!(" and {} more", names.len() - 5));
        }
        if text.is_empty() { "none".to_owned() } else { text }
    };
    Finding::warning(
        "contract",
        format!("new to hookspan, by version: events {}; fields {}", list(&events), list(&fields)),
        "nothing is lost, the raw log keeps them; a newer hookspan may read them",
    )
}

fn losses(status: &Status) -> Vec<Finding> {
    let mut findings: Vec<Finding> = status
        .losses
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(reason, count)| {
            let remedy = match reason.as_str() {
                "disk_full" => "free some space",
                "journal_full" => "start the collector; while one runs, raise journal.max_bytes",
                "permission" | "read_only" => "make the state directory writable",
                _ => "look at the disk that holds the state directory",
            };
            Finding::warning("losses", format!("{count} hooks lost: {reason}"), remedy)
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::ok("losses", "none"));
    }
    if status.malformed > 0 {
        findings.push(Finding::warning(
            "losses",
            format!("{} hooks could not be read as JSON; their bytes are kept", status.malformed),
            "update Cursor; `hookspan export --all --format jsonl` shows them as text",
        ));
    }
    findings
}

fn silence(status: &Status, ours: &[Ours]) -> Option<Finding> {
    let silent = status.last_hook_ns.is_none() && status.backlog == 0 && !status.is_blind();
    (!ours.is_empty() && silent).then(|| {
        Finding::warning(
            "hooks",
            "installed, but nothing has arrived yet",
            "restart Cursor and ask its agent something; still nothing: hookspan install --no-exec",
        )
    })
}

/// Cursor says in its own log when a command cannot be started. The lines hold commands and payloads: only counted here.
fn cursor_log(global: &Global) -> Option<Finding> {
    let logs = newest_logs(&paths::cursor_folder(&global.env)?.join("logs"));
    let newest = logs.first()?;
    let failed: usize = logs.iter().map(|log| failures(log)).sum();
    Some(if failed == 0 {
        Finding::ok("cursor", format!("{}: no failed hook of hookspan", newest.display()))
    } else {
        Finding::warning(
            "cursor",
            format!("{failed} lines of Cursor's hook log speak of a failed hookspan-shim"),
            format!(
                "read {}; `hookspan install --no-exec` helps where `exec` is the trouble",
                newest.display()
            ),
        )
    })
}

/// `LAUNCH/WINDOW/output_*/cursor.hooks*.log`, newest first. Names begin with a time, so their order is that of time.
fn newest_logs(folder: &Path) -> Vec<PathBuf> {
    let list = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths.reverse();
        paths
    };
    let named = |path: &PathBuf, start: &str| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    let launches = list(folder).into_iter().take(LOGS_MAX);
    let windows = launches.flat_map(|launch| list(&launch));
    let outputs = windows.flat_map(|window| list(&window)).filter(|path| named(path, "output_"));
    let logs = outputs.flat_map(|output| list(&output)).filter(|path| named(path, "cursor.hooks"));
    logs.take(LOGS_MAX).collect()
}

fn failures(log: &Path) -> usize {
    let small = std::fs::metadata(log).is_ok_and(|meta| meta.len() <= LOG_MAX_BYTES);
    let bytes = if small { std::fs::read(log).unwrap_or_default() } else { Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let signs = ["enoent", "not found", "e2big", "timed out", "exit code: 1", "exited with code 1"];
    text.lines()
        .filter(|line| line.contains("hookspan-shim"))
        .map(str::to_ascii_lowercase)
        .filter(|line| signs.iter().any(|sign| line.contains(sign)))
        .count()
}

/// Whether Cursor's own database can say who works for whom.
fn cursor_store(evidence: &Evidence, counters: &BTreeMap<String, u64>) -> Finding {
    let Some(path) = evidence.file() else {
        return Finding::ok("cursor", "its database is never asked: evidence.cursor_store = false");
    };
    let shown = path.display();
    if !path.is_file() {
        let what = format!("{shown}: not there; hooks and transcripts alone link subagents");
        return Finding::ok("cursor", what);
    }
    let tables = match Database::open(&path) {
        Ok(database) => database.tables(),
        Err(error) => {
            let what = format!("{shown}: cannot be read: {error}");
            let remedy = "nothing is lost: hooks and transcripts still link subagents";
            return Finding::warning("cursor", what, remedy);
        }
    };
    let known = [
        (tables.headers, "composerHeaders"),
        (tables.values, "cursorDiskKV"),
        (tables.items, "ItemTable"),
    ];
    let names: Vec<&str> =
        known.iter().filter(|(there, _)| *there).map(|(_, name)| *name).collect();
    if names.is_empty() {
        let what = format!("{shown}: of a form that hookspan does not know");
        return Finding::warning("cursor", what, "a newer hookspan may read it; nothing is lost");
    }
    let count = |key: &str| counters.get(key).copied().unwrap_or_default();
    Finding::ok(
        "cursor",
        format!(
            "{shown}: readable ({}); gave {} answers about subagents, failed {} times",
            names.join(", "),
            count("evidence_store"),
            count("evidence_store_failed"),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;
    use crate::hooks_json::Scope;

    #[test]
    fn hooks_that_come_twice_are_a_warning_when_they_are_many() {
        let ours = |scope: Scope, file: &str| Ours {
            scope,
            file: file.into(),
            event: "stop".to_owned(),
            command: "/b/hookspan-shim stop".to_owned(),
        };
        let one = [ours(Scope::User, "/u/hooks.json"), ours(Scope::User, "/u/hooks.json")];
        let two = [ours(Scope::User, "/u/hooks.json"), ours(Scope::Project, "/p/hooks.json")];
        let found = |twice: u64, ours: &[Ours]| {
            let counters = [("received", 1_010), ("duplicate", 10), ("duplicate_content", twice)];
            doubled(&counters.map(|(key, n)| (key.to_owned(), n)).into(), ours)
        };
        assert_eq!(found(0, &two), None);
        assert_eq!(found(8, &two).unwrap().level, Level::Ok);
        let finding = found(500, &two).unwrap();
        assert_eq!(finding.level, Level::Warning);
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
        assert_eq!(finding.level, Level::Warning);
        assert!(finding.what.starts_with("12 hooks"), "{}", finding.what);
    }

    #[test]
    fn a_clock_that_was_set_is_told_of() {
        let of = |count: u64| clock(&BTreeMap::from([("clock_steps".to_owned(), count)]));
        assert_eq!((clock(&BTreeMap::new()), of(0)), (None, None));
        let finding = of(3).unwrap();
        assert_eq!(finding.level, Level::Ok);
        assert!(finding.what.starts_with("the clock was set 3 times"), "{}", finding.what);
        assert!(
            of(1).is_some_and(|finding| finding.what.starts_with("the clock was set once while"))
        );
    }

    #[test]
    fn cursors_database_is_judged_by_what_can_be_read_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.vscdb");
        let counters = BTreeMap::from([("evidence_store".to_owned(), 3)]);
        let mut evidence = Evidence { cursor_store_path: path.clone(), ..Evidence::default() };
        let judge = |evidence: &Evidence| {
            let found = cursor_store(evidence, &counters);
            (found.level, found.what.replace(&path.display().to_string(), "FILE"))
        };
        let ok = |what: &str| (Level::Ok, what.to_owned());
        let expected = ok("FILE: not there; hooks and transcripts alone link subagents");
        assert_eq!(judge(&evidence), expected);
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE other (x)").unwrap();
        assert_eq!(judge(&evidence).0, Level::Warning);
        db.execute_batch("CREATE TABLE ItemTable (key TEXT, value BLOB)").unwrap();
        let expected =
            ok("FILE: readable (ItemTable); gave 3 answers about subagents, failed 0 times");
        assert_eq!(judge(&evidence), expected);
        drop(db);
        std::fs::write(&path, [b'x'; 4_096]).unwrap();
        assert_eq!(judge(&evidence).0, Level::Warning);
        evidence.cursor_store = false;
        let expected = ok("its database is never asked: evidence.cursor_store = false");
        assert_eq!(judge(&evidence), expected);
    }

    #[test]
    fn failed_starts_are_counted_in_cursors_log() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("20260609T155300/window1/output_20260609T155301");
        std::fs::create_dir_all(&output).unwrap();
        let log = output.join("cursor.hooks.workspaceId-1.log");
        std::fs::write(
            &log,
            "ran exec /s/hookspan-shim stop\nexec /s/hookspan-shim stop: ENOENT\n./other.sh: ENOENT\n",
        )
        .unwrap();
        std::fs::write(output.join("main.log"), "hookspan-shim ENOENT\n").unwrap();
        assert_eq!(newest_logs(folder.path()), std::slice::from_ref(&log));
        assert_eq!(failures(&log), 1);
    }
}
