//! `doctor` and the exit code of `status`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rusqlite::types::Value as Cell;
use serde_json::{Value, json};

use e2e_support::collector::Collector;
use e2e_support::fixture::Fixture;
use e2e_support::player;
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::{Finished, World};

/// Keys of `state` that every transaction writes.
const MOVING: [&str; 3] = ["\"journal\"", "\"alive_ns\"", "\"rev\""];

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

fn rewrite(world: &World, hooks: &Value) {
    fs::write(hooks_json(world), format!("{hooks:#}\n")).unwrap();
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

#[track_caller]
fn unchanged(world: &World, what: &str) {
    let root = world.scratch("");
    let before = tree(&root);
    for _ in 0..3 {
        let finished = world.run(&["doctor"]);
        assert!(finished.code < 2, "{what}: {finished:#?}");
        let finished = world.run(&["status"]);
        assert!(finished.code < 2, "{what}: {finished:#?}");
    }
    let after = tree(&root);
    let names = |tree: &BTreeMap<PathBuf, _>| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after), "{what}");
    for (path, then) in before {
        let now = &after[&path];
        assert!(then == *now, "{what}: {} changed", path.display());
    }
}

#[test]
fn nothing_is_changed_where_no_collector_runs() {
    let world = World::new();
    unchanged(&world, "an empty home");
    world.ok(&["install", "--scope", "user", "--events", "all"]);
    unchanged(&world, "installed");
    world.shim();
    let collector = Collector::start(&world);
    player::play_one(&world, &Fixture::own().bodies[0]);
    collector.committed(1);
    drop(collector);
    unchanged(&world, "a collector has ended");
    let collector = Collector::start(&world);
    player::play_one(&world, &Fixture::own().bodies[1]);
    collector.committed(2);
    collector.kill();
    let log = world.state().join("hookspan.db-wal");
    assert!(fs::metadata(log).is_ok_and(|log| log.len() > 0), "the test needs a log");
    unchanged(&world, "a collector was killed");
    assert!(finding(&world, "database.sound")["what"].as_str().unwrap().contains("sound"));
    player::play_one(&world, &Fixture::own().bodies[2]);
    unchanged(&world, "a hook waits");
    assert_eq!(world.json(&["status", "--json"])["backlog"], 1);
}

/// Every row of every table, except three values that each transaction changes: the position in the journal, the
/// transaction's number and its time.
fn tables(world: &World) -> BTreeMap<String, Vec<String>> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let path = world.state().join("hookspan.db");
    let db = rusqlite::Connection::open_with_flags(path, flags).unwrap();
    let mut names = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .unwrap();
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let rows = |table: &String| {
        let mut all = db.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
        let columns = all.column_count();
        let read = |row: &rusqlite::Row<'_>| {
            (0..columns)
                .map(|at| row.get::<_, Cell>(at).map(|value| format!("{value:?}")))
                .collect::<rusqlite::Result<Vec<String>>>()
        };
        let rows = all.query_map([], |row| Ok(read(row)?.join("|"))).unwrap();
        rows.map(Result::unwrap)
            .filter(|row| table != "state" || !MOVING.iter().any(|key| row.contains(key)))
            .collect()
    };
    names.iter().map(|table| (table.clone(), rows(table))).collect()
}

#[test]
fn thirty_one_runs_beside_a_collector_leave_no_row_no_counter_and_no_span() {
    let sink = Sink::start();
    let world = World::new();
    world.write_config(&format!(
        "[[destination]]\nname = \"sink\"\nendpoint = \"{}\"\nprotocol = \"http/protobuf\"\n",
        sink.url
    ));
    world.shim();
    let collector = Collector::start(&world);
    // No hook has arrived, and the probe does not change that.
    assert!(wrong(&world).contains(&("hooks.silent".to_owned(), "warning".to_owned())));
    assert!(wrong(&world).contains(&("hooks.silent".to_owned(), "warning".to_owned())));
    let fixture = Fixture::own().settle_in(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    eventually("the spans are sent, and nothing moves", SOON, || {
        let before = tables(&world);
        let status = world.json(&["status", "--json"]);
        let sent = status["destinations"][0]["delivered"].as_u64() > Some(0)
            && status["destinations"][0]["pending"] == 0;
        let _seen = wrong(&world);
        if sent && tables(&world) == before { Ok(()) } else { Err(format!("{status:#}")) }
    });
    let counters = || world.json(&["status", "--json"])["counters"].clone();
    let exports = || {
        ["jsonl", "otlp-json", "chrome-trace"]
            .map(|format| world.ok(&["export", "--all", "--format", format, "--content", "full"]))
    };
    let lists = || [world.ok(&["sessions", "--json"]), world.ok(&["stats", "--json"])];
    let health = || collector.get("health").unwrap()["counters"].clone();
    let before = (tables(&world), counters(), exports(), lists(), health(), sink.bodies());
    for run in 0..31 {
        let found = finding(&world, "collector.arrival");
        assert_eq!(found["severity"], "ok", "run {run}: {found:#}");
    }
    let after = (tables(&world), counters(), exports(), lists(), health(), sink.bodies());
    assert_eq!(before.0, after.0, "a table changed");
    assert_eq!(before.1, after.1, "a counter changed");
    assert_eq!(before.2, after.2, "an export changed");
    assert_eq!(before.3, after.3, "a list changed");
    assert_eq!(before.4, after.4, "the dashboard's counters changed");
    assert_eq!(before.5, after.5, "something was sent");
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["backlog"], 0);
    let (code, _) = collector.stop();
    assert!(code.success());
    // A probe that nobody has read does not count as a hook either.
    let body = r#"{"hookspan_probe":"00112233445566778899aabbccddeeff"}"#;
    let event = "hookspan-doctor-00112233445566778899aabbccddeeff";
    assert_eq!(player::hook(&world, event, body.as_bytes()).code, Some(0));
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["backlog"], 0, "{status:#}");
    let collector = Collector::start(&world);
    collector.drained(SOON);
    assert_eq!(tables(&world)["raw_hook"], after.0["raw_hook"]);
    drop(collector);
    assert_eq!(counters(), after.1, "a probe was counted by the next collector");
}

#[test]
fn a_hook_that_only_looks_like_a_probe_is_kept() {
    let world = World::new();
    world.shim();
    let collector = Collector::start(&world);
    let digits = "00112233445566778899aabbccddeeff";
    let probe = format!("{{\"hookspan_probe\":\"{digits}\"}}");
    let cursor = r#"{"conversation_id":"c","generation_id":"g","hook_event_name":"stop","cursor_version":"3.7.19","status":"completed","loop_count":0}"#;
    // First the text of a probe in an ordinary event, then a hook of Cursor with the argument of a probe. Both are
    // ordinary hooks.
    for (event, body) in
        [("stop".to_owned(), probe.as_str()), (format!("hookspan-doctor-{digits}"), cursor)]
    {
        assert_eq!(player::hook(&world, &event, body.as_bytes()).code, Some(0));
    }
    collector.committed(2);
    let sessions = world.json(&["sessions", "--json"]);
    assert!(
        sessions.as_array().unwrap().iter().any(|session| session["id"] == "c"),
        "{sessions:#}"
    );
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
fn every_fault_of_a_hooks_json_is_found_with_its_place() {
    let world = World::new();
    let hooks = installed(&world);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut hooks = hooks.clone();
        change(&mut hooks);
        rewrite(&world, &hooks);
    };
    let add = |entry: Value| {
        with(&|hooks| hooks["hooks"]["stop"].as_array_mut().unwrap().push(entry.clone()));
    };
    for foreign in [
        json!({ "command": "./mine.sh", "timeout": 0 }),
        json!({ "command": "./mine.sh", "timeout": "30" }),
        json!({ "type": "http", "command": "./mine.sh" }),
        json!({ "command": "  " }),
        json!({ "command": "./mine.sh", "matcher": 7 }),
        json!({ "command": "./mine.sh", "matcher": "Shell(" }),
        json!({ "hooks": [{ "type": "command", "command": "./mine.sh" }] }),
        json!("./mine.sh"),
    ] {
        add(foreign.clone());
        only(&world, "hooks.void", "problem");
        let found = finding(&world, "hooks.void");
        let place = &found["places"][0];
        let text = fs::read_to_string(hooks_json(&world)).unwrap();
        let line = text.lines().nth(place["line"].as_u64().unwrap() as usize - 1).unwrap();
        let at: String =
            line.chars().skip(place["column"].as_u64().unwrap() as usize - 1).collect();
        let named = ["0", "\"30\"", "\"http\"", "\"  \"", "7", "\"Shell(\"", "{", "\"./mine.sh\""];
        assert!(named.iter().any(|start| at.starts_with(start)), "{foreign}: {found:#} at {at}");
    }
    for version in [json!("1"), json!(null), json!(0), json!(1.5)] {
        with(&|hooks| hooks["version"] = version.clone());
        only(&world, "hooks.version", "problem");
    }
    with(&|hooks| drop(hooks.as_object_mut().unwrap().remove("version")));
    only(&world, "hooks.version", "problem");
    add(json!({ "command": "curl -s https://a.example.invalid/x -d @-" }));
    only(&world, "hooks.void_for_cli", "warning");
    with(&|hooks| hooks["hooks"]["notification"] = json!([{ "command": "./mine.sh" }]));
    only(&world, "hooks.unknown_event", "warning");
    with(&|hooks| {
        for event in ["stop", "postToolUse"] {
            hooks["hooks"].as_object_mut().unwrap().remove(event);
        }
    });
    only(&world, "hooks.missing_events", "problem");
    let what = finding(&world, "hooks.missing_events")["what"].as_str().unwrap().to_owned();
    assert!(what.contains("postToolUse, stop"), "{what}");
    with(&|hooks| drop(hooks["hooks"].as_object_mut().unwrap().remove("sessionStart")));
    only(&world, "hooks.missing_events", "warning");
    let command = hooks["hooks"]["stop"][0]["command"].as_str().unwrap().to_owned();
    add(json!({ "command": command, "timeout": 10 }));
    only(&world, "hooks.doubled", "problem");
    let windows = r"C:\Users\kim\AppData\Local\hookspan\bin\hookspan-shim.exe stop";
    // If an event has only an entry of another system, hookspan's own entry is missing, which is a separate finding. So
    // the event keeps both entries.
    let both =
        json!([{ "command": command, "timeout": 10 }, { "command": windows, "timeout": 10 }]);
    with(&|hooks| hooks["hooks"]["stop"] = both.clone());
    only(&world, "hooks.other_system", "problem");
    for wrapper in ["HOOKSPAN_DIR=/x COMMAND", "sh -c 'COMMAND'", "COMMAND || true"] {
        let wrapped = wrapper.replace("COMMAND", command.trim_start_matches("exec "));
        with(&|hooks| hooks["hooks"]["stop"] = json!([{ "command": wrapped, "timeout": 10 }]));
        only(&world, "hooks.foreign_form", "warning");
    }
    let elsewhere = world.scratch("elsewhere");
    let there = command.replace(" stop", &format!(" --dir {} stop", elsewhere.display()));
    with(&|hooks| hooks["hooks"]["stop"] = json!([{ "command": there, "timeout": 10 }]));
    only(&world, "hooks.other_directory", "problem");
    assert!(!elsewhere.exists());
    with(&|hooks| hooks["hooks"]["stop"][0]["matcher"] = json!("Shell"));
    only(&world, "hooks.altered", "warning");
    rewrite(&world, &hooks);
    assert_eq!(world.run(&["doctor"]).code, 0);
}

/// A Cursor started from the desktop does not have the variables of the shell in which `doctor` runs.
#[test]
fn variables_of_the_shell_do_not_hide_where_hooks_go() {
    let world = World::new();
    let hooks = installed(&world);
    let text = hooks.to_string();
    assert!(!text.contains("--dir"), "{text}");
    let elsewhere = world.scratch("elsewhere");
    for (name, value) in
        [("XDG_STATE_HOME", elsewhere.clone()), ("HOOKSPAN_DIR", elsewhere.join("hookspan"))]
    {
        let mut command = world.command(&world.hookspan());
        let finished =
            Finished::from(command.env(name, value).args(["doctor", "--json"]).output().unwrap());
        let found = wrong_of(&serde_json::from_str(&finished.stdout).unwrap());
        let expected = ("hooks.other_directory".to_owned(), "problem".to_owned());
        assert!(found.contains(&expected), "{name}: {found:?}");
        assert_eq!(finished.code, 1, "{name}");
    }
    assert!(!elsewhere.exists(), "doctor made it");
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

/// An OTLP receiver over HTTP that takes everything.
struct Sink {
    url: String,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Sink {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let taken = Arc::clone(&taken);
                std::thread::spawn(move || serve(stream, &taken));
            }
        });
        Self { url, bodies }
    }

    /// Number of requests with spans. `doctor` tests a destination with an empty request.
    fn bodies(&self) -> usize {
        self.bodies.lock().unwrap().iter().filter(|body| body.len() > 64).count()
    }
}

/// Answers the requests of one connection, one after another, until it is closed.
fn serve(mut stream: std::net::TcpStream, taken: &Mutex<Vec<Vec<u8>>>) {
    let mut bytes = Vec::new();
    let mut piece = [0; 64 << 10];
    loop {
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        let text = String::from_utf8_lossy(&bytes[..head.unwrap_or(0)]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        if let Some(head) = head.filter(|head| bytes.len() >= head + length) {
            let rest = bytes.split_off(head + length);
            taken.lock().unwrap().push(bytes.split_off(head));
            bytes = rest;
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
            continue;
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

/// Cases of a hooks.json with entries of other programs: the file, the id of the finding that `doctor` reports after
/// `install`, and a part of the finding's text. The id is empty if there must be no finding.
const OF_OTHERS: [(&str, &str, &str); 4] = [
    (
        "{ \"version\": \"1\", \"hooks\": { \"stop\": [ { \"command\": \"./mine.sh\" } ] } }\n",
        "",
        "",
    ),
    (
        "{ \"version\": 1, \"hooks\": { \"preToolUse\": [ { \"command\": \"./mine.sh\", \"matcher\": \"Shell(\" } ] } }\n",
        "hooks.void",
        "not a regular expression",
    ),
    (
        "{ \"version\": 1, \"hooks\": { \"stop\": [ { \"command\": \"curl -s https://a.example.invalid/x -d @-\" } ] } }\n",
        "hooks.void_for_cli",
        "a text contains `//`",
    ),
    (
        "{ \"version\": 1, \"hooks\": { \"stop\": [ { \"command\": \"C:\\\\Users\\\\kim\\\\AppData\\\\Local\\\\hookspan\\\\bin\\\\hookspan-shim.exe stop\", \"timeout\": 10 } ] } }\n",
        "hooks.other_system",
        "for another operating system",
    ),
];

#[test]
fn hooks_of_other_people_are_kept_and_their_faults_are_told_once() {
    for (text, id, what) in OF_OTHERS {
        let world = World::new();
        let path = world.write_home(".cursor/hooks.json", text);
        installed(&world);
        let mut found = wrong(&world);
        found.retain(|(id, _)| id != "collector.stopped" && id != "hooks.silent");
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        let expected: &[&str] = if id.is_empty() { &[] } else { &[id] };
        assert_eq!(ids, expected, "{text}");
        if !id.is_empty() {
            let said = finding(&world, id)["what"].to_string();
            assert!(said.contains(what), "{said}");
        }
        world.ok(&["uninstall", "--scope", "user"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
