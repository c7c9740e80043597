//! Runs the hook commands as Cursor does.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Finding;
use super::files::Ours;
use crate::clock;
use crate::config::Global;
use crate::dirs::StateDir;
use crate::hooks_json::{entry, events};
use crate::journal::{Position, survey};
use crate::text;

const AREA: &str = "command";

/// A hook that needs longer than this is felt.
const SLOW: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(5);

/// What came of one run.
pub(super) struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub took: Duration,
}

/// Runs every command once, into a temporary state directory.
pub(super) fn commands(global: &Global, ours: &[Ours]) -> Vec<Finding> {
    let runnable =
        |ours: &&Ours| entry::program(&ours.command).is_some_and(|p| Path::new(&p).exists());
    let ours: Vec<&Ours> = ours.iter().filter(runnable).collect();
    if ours.is_empty() {
        return Vec::new();
    }
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            let what = format!("the hook commands were not tried: {error}");
            return vec![Finding::warning(
                AREA,
                what,
                "make the folder for temporary files writable",
            )];
        }
    };
    let mut findings = Vec::new();
    let mut times = Vec::new();
    let mut tried = BTreeSet::new();
    for one in ours {
        if !tried.insert(&one.command) {
            continue;
        }
        let (command, aside) = put_aside(&one.command, folder.path());
        if !aside {
            continue;
        }
        match run(global, &command, folder.path(), &one.file, &payload(&one.event)) {
            Ok(ran) => {
                times.push(ran.took);
                findings.extend(judge(one, &ran));
            }
            Err(error) => findings.push(Finding::problem(
                AREA,
                format!("{}: cannot be started: {error}", one.event),
                "hookspan install",
            )),
        }
    }
    let arrived = survey::survey(&StateDir::at(folder.path()), &Position::default());
    let arrived = arrived.map_or(0, |found| found.records);
    if arrived < times.len() as u64 {
        findings.push(Finding::problem(
            AREA,
            format!("of {} hooks that ran, {arrived} were written down", times.len()),
            "run one of the commands of hooks.json by hand and look at its output",
        ));
    }
    times.sort_unstable();
    if let (true, Some(median)) = (findings.is_empty(), times.get(times.len() / 2)) {
        let median = text::duration(i64::try_from(median.as_nanos()).unwrap_or(i64::MAX));
        findings.push(Finding::ok(
            AREA,
            format!(
                "{} hook commands answered rightly, median {median} with its shell",
                times.len()
            ),
        ));
    }
    findings
}

fn judge(one: &Ours, ran: &Ran) -> Option<Finding> {
    let expected = events::neutral_reply(&one.event);
    let event = &one.event;
    let what = match ran.code {
        None => format!("{event}: did not end within {} s", PATIENCE.as_secs()),
        Some(code) if code != 0 => format!("{event}: exit code {code} instead of 0"),
        _ if ran.stdout.trim_end() != expected => {
            format!(
                "{event}: answered `{}` instead of `{expected}`",
                text::visible(&ran.stdout, 60)
            )
        }
        _ if ran.took > SLOW => {
            return Some(Finding::warning(
                AREA,
                format!("{event}: took {} ms; Cursor waits for it", ran.took.as_millis()),
                "look at what slows down new processes on this computer (virus scanner, network home folder)",
            ));
        }
        _ => return None,
    };
    Some(Finding::problem(
        AREA,
        what,
        "hookspan install; if it stays so, hookspan install --no-exec",
    ))
}

/// The command with its state directory exchanged, and whether it will go there. One without `--dir` is told by the
/// environment and stays exactly as it is.
fn put_aside(command: &str, folder: &Path) -> (String, bool) {
    let words = entry::words(command);
    let dir = words.iter().position(|word| word == "--dir").and_then(|at| words.get(at + 1));
    let Some(dir) = dir else { return (command.to_owned(), true) };
    let folder = folder.display().to_string();
    let quoted = format!("'{}'", dir.replace('\'', r"'\''"));
    for written in [quoted.as_str(), dir.as_str()] {
        let from = format!(" --dir {written} ");
        if command.contains(&from) {
            return (command.replacen(&from, &format!(" --dir '{folder}' "), 1), true);
        }
    }
    (command.to_owned(), false)
}

/// Runs `command` in a shell, with the environment of a program that was started from the desktop.
pub(super) fn run(
    global: &Global,
    command: &str,
    state: &Path,
    hooks_json: &Path,
    payload: &str,
) -> std::io::Result<Ran> {
    let started = clock::instant();
    let mut shell = if cfg!(windows) {
        let mut shell = Command::new("powershell");
        shell.args(["-NoProfile", "-Command", &format!("$input | & {{ $input | {command} }}")]);
        shell
    } else {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
        shell
    };
    if let Some(home) = global.env.home() {
        shell.env("HOME", home);
    }
    shell.env("HOOKSPAN_DIR", state).env("CURSOR_VERSION", "0.0.0");
    if let Some(folder) = hooks_json.parent().filter(|folder| folder.is_dir()) {
        shell.current_dir(folder);
    }
    let mut child =
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read is found out by its answer.
        let _written = stdin.write_all(payload.as_bytes());
    }
    let code = wait(&mut child, started)?;
    let took = clock::instant().duration_since(started);
    let mut stdout = Vec::new();
    if let (Some(out), Some(_)) = (child.stdout.take(), code) {
        out.take(64 << 10).read_to_end(&mut stdout)?;
    }
    Ok(Ran { code, stdout: String::from_utf8_lossy(&stdout).into_owned(), took })
}

/// Exit code, or `None` when it had to be ended.
fn wait(child: &mut Child, started: std::time::Instant) -> std::io::Result<Option<i32>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.code().unwrap_or(-1)));
        }
        if clock::instant().duration_since(started) > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// An event as Cursor sends it, recognisable as ours.
pub(super) fn payload(event: &str) -> String {
    let identity = "00000000-0000-4000-8000-000000000000";
    let mut body = serde_json::json!({
        "hook_event_name": event,
        "cursor_version": "0.0.0",
        "workspace_roots": [],
    });
    if event != "workspaceOpen"
        && let Some(body) = body.as_object_mut()
    {
        body.insert("conversation_id".to_owned(), identity.into());
        body.insert("generation_id".to_owned(), identity.into());
        body.insert("text".to_owned(), "hookspan doctor: \"quotes\", $(nothing), 日本語".into());
    }
    body.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_a_directory_is_sent_elsewhere_and_one_without_stays() {
        let folder = Path::new("/t");
        let aside = |command| put_aside(command, folder);
        assert_eq!(
            aside("exec /x/hookspan-shim stop"),
            ("exec /x/hookspan-shim stop".into(), true)
        );
        assert_eq!(
            aside("exec /x/hookspan-shim --dir /d stop"),
            ("exec /x/hookspan-shim --dir '/t' stop".into(), true)
        );
        assert_eq!(
            aside("exec '/x y/hookspan-shim' --dir '/d e' stop"),
            ("exec '/x y/hookspan-shim' --dir '/t' stop".into(), true)
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_hook_is_judged_by_code_answer_and_end() {
        let global = Global::new(crate::config::Environment::of(&[("HOME", "/")], "/"), None, None);
        let global = global.unwrap();
        let one = |event: &str| Ours {
            scope: crate::hooks_json::Scope::User,
            file: "/nowhere/hooks.json".into(),
            event: event.into(),
            command: String::new(),
        };
        let judged = |event: &str, command: &str| {
            let state = Path::new("/nowhere");
            let ran =
                run(&global, command, state, Path::new("/nowhere/x"), &payload(event)).unwrap();
            judge(&one(event), &ran).map(|finding| finding.what)
        };
        assert_eq!(judged("stop", "cat > /dev/null; echo '{}'"), None);
        assert_eq!(judged("stop", "exit 127").unwrap(), "stop: exit code 127 instead of 0");
        assert_eq!(
            judged("preToolUse", "echo '{}'").unwrap(),
            "preToolUse: answered `{}↵` instead of `{\"permission\":\"allow\"}`"
        );
    }
}
