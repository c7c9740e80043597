//! System calls that fail, file systems that refuse, clocks that jump.

use std::fs;
use std::time::Duration;

use super::super::{Report, extend, nothing_is_lost, send, settle};
use crate::collector::Collector;
use crate::ledger;
use crate::machine::{self, Mounted};
use crate::player;
use crate::spans;
use crate::verify;
use crate::wait::SOON;
use crate::world::World;

/// The third to fifth sync of the journal fails. A failed sync is never repeated on the same descriptor.
pub(super) fn eio_on_the_journal(seed: u64) -> Result<Report, String> {
    machine::tool("strace")?;
    let world = World::new();
    world.shim();
    let log = world.scratch("strace.log");
    let log_path = log.to_str().unwrap();
    let wrapper = [
        "strace",
        "-f",
        "-qq",
        "-o",
        log_path,
        "-e",
        "trace=fdatasync,open,openat",
        "-e",
        "inject=fdatasync:error=EIO:when=3..5",
    ];
    let collector = Collector::start_below(&world, &wrapper);
    let mut ledger = send(&world, 30, seed);
    collector.drained(SOON);
    for _ in 0..8 {
        extend(&mut ledger, &world, 10, seed);
        collector.drained(SOON);
    }
    let counted = world.json(&["status", "--json"])["counters"]["journal_sync_failed"].clone();
    stop(&collector, &world);
    let trace = fs::read_to_string(&log).unwrap_or_default();
    let failed = trace.matches("(INJECTED)").count();
    assert!(failed > 0, "no sync failed");
    assert_eq!(counted, failed, "failed syncs are counted");
    never_just_retried(&trace);
    settle(&world, &ledger);
    Ok(format!(
        "{failed} failed syncs of the journal counted, each followed by a new descriptor; {} hooks, 0 lost, 0 duplicated",
        ledger.accepted()
    ))
}

/// Between a failed sync and the next one, the file must have been opened again.
#[track_caller]
fn never_just_retried(trace: &str) {
    let mut failed = false;
    for line in trace.lines() {
        if line.contains("fdatasync(") {
            assert!(!failed, "a sync was repeated: {line}");
            failed = line.contains("EIO");
        } else if line.contains("open") && line.contains("journal") {
            failed = false;
        }
    }
}

/// Syncs of the database fail for a while. The collector opens the database again, hooks wait, and nothing is lost.
pub(super) fn eio_on_the_database(seed: u64) -> Result<Report, String> {
    machine::tool("strace")?;
    let world = World::new();
    world.shim();
    drop(Collector::start(&world));
    let log = world.scratch("strace.log");
    let log_path = log.to_str().unwrap();
    // strace counts calls per thread. The first ones are made at the start.
    let commits = world.state().join("hookspan.db-wal");
    let wrapper = [
        "strace",
        "-f",
        "-qq",
        "-o",
        log_path,
        "-P",
        commits.to_str().unwrap(),
        "-e",
        "trace=fsync",
        "-e",
        "inject=fsync:error=EIO:when=5..8",
    ];
    let collector = Collector::start_below(&world, &wrapper);
    let mut ledger = send(&world, 30, seed);
    for _ in 0..12 {
        collector.drained(SOON);
        extend(&mut ledger, &world, 5, seed);
    }
    collector.drained(SOON);
    let retries = world.json(&["status", "--json"])["counters"]["store_retries"].clone();
    stop(&collector, &world);
    let failed = fs::read_to_string(&log).unwrap_or_default().matches("(INJECTED)").count();
    assert!(failed > 0, "no sync failed");
    settle(&world, &ledger);
    Ok(format!(
        "{failed} failed syncs of the database, {retries} commits repeated on a new connection; {} hooks, 0 lost, \
         0 duplicated",
        ledger.accepted()
    ))
}

/// Ends a collector that another program started. The signal must reach the collector and not the wrapper.
fn stop(collector: &Collector<'_>, world: &World) {
    let info = fs::read_to_string(world.state().join("serve.json")).unwrap();
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    let pid = rustix::process::Pid::from_raw(info["pid"].as_i64().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    collector.gone();
}

/// The state directory is on a file system that became read-only.
pub(super) fn read_only(seed: u64) -> Result<Report, String> {
    let mut world = World::new();
    let disk = Mounted::tmpfs(&world.home().join(".local/state"), 128)?;
    world.copy_shim();
    drop(Collector::start(&world));
    disk.remount("ro");
    let ledger = send(&world, 20, seed);
    let refused = world.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(
        refused.stderr.to_lowercase().contains("read-only"),
        "it does not say why: {refused:#?}"
    );
    let doctor = world.run(&["doctor"]);
    let said = format!("{}{}", doctor.stdout, doctor.stderr).to_lowercase();
    assert!(said.contains("read-only") || said.contains("cannot be written"), "{said}");
    disk.remount("rw");
    settle(&world, &ledger);
    Ok(format!(
        "{} hooks on a read-only directory: exit 0 with the neutral reply, kept in the run-time directory and stored \
         afterwards, 0 lost; `serve` and `doctor` name it",
        ledger.accepted()
    ))
}

/// Collectors run with a clock that is an hour slow, then a day fast, then right.
pub(super) fn clock_jumps(seed: u64) -> Result<Report, String> {
    let library = faketime()?;
    let world = World::new().with_env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    world.shim();
    let mut ledger = ledger::Ledger::of(ledger::mixed);
    for clock in ["-1h", "+1d", "+0s"] {
        let below = ["env", &format!("LD_PRELOAD={library}"), &format!("FAKETIME={clock}")];
        let collector = Collector::start_below(&world, &below);
        extend(&mut ledger, &world, 60, seed);
        collector.drained(SOON);
        drop(collector);
    }
    // The clocks of one conversation's hooks jump: back by an hour, and forward by a day.
    let journal = world.state().join("journal");
    let mut odd = 0;
    for (step, wall) in [0_i64, -3_600, 86_400, 1].into_iter().enumerate() {
        let body = format!(
            "{{\"conversation_id\":\"clock\",\"generation_id\":\"g\",\"number\":{},\"text\":\"x\",\
             \"hook_event_name\":\"afterAgentThought\"}}",
            1_000_000 + step
        );
        let wall = (1_780_000_000 + wall).unsigned_abs() * 1_000_000_000;
        let frame = super::super::frames::record(
            step as u64 + 77,
            wall,
            "afterAgentThought",
            body.as_bytes(),
        );
        let mut file = fs::File::options().append(true).open(&journal).unwrap();
        std::io::Write::write_all(&mut file, &frame).unwrap();
        odd += 1;
    }
    let collector = Collector::start(&world);
    collector.drained(SOON);
    drop(collector);
    let mut order = Vec::new();
    verify::each_raw_body(&world, |body| order.extend(ledger::number(body)));
    let own: Vec<u64> = order.iter().copied().filter(|number| *number >= 1_000_000).collect();
    assert_eq!(own, [1_000_000, 1_000_001, 1_000_002, 1_000_003], "the journal's order is kept");
    assert_eq!(order.len(), ledger.accepted() + odd);
    let spans = spans::from_otlp_json(&verify::otlp_json(&world));
    let backwards = spans.iter().filter(|span| span.end < span.start).count();
    assert_eq!(backwards, 0, "spans that end before they start");
    Ok(format!(
        "collectors an hour slow, a day fast, right; 4 hooks whose clocks jump: {} hooks stored in the journal's order, {} \
         spans, none negative",
        order.len(),
        spans.len()
    ))
}

/// The library that makes programs see another time.
fn faketime() -> Result<String, String> {
    let folders = fs::read_dir("/usr/lib").map_err(|error| error.to_string())?.flatten();
    folders
        .map(|folder| folder.path().join("faketime/libfaketime.so.1"))
        .find(|path| path.exists())
        .map(|path| path.display().to_string())
        .ok_or_else(|| "libfaketime is not installed".to_owned())
}

/// Checks that a shim gives its neutral answer although it is directed to another place.
#[track_caller]
pub(super) fn answers(world: &World, directory: &std::path::Path) {
    let mut child = world
        .command(world.shim())
        .arg("--dir")
        .arg(directory)
        .arg("afterAgentThought")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    player::feed(&mut child, &ledger::mixed(1));
    let reply = player::Reply::from(child.wait_with_output().unwrap());
    let right = player::Reply { code: Some(0), stdout: "{}\n".into(), stderr: String::new() };
    assert_eq!(reply, right, "{}", directory.display());
}

/// Like [`nothing_is_lost`], for a collector that still runs.
#[track_caller]
pub(super) fn stored(world: &World, collector: Collector<'_>, ledger: &ledger::Ledger) {
    collector.drained(Duration::from_secs(120));
    drop(collector);
    nothing_is_lost(world, ledger);
}
