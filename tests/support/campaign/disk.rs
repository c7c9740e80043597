//! Full disks, at the shim, at the collector, at both.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Report, extend, send};
use crate::collector::{self, Collector};
use crate::ledger::{Ledger, Verdict};
use crate::machine::Mounted;
use crate::verify;
use crate::wait::{SOON, eventually};
use crate::world::World;

/// How soon everything is stored once there is room again; a debug build stores what has piled up more slowly.
const BACK: Duration = Duration::from_secs(if cfg!(debug_assertions) { 15 } else { 5 });

/// Shims meet a full disk: with a collector or without, everything is stored or counted, and it recovers unaided.
///
/// # Errors
/// The machine does not permit it.
pub fn run(shims: u64, seed: u64) -> Result<Report, String> {
    let lines = [without_collector(shims, seed)?, with_collector(shims, seed)?];
    Ok(lines.join("\n"))
}

/// A state directory of so many megabytes, and nowhere to spill.
fn small_world(mebibytes: u64) -> Result<(World, Mounted), String> {
    let mut world = World::new().with_env("XDG_RUNTIME_DIR", "/nonexistent");
    let disk = Mounted::tmpfs(&world.home().join(".local/state"), mebibytes)?;
    world.copy_shim();
    Ok((world, disk))
}

/// Nobody reads, the disk is full: what the reserve takes is stored later, the rest is counted.
fn without_collector(shims: u64, seed: u64) -> Result<Report, String> {
    let (world, disk) = small_world(96)?;
    // A collector prepares journal, reserve and counter, as it does on every machine that has run one.
    drop(Collector::start(&world));
    let filler = disk.fill("filler");
    let ledger = send(&world, shims, seed);
    fs::remove_file(filler).unwrap();
    let collector = Collector::start(&world);
    collector.drained(Duration::from_secs(120));
    drop(collector);
    let (stored, lost) = account(&world, &ledger);
    Ok(format!(
        "disk-full, no collector: {shims} shims, {stored} stored, {lost} lost and counted, sum exact"
    ))
}

/// The collector is at work when the disk fills: it stays, reads go on, trouble is shown, and it is back within seconds.
fn with_collector(shims: u64, seed: u64) -> Result<Report, String> {
    let (world, disk) = small_world(96)?;
    let mut collector = Collector::start(&world);
    let mut ledger = send(&world, 20, seed);
    collector.drained(SOON);
    let filler = disk.fill("filler");
    extend(&mut ledger, &world, shims, seed);
    assert!(collector.is_running(), "it ended on a full disk\n{}", collector::log(&world));
    let sessions = collector.get("sessions").unwrap();
    assert!(!sessions["items"].as_array().unwrap().is_empty(), "reads do not work: {sessions:#}");
    let shown = eventually("the trouble is shown", SOON, || {
        let status = world.json(&["status", "--json"]);
        let busy = status["backlog"].as_u64().unwrap_or(0) > 0 || status["trouble"].is_string();
        if busy || status["losses"].as_object().is_some_and(|lost| !lost.is_empty()) {
            Ok(status)
        } else {
            Err(format!("{status:#}"))
        }
    });
    fs::remove_file(filler).unwrap();
    let freed = Instant::now();
    let back = eventually("everything is stored again", Duration::from_secs(60), || {
        match world.json(&["status", "--json"])["backlog"].as_u64() {
            Some(0) => Ok(freed.elapsed()),
            backlog => Err(format!("{backlog:?}")),
        }
    });
    assert!(back <= BACK, "it took {back:?} to come back\n{}", collector::log(&world));
    drop(collector);
    let (stored, lost) = account(&world, &ledger);
    Ok(format!(
        "disk-full, collector at work: {} shims, {stored} stored, {lost} lost and counted, sum exact; never exited, reads \
         worked, shown as {}; back after {back:.1?}",
        shims + 20,
        shown["trouble"]
    ))
}

/// Every shim exited 0 with its answer, and is stored or counted: never both, never neither.
#[track_caller]
fn account(world: &World, ledger: &Ledger) -> (usize, usize) {
    assert_eq!(ledger.refused(), [], "a shim was harmed by a full disk");
    let mut comparison = ledger.comparison();
    verify::each_raw_body(world, |body| comparison.see(body));
    let stored = comparison.stored().len();
    let Verdict { lost, duplicate, different } = comparison.verdict();
    assert_eq!((duplicate, different), Default::default());
    let status = world.json(&["status", "--json"]);
    let counted: u64 =
        status["losses"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(lost.len() as u64, counted, "stored {stored}, {status:#}");
    assert_eq!(stored + lost.len(), ledger.accepted());
    (stored, lost.len())
}
