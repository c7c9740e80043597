//! Tests databases that were moved aside: salvage although reads fail, and who may delete them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use e2e_support::campaign;
use e2e_support::collector::{self, Collector};
use e2e_support::ledger::{Ledger, Verdict};
use e2e_support::wait::{SOON, eventually, pause};
use e2e_support::world::World;
use e2e_support::{machine, skip, verify};

/// A database with hooks that are stored nowhere else. It was moved aside as if it were damaged, and has not been
/// salvaged yet.
fn aside(world: &World, hooks: u64) -> (Ledger, PathBuf) {
    let collector = Collector::start(world);
    let ledger = campaign::send(world, hooks, 7);
    collector.committed(usize::try_from(hooks).unwrap());
    collector.stop();
    let folder = world.state().join("damaged-1700000000000000000");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    fs::rename(world.state().join("hookspan.db"), folder.join("hookspan.db")).unwrap();
    for entry in fs::read_dir(world.state()).unwrap().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if ["journal", "seg-", "hookspan.db"].iter().any(|known| name.starts_with(known)) {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    (ledger, folder)
}

/// Checks what `status` reports after it was salvaged.
#[track_caller]
fn saved(world: &World) -> String {
    eventually("it is saved", SOON * 2, || {
        let status = world.json(&["status", "--json"]);
        let shown = status["damaged"][0].as_str().unwrap_or_default().to_owned();
        let done = status["salvaging"] == false && status["backlog"] == 0;
        if done { Ok(shown) } else { Err(format!("{status:#}\n{}", collector::log(world))) }
    })
}

/// Ends a collector that runs below a tracer. The signal goes to the collector itself, because a tracer that gets it
/// only detaches. The tracer ends after the collector.
#[track_caller]
fn end_traced(world: &World, mut collector: Collector<'_>) {
    let info = fs::read(world.state().join("serve.json")).unwrap();
    let info: Value = serde_json::from_slice(&info).unwrap();
    let pid = Pid::from_raw(info["pid"].as_i64().unwrap() as i32).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    eventually("the traced collector ends", SOON, || {
        if collector.is_running() { Err(collector::log(world)) } else { Ok(()) }
    });
}

/// SQLite reports a failed read as damage. Earlier builds counted each of these hooks as lost and never read them
/// again.
#[test]
fn reads_that_fail_while_a_database_is_saved_cost_no_hook() {
    if let Err(why) = machine::tool("strace") {
        return skip::skip("reads that fail while a database is saved", &why);
    }
    for (error, when) in [("EIO", "8..60"), ("EIO", "5+7"), ("EINTR", "3+2"), ("ENXIO", "20..70")] {
        let world = World::new();
        let (ledger, folder) = aside(&world, 300);
        let log = world.scratch("strace.log");
        let inject = format!("inject=pread64:error={error}:when={when}");
        let path = folder.join("hookspan.db");
        let wrapper = [
            "strace",
            "-f",
            "-qq",
            "-o",
            log.to_str().unwrap(),
            "-e",
            "trace=pread64",
            "-e",
            &inject,
            "-P",
            path.to_str().unwrap(),
        ];
        let failing = Collector::start_below(&world, &wrapper);
        let goes_on = when.contains('+');
        if goes_on {
            // Reads keep failing. The salvage is not given up: the next collector completes it.
            pause(Duration::from_secs(2));
            let status = world.json(&["status", "--json"]);
            let shown = status["damaged"][0].as_str().unwrap_or_default();
            assert!(!shown.contains("lost") || shown.contains("at most 0 lost"), "{shown}");
        } else {
            let shown = saved(&world);
            assert!(
                shown.contains("300 hooks were saved, at most 0 lost"),
                "{error} {when}: {shown}"
            );
        }
        end_traced(&world, failing);
        let next = Collector::start(&world);
        let shown = saved(&world);
        assert!(shown.contains("300 hooks were saved, at most 0 lost"), "{error} {when}: {shown}");
        drop(next);
        let failed = fs::read_to_string(&log).unwrap().matches("(INJECTED)").count();
        assert!(failed > 0, "{error} {when}: nothing failed");
        eprintln!("{error} {when}: {failed} reads failed, 300 hooks saved");
        let bodies = verify::raw_bodies(&world);
        assert_eq!(ledger.compare(bodies.iter().map(Vec::as_slice)), Verdict::default());
    }
}

fn prune(world: &World) -> (Value, String) {
    let done = world.run(&["prune", "--damaged", "--yes", "--json"]);
    assert_eq!(done.code, 0, "{done:#?}");
    (serde_json::from_str(&done.stdout).unwrap(), done.stderr)
}

#[test]
fn a_damaged_database_is_deleted_beside_a_collector_once_it_is_saved_and_not_before() {
    let world = World::new();
    let (ledger, folder) = aside(&world, 120);
    // The database cannot be read yet, so the collector has not saved its hooks.
    let (path, away) = (folder.join("hookspan.db"), folder.join("away"));
    fs::rename(&path, &away).unwrap();
    fs::create_dir(&path).unwrap();
    let collector = Collector::start(&world);
    let (answer, told) = prune(&world);
    assert_eq!((&answer["damaged_databases"], folder.exists()), (&json!(0), true), "{answer:#}");
    assert!(told.contains("the running collector is still copying hooks from it"), "{told}");

    fs::remove_dir(&path).unwrap();
    fs::rename(away, path).unwrap();
    assert!(saved(&world).contains("120 hooks were saved, at most 0 lost"));
    let dry = world.json(&["prune", "--damaged", "--dry-run", "--json"]);
    let (answer, _) = prune(&world);
    assert_eq!((&dry["damaged_databases"], &answer["damaged_databases"]), (&json!(1), &json!(1)));
    assert!(!folder.exists() && world.json(&["status", "--json"])["damaged"] == json!([]));
    drop(collector);
    let bodies = verify::raw_bodies(&world);
    assert_eq!(ledger.compare(bodies.iter().map(Vec::as_slice)), Verdict::default());
}

/// While no collector runs, a person may also delete a database whose hooks were not saved.
#[test]
fn without_a_collector_a_damaged_database_is_deleted_saved_or_not() {
    let world = World::new();
    let (_, folder) = aside(&world, 20);
    let (answer, _) = prune(&world);
    assert_eq!((&answer["damaged_databases"], folder.exists()), (&json!(1), false));
}
