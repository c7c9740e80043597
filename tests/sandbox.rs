//! Tests which rights the running collector gives up, and that it works without them. All other tests run a collector
//! with the sandbox on as well.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use e2e_support::collector::Collector;
use e2e_support::fixture::Fixture;
use e2e_support::player;
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;
use serde_json::Value;

/// What the `status` of every thread of a process says about new privileges.
fn no_new_privileges(pid: i32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok())
        .map(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("NoNewPrivs:"));
            line.unwrap_or_default().trim().to_owned()
        })
        .collect()
}

fn said_by_doctor(world: &World) -> String {
    let doctor = world.json(&["doctor", "--json"]);
    let findings = doctor["findings"].as_array().or_else(|| doctor.as_array()).unwrap().clone();
    let found = findings.iter().find(|one| one.to_string().contains("collector.sandbox"));
    found.map_or_else(|| doctor.to_string(), Value::to_string)
}

#[test]
fn a_collector_in_its_sandbox_does_all_its_work() {
    // A receiver that tells whether somebody connected.
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = receiver.local_addr().unwrap().port();
    let (came, requests) = mpsc::channel();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = receiver.accept() {
            let mut head = [0; 4_096];
            let _read = stream.read(&mut head);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _written = stream.write_all(answer);
            if came.send(()).is_err() {
                return;
            }
        }
    });
    let world = World::new();
    let socket = world.scratch("elsewhere/door");
    fs::create_dir(socket.parent().unwrap()).unwrap();
    world.write_config(&format!(
        "[[destination]]\nname = \"d\"\nendpoint = \"http://127.0.0.1:{port}\"\nbackfill = \"all\"\n"
    ));
    let unix = format!("unix:{}", socket.display());
    let collector = Collector::start_with(&world, &["--listen", &unix]);
    let pid = collector.pid().as_raw_nonzero().get();
    assert!(no_new_privileges(pid).iter().all(|one| one == "1"), "{:?}", no_new_privileges(pid));
    let said = said_by_doctor(&world);
    assert!(said.contains("no new privileges"), "{said}");
    eprintln!("{said}");

    // Hooks, an import at the same time, a search, a file, a deletion, a delivery.
    let fixture = Fixture::own().settle_in(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    requests.recv_timeout(Duration::from_secs(60)).expect("the destination hears of it");
    let raw = world.scratch("raw.jsonl");
    let path = raw.to_str().unwrap();
    world.ok(&["export", "--all", "--format", "jsonl", "--content", "full", "-o", path]);
    world.ok(&["import", path]);
    let sessions = collector.get("sessions").unwrap();
    let root = sessions["items"][0]["id"].as_str().unwrap().to_owned();
    let page = format!("{}/api/v1/sessions/{root}/export?format=html", collector.url);
    assert!(collector.get_text(&page).unwrap().contains("<html"));
    eventually("texts are indexed", SOON, || {
        let found = collector.get("search?q=test")?;
        if found["lag"] == 0 { Ok(()) } else { Err(found.to_string()) }
    });
    let confirm = serde_json::json!({ "confirm": root });
    let deleted = collector.post(&format!("sessions/{root}/delete"), &confirm).unwrap();
    assert!(deleted["deleted_hooks"].as_u64().unwrap() > 0, "{deleted}");
    collector.stop();
    assert!(!Path::new(&socket).exists(), "its socket goes with it");

    let audit = world.json(&["audit", "--json"]);
    let entries = audit["entries"].as_array().unwrap();
    let words: Vec<&str> = entries.iter().filter_map(|one| one["what"].as_str()).collect();
    for what in ["destination added", "file exported", "deleted"] {
        assert!(words.contains(&what), "{what}: {words:?}");
    }
    assert!(!audit.to_string().contains(&root), "no id of a session outlives it");
}

#[test]
fn the_sandbox_can_be_switched_off() {
    let world = World::new();
    world.write_config("[sandbox]\nenabled = false\n");
    let collector = Collector::start(&world);
    let said = said_by_doctor(&world);
    assert!(said.contains("no new privileges; [sandbox] is switched off"), "{said}");
    assert!(no_new_privileges(collector.pid().as_raw_nonzero().get()).iter().all(|one| one == "1"));
}

/// For each attack in SECURITY.md that is marked as tested, there is a test.
#[test]
fn every_test_that_security_md_names_is_there() {
    let project = e2e_support::binaries::project();
    let page = fs::read_to_string(project.join("SECURITY.md")).unwrap();
    let (_, table) = page.split_once("## Attacks that are tests").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let mut sources = String::new();
    for folder in ["dashboard", "collector", "tests"] {
        collect(&project.join(folder), &mut sources);
    }
    let mut named = 0;
    for part in table.split('`').skip(1).step_by(2).filter(|part| part.contains("::")) {
        let (_, name) = part.split_once("::").unwrap();
        named += 1;
        assert!(sources.contains(&format!("fn {name}(")), "there is no test {name}");
    }
    assert!(named > 40, "{named}");
}

fn collect(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["node_modules", "target"].contains(&name) {
            collect(&path, sources);
        } else if name.ends_with(".rs") {
            sources.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}
