//! Tests that the entries of `install` work where Cursor runs them: in a bare environment, under any path, beside
//! existing files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use e2e_support::world::{Finished, World};

/// Which hooks.json files are refused, and how edits of others are kept.
mod hooks_file;
/// Projects and services that are installed side by side.
mod service;

const PAYLOAD: &str = r#"{"conversation_id":"8d3f0c52-0000-4000-8000-000000000001","generation_id":"g","hook_event_name":"stop","status":"completed","cursor_version":"3.18.25"}"#;

/// Ways to name a state directory, and variables that only a shell has. A hook started from the desktop must reach the
/// directory in each case.
#[test]
fn hooks_of_a_desktop_reach_the_state_directory_however_it_was_named() {
    for (variable, expected) in [
        (None, "home/.local/state/hookspan"),
        (Some(("HOOKSPAN_DIR", "named")), "named"),
        (Some(("XDG_STATE_HOME", "xdg")), "xdg/hookspan"),
    ] {
        let mut world = World::new();
        if let Some((name, folder)) = variable {
            let value = world.scratch(folder).to_str().unwrap().to_owned();
            world = world.with_env(name, value);
        }
        world.ok(&["install", "--yes"]);
        let command = stop_command(&world.home());
        assert_eq!(command.contains(" --dir "), variable.is_some(), "{command}");
        let reply = bare(Path::new("/bin/sh"), &world.home(), &heredoc(&command));
        assert_eq!(String::from_utf8_lossy(&reply.stdout).trim(), "{}", "{command}: {reply:?}");
        let state = world.scratch(expected);
        assert!(holds_a_record(&state), "{variable:?}: nothing in {}", state.display());
        assert_eq!(world.json(&["status", "--json"])["backlog"], 1, "{variable:?}");
    }
}

#[test]
fn every_shell_runs_the_command_whatever_the_path() {
    let world = World::new();
    let shells: Vec<PathBuf> = ["/bin/sh", "/bin/dash", "/bin/bash", "/bin/zsh", "/usr/bin/zsh"]
        .into_iter()
        .map(PathBuf::from)
        .filter(|shell| shell.exists())
        .collect();
    let names = [
        "a space",
        "it's",
        "ünïcode-日本",
        "d$HOME",
        "a\"b",
        "semi;colon",
        "(paren)",
        "back\\slash",
        "star*?[x]",
        "#hash",
        "-dash",
        "a&b|c",
        "~tilde",
        "`tick`",
        "bang!",
        "{a,b}",
        "=eq",
        "%d",
        "nbsp\u{a0}x",
        "<redirect>",
        "two  spaces",
    ];
    for name in names {
        let state = world.scratch(name);
        world.ok(&["--dir", state.to_str().unwrap(), "install", "--yes"]);
        let command = stop_command(&world.home());
        for shell in &shells {
            drop(fs::remove_file(state.join("journal")));
            let reply = bare(shell, &world.home(), &heredoc(&command));
            let answer = String::from_utf8_lossy(&reply.stdout);
            assert_eq!(answer.trim(), "{}", "{name} in {shell:?}: {command}: {reply:?}");
            assert!(holds_a_record(&state), "{name} in {shell:?}: {command}");
        }
        world.ok(&["--dir", state.to_str().unwrap(), "uninstall", "--purge", "--yes"]);
        assert!(!state.exists(), "{name}: {:?}", fs::read_dir(&state).unwrap().collect::<Vec<_>>());
    }
    for name in ["line\nbreak", "return\rx", "escape\u{1b}[31m"] {
        let state = world.scratch(name);
        let refused = world.run(&["--dir", state.to_str().unwrap(), "install", "--yes"]);
        assert_eq!(refused.code, 1, "{refused:#?}");
        assert!(refused.stderr.contains("control character"), "{refused:#?}");
        assert!(!state.exists() && !world.home().join(".cursor/hooks.json").exists());
    }
}

#[test]
fn any_spelling_of_the_home_gives_one_path_without_doubled_slashes() {
    let world = World::new();
    let path = without_services(&world);
    let home = world.scratch("Hôme of Kim");
    fs::create_dir(&home).unwrap();
    symlink(&home, world.scratch("link")).unwrap();
    let plain = home.to_str().unwrap().to_owned();
    let link = world.scratch("link").to_str().unwrap().to_owned();
    for spelled in
        [plain.clone(), format!("{plain}/"), format!("/{}//", plain.replace('/', "//")), link]
    {
        let hookspan = |arguments: &[&str]| {
            let mut command = bare_command(&world.hookspan(), Path::new(&spelled));
            Finished::from(command.env("PATH", &path).args(arguments).output().unwrap())
        };
        let done = hookspan(&["install", "--service", "--yes"]);
        assert_eq!(done.code, 0, "{spelled}: {done:#?}");
        for written in [".cursor/hooks.json", ".config/systemd/user/hookspan.service"] {
            let text = fs::read_to_string(home.join(written)).unwrap();
            assert!(!text.replace("http://", "").contains("//"), "{spelled}: {text}");
            assert!(!text.contains("--dir"), "{spelled} leads there by itself: {text}");
        }
        let reply = bare(Path::new("/bin/sh"), Path::new(&spelled), &heredoc(&stop_command(&home)));
        assert_eq!(String::from_utf8_lossy(&reply.stdout).trim(), "{}", "{spelled}: {reply:?}");
        let state = home.join(".local/state/hookspan");
        assert!(holds_a_record(&state), "{spelled}");
        let gone = hookspan(&["uninstall", "--purge", "--yes"]);
        assert_eq!(gone.code, 0, "{spelled}: {gone:#?}");
        let left: Vec<_> =
            fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "{spelled}: {gone:#?}");
    }
}

/// "Text file busy" would end a hook with exit code 126. Each round installs another program, and then the right one
/// again.
#[test]
fn hooks_that_run_while_the_program_is_replaced_all_answer() {
    const ROUNDS: usize = 60;
    let world = World::new();
    world.ok(&["install", "--yes"]);
    let (home, command) = (world.home(), stop_command(&world.home()));
    let program = world.state().join("bin/hookspan-shim");
    let right = fs::read(&program).unwrap();
    let other = world.scratch("other");
    let over = AtomicBool::new(false);
    let failures = std::thread::scope(|scope| {
        let runners: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut ran, mut failures) = (0, Vec::new());
                    while !over.load(Ordering::Relaxed) {
                        let reply = bare(Path::new("/bin/sh"), &home, &heredoc(&command));
                        ran += 1;
                        if !reply.status.success() {
                            failures.push(format!("{reply:?}"));
                        }
                    }
                    (ran, failures)
                })
            })
            .collect();
        for _ in 0..ROUNDS {
            // Another process does this, because a child forked by this one would keep our descriptor open for writing.
            let script =
                "cp \"$1\" \"$2\" && printf x >> \"$2\" && chmod 755 \"$2\" && mv \"$2\" \"$1\"";
            let mut damage = world.command(Path::new("/bin/sh"));
            damage.args(["-c", script, "sh"]).args([&program, &other]);
            assert!(damage.status().unwrap().success());
            world.ok(&["install", "--yes"]);
            assert_eq!(fs::read(&program).unwrap(), right);
        }
        over.store(true, Ordering::Relaxed);
        let ended: Vec<_> = runners.into_iter().map(|runner| runner.join().unwrap()).collect();
        let ran: usize = ended.iter().map(|(ran, _)| ran).sum();
        assert!(ran > ROUNDS, "hooks ran all the time");
        eprintln!("{ran} hooks ran while the program was replaced {ROUNDS} times");
        ended.into_iter().flat_map(|(_, failures)| failures).collect::<Vec<_>>()
    });
    assert_eq!(failures, Vec::<String>::new());
}

/// A `PATH` with a `systemctl` that writes its arguments to the file `calls` and does nothing, so that the test leaves
/// the machine's services alone.
fn without_services(world: &World) -> String {
    let folder = world.scratch("services");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("systemctl");
    let calls = world.scratch("calls");
    fs::write(&program, format!("#!/bin/sh\necho \"$*\" >> '{}'\n", calls.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", folder.display())
}

/// What Cursor does with a command on POSIX systems: it adds the payload in a here-document.
fn heredoc(command: &str) -> String {
    format!("{command} <<'CURSOR_HOOK_EOF'\n{PAYLOAD}\nCURSOR_HOOK_EOF\n")
}

/// Runs a script with the environment of a program that the desktop started.
fn bare(shell: &Path, home: &Path, script: &str) -> Output {
    bare_command(shell, home).args(["-c", script]).output().unwrap()
}

fn bare_command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir("/");
    command.stdin(Stdio::null());
    command
}

#[track_caller]
fn stop_command(home: &Path) -> String {
    let text = fs::read_to_string(home.join(".cursor/hooks.json")).unwrap();
    let hooks: Value = serde_json::from_str(&text).unwrap();
    hooks["hooks"]["stop"][0]["command"].as_str().unwrap().to_owned()
}

/// Whether a hook was stored: the journal is longer than its header.
fn holds_a_record(state: &Path) -> bool {
    fs::read(state.join("journal"))
        .is_ok_and(|bytes| bytes.windows(12).any(|window| window == b"8d3f0c52-000"))
}

fn machine_has(program: &str) -> bool {
    Command::new("which").arg(program).output().is_ok_and(|found| found.status.success())
}
