//! Tests `import` of real-life files: logs of audit scripts, archives, other encodings; and files that are refused
//! before anything is stored.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use e2e_support::collector::Collector;
use e2e_support::fixture::Fixture;
use e2e_support::world::{Finished, World};
use e2e_support::{binaries, machine, skip, verify};

/// A log in the form of the audit script in Cursor's documentation, one hook per second.
fn audit_log(fixture: &Fixture) -> String {
    let lines = fixture.bodies.iter().enumerate().map(|(second, body)| {
        let (minute, second) = (second / 60, second % 60);
        let body = std::str::from_utf8(&body.bytes).unwrap();
        format!("[2026-10-05 12:{minute:02}:{second:02}] {body}\n")
    });
    lines.collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[track_caller]
fn counts(world: &World, arguments: &[&str]) -> [u64; 3] {
    let answer = world.json(&[&["import", "--json"], arguments].concat());
    ["new", "duplicate", "malformed"].map(|key| answer[key].as_u64().unwrap())
}

#[test]
fn the_log_of_an_audit_script_is_imported_in_its_zone_and_once() {
    let fixture = Fixture::own();
    let (log, hooks) = (audit_log(&fixture), fixture.bodies.len() as u64);
    let world = World::new();
    let file = world.write_home("agent-audit.log", &log);
    let file = file.to_str().unwrap();
    assert_eq!(counts(&world, &[file, "--timezone", "Europe/Berlin"]), [hooks, 0, 0]);
    assert_eq!(counts(&world, &[file, "--timezone", "+02:00"]), [0, hooks, 0]);
    let raw = world.ok(&["export", "--all", "--format", "jsonl", "--content", "full"]);
    let first: Value = serde_json::from_str(raw.lines().next().unwrap()).unwrap();
    assert_eq!(first["observed_at"], "2026-10-05T10:00:00.000000000Z");
    let stored = verify::raw_bodies(&world);
    assert_eq!(stored, fixture.bodies.iter().map(|body| body.bytes.clone()).collect::<Vec<_>>());

    // Without the flag the machine's zone is used, and the command says so.
    let world = World::new().with_env("TZ", "America/New_York");
    let file = world.write_home("agent-audit.log", &log);
    let finished = world.run(&["import", file.to_str().unwrap()]);
    assert_eq!(finished.code, 0, "{finished:#?}");
    assert!(finished.stderr.contains("America/New_York"), "{finished:#?}");
    let raw = world.ok(&["export", "--all", "--format", "jsonl", "--content", "full"]);
    assert!(raw.starts_with("{\"observed_at\":\"2026-10-05T16:00:00"), "{raw}");
}

#[test]
fn archives_and_layouts_give_the_same_hooks_with_and_without_a_collector() {
    let world = World::new();
    let fixture = Fixture::own();
    let collector = Collector::start(&world);
    let hooks = fixture.bodies.len() as u64;
    let lines = fs::read(&fixture.path).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = world.home().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // The file name does not matter, and an archive's members are read one after the other.
    let half = lines.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let members = [gzip(&lines[..half]), gzip(&lines[half..])].concat();
    assert_eq!(counts(&world, &[&write("hooks", &members)]), [hooks, 0, 0], "into a collector");
    let objects: Vec<&str> =
        std::str::from_utf8(&lines).unwrap().lines().filter(|line| !line.is_empty()).collect();
    let wide: Vec<u8> = objects.join("\r\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let same = [
        write("hooks.zst", &zstd::encode_all(&*lines, 1).unwrap()),
        write("hooks.json", format!("[{}]", objects.join(",\n")).as_bytes()),
        write("hooks.txt", &[&[0xff, 0xfe], &*wide].concat()),
        write("glued", objects.concat().as_bytes()),
    ];
    for file in &same {
        assert_eq!(counts(&world, &[file]), [0, hooks, 0], "{file}");
    }
    collector.stop();
    for file in &same {
        assert_eq!(counts(&world, &[file]), [0, hooks, 0], "{file}, without a collector");
    }
    let mut stdin = world.command(binaries::hookspan());
    stdin.args(["import", "--json", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = stdin.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&members).unwrap();
    let finished = Finished::from(child.wait_with_output().unwrap());
    let answer: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&answer["new"], &answer["duplicate"]), (&json!(0), &json!(hooks)));
    assert!(!world.state().join("imports").read_dir().unwrap().flatten().any(|_| true));
}

#[test]
fn what_is_no_recording_is_refused_before_anything_is_stored() {
    let world = World::new();
    let fixture = Fixture::own();
    let good = fixture.path.to_str().unwrap();
    let program = binaries::hookspan().to_str().unwrap();
    let script = world.write_home("audit.sh", "#!/bin/bash\njson_input=$(cat)\nexit 0\n");
    let table = world.write_home("hooks.csv", "time,event,command\n1,stop,a\n2,stop,b\n");
    let own = world.write_home("trace.json", "{\"resourceSpans\":[]}\n");
    for (file, words) in [
        (program, "program"),
        (script.to_str().unwrap(), "line 1"),
        (table.to_str().unwrap(), "CSV"),
        (own.to_str().unwrap(), "OTLP"),
    ] {
        let finished = world.run(&["import", good, file]);
        assert_eq!(finished.code, 1, "{finished:#?}");
        assert!(
            finished.stderr.contains(words) && finished.stderr.contains("--force"),
            "{finished:#?}"
        );
        assert!(finished.stdout.is_empty(), "{finished:#?}");
    }
    assert!(!world.state().join("hookspan.db").exists(), "nothing was stored");
    assert_eq!(counts(&world, &["--force", script.to_str().unwrap()]), [0, 0, 3]);
}

#[test]
fn a_damaged_archive_is_imported_up_to_the_damage_and_whole_afterwards() {
    let world = World::new();
    let line = |number: u32| {
        let own = json!({"hook_event_name": "afterAgentThought", "conversation_id": "c", "generation_id": "g",
                         "text": format!("{number} {}", "words ".repeat((number % 50) as usize))});
        format!("{{\"observed_at\":\"2026-06-10T09:00:00Z\",\"event\":{own}}}\n")
    };
    let text: String = (0..3_000).map(line).collect();
    let packed = gzip(text.as_bytes());
    let file = world.scratch("hooks.gz");
    fs::write(&file, &packed[..packed.len() / 2]).unwrap();
    let finished = world.run(&["import", "--json", file.to_str().unwrap()]);
    assert_eq!(finished.code, 1, "{finished:#?}");
    assert!(finished.stderr.contains("cut off"), "{finished:#?}");
    let answer: Value = serde_json::from_str(&finished.stdout).unwrap();
    let first = answer["new"].as_u64().unwrap();
    assert!(first > 0 && first < 3_000, "{answer}");
    assert_eq!((&answer["malformed"], &answer["damaged"]), (&json!(0), &json!(1)));
    fs::write(&file, &packed).unwrap();
    assert_eq!(counts(&world, &[file.to_str().unwrap()]), [3_000 - first, first, 0]);
}

#[test]
fn what_is_not_understood_is_counted_by_kind_and_never_quoted_in_the_answer() {
    let world = World::new();
    let good = r#"{"hook_event_name":"stop","conversation_id":"c","status":"completed"}"#;
    let text = format!("{good}\n{{\"prompt\": \"hunter2\n{good}\nhunter2 was here\n{good}\n");
    let file = world.write_home("mixed.jsonl", &text);
    let finished = world.run(&["import", "--json", file.to_str().unwrap()]);
    assert_eq!(finished.code, 0, "{finished:#?}");
    assert!(
        !finished.stdout.contains("hunter2") && !finished.stderr.contains("hunter2"),
        "{finished:#?}"
    );
    let answer: Value = serde_json::from_str(&finished.stdout).unwrap();
    let notes: Vec<_> = answer["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| {
            (note["kind"].as_str().unwrap(), note["count"].clone(), note["first_line"].clone())
        })
        .collect();
    assert_eq!(notes, [("not_json", json!(1), json!(4)), ("broken_json", json!(1), json!(2))]);
    assert_eq!(answer["malformed"], 2);
}

/// An account that is not root, for which permissions count.
#[test]
fn another_user_imports_and_prunes_what_is_theirs_alone() {
    if let Err(reason) = machine::root() {
        return skip::announce("an import as another user", &reason);
    }
    const NOBODY: u32 = 65_534;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("agent-audit.log");
    fs::write(&file, audit_log(&Fixture::own())).unwrap();
    for path in [home.path(), &file] {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let program = home.path().join("hookspan");
    fs::copy(binaries::hookspan(), &program).unwrap();
    let run = |arguments: &[&str], file: &Path| {
        let mut command = Command::new(&program);
        command.env_clear().env("HOME", home.path()).current_dir("/").uid(NOBODY).gid(NOBODY);
        Finished::from(command.args(arguments).arg(file).stdin(Stdio::null()).output().unwrap())
    };
    let done = run(&["import"], &file);
    assert_eq!(done.code, 0, "{done:#?}");
    let root_only: PathBuf = home.path().join("root-only.jsonl");
    fs::write(&root_only, "{}\n").unwrap();
    fs::set_permissions(&root_only, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let refused = run(&["import"], &root_only);
    assert!(refused.code == 1 && refused.stderr.contains("Permission denied"), "{refused:#?}");
    let pruned = run(&["prune", "--yes", "--older-than"], Path::new("0s"));
    assert!(pruned.code == 0 && pruned.stdout.starts_with("Deleted 1 session"), "{pruned:#?}");
}
