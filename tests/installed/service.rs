//! Tests projects and services that were installed side by side, and that `uninstall` removes each of them alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use e2e_support::collector::Collector;
use e2e_support::skip::skip;
use e2e_support::world::{Finished, World};

use super::{machine_has, without_services};

#[test]
fn twenty_projects_installed_at_once_are_all_known_and_all_undone() {
    let world = World::new();
    let projects: Vec<PathBuf> = (0..20).map(|n| world.scratch(&format!("project-{n}"))).collect();
    for project in &projects {
        fs::create_dir_all(project.join(".git")).unwrap();
    }
    let install = |project: &PathBuf| {
        let mut command = world.command(&world.hookspan());
        command.args(["install", "--scope", "project", "--yes"]).current_dir(project);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = projects.iter().map(install).collect();
    for child in running {
        let done = Finished::from(child.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{done:#?}");
        assert!(!done.stderr.contains("hookspan up"), "`up` would double the hooks: {done:#?}");
        assert!(done.stderr.contains("hookspan serve"), "{done:#?}");
    }
    let record = fs::read(world.state().join("install.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["files"].as_array().unwrap().len(), 20);
    let shown = world.ok(&["uninstall", "--purge", "--dry-run"]);
    for project in &projects {
        assert!(shown.contains(project.join(".cursor/hooks.json").to_str().unwrap()), "{shown}");
    }
    world.ok(&["uninstall", "--all", "--yes"]);
    for project in &projects {
        assert!(!project.join(".cursor").exists(), "{}", project.display());
    }
    assert!(!world.home().join(".local").exists(), "{}", world.describe());
}

#[test]
fn purge_in_the_user_scope_leaves_no_project_recording() {
    let world = World::new();
    let project = world.scratch("project");
    fs::create_dir_all(project.join(".git")).unwrap();
    let mut command = world.command(&world.hookspan());
    command.args(["install", "--scope", "project", "--yes"]).current_dir(&project);
    assert!(command.status().unwrap().success());
    world.ok(&["install", "--yes"]);
    world.ok(&["demo", "--sessions", "3", "--no-serve"]);
    let demo = world.state().with_file_name("hookspan-demo");
    assert!(demo.exists());

    let collector = Collector::start(&world);
    let refused = world.run(&["uninstall", "--purge", "--yes"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    let pid = collector.pid().as_raw_nonzero().to_string();
    assert!(refused.stderr.contains(&format!("process {pid}")), "{refused:#?}");
    assert!(refused.stderr.contains(" serve "), "which command it is: {refused:#?}");
    assert!(project.join(".cursor/hooks.json").exists(), "nothing was changed");
    drop(collector);

    let gone = world.run(&["uninstall", "--purge", "--yes"]);
    assert_eq!(gone.code, 0, "{gone:#?}");
    assert!(!project.join(".cursor").exists() && !demo.exists(), "{}", world.describe());
    assert!(!world.home().join(".cursor").exists() && !world.home().join(".local").exists());
}

#[test]
fn a_projects_uninstall_and_another_directorys_leave_the_service_alone() {
    let world = World::new();
    let path = without_services(&world);
    let world = world.with_env("PATH", path);
    world.ok(&["install", "--service", "--yes"]);
    let calls = || fs::read_to_string(world.scratch("calls")).unwrap();
    assert_eq!(
        calls(),
        "--user daemon-reload\n--user enable hookspan.service\n--user restart hookspan.service\n"
    );
    let unit = world.home().join(".config/systemd/user/hookspan.service");
    let text = fs::read_to_string(&unit).unwrap();
    assert!(text.contains("RestartPreventExitStatus=2"), "{text}");
    let project = world.scratch("project");
    fs::create_dir_all(project.join(".git")).unwrap();
    for words in
        [["install", "--scope", "project", "--yes"], ["uninstall", "--scope", "project", "--yes"]]
    {
        let mut command = world.command(&world.hookspan());
        assert!(command.args(words).current_dir(&project).status().unwrap().success());
    }
    assert_eq!(fs::read_to_string(&unit).unwrap(), text);
    let other = world.scratch("other");
    world.ok(&["--dir", other.to_str().unwrap(), "uninstall", "--all", "--yes"]);
    assert_eq!(fs::read_to_string(&unit).unwrap(), text);
    assert!(!calls().contains("disable"), "{}", calls());
    world.ok(&["uninstall", "--all", "--yes"]);
    assert!(!unit.exists());
    assert!(calls().contains("--user disable --now hookspan.service\n"), "{}", calls());
}

/// What systemd's own tool says about the unit.
#[test]
fn systemd_accepts_the_unit() {
    let test = "systemd_accepts_the_unit";
    if !machine_has("systemd-analyze") {
        return skip(test, "there is no systemd-analyze");
    }
    let world = World::new();
    let path = without_services(&world);
    let state = world.scratch("a 100% $odd \"place\"");
    let world = world.with_env("PATH", path).with_env("XDG_CONFIG_HOME", "/c d/100%$x");
    let shown = world.ok(&["--dir", state.to_str().unwrap(), "install", "--service", "--dry-run"]);
    let (_, text) = shown.split_once("# Written by").unwrap();
    let unit = world.scratch("hookspan.service");
    fs::write(&unit, format!("# Written by{text}")).unwrap();
    let mut analyze = world.command(Path::new("systemd-analyze"));
    let said = Finished::from(analyze.args(["verify", "--user"]).arg(&unit).output().unwrap());
    let about = |line: &&str| line.contains("hookspan.service");
    let complaints: Vec<_> = said.stderr.lines().filter(about).collect();
    assert_eq!(complaints, Vec::<&str>::new(), "{text}\n{said:#?}");
}

#[test]
fn up_beside_a_running_collector_prints_its_address() {
    let world = World::new();
    let collector = Collector::up(&world, &["--yes"]);
    let again = world.run(&["up", "--yes"]);
    assert_eq!(again.code, 0, "{again:#?}");
    assert!(again.stdout.contains(&collector.url), "{again:#?}");
    let pid = collector.pid().as_raw_nonzero().to_string();
    assert!(again.stderr.contains(&pid), "{again:#?}");
    assert!(!again.stderr.contains("version"), "it is the same: {again:#?}");

    let path = world.state().join("serve.json");
    let text = fs::read_to_string(&path).unwrap();
    let version = serde_json::from_str::<Value>(&text).unwrap()["version"].clone();
    let older = text.replace(version.as_str().unwrap(), "0.0.9");
    fs::write(&path, older).unwrap();
    let again = world.run(&["up", "--yes"]);
    assert_eq!(again.code, 0, "{again:#?}");
    assert!(again.stderr.contains("0.0.9"), "{again:#?}");
}
