//! `install` and `uninstall`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use e2e_support::collector::Collector;
use e2e_support::fixture::Fixture;
use e2e_support::player::{self, Reply};
use e2e_support::world::World;

/// A file that somebody wrote by hand: with comments, a trailing comma, odd spacing, and an entry for one of our
/// events.
const FOREIGN: &str = r#"{
  // my hooks
  "version": 1,
  "hooks": {
    "stop": [ { "command": "/opt/other/notify --done", "timeout": 3 } ],
    "afterFileEdit" : [
      {"command":"./format.sh", "matcher": "Write"},
    ],
  },
  "somethingElse": { "keep": true }
}
"#;

#[test]
fn install_then_uninstall_leaves_an_empty_home_empty() {
    let world = World::new();
    world.ok(&["install", "--scope", "user"]);
    assert!(world.home().join(".cursor/hooks.json").exists());
    world.ok(&["uninstall", "--scope", "user"]);
    assert_eq!(files(&world.home()), BTreeMap::new());
    assert!(!world.home().join(".cursor").exists(), "an empty folder of ours stayed");
}

#[test]
fn a_foreign_file_comes_back_byte_for_byte_and_keeps_its_entries_meanwhile() {
    let world = World::new();
    let path = world.write_home(".cursor/hooks.json", FOREIGN);
    world.ok(&["install", "--scope", "user", "--events", "all"]);
    let installed = fs::read_to_string(&path).unwrap();
    for theirs in [
        "// my hooks",
        r#"{ "command": "/opt/other/notify --done", "timeout": 3 }"#,
        r#"{"command":"./format.sh", "matcher": "Write"}"#,
        r#""somethingElse": { "keep": true }"#,
    ] {
        assert!(installed.contains(theirs), "{theirs} is gone from\n{installed}");
    }
    world.ok(&["install", "--scope", "user", "--events", "all"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), installed, "a second install changed it");
    world.ok(&["uninstall", "--scope", "user"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), FOREIGN);
}

#[test]
fn uninstall_keeps_what_was_recorded() {
    let world = World::new();
    let collector = Collector::start(&world);
    player::play_one(&world, &Fixture::own().bodies[0]);
    collector.committed(1);
    drop(collector);
    world.ok(&["uninstall", "--scope", "user"]);
    assert_eq!(world.json(&["sessions", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_dry_run_changes_nothing() {
    let world = World::new();
    let path = world.write_home(".cursor/hooks.json", FOREIGN);
    let shown = world.ok(&["install", "--scope", "user", "--dry-run"]);
    assert!(shown.contains("hookspan-shim"), "{shown}");
    assert_eq!(files(&world.home()).into_keys().collect::<Vec<_>>(), [path]);
}

#[test]
fn the_presets_ask_for_no_more_than_they_say() {
    assert_eq!(
        events("minimal"),
        [
            "afterAgentResponse",
            "afterAgentThought",
            "afterFileEdit",
            "afterMCPExecution",
            "afterShellExecution",
            "postToolUse",
            "postToolUseFailure",
            "sessionEnd",
            "stop",
            "subagentStop",
        ]
    );
    let standard = events("standard");
    for event in ["sessionStart", "beforeSubmitPrompt", "preToolUse", "subagentStart", "preCompact"]
    {
        assert!(standard.contains(&event.to_owned()), "standard lacks {event}");
    }
    assert_eq!(standard.len(), 15, "{standard:?}");
    let all = events("all");
    assert_eq!(all.len(), 20, "{all:?}");
    assert!(!all.contains(&"workspaceOpen".to_owned()), "it has no ids and no use");
}

#[test]
fn entries_hold_a_command_and_a_timeout_and_nothing_else() {
    let world = World::new();
    world.ok(&["install", "--scope", "user", "--events", "all"]);
    let hooks = hooks_json(&world);
    assert_eq!(hooks["version"], 1);
    for (event, entries) in hooks["hooks"].as_object().unwrap() {
        let entry = &entries[0];
        let keys: Vec<_> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["command", "timeout"], "{event}");
        assert_eq!(entry["timeout"], 10, "{event}");
        let command = entry["command"].as_str().unwrap();
        assert!(command.starts_with("exec /"), "{event}: {command}");
        assert!(command.ends_with(&format!(" {event}")), "{event}: {command}");
    }
}

#[test]
fn the_installed_command_line_works_in_a_shell_and_pins_another_state_directory() {
    let world = World::new();
    let state = world.scratch("elsewhere");
    let state = state.to_str().unwrap();
    world.ok(&["--dir", state, "install", "--scope", "user"]);
    let command =
        hooks_json(&world)["hooks"]["preToolUse"][0]["command"].as_str().unwrap().to_owned();
    assert!(command.contains(&format!("--dir {state}")), "{command}");
    let body = Fixture::own().bodies.into_iter().find(|body| body.event == "preToolUse").unwrap();
    let mut shell = world
        .command(Path::new("/bin/sh"))
        .args(["-c", &command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    player::feed(&mut shell, &body.bytes);
    let reply = Reply::from(shell.wait_with_output().unwrap());
    assert_eq!((reply.code, reply.stdout.as_str()), (Some(0), "{\"permission\":\"allow\"}\n"));
    assert!(!world.state().exists(), "it went to the default directory");
    let files = files(Path::new(state));
    let journal = files.keys().find(|path| path.ends_with("journal"));
    assert!(journal.is_some(), "no journal in {:?}", files.keys());
}

#[test]
fn a_broken_hooks_json_is_named_with_line_and_column_and_left_alone() {
    let world = World::new();
    let broken = "{\n  \"version\": 1,\n  \"hooks\": { \"stop\": [ }\n}\n";
    let path = world.write_home(".cursor/hooks.json", broken);
    let finished = world.run(&["install", "--scope", "user"]);
    assert_ne!(finished.code, 0);
    let place = format!("{}:3:", path.display());
    assert!(finished.stderr.contains(&place), "no {place} in {finished:#?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), broken);
}

#[test]
fn doctor_finds_a_fresh_installation_well_and_a_missing_program_ill() {
    let world = World::new();
    world.shim();
    let collector = Collector::start(&world);
    let well = world.run(&["doctor"]);
    assert_eq!(well.code, 0, "{well:#?}");
    drop(collector);
    fs::remove_file(world.shim()).unwrap();
    let ill = world.run(&["doctor"]);
    assert_eq!(ill.code, 1, "{ill:#?}");
    assert!((ill.stdout + &ill.stderr).contains("hookspan install"), "it does not say what to do");
}

#[track_caller]
fn events(preset: &str) -> Vec<String> {
    let world = World::new();
    world.ok(&["install", "--scope", "user", "--events", preset]);
    hooks_json(&world)["hooks"].as_object().unwrap().keys().cloned().collect()
}

#[track_caller]
fn hooks_json(world: &World) -> Value {
    let text = fs::read_to_string(world.home().join(".cursor/hooks.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.insert(entry.path(), fs::read(entry.path()).unwrap());
        }
    }
    found
}
