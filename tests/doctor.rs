//! Tests what `doctor` finds, and the exit code of `status`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use e2e_support::collector::Collector;
use e2e_support::world::{Finished, World};

/// `doctor` and `status` change nothing.
mod changes_nothing;
/// Faults in hooks.json.
mod hooks_file;

/// An account without rights, on every Linux.
const NOBODY: u32 = 65_534;

/// What `doctor` finds wrong: ids with their severity.
#[track_caller]
fn wrong(world: &World) -> Vec<(String, String)> {
    wrong_of(&world.json(&["doctor", "--json"]))
}

fn wrong_of(findings: &Value) -> Vec<(String, String)> {
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let all = findings.as_array().unwrap().iter();
    all.filter(|finding| finding["severity"] != "ok")
        .map(|finding| (text(finding, "id"), text(finding, "severity")))
        .collect()
}

#[track_caller]
fn finding(world: &World, id: &str) -> Value {
    let all = world.json(&["doctor", "--json"]);
    let found = all.as_array().unwrap().iter().find(|finding| finding["id"] == id).cloned();
    found.unwrap_or_else(|| panic!("no {id} in {all:#}"))
}

/// Checks for a single problem or warning, apart from the missing collector.
#[track_caller]
fn only(world: &World, id: &str, severity: &str) {
    let mut found = wrong(world);
    found.retain(|(id, _)| id != "collector.stopped" && id != "hooks.silent");
    assert_eq!(found, [(id.to_owned(), severity.to_owned())]);
    let code = world.run(&["doctor"]).code;
    assert_eq!(code, i32::from(severity == "problem"));
}

fn hooks_json(world: &World) -> PathBuf {
    world.home().join(".cursor/hooks.json")
}

/// Installs. Returns the content of hooks.json afterwards.
#[track_caller]
fn installed(world: &World) -> Value {
    world.ok(&["install", "--scope", "user"]);
    // A collector that ran once has created the rest of the directory.
    drop(Collector::start(world));
    serde_json::from_str(&fs::read_to_string(hooks_json(world)).unwrap()).unwrap()
}

/// Every file and folder below `folder`: kind and mode, owner, modification time and bytes.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (u32, u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let meta = fs::symlink_metadata(&next).unwrap();
        let bytes = if meta.is_file() { fs::read(&next).unwrap() } else { Vec::new() };
        if meta.is_dir() {
            folders.extend(fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.insert(next, (meta.mode(), meta.uid(), meta.mtime(), meta.mtime_nsec(), bytes));
    }
    found
}

#[test]
fn text_of_a_repository_is_never_run() {
    let world = World::new();
    installed(&world);
    let repository = world.scratch("repository");
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::create_dir_all(repository.join(".cursor")).unwrap();
    let touched = world.scratch("touched");
    let program = repository.join(".cursor/hookspan-shim");
    fs::write(&program, format!("#!/bin/sh\ntouch '{}'\n", touched.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let touch = format!("touch '{}'", touched.display());
    let genuine = world.state().join("bin/hookspan-shim");
    let (program, genuine) = (program.display(), genuine.display());
    let commands = [
        format!(".cursor/hookspan-shim ; {touch}"),
        format!("{program} stop"),
        format!("exec {program} stop"),
        format!("exec {program} --dir /tmp stop"),
        format!("{genuine} stop; {touch}"),
        format!("{genuine} stop && {touch}"),
        format!("{genuine} stop | sh -c \"{touch}\""),
        format!("{genuine} $({touch})"),
        format!("{genuine} `{touch}`"),
        format!("{genuine} stop\n{touch}"),
        format!("{genuine} --dir \"$({touch})\" stop"),
        format!("sh -c '{genuine} stop; touch {}'", touched.display()),
        format!("{touch}; {genuine} stop"),
    ];
    let entries: Vec<Value> =
        commands.iter().map(|command| json!({ "command": command, "timeout": 10 })).collect();
    let hooks = json!({ "version": 1, "hooks": { "stop": entries } });
    fs::write(repository.join(".cursor/hooks.json"), hooks.to_string()).unwrap();
    let finished = in_folder(&world, &repository, &["doctor"]);
    assert!(!touched.exists(), "{finished:#?}");
    assert_eq!(finished.code, 1, "{finished:#?}");
    let said = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("not in the form that hookspan writes"), "{said}");
    assert!(said.contains("is not hookspan's hook program, so it was not run"), "{said}");
}

fn in_folder(world: &World, folder: &Path, arguments: &[&str]) -> Finished {
    let mut command = world.command(&world.hookspan());
    Finished::from(command.args(arguments).current_dir(folder).output().unwrap())
}

#[test]
fn one_cause_is_one_finding() {
    let world = World::new();
    installed(&world);
    let program = world.state().join("bin/hookspan-shim");
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&program, 0o644);
    only(&world, "program.altered", "problem");
    mode(&program, 0o755);
    mode(&world.state(), 0o755);
    assert_eq!(wrong(&world), [("state.unsafe".to_owned(), "problem".to_owned())]);
    mode(&world.state(), 0o700);
    let genuine = fs::read(&program).unwrap();
    fs::remove_file(&program).unwrap();
    only(&world, "program.missing", "problem");
    // Another version that is recorded as installed and works.
    fs::write(&program, [genuine.as_slice(), b"\n"].concat()).unwrap();
    mode(&program, 0o755);
    only(&world, "program.outdated", "warning");
    fs::write(&program, genuine).unwrap();
    let database = world.state().join("hookspan.db");
    let kept = fs::read(&database).unwrap();
    let log = world.state().join("hookspan.db-wal");
    let _gone = fs::remove_file(log);
    fs::write(&database, [b'x'; 8_192]).unwrap();
    only(&world, "database.damaged", "problem");
    fs::write(&database, kept).unwrap();
    world.write_config("[[destination]]\nname = 7\n");
    assert_eq!(wrong(&world), [("config.broken".to_owned(), "problem".to_owned())]);
    world.write_config("");
    assert_eq!(wrong(&world)[0].0, "collector.stopped");
}

#[test]
fn an_empty_machine_has_one_problem() {
    let world = World::new();
    assert_eq!(wrong(&world), [("hooks.none".to_owned(), "problem".to_owned())]);
    let said = world.run(&["doctor"]);
    assert_eq!(said.code, 1);
    assert!(said.stdout.contains("hookspan's hooks are not installed, so nothing is recorded"));
    assert!(said.stdout.ends_with("\n1 problem, 0 warnings.\n"), "{}", said.stdout);
    assert_eq!(world.run(&["doctor", "--nonsense"]).code, 2);
}

#[test]
fn another_account_with_a_bare_environment_is_served_as_well() {
    if rustix::process::geteuid().as_raw() != 0 {
        eprintln!("skipped: only root can be somebody else");
        return;
    }
    let world = World::new();
    let (home, program) = (world.scratch("other"), world.scratch("hookspan"));
    fs::set_permissions(world.scratch(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::copy(world.hookspan(), &program).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin").args(arguments);
        command.current_dir(&home).stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
        Finished::from(command.output().unwrap())
    };
    assert_eq!(run(&["install"]).code, 0);
    let before = tree(&home);
    let finished = run(&["doctor"]);
    assert_eq!(finished.code, 0, "{finished:#?}");
    assert!(finished.stdout.contains("All 15 hook commands work"), "{finished:#?}");
    assert!(tree(&home) == before, "something changed");
    // Root is warned about a program that another account can replace, and does not run it.
    let dir = home.join(".local/state/hookspan");
    let mut command = Command::new(&program);
    command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin").current_dir(&home);
    let finished = Finished::from(command.args(["doctor", "--json"]).output().unwrap());
    let found = wrong_of(&serde_json::from_str(&finished.stdout).unwrap());
    let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
    assert!(ids.contains(&"state.unsafe") && ids.contains(&"program.untrusted"), "{ids:?} {dir:?}");
}

#[test]
fn status_says_by_its_exit_code_whether_all_is_recorded_and_sent() {
    let world = World::new();
    assert_eq!(world.run(&["status"]).code, 1, "nothing runs");
    world.shim();
    let collector = Collector::start(&world);
    let finished = world.run(&["status"]);
    assert_eq!(finished.code, 0, "{finished:#?}");
    let file = hooks_json(&world);
    assert!(
        finished.stdout.contains(&format!("user: {}, 20 events", file.display())),
        "{finished:#?}"
    );
    assert_eq!(world.json(&["status", "--json"])["installed"][0]["scope"], "user");
    drop(collector);
    assert_eq!(world.run(&["status"]).code, 1, "it has ended");
    assert_eq!(world.run(&["status", "--nonsense"]).code, 2);
}
