//! Tests that `doctor` and `status` change nothing: no file without a collector, no row and no counter beside one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rusqlite::types::Value as Cell;

use e2e_support::collector::Collector;
use e2e_support::fixture::Fixture;
use e2e_support::player;
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;

use super::{finding, tree, wrong};

/// Keys of `state` that every transaction writes.
const MOVING: [&str; 3] = ["\"journal\"", "\"alive_ns\"", "\"rev\""];

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
